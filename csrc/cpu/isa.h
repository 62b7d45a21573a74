// The instruction set that a kernel's file is compiled for: everything it defines lives in namespace rl::RL_ISA, and
// what all instruction sets share in rl::cpu. See README.md, Instruction sets.
#pragma once
#ifndef RL_ISA
#error "compile CPU kernels through CMakeLists.txt, which sets RL_ISA"
#endif
// An overlay has only what gains from its instructions, over the tables of the full instruction set before it.
// RL_FULL is that one; in a full instruction set, itself.
#ifdef __AVX512F__
#define RL_OVERLAY
#define RL_FULL avx2
#else
#define RL_FULL RL_ISA
#endif
// Functions of convolutions in the AVX2 build that are compiled for AVX-512.
#if defined(__AVX2__) && !defined(__AVX512F__)
#define RL_HAS_AVX512
#define RL_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#else
#define RL_AVX512
#endif

namespace rl::cpu {}
namespace rl::RL_ISA {
using namespace rl::cpu;
}
