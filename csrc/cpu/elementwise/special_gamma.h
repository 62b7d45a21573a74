// The gamma family, in double: digamma, polygamma, zeta.
#pragma once
#include <cmath>

#include "cpu/isa.h"
#include "cpu/simd/erf.h"
#include "cpu/simd/math.h"
#include "cpu/simd/trig.h"

namespace rl::RL_ISA::special {

inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// lgamma(2 + t) / t, polynomials of (t + 0.05) / 0.55 on [-1, 1], for double and for float
inline constexpr double kGammaNear[] = {
    0x1.a03ee8fc66b90p-2,   0x1.72fdd6e35535cp-3,  -0x1.5dad34b485ea6p-6,  0x1.e2a9a78bd515ap-9,
    -0x1.8740b044078f4p-11, 0x1.59d90e1f9abd5p-13, -0x1.4243e3c42c93dp-15, 0x1.36e68dcc687f0p-17,
    -0x1.3348adafdfd0fp-19, 0x1.351cc758daaaap-21, -0x1.3b20805a6bc96p-23, 0x1.449cb884d1c88p-25,
    -0x1.5110868025761p-27, 0x1.6076540d255a0p-29, -0x1.752a99c361212p-31, 0x1.8af2633fbc829p-33,
    -0x1.81af7ec46a648p-35, 0x1.964b829d31a0bp-37, -0x1.5707af9b16ae2p-38, 0x1.772e2175a5f04p-40};
inline constexpr double kGammaNearShort[] = {0x1.a03ee8fc81418p-2,   0x1.72fdd6e2f96d3p-3,   -0x1.5dad352b2a9c8p-6,
                                             0x1.e2a9aa09f3275p-9,   -0x1.874004c4f52e5p-11, 0x1.59d7d21584d44p-13,
                                             -0x1.4271057ffbf6dp-15, 0x1.37295272cc2bfp-17,  -0x1.2df6433f7b107p-19,
                                             0x1.2e51c0aba1f72p-21,  -0x1.8390f0660b85bp-23, 0x1.978ec75471396p-25};
// x (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) from 6.5 on, a polynomial of 2 (6.5 / x)^2 - 1
inline constexpr double kStirling[] = {0x1.5532fa9a06495p-4,   -0x1.11eb4a9e08c2ep-15, 0x1.d116ae85c7f78p-24,
                                       -0x1.fc53a546cbcb6p-31, 0x1.fedc67ada2ab0p-37,  -0x1.9144ec1a0ec44p-42,
                                       0x1.bee0704c1ae7ep-47,  -0x1.4d7d1a8bd1379p-51, 0x1.39dacc9b78aa7p-55};
inline constexpr double kStirlingShort[] = {0x1.5532fa99e652dp-4, -0x1.11eb4a8e52f33p-15, 0x1.d126a8b10f761p-24,
                                            -0x1.fc927366f30b2p-31};
// log Gamma(x) for x > 0, to the precision of T and without branches: by the recurrence down or up to [1.4, 2.5], or
// from 6.5 on by Stirling's series. At its zeros 1 and 2 it keeps its digits. One logarithm serves all: of the product
// that the recurrence divides by or multiplies with.
template <class T> RL_INLINE double lgamma_above(double x) {
  using F = FloatTraits<double>;
  constexpr bool kShort = sizeof(T) == 4;
  const double down = x < 2.5 ? 0.0 : rint_(x - 2), n = x < 1.414 ? (x < 0.5 ? -2.0 : -1.0) : down;
  const double steps = x >= 6.5 ? 0.0 : n;
  double product = n < 0 ? x : 1.0;
  product = x >= 6.5 ? x : product;
  product = x < 0.5 ? x * (x + 1) : product;
#pragma GCC unroll 4
  for (int k = 1; k <= 4; ++k) product = steps >= k ? product * (x - k) : product;
  const auto [k, f, log_f] = log_split(product);
  const double log = fma(k, F::kLn2Hi, f + fma(k, F::kLn2Lo, log_f));
  const double t = x >= 6.5 ? 0.0 : x - (n + 2), u = fma(t, 1 / 0.55, 0.05 / 0.55);
  const double derivative = kShort ? poly(u, kGammaNearShort) : poly(u, kGammaNear);
  // Below 1.414 the logarithm is f and little more, and f = t around 1.
  const double low = fma(t, derivative, -f) - fma(k, F::kLn2Hi, fma(k, F::kLn2Lo, log_f)),
               high = fma(t, derivative, log);
  const double r = 1 / x, z = fma(r * r, 2 * 6.5 * 6.5, -1.0),
               series = kShort ? poly(z, kStirlingShort) : poly(z, kStirling);
  const double wide = fma(x - 0.5, log - 1, fma(series, r, 0.91893853320467274178 - 0.5));
  const double near = n < 0 ? low : high, y = x >= 6.5 ? wide : near;
  return x == kInf<double> ? x : y;
}
// The sine and cosine of pi x, through the distance from the nearest whole number: |sin|, and cos as it stands to sin.
struct HalfTurn {
  double sin, cos;
};
RL_INLINE HalfTurn half_turn(double x) {
  const double off = x - rint_(x), a = abs_(off);
  const bool steep = a > 0.25;
  const double r = kPi * (steep ? 0.5 - a : a), s = sin_poly(r), c = cos_poly(r);
  return {steep ? c : s, with_sign(steep ? s : c, off)};
}
// Everywhere: from 0 down by reflection, log(pi / |sin(pi x)|) - log Gamma(1 - x).
template <class T> RL_INLINE double lgamma_any(double x) {
  const bool mirrored = x <= 0;
  const double y = lgamma_above<T>(mirrored ? 1 - x : x);
  const double turned = -rl::RL_ISA::log(half_turn(x).sin * (1 / kPi)) - y;
  const double any = mirrored ? turned : y;
  return abs_(x) == kInf<double> ? kInf<double> : any;
}
// Below -2 there are zeros, where the reflection's two parts cancel.
template <class T> RL_INLINE bool lgamma_good(T x, T y) {
  return !((x < T(-2)) & (abs_(y) < (sizeof(T) == 4 ? T(1e-4) : T(0.7))));
}

// Digamma of x > 0: up by the recurrence to 10, then log x - 1/2x - sum B_2k / (2k x^2k). The sum of 1 / x, 1 / (x +
// 1), ... is one fraction: a division instead of ten.
RL_INLINE double digamma_above(double x) {
  double top = 0, bottom = 1;
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const bool low = x < 10;
    const double t = fma(top, x, bottom), b = bottom * x;
    top = low ? t : top;
    bottom = low ? b : bottom;
    x = low ? x + 1 : x;
  }
  constexpr double kB[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  const double r = 1 / x, z = r * r;
  return rl::RL_ISA::log(x) - 0.5 * r - z * poly(z, kB) - top / bottom;
}
// Everywhere: below 0 by reflection, where it has poles at the whole numbers.
RL_INLINE double digamma_any(double x) {
  const bool mirrored = x < 0;
  const double y = digamma_above(mirrored ? 1 - x : x);
  const auto [s, c] = half_turn(x);
  const double turned = y - kPi * (c / s), pole = s == 0 ? kNan<double> : turned;
  const double any = mirrored ? pole : y;
  return x == 0 ? -with_sign(kInf<double>, x) : any;
}
// The derivative of digamma for positive finite x: 1/x^2 + 1/(x + 1)^2 + ... as one fraction, then the series.
RL_INLINE double trigamma_above(double x) {
  double top = 0, bottom = 1;
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const bool low = x < 10;
    const double square = x * x, t = fma(top, square, bottom), b = bottom * square;
    top = low ? t : top;
    bottom = low ? b : bottom;
    x = low ? x + 1 : x;
  }
  constexpr double kB[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
  const double r = 1 / x, z = r * r;
  return r + 0.5 * z + z * r * poly(z, kB) + top / bottom;
}
// Near its poles the value is only as good as pi x in the operand's type T, as in torch.
template <class T> inline T trigamma(T input) {
  double x = static_cast<double>(input), y = 0, sign = 1;
  if (x < 0.5) {
    const double s = static_cast<double>(std::sin(static_cast<T>(kPi) * input));
    y = -(kPi * kPi) / (s * s);
    x = 1 - x;
    sign = -1;
  }
  if (x == kInf<double>) return static_cast<T>(sign * y);
  for (; x < 10; x += 1) y += 1 / (x * x);
  constexpr double kB[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
  const double z = 1 / (x * x);
  double sum = kB[6];
  for (int i = 5; i >= 0; --i) sum = sum * z + kB[i];
  return static_cast<T>(sign * (y + 1 / x + 0.5 * z + z * sum / x));
}

// B_2k / (2k)!
inline constexpr double kEulerMaclaurin[] = {1 / 12.0,
                                             -1 / 720.0,
                                             1 / 30240.0,
                                             -1 / 1209600.0,
                                             1 / 47900160.0,
                                             -1 / 1.8924375803183791606e9,
                                             1 / 7.47242496e10,
                                             -1 / 2.950130727918164224e12,
                                             1 / 1.1646782814350067249e14,
                                             -1 / 4.5979787224074726105e15,
                                             1 / 1.8152105401943546773e17,
                                             -1 / 7.1661652561756670113e18};
// Hurwitz zeta, sum over k of (k + q)^-x, by Euler and Maclaurin.
inline double zeta(double x, double q) {
  if (x != x || q != q) return kNan<double>;
  if (x == 1) return kInf<double>;
  if (x < 1) return kNan<double>;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf<double>;
    if (x != std::floor(x)) return kNan<double>;
  }
  double s = std::pow(q, -x), a = q, b = 0;
  for (int i = 0; i < 9 || a <= 9; ++i) {
    if (i > 100000) return kNan<double>;  // q far below 0: the terms around the pole were never reached
    a += 1;
    b = std::pow(a, -x);
    s += b;
    if (std::fabs(b) < 1e-17 * std::fabs(s)) return s;
  }
  s += b * a / (x - 1) - 0.5 * b;
  double factor = 1, k = 0;
  for (double c : kEulerMaclaurin) {
    factor *= x + k;
    b /= a;
    const double term = factor * b * c;
    s += term;
    if (std::fabs(term) < 1e-17 * std::fabs(s)) break;
    k += 1;
    factor *= x + k;
    b /= a;
    k += 1;
  }
  return s;
}
// x^y for positive x, to the precision of T.
template <class T> RL_INLINE double power(double x, double y) {
#ifdef __FMA__
  if constexpr (sizeof(T) == 8) return rl::RL_ISA::pow(x, y);
#else
  if constexpr (sizeof(T) == 8) return std::pow(x, y);
#endif
  return rl::RL_ISA::exp(y * rl::RL_ISA::log(x));
}
// The same without branches, for x > 1 that are not huge and q > 0; to the precision of T.
template <class T> RL_INLINE double zeta_small(double x, double q) {
  constexpr int kTerms = sizeof(T) == 4 ? 7 : 12;
  double sum = 0, b = 0;
#pragma GCC unroll 1
  for (int i = 0; i < 10; ++i) {
    b = power<T>(q + i, -x);
    sum += b;
  }
  const double a = q + 9, r = 1 / a, z = r * r;
  double factor = b * x * r, tail = b * a / (x - 1) - 0.5 * b;
#pragma GCC unroll 12
  for (int k = 0; k < kTerms; ++k) {
    tail = fma(factor, kEulerMaclaurin[k], tail);
    factor *= (x + (2 * k + 1)) * (x + (2 * k + 2)) * z;
  }
  return sum + tail;
}
template <class T> RL_INLINE bool zeta_good(T x, T q, T y) {
  return (x > T(1)) & (x < T(1e6)) & (q > T(0)) & (q < kInf<T>)&(y < kInf<T>);
}
// (-1)^(n+1) n! zeta(n + 1, x)
inline double polygamma_factor(double n) {
  const double value = std::exp(lgamma(n + 1));
  return static_cast<int64_t>(n) % 2 ? value : -value;
}

}  // namespace rl::RL_ISA::special
