// Piecewise polynomials on 512-bit registers: a permutation (vpermps) looks the coefficients of sixteen polynomials up.
#pragma once
#include <immintrin.h>

#include "cpu/isa.h"
#include "cpu/simd/math.h"
#include "cpu/simd/tables_avx512.h"

namespace rl::RL_ISA {
namespace {

#define RL_STEP [[gnu::always_inline]] inline

using F = __m512;
using D = __m512d;

RL_STEP F all(float x) { return _mm512_set1_ps(x); }
RL_STEP D all(double x) { return _mm512_set1_pd(x); }
RL_STEP F look_up(const float (&table)[16], __m512i k) { return _mm512_permutexvar_ps(k, _mm512_load_ps(table)); }
RL_STEP D look_up(const double (&table)[16], __m512i k) {
  return _mm512_permutex2var_pd(_mm512_load_pd(table), k, _mm512_load_pd(table + 8));
}
RL_STEP F fmadd(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
RL_STEP D fmadd(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
// The polynomial of piece k at t, from coefficient `first` on.
template <int N, class T, class V> RL_STEP V piece(const T (&table)[N][16], __m512i k, V t, int first = 0) {
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
  const F a = _mm512_abs_ps(x), low = _mm512_min_ps(all(7.5f), a);
  const F magic = all(0x1.8p22f), u = _mm512_add_ps(low, magic);  // in halves
  const F t = _mm512_sub_ps(_mm512_min_ps(all(9.1f), a), _mm512_sub_ps(u, magic));
  return with_sign(piece(tables::kTanhFloat, _mm512_castps_si512(u), t), x);
}
// e^x without its power of two, which is `power`.
RL_STEP F exp_parts(F x, F& power) {
  using Traits = FloatTraits<float>;
  const F magic = all(Traits::kMagic);
  power = _mm512_sub_ps(fmadd(x, all(1.44269504088896340736f), magic), magic);
  const F r = _mm512_fnmadd_ps(power, all(Traits::kLn2Lo), _mm512_fnmadd_ps(power, all(Traits::kLn2Hi), x));
  F y = all(Traits::kExp[4]);
#pragma GCC unroll 4
  for (int i = 3; i >= 0; --i) y = fmadd(y, r, all(Traits::kExp[i]));
  return _mm512_add_ps(fmadd(_mm512_mul_ps(r, r), y, r), all(1.0f));
}
// Lanes whose e^x is 0 are left out of scaling: the processor takes long over what is smaller than every number.
RL_STEP __mmask16 some_exp(F x) { return _mm512_cmp_ps_mask(x, all(-103.98f), _CMP_NLT_UQ); }
RL_STEP __mmask8 some_exp(D x) { return _mm512_cmp_pd_mask(x, all(-745.2), _CMP_NLT_UQ); }
// Of c up to 89; far below, whatever the steps give is left out of scaling. 2^(k/16) e^r: scaling takes the whole part
// of a power in sixteenths by itself. Refined, the table's roundings are made good, and 1.01 units in the last place
// become 0.6.
template <bool kRefined> RL_STEP F exp_within(F c) {
  using Traits = FloatTraits<float>;
  const F magic = all(0x1.8p19f), u = fmadd(c, all(1.44269504088896340736f), magic), k = _mm512_sub_ps(u, magic);
  const F r = _mm512_fnmadd_ps(k, all(Traits::kLn2Lo), _mm512_fnmadd_ps(k, all(Traits::kLn2Hi), c));
  const F scale = look_up(tables::kExp2SixteenthFloat, _mm512_castps_si512(u));
  const F p = fmadd(r, all(tables::kExpShortFloat[1]), all(tables::kExpShortFloat[0]));
  const F part = kRefined
                     ? fmadd(r, fmadd(r, p, all(1.0f)), look_up(tables::kExp2SixteenthRest, _mm512_castps_si512(u)))
                     : fmadd(_mm512_mul_ps(r, r), p, r);
  return _mm512_maskz_scalef_ps(some_exp(c), fmadd(scale, part, scale), k);
}
RL_STEP F exp(F x) { return exp_within<true>(_mm512_min_ps(all(89.0f), x)); }
// e^x = 2^(k / 16) e^r without the power of two of whole k / 16, which is `power`; x is moderate.
RL_STEP D exp_parts(D x, D& power) {
  const D magic = all(0x1.8p52), u = fmadd(x, all(16 * 1.44269504088896340736), magic), k = _mm512_sub_pd(u, magic);
  const D r = _mm512_fnmadd_pd(k, all(tables::kLn2Sixteenth[1]), _mm512_fnmadd_pd(k, all(tables::kLn2Sixteenth[0]), x));
  const D scale = look_up(tables::kExp2Sixteenth, _mm512_castpd_si512(u));
  power = _mm512_mul_pd(k, all(1.0 / 16));
  return fmadd(scale, fmadd(_mm512_mul_pd(r, r), poly(r, tables::kExpShort), r), scale);
}
RL_STEP D exp(D x) {
  D power;
  const D y = exp_parts(_mm512_min_pd(all(711.0), _mm512_max_pd(all(-747.0), x)), power);
  return _mm512_maskz_scalef_pd(some_exp(x), y, power);
}
// 1 / (1 + e^-x), or e^x / (1 + e^x) below 0, so that nothing overflows; the quotient from an estimate of 1 / (1 + e).
RL_STEP F sigmoid(F x) {
  F power;
  const F below = _mm512_or_ps(x, all(-0.0f)), part = exp_parts(_mm512_max_ps(all(-104.0f), below), power);
  const F e = _mm512_maskz_scalef_ps(some_exp(below), part, power), bottom = _mm512_add_ps(e, all(1.0f));
  const F top = _mm512_mask_mov_ps(all(1.0f), _mm512_movepi32_mask(_mm512_castps_si512(x)), e);
  F y = _mm512_rcp14_ps(bottom);
  y = fmadd(_mm512_fnmadd_ps(bottom, y, all(1.0f)), y, y);
  const F q = _mm512_mul_ps(top, y);
  return fmadd(_mm512_fnmadd_ps(bottom, q, top), y, q);
}

}  // namespace
}  // namespace rl::RL_ISA
