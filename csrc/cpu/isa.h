// CPU kernels are compiled once per instruction set; everything they define lives in namespace RL_ISA,
// which the build sets to `baseline` or `avx2`. A new instruction set is one line in CMakeLists.txt
// and one row in cpu/cpu_backend.cpp.
#pragma once
#ifndef RL_ISA
#error "compile CPU kernels through CMakeLists.txt, which sets RL_ISA"
#endif
// The AVX2 build holds some functions for 512-bit registers too, which are called where the processor has them.
#if defined(__AVX2__) && !defined(__AVX512F__)
#define RL_HAS_AVX512
#define RL_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#else
#define RL_AVX512
#endif
