// The normal distribution's functions, in double.
#pragma once
#include <cmath>

#include "cpu/isa.h"
#include "cpu/simd_erf.h"
#include "cpu/simd_math.h"

namespace rl::RL_ISA::special {

// e^(x^2) erfc(x)
inline double erfcx(double x) {
  if (x < -26.7) return kInf<double>;
  if (x < 26) {
    const double head = static_cast<double>(static_cast<float>(x)), tail = x - head;  // x^2 in two parts
    return std::exp(head * head) * std::exp(tail * (x + head)) * std::erfc(x);
  }
  const double z = 1 / (x * x);
  return (1 - z * (0.5 - z * (0.75 - z * (1.875 - z * 6.5625)))) / (x * 1.77245385090551602730);
}
// log of the normal distribution function
inline double log_ndtr(double x) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  const double t = x * kSqrtHalf;
  return x < -1 ? std::log(erfcx(-t) / 2) - t * t : std::log1p(-std::erfc(t) / 2);
}
// The quantile of the normal distribution: an estimate, then Newton's steps on log(ndtr).
inline double ndtri(double p) {
  if (p == 0) return -kInf<double>;
  if (p == 1) return kInf<double>;
  if (!(p > 0 && p < 1)) return kNan<double>;
  if (p == 0.5) return 0;
  const double q = p < 0.5 ? p : 1 - p;  // exact
  const double r = std::sqrt(-2 * std::log(q));
  double x = -(r - (2.515517 + r * (0.802853 + r * 0.010328)) / (1 + r * (1.432788 + r * (0.189269 + r * 0.001308))));
  const double target = std::log(q);
  for (int i = 0; i < 4; ++i) {
    const double value = log_ndtr(x);
    // d log(ndtr) / dx = pdf / cdf
    const double slope = std::exp(-0.5 * x * x - value) * 0.39894228040143267794;
    x -= (value - target) / slope;
  }
  return p < 0.5 ? x : -x;
}
inline double erfinv(double y) {
  if (y == 1 || y == -1) return std::copysign(kInf<double>, y);
  if (!(std::fabs(y) < 1)) return kNan<double>;
  const double a = std::fabs(y);
  if (a < 1e-9) return y * 0.88622692545275801365;
  double x;
  if (a < 0.5) {
    x = a * 0.88622692545275801365 * (1 + 0.2617993877991494 * a * a);
    for (int i = 0; i < 4; ++i) x -= (std::erf(x) - a) * 0.88622692545275801365 * std::exp(x * x);
  } else {
    x = -ndtri((1 - a) / 2) * 0.70710678118654752440;
  }
  return std::copysign(x, y);
}
// The inverse of erf for the precision of a float: Giles's polynomials in -log(1 - y^2), then a step of Newton's with
// the error function in double. Without branches.
RL_INLINE float erfinv_float(float input) {
  constexpr double kNear[] = {1.50140941,     0.246640727,   -0.00417768164, -0.00125372503, 0.00021858087,
                              -4.39150654e-6, -3.5233877e-6, 3.43273939e-7,  2.81022636e-8};
  constexpr double kFar[] = {2.83297682,     1.00167406,    0.00943887047,  -0.0076224613,  0.00573950773,
                             -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};
  const double y = static_cast<double>(input), w = -rl::RL_ISA::log((1.0 - y) * (1.0 + y));
  const double near = poly(w - 2.5, kNear), far = poly(sqrt_(w) - 3.0, kFar);
  const double x = y * (w < 5.0 ? near : far), e = rl::RL_ISA::erf(x) - y;
  const double better = x - e * 0.88622692545275801365 * rl::RL_ISA::exp(x * x);
  const double inside = abs_(y) < 1.0 ? better : kNan<double>;
  return static_cast<float>(abs_(y) == 1.0 ? with_sign(kInf<double>, y) : inside);
}
template <class T> RL_INLINE T entr(T x) {  // a NaN goes through the product
  const T y = x < 0 ? -kInf<T> : -x * rl::RL_ISA::log(x);
  return x == 0 ? T(0) : y;
}

}  // namespace rl::RL_ISA::special
