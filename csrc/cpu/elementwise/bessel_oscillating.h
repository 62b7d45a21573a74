// Bessel functions of the first and second kind, and sin(x) / x, in double and without branches. See bessel_tables.h.
#pragma once
#include "cpu/elementwise/bessel_tables.h"
#include "cpu/elementwise/special_bessel.h"
#include "cpu/isa.h"
#include "cpu/simd/math.h"
#include "cpu/simd/trig.h"

namespace rl::RL_ISA::special {

constexpr double kTwoOverPi = 0.63661977236758134308;

// (x - z) (x + z) of a zero in two parts
RL_INLINE double less_zero(double a, const double (&zero)[2]) { return ((a - zero[0]) - zero[1]) * (a + zero[0]); }
RL_INLINE double j0_small(double a) {
  const double t = a * a;
  const double y = less_zero(a, kJ0Zeros[0]) * less_zero(a, kJ0Zeros[1]) * poly(fma(t, 1.0 / 32, -1.0), kJ0Near);
  return a < 0x1p-13 ? fma(t, -0.25, 1.0) : y;
}
RL_INLINE double j1_small(double a) {
  const double t = a * a;
  const double y = less_zero(a, kJ1Zeros[0]) * less_zero(a, kJ1Zeros[1]) * poly(fma(t, 1.0 / 32, -1.0), kJ1Near);
  return a * (a < 0x1p-13 ? fma(t, -0.0625, 0.5) : y);
}

// The sine and cosine of x - pi/4, each with the digits that belong to its own size.
struct Turned {
  double sin, cos;
};
RL_INLINE Turned turned(double x) {
  using F = FloatTraits<double>;
  const double t = fma(x, 0x1.45f306dc9c883p-1, -0.5) + F::kMagic, n = (t - F::kMagic) + 0.5;
  double r = x - n * 0x1.921fb54400000p0;  // as trig_split; n has one bit more
  r = r - n * 0x1.0b4611a600000p-34;
  r = r - n * 0x1.3198a2e037073p-69;
  const auto q = to_bits(t);
  const double s = sin_poly(r), c = cos_poly(r);
  const double sine = (q & 1) ? c : s, cosine = (q & 1) ? s : c;
  return {from_bits<double>(to_bits(sine) ^ ((q & 2) << 62)),
          from_bits<double>(to_bits(cosine) ^ (((q + 1) & 2) << 62))};
}
// The amplitudes of the waves from 8 on: P and 8/x Q.
struct Amplitudes {
  double p, q;
};
template <int N, int M> RL_INLINE Amplitudes amplitudes(double x, const double (&p)[N], const double (&q)[M]) {
  const double r = 8.0 / x, root = sqrt_(kTwoOverPi / 8 * r), y = fma(r * r, 2.0, -1.0);
  return {root * poly(y, p), root * r * poly(y, q)};
}
RL_INLINE double j0(double x) {
  const double a = abs_(x), far = at_least(a, 8.0);
  const auto [p, q] = amplitudes(far, kP0, kQ0);
  const auto [s, c] = turned(far);
  return a < 8.0 ? j0_small(at_most(a, 8.0)) : p * c - q * s;
}
RL_INLINE double j1(double x) {
  const double a = abs_(x), far = at_least(a, 8.0);
  const auto [p, q] = amplitudes(far, kP1, kQ1);
  const auto [s, c] = turned(far);
  const double y = a < 8.0 ? j1_small(at_most(a, 8.0)) : fma(p, s, q * c);
  return from_bits<double>(to_bits(y) ^ (to_bits(x) & FloatTraits<double>::kSign));
}
// Infinite at 0, undefined below.
RL_INLINE double y_edges(double x, double y) {
  const double edge = x == 0 ? -kInf<double> : kNan<double>;
  return x > 0 ? y : edge;
}
RL_INLINE double y0(double x) {
  const double near = at_most(x, 8.0), far = at_least(x, 8.0);
  const auto [p, q] = amplitudes(far, kP0, kQ0);
  const auto [s, c] = turned(far);
  const double t = near * near, rest = near < 2.5 ? poly(at_most(t, 6.25), kY0Low) : series(kY0Near, t, 0, 64);
  const double low = fma(kTwoOverPi * rl::RL_ISA::log(near), j0_small(near), rest);
  return y_edges(x, x < 8.0 ? low : fma(p, s, q * c));
}
RL_INLINE double y1(double x) {
  const double near = at_most(x, 8.0), far = at_least(x, 8.0);
  const auto [p, q] = amplitudes(far, kP1, kQ1);
  const auto [s, c] = turned(far);
  const double t = near * near, rest = near < 2.5 ? poly(at_most(t, 6.25), kY1Low) : series(kY1Near, t, 0, 64);
  const double part = fma(kTwoOverPi * rl::RL_ISA::log(near), j1_small(near), near * rest);
  return y_edges(x, x < 8.0 ? part - kTwoOverPi / near : q * s - p * c);
}
RL_INLINE double spherical_j0_small(double x) {
  const double y = rl::RL_ISA::sin(x) / x;
  return x == 0 ? 1.0 : y;
}
// Where these are right; NaNs and what lies further are left to libm.
RL_INLINE bool waves_reduced(double x) { return abs_(x) <= 1e5; }

}  // namespace rl::RL_ISA::special
