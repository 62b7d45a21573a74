// Bessel and Airy functions of a real argument, in double.
#pragma once
#include <cmath>

#include "cpu/isa.h"
#include "cpu/simd_math.h"
#include "cpu/special_tables.h"

namespace rl::RL_ISA::special {

// Clenshaw's sum of a Chebyshev series over [low, high].
template <int N> inline double series(const double (&c)[N], double x, double low, double high) {
  const double y = (2 * x - low - high) / (high - low);
  double a = 0, b = 0;
  for (int i = N - 1; i > 0; --i) {
    const double next = 2 * y * a - b + c[i];
    b = a;
    a = next;
  }
  return y * a - b + c[0];
}

inline double i0e(double x) {
  x = std::fabs(x);
  return x <= 8 ? series(kI0Near, x, 0, 8) : series(kI0Far, 1 / x, 0, 0.125) / std::sqrt(x);
}
inline double i0(double x) {
  return std::fabs(x) > 700 ? std::exp(std::fabs(x) / 2) * i0e(x) * std::exp(std::fabs(x) / 2)
                            : std::exp(std::fabs(x)) * i0e(x);
}
inline double i1e(double x) {
  const double a = std::fabs(x);
  const double y = a <= 8 ? a * series(kI1Near, a, 0, 8) : series(kI1Far, 1 / a, 0, 0.125) / std::sqrt(a);
  return std::copysign(y, x);
}
inline double i1(double x) {
  const double a = std::fabs(x);
  return a > 700 ? std::exp(a / 2) * i1e(x) * std::exp(a / 2) : std::exp(a) * i1e(x);
}

// K at 0 is infinite, and undefined below.
inline double k0_scaled(double x) { return series(kK0Far, 1 / x, 0, 0.5) / std::sqrt(x); }
inline double k1_scaled(double x) { return series(kK1Far, 1 / x, 0, 0.5) / std::sqrt(x); }
inline double k0_near(double x) { return series(kK0Near, x * x, 0, 4) - std::log(x / 2) * i0(x); }
inline double k1_near(double x) { return series(kK1Near, x * x, 0, 4) / x + std::log(x / 2) * i1(x); }
inline double k0(double x) {
  if (x == 0) return kInf<double>;
  if (x < 0) return kNan<double>;
  return x <= 2 ? k0_near(x) : std::exp(-x) * k0_scaled(x);
}
inline double k1(double x) {
  if (x == 0) return kInf<double>;
  if (x < 0) return kNan<double>;
  return x <= 2 ? k1_near(x) : std::exp(-x) * k1_scaled(x);
}
inline double k0e(double x) {
  if (x == 0) return kInf<double>;
  if (x < 0) return kNan<double>;
  return x <= 2 ? std::exp(x) * k0_near(x) : k0_scaled(x);
}
inline double k1e(double x) {
  if (x == 0) return kInf<double>;
  if (x < 0) return kNan<double>;
  return x <= 2 ? std::exp(x) * k1_near(x) : k1_scaled(x);
}

inline double y0(double x) { return x < 0 ? kNan<double> : x == 0 ? -kInf<double> : ::y0(x); }
inline double y1(double x) { return x < 0 ? kNan<double> : x == 0 ? -kInf<double> : ::y1(x); }
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
