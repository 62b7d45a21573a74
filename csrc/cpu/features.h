// What the processor can do, in the steps that kernels are written for.
#pragma once

namespace rl::cpu {

enum class Instructions { Baseline, Avx2, Avx512, Bf16, Amx };  // each has all of those before it

// The best that this processor has; RUSHLIGHT_ISA=baseline, avx2, avx512, bf16 or amx in the environment takes less of
// it, so that one machine can test what others run.
Instructions instructions();
#ifdef __x86_64__
inline bool has_avx512() { return instructions() >= Instructions::Avx512; }
inline bool has_bf16() { return instructions() >= Instructions::Bf16; }  // products of pairs of bfloat16
inline bool has_amx() { return instructions() == Instructions::Amx; }
#else  // known while compiling, so that nothing refers to functions that the build has not
constexpr bool has_avx512() { return false; }
constexpr bool has_bf16() { return false; }
constexpr bool has_amx() { return false; }
#endif

}  // namespace rl::cpu
