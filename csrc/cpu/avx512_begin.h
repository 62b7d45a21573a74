// What stands between this and cpu/avx512_end.h is compiled for AVX-512 whatever the build's instruction set; whoever
// calls it asks cpu/features.h first. All other headers come before: of an inline function that was compiled for
// AVX-512 here, the linker might keep that copy for every processor.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "cpu/gemm/microkernel_avx512.h"
