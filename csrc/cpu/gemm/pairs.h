// bf16 pairs as operands of a GEMM, for processors that multiply them: Note [Pairs of bf16].
#pragma once
#include "cpu/gemm/pack_bf16.h"

namespace rl::RL_ISA {
namespace {

// A dword is two steps, each a bfloat16 or a float that is rounded to one.
template <class S> struct Pairs {
  using Number = S;
  alignas(64) static constexpr uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  alignas(64) static constexpr uint16_t kHigh[32] = {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                                                     24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
  static constexpr int64_t kSteps = 2;
  static constexpr bool kInPlace = std::is_same_v<S, bfloat16>;
  static __m512 along(const S* from, int64_t left) {
    if constexpr (std::is_same_v<S, float>)
      return reinterpret_cast<__m512>(
          _mm512_cvtne2ps_pbh(get(from + 16, first16(left - 16)), get(from, first16(left))));
    else return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(first32(left), from));
  }
  static __m512 across(const S* from, int64_t step, int64_t left, __mmask16 mask) {
    const __mmask16 second = left > 1 ? mask : 0;
    if constexpr (std::is_same_v<S, float>) {
      alignas(64) static constexpr uint16_t kPairs[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                          8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
      const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(get(from + step, second), get(from, mask)));
      return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kPairs), both));
    } else {
      const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
      return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_castps_si512(get(from + step, second))));
    }
  }
  static void across_two(const S* from, int64_t step, int64_t left, float* to) {
    if constexpr (std::is_same_v<S, float>) {
      _mm512_storeu_ps(to, across(from, step, left, 0xffff));
      _mm512_storeu_ps(to + 16, across(from + 16, step, left, 0xffff));
    } else {
      const __m512i r0 = _mm512_loadu_si512(from), r1 = _mm512_maskz_loadu_epi16(left > 1 ? ~0u : 0u, from + step);
      _mm512_storeu_si512(to, _mm512_permutex2var_epi16(r0, _mm512_load_si512(kLow), r1));
      _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(r0, _mm512_load_si512(kHigh), r1));
    }
  }
  static void put_two(S* to, __m512 x0, __m512 x1) {
    if constexpr (std::is_same_v<S, float>) put(to, x0, 0xffff), put(to + 16, x1, 0xffff);
    else _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(x1, x0)));
  }
  static void multiply_add(__m512& sum, __m512 x, __m512 y) {
    sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
  }
  static const BlockFn<float>* blocks(int vectors, bool in_place) { return avx512::pair_blocks(vectors, in_place); }
};

}  // namespace
}  // namespace rl::RL_ISA
