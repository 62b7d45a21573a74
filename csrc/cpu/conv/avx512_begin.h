// As cpu/avx512_begin.h, for convolutions: what stands between this and cpu/avx512_end.h is compiled for AVX-512
// whatever the build's instruction set, and all other headers come before.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#pragma GCC optimize("O3")  // loops over registers must be unrolled
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
