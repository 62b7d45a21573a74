// What the AVX-512 loops of softmax are made of: registers of the type they are computed in.
#pragma once
#include "base/half.h"
#include "cpu/simd/math_avx512.h"

namespace rl::RL_ISA {
namespace {

template <class T> inline constexpr T kNone = -__builtin_inff();
template <class T> inline constexpr int64_t kRegisterLanes = 64 / sizeof(T);
using Mask = __mmask16;  // of doubles the lower half

template <class T> RL_STEP Mask lanes(int64_t left) {
  return static_cast<Mask>(left >= kRegisterLanes<T> ? (1 << kRegisterLanes<T>)-1 : (1 << left) - 1);
}
RL_STEP F load(const float* x) { return _mm512_loadu_ps(x); }
RL_STEP D load(const double* x) { return _mm512_loadu_pd(x); }
RL_STEP F load(const float* x, Mask some) { return _mm512_mask_loadu_ps(all(kNone<float>), some, x); }
RL_STEP D load(const double* x, Mask some) {
  return _mm512_mask_loadu_pd(all(kNone<double>), static_cast<__mmask8>(some), x);
}
RL_STEP void store(float* y, F v) { _mm512_storeu_ps(y, v); }
RL_STEP void store(double* y, D v) { _mm512_storeu_pd(y, v); }
RL_STEP void store(float* y, F v, Mask some) { _mm512_mask_storeu_ps(y, some, v); }
RL_STEP void store(double* y, D v, Mask some) { _mm512_mask_storeu_pd(y, static_cast<__mmask8>(some), v); }
RL_STEP F only(F v, Mask some) { return _mm512_maskz_mov_ps(some, v); }
RL_STEP D only(D v, Mask some) { return _mm512_maskz_mov_pd(static_cast<__mmask8>(some), v); }
RL_STEP F larger(F a, F b) { return _mm512_max_ps(a, b); }
RL_STEP D larger(D a, D b) { return _mm512_max_pd(a, b); }
RL_STEP Mask unordered(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
RL_STEP Mask unordered(D a, D b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q); }
RL_STEP float largest(F v) { return _mm512_reduce_max_ps(v); }
RL_STEP double largest(D v) { return _mm512_reduce_max_pd(v); }
RL_STEP float total_of(F v) { return _mm512_reduce_add_ps(v); }
RL_STEP double total_of(D v) { return _mm512_reduce_add_pd(v); }

// e^x of x <= 0. Of floats, what would not be a normal number is 0. NaN stays.
RL_STEP F exp_below_one(F x) {
  F power;
  const F e = exp_parts(x, power);
  const __mmask16 some = _mm512_cmp_ps_mask(x, all(-87.33f), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(some, e, power);
}
RL_STEP D exp_below_one(D x) {
  D power;
  const D e = exp_parts(x, power);
  return _mm512_maskz_scalef_pd(some_exp(x), e, power);
}

// Numbers of half size are computed as floats.
RL_STEP F load(const bfloat16* x, Mask some) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, x)), 16));
}
RL_STEP F load(const float16* x, Mask some) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, x)); }
RL_STEP F load(const bfloat16* x) { return load(x, static_cast<Mask>(-1)); }
RL_STEP F load(const float16* x) { return load(x, static_cast<Mask>(-1)); }
RL_STEP void store(bfloat16* y, F v, Mask some) {
  const __m512i bits = _mm512_castps_si512(v),
                odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __m512i top = _mm512_mask_mov_epi32(_mm512_srli_epi32(up, 16), unordered(v, v), _mm512_set1_epi32(0x7fc0));
  _mm256_mask_storeu_epi16(y, some, _mm512_cvtepi32_epi16(top));
}
RL_STEP void store(float16* y, F v, Mask some) { _mm256_mask_storeu_epi16(y, some, _mm512_cvtps_ph(v, 0)); }
RL_STEP void store(bfloat16* y, F v) { store(y, v, static_cast<Mask>(-1)); }
RL_STEP void store(float16* y, F v) { store(y, v, static_cast<Mask>(-1)); }

}  // namespace
}  // namespace rl::RL_ISA
