// Piecewise polynomials on 512-bit registers: a permutation (vpermps) looks the coefficients of sixteen polynomials up.
#pragma once
#include <immintrin.h>

#include "cpu/isa.h"
#include "cpu/simd/math.h"
#include "cpu/simd/tables_avx512.h"
#include "cpu/simd/vector.h"

namespace rl::RL_ISA {
namespace {

#define RL_STEP [[gnu::always_inline]] inline

using VF = simd::Vec<float, 64>;
using VD = simd::Vec<double, 64>;
using F = VF::Reg;
using D = VD::Reg;
using Index = __m512i;  // into tables, by lane

RL_STEP F all(float x) { return VF::all(x); }
RL_STEP D all(double x) { return VD::all(x); }
RL_STEP F fmadd(F a, F b, F c) { return VF::fma(a, b, c); }
RL_STEP D fmadd(D a, D b, D c) { return VD::fma(a, b, c); }
RL_STEP F look_up(const float (&table)[16], Index k) { return _mm512_permutexvar_ps(k, _mm512_load_ps(table)); }
RL_STEP D look_up(const double (&table)[16], Index k) {
  return _mm512_permutex2var_pd(_mm512_load_pd(table), k, _mm512_load_pd(table + 8));
}
// The lowest bits of lanes, or those above so many others.
RL_STEP Index index_of(F u) { return _mm512_castps_si512(u); }
RL_STEP Index index_of(D u) { return _mm512_castpd_si512(u); }
template <int kBelow> RL_STEP Index index_above(F u) { return _mm512_srli_epi32(_mm512_castps_si512(u), kBelow); }
template <int kBelow> RL_STEP Index index_above(D u) { return _mm512_srli_epi64(_mm512_castpd_si512(u), kBelow); }
// x = m 2^n with 3/4 <= m < 3/2, n as it is for 1 <= m < 2. Of negative floats, m is NaN.
RL_STEP F mantissa_of(F x) { return _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan); }
RL_STEP D mantissa_of(D x) { return _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src); }
RL_STEP F exponent_of(F x) { return _mm512_getexp_ps(x); }
RL_STEP D exponent_of(D x) { return _mm512_getexp_pd(x); }
RL_STEP F scaled(F x, F n) { return _mm512_scalef_ps(x, n); }
RL_STEP F scaled(VF::Mask m, F x, F n, F other) { return _mm512_mask_scalef_ps(other, m, x, n); }
// The float of which x, a whole number, is the bits.
RL_STEP F of_bits(F x) { return _mm512_castsi512_ps(_mm512_cvtps_epi32(x)); }
// Of 1 / x and 1 / sqrt(x), fourteen bits.
RL_STEP F reciprocal_estimate(F x) { return _mm512_rcp14_ps(x); }
RL_STEP F rsqrt_estimate(F x) { return _mm512_rsqrt14_ps(x); }
RL_STEP D rsqrt_estimate(D x) { return _mm512_rsqrt14_pd(x); }
RL_STEP VF::Mask is_negative(F x) { return _mm512_movepi32_mask(_mm512_castps_si512(x)); }
// A function of doubles for floats.
template <D (*kF)(D)> RL_STEP F by_doubles(F x) {
  const __m256 low = _mm512_castps512_ps256(x), high = _mm512_extractf32x8_ps(x, 1);
  const __m256 a = _mm512_cvtpd_ps(kF(_mm512_cvtps_pd(low))), b = _mm512_cvtpd_ps(kF(_mm512_cvtps_pd(high)));
  return _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
}
// The polynomial of piece k at t, from coefficient `first` on.
template <int N, class T, class V> RL_STEP V piece(const T (&table)[N][16], Index k, V t, int first = 0) {
  V y = look_up(table[N - 1], k);
#pragma GCC unroll 16
  for (int i = N - 2; i >= first; --i) y = fmadd(y, t, look_up(table[i], k));
  return y;
}
template <int N> RL_STEP D poly(D x, const double (&c)[N]) {
  D y = all(c[N - 1]);
#pragma GCC unroll 32
  for (int i = N - 2; i >= 0; --i) y = fmadd(y, x, all(c[i]));
  return y;
}
RL_STEP F sign_of(F x) { return _mm512_and_ps(x, all(-0.0f)); }
RL_STEP D sign_of(D x) { return _mm512_and_pd(x, all(-0.0)); }
RL_STEP F with_sign(F y, F x) { return _mm512_or_ps(y, sign_of(x)); }
RL_STEP D with_sign(D y, D x) { return _mm512_or_pd(y, sign_of(x)); }

// Minima and maxima hand a NaN on when it is their second argument.
RL_STEP F tanh(F x) {
  const F a = simd::abs(x), low = simd::min(all(7.5f), a);
  const F magic = all(0x1.8p22f), u = low + magic;  // in halves
  const F t = simd::min(all(9.1f), a) - (u - magic);
  return with_sign(piece(tables::kTanhFloat, index_of(u), t), x);
}
// e^x without its power of two, which is `power`.
RL_STEP F exp_parts(F x, F& power) {
  using Traits = FloatTraits<float>;
  const F magic = all(Traits::kMagic);
  power = fmadd(x, all(1.44269504088896340736f), magic) - magic;
  const F r = simd::fnma(power, all(Traits::kLn2Lo), simd::fnma(power, all(Traits::kLn2Hi), x));
  F y = all(Traits::kExp[4]);
#pragma GCC unroll 4
  for (int i = 3; i >= 0; --i) y = fmadd(y, r, all(Traits::kExp[i]));
  return fmadd(r * r, y, r) + all(1.0f);
}
// Lanes whose e^x is 0 are left out of scaling: the processor takes long over what is smaller than every number.
RL_STEP VF::Mask some_exp(F x) { return simd::not_less(x, all(-103.98f)); }
RL_STEP VD::Mask some_exp(D x) { return simd::not_less(x, all(-745.2)); }
// Of c up to 89; far below, whatever the steps give is left out of scaling. 2^(k/16) e^r: scaling takes the whole part
// of a power in sixteenths by itself. Refined, the table's roundings are made good, and 1.01 units in the last place
// become 0.6.
template <bool kRefined> RL_STEP F exp_within(F c) {
  using Traits = FloatTraits<float>;
  const F magic = all(0x1.8p19f), u = fmadd(c, all(1.44269504088896340736f), magic), k = u - magic;
  const F r = simd::fnma(k, all(Traits::kLn2Lo), simd::fnma(k, all(Traits::kLn2Hi), c));
  const F scale = look_up(tables::kExp2SixteenthFloat, index_of(u));
  const F p = fmadd(r, all(tables::kExpShortFloat[1]), all(tables::kExpShortFloat[0]));
  const F part = kRefined ? fmadd(r, fmadd(r, p, all(1.0f)), look_up(tables::kExp2SixteenthRest, index_of(u)))
                          : fmadd(r * r, p, r);
  return simd::scale(some_exp(c), fmadd(scale, part, scale), k);
}
RL_STEP F exp(F x) { return exp_within<true>(simd::min(all(89.0f), x)); }
// e^x = 2^(k / 16) e^r without the power of two of whole k / 16, which is `power`; x is moderate.
RL_STEP D exp_parts(D x, D& power) {
  const D magic = all(0x1.8p52), u = fmadd(x, all(16 * 1.44269504088896340736), magic), k = u - magic;
  const D r = simd::fnma(k, all(tables::kLn2Sixteenth[1]), simd::fnma(k, all(tables::kLn2Sixteenth[0]), x));
  const D scale = look_up(tables::kExp2Sixteenth, index_of(u));
  power = k * all(1.0 / 16);
  return fmadd(scale, fmadd(r * r, poly(r, tables::kExpShort), r), scale);
}
RL_STEP D exp(D x) {
  D power;
  const D y = exp_parts(simd::min(all(711.0), simd::max(all(-747.0), x)), power);
  return simd::scale(some_exp(x), y, power);
}
// 1 / (1 + e^-x), or e^x / (1 + e^x) below 0, so that nothing overflows; the quotient from an estimate of 1 / (1 + e).
RL_STEP F sigmoid(F x) {
  F power;
  const F below = _mm512_or_ps(x, all(-0.0f)), part = exp_parts(simd::max(all(-104.0f), below), power);
  const F e = simd::scale(some_exp(below), part, power), bottom = e + all(1.0f);
  const F top = simd::select(is_negative(x), e, all(1.0f));
  F y = reciprocal_estimate(bottom);
  y = fmadd(simd::fnma(bottom, y, all(1.0f)), y, y);
  const F q = top * y;
  return fmadd(simd::fnma(bottom, q, top), y, q);
}

}  // namespace
}  // namespace rl::RL_ISA
