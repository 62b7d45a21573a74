// Bessel and Airy functions of a real argument, in double.
#pragma once
#include <cmath>

#include "cpu/elementwise/special_tables.h"
#include "cpu/isa.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA::special {

// How many terms of a series that falls count in a T.
template <class T, int N> constexpr int terms_of(const double (&c)[N]) {
  int n = N;
  while (sizeof(T) == 4 && n > 2 && c[n - 1] < 2e-10 && c[n - 1] > -2e-10) --n;
  return n;
}
// Clenshaw's sum of a Chebyshev series over [low, high].
template <int N> RL_INLINE double series(const double (&c)[N], double x, double low, double high, int terms = N) {
  const double y = (2 * x - low - high) * (1 / (high - low)), twice = 2 * y;
  double a = c[terms - 1], b = 0;
#pragma GCC unroll 40
  for (int i = terms - 2; i > 0; --i) {
    const double next = fma(twice, a, c[i] - b);
    b = a;
    a = next;
  }
  return fma(y, a, c[0] - b);
}
// Both of two forms are computed, and one is taken: so that loops become vectors.
RL_INLINE double at_most(double x, double high) { return x > high ? high : x; }
RL_INLINE double at_least(double x, double low) { return x < low ? low : x; }

// These four to the precision of T.
template <class T> RL_INLINE double i0e(double x) {
  const double a = abs_(x), far = at_least(a, 8);
  const double near = series(kI0Near, at_most(a, 8), 0, 8, terms_of<T>(kI0Near));
  const double wide = series(kI0Far, 1 / far, 0, 0.125, terms_of<T>(kI0Far)) / sqrt_(far);
  return a > 8 ? wide : near;
}
template <class T> RL_INLINE double i0(double x) {
  const double half = rl::RL_ISA::exp(0.5 * abs_(x));
  return half * i0e<T>(x) * half;
}
template <class T> RL_INLINE double i1e(double x) {
  const double a = abs_(x), far = at_least(a, 8);
  const double near = a * series(kI1Near, at_most(a, 8), 0, 8, terms_of<T>(kI1Near));
  const double wide = series(kI1Far, 1 / far, 0, 0.125, terms_of<T>(kI1Far)) / sqrt_(far);
  return with_sign(a > 8 ? wide : near, x);
}
template <class T> RL_INLINE double i1(double x) {
  const double half = rl::RL_ISA::exp(0.5 * abs_(x));
  return half * i1e<T>(x) * half;
}

// K at 0 is infinite, and undefined below.
RL_INLINE double k0_scaled(double x) { return series(kK0Far, 1 / x, 0, 0.5) / sqrt_(x); }
RL_INLINE double k1_scaled(double x) { return series(kK1Far, 1 / x, 0, 0.5) / sqrt_(x); }
RL_INLINE double k0_small(double x) {
  const double i = rl::RL_ISA::exp(x) * series(kI0Near, x, 0, 8);
  return series(kK0Near, x * x, 0, 4) - rl::RL_ISA::log(x * 0.5) * i;
}
RL_INLINE double k1_small(double x) {
  const double i = rl::RL_ISA::exp(x) * x * series(kI1Near, x, 0, 8);
  return series(kK1Near, x * x, 0, 4) / x + rl::RL_ISA::log(x * 0.5) * i;
}
RL_INLINE double k_edges(double x, double y) {
  const double edge = x == 0 ? kInf<double> : kNan<double>;
  return x > 0 ? y : edge;
}
RL_INLINE double k0(double x) {
  const double low = at_most(x, 2), high = at_least(x, 2);
  const double near = k0_small(low), far = rl::RL_ISA::exp(-high) * k0_scaled(high);
  return k_edges(x, x > 2 ? far : near);
}
RL_INLINE double k1(double x) {
  const double low = at_most(x, 2), high = at_least(x, 2);
  const double near = k1_small(low), far = rl::RL_ISA::exp(-high) * k1_scaled(high);
  return k_edges(x, x > 2 ? far : near);
}
RL_INLINE double k0e(double x) {
  const double low = at_most(x, 2), near = rl::RL_ISA::exp(low) * k0_small(low), far = k0_scaled(at_least(x, 2));
  return k_edges(x, x > 2 ? far : near);
}
RL_INLINE double k1e(double x) {
  const double low = at_most(x, 2), near = rl::RL_ISA::exp(low) * k1_small(low), far = k1_scaled(at_least(x, 2));
  return k_edges(x, x > 2 ? far : near);
}

inline double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  return x == 0 ? 1 : std::sin(x) / x;
}

// Ai from its power series near 0, and from decaying or waving asymptotic forms with fitted amplitudes further out.
inline double airy_ai(double x) {
  if (std::isinf(x)) return kNan<double>;
  if (x > 103.892) return 0;
  const double a = std::fabs(x);
  constexpr double kSqrtPi = 1.77245385090551602730;
  if (a >= 2) {
    const double zeta = 2.0 / 3 * a * std::sqrt(a), root = std::sqrt(std::sqrt(a)), t = 1 / zeta;
    if (x > 0) return std::exp(-zeta) * series(kAiryDecay, t, 0, 0.54) / (2 * kSqrtPi * root);
    const double theta = zeta + kPi / 4;
    const double wave =
        std::sin(theta) * series(kAiryWaveP, t, 0, 0.54) - std::cos(theta) * series(kAiryWaveQ, t, 0, 0.54);
    return wave / (kSqrtPi * root);
  }
  double f = 1, g = x, df = 1, dg = x;
  const double cube = x * x * x;
  for (int k = 1; k < 30; ++k) {
    df *= cube / ((3 * k - 1) * (3 * k));
    dg *= cube / ((3 * k) * (3 * k + 1));
    f += df;
    g += dg;
  }
  return 0.355028053887817239260 * f - 0.258819403792806798405 * g;
}

}  // namespace rl::RL_ISA::special
