// Ends what cpu/avx512_begin.h began, and stands before the end of the file: templates of other headers are compiled
// there.
#pragma GCC pop_options
