// The normal distribution's functions, in double.
#pragma once
#include <cmath>

#include "cpu/isa.h"
#include "cpu/simd/erf.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA::special {

// (1 + 2 a) e^(a^2) erfc(a) from 0 on, a polynomial of (a - 3.75) / (a + 3.75)
inline constexpr double kErfcx[] = {
    0x1.3ccda0b5d5dc2p0,   -0x1.1f367683f89a7p-3,  0x1.d5f2948159d5cp-9,   0x1.510169d0967fep-4,
    -0x1.bda9309a288f3p-4, 0x1.7a14188a99bbdp-4,   -0x1.e0d0fa6dfff48p-5,  0x1.d0b0037dca912p-6,
    -0x1.3f603c33d3651p-7, 0x1.cc3a0e231627ep-10,  0x1.33fb248b98a1fp-12,  -0x1.303f9da131ea2p-12,
    0x1.b14442355be43p-15, 0x1.778a2b8f2e752p-16,  -0x1.800839304a96cp-17, -0x1.0525b6d7eefd4p-20,
    0x1.d6afb6f3f188ep-20, -0x1.f479469e8aafdp-25, -0x1.18678c18ad7acp-22, 0x1.a14b81d0a6468p-26,
    0x1.5ff0ac2a59830p-25, -0x1.2da11a81e0e17p-28, -0x1.c1ceb688aadf4p-28, 0x1.2c02a9487e3c2p-31,
    0x1.efff7805d80b9p-31, -0x1.4a219c71bb4e0p-35, -0x1.42cb7ae4cd5b5p-34};
RL_INLINE double erfcx_above(double a) {
  const double near = a > 1e17 ? 1e17 : a;
  return 0.5 * poly((near - 3.75) / (near + 3.75), kErfcx) / (a + 0.5);
}
// x^2 in two parts
struct Squared {
  double high, low;
};
RL_INLINE Squared squared(double x) {
  const double inside = abs_(x) > 1e10 ? 1e10 : abs_(x), head = static_cast<double>(static_cast<float>(inside));
  const double high = inside * inside;
  return {high, (head * head - high) + (inside - head) * (inside + head)};
}
// e^(x^2) erfc(x)
RL_INLINE double erfcx(double x) {
  const double above = erfcx_above(abs_(x));
  const auto [high, low] = squared(x);
  const double e = rl::RL_ISA::exp(high), below = 2 * fma(e, low, e) - above;
  return x < -27 ? kInf<double> : x < 0 ? below : above;
}
// The logarithm of the normal distribution function: below 0 log(erfcx / 2) - x^2 / 2, above log(1 - erfc / 2), whose 1
// + v is taken apart as in log1p.
RL_INLINE double log_ndtr(double x) {
  using F = FloatTraits<double>;
  const double half = 0.5 * erfcx_above(abs_(x) * 0.70710678118654752440);
  const auto [high, low] = squared(x);
  const double e = rl::RL_ISA::exp(-0.5 * high), v = -half * fma(e, -0.5 * low, e);
  const bool below = x < 0;
  const double u = below ? half : 1 + v, lost = below ? 0.0 : (v - (u - 1)) / u;
  auto [k, f, log_f] = log_split(u);
  const double y = fma(k, F::kLn2Hi, f + (fma(k, F::kLn2Lo, log_f) + lost)) - (below ? 0.5 * x * x : 0.0);
  const double finite = !below & (v > -1e-30) ? v : y;
  return x == -kInf<double> ? x : finite;
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
    const double derivative = std::exp(-0.5 * x * x - value) * 0.39894228040143267794;
    x -= (value - target) / derivative;
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
