// The gamma family, in double: digamma, polygamma, zeta, incomplete gamma.
#pragma once
#include <cmath>

#include "cpu/isa.h"
#include "cpu/simd_math.h"
#include "cpu/simd_trig.h"

namespace rl::RL_ISA::special {

inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// log |Gamma(x)| for the precision of a float, in double and without branches: up by the recurrence to 10, then
// Stirling's series; below 1/2 by reflection, log(pi / |sin(pi x)|) - log Gamma(1 - x).
RL_INLINE float lgamma_float(float input) {
  const double given = static_cast<double>(input);
  const bool mirrored = given < 0.5;
  const double x = mirrored ? 1.0 - given : given;
  double up = x, product = 1.0;
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const bool low = up < 10.0;
    product = low ? product * up : product;
    up = low ? up + 1.0 : up;
  }
  const double z = 1.0 / up, z2 = z * z;
  constexpr double kStirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
  const double half_log_2pi = 0.91893853320467274178;
  const double y =
      (up - 0.5) * rl::RL_ISA::log(up) - up + half_log_2pi + z * poly(z2, kStirling) - rl::RL_ISA::log(product);
  // The distance to the nearest whole number, where the sine is 0 and the logarithm infinite.
  const double off = given - rint_(given), turn = rl::RL_ISA::log(kPi / abs_(sin_poly(kPi * off)));
  const double both = mirrored ? turn - y : y, any = (given == 1.0) | (given == 2.0) ? 0.0 : both;
  const double finite = abs_(given) == kInf<double> ? kInf<double> : any;
  return static_cast<float>(finite);
}

// The same where no argument is below 1/2.
RL_INLINE float lgamma_above(float input) {
  const double x = static_cast<double>(input);
  double up = x, product = 1.0;
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const bool low = up < 10.0;
    product = low ? product * up : product;
    up = low ? up + 1.0 : up;
  }
  const double z = 1.0 / up, z2 = z * z;
  constexpr double kStirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
  const double y = (up - 0.5) * rl::RL_ISA::log(up) - up + 0.91893853320467274178 + z * poly(z2, kStirling) -
                   rl::RL_ISA::log(product);
  const double root = (x == 1.0) | (x == 2.0) ? 0.0 : y;
  return static_cast<float>(x == kInf<double> ? x : root);
}

inline double cot_pi(double x) {  // pi / tan(pi x)
  const double r = x - std::floor(x);
  return kPi / std::tan(kPi * r);
}
// Up by the recurrence to 10, then log x - 1/2x - sum B_2k / (2k x^2k); below 0 by reflection.
inline double digamma(double x) {
  if (x == 0) return std::copysign(kInf<double>, -x);
  double y = 0;
  if (x < 0) {
    if (x == std::floor(x)) return kNan<double>;
    y = -cot_pi(x);
    x = 1 - x;
  }
  if (x == kInf<double>) return x + y;
  for (; x < 10; x += 1) y -= 1 / x;
  constexpr double kB[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  const double z = 1 / (x * x);
  double sum = kB[6];
  for (int i = 5; i >= 0; --i) sum = sum * z + kB[i];
  return y + std::log(x) - 0.5 / x - z * sum;
}
// The same for positive finite x. The sum of 1 / x, 1 / (x + 1), ... is one fraction: a division instead of ten.
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
// The slope of digamma for positive finite x: 1/x^2 + 1/(x + 1)^2 + ... as one fraction, then the series.
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
  // (2k)! / B_2k
  constexpr double kA[] = {12.0,
                           -720.0,
                           30240.0,
                           -1209600.0,
                           47900160.0,
                           -1.8924375803183791606e9,
                           7.47242496e10,
                           -2.950130727918164224e12,
                           1.1646782814350067249e14,
                           -4.5979787224074726105e15,
                           1.8152105401943546773e17,
                           -7.1661652561756670113e18};
  s += b * a / (x - 1) - 0.5 * b;
  double factor = 1, k = 0;
  for (double c : kA) {
    factor *= x + k;
    b /= a;
    const double term = factor * b / c;
    s += term;
    if (std::fabs(term) < 1e-17 * std::fabs(s)) break;
    k += 1;
    factor *= x + k;
    b /= a;
    k += 1;
  }
  return s;
}
// (-1)^(n+1) n! zeta(n + 1, x)
inline double polygamma(int64_t n, double x) {
  const double value = std::exp(lgamma(static_cast<double>(n) + 1)) * zeta(static_cast<double>(n) + 1, x);
  return n % 2 ? value : -value;
}

// x^a e^-x / Gamma(a + 1)
inline double igamma_factor(double a, double x) {
  if (a < 100) return std::exp(a * std::log(x) - x - lgamma(a + 1));
  // With Stirling's series the large terms cancel before they are rounded.
  const double d = (x - a) / a, z = 1 / (a * a);
  const double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
  const double power = std::fabs(d) < 0.5 ? std::log1p(d) - d : std::log(x / a) - d;
  return std::exp(a * power - stirling) / std::sqrt(2 * kPi * a);
}
inline double igamma_series(double a, double x) {
  double term = 1, sum = 1;
  for (double k = 1; k < 2e6; k += 1) {
    term *= x / (a + k);
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return sum * igamma_factor(a, x);
}
// Lentz's form of the continued fraction x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)
inline double igammac_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / (b == 0 ? kTiny : b), h = d;
  for (double k = 1; k < 2e6; k += 1) {
    const double n = -k * (k - a);
    b += 2;
    d = n * d + b;
    d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
    c = b + n / c;
    c = std::fabs(c) < kTiny ? kTiny : c;
    h *= d * c;
    if (std::fabs(d * c - 1) < 1e-16) break;
  }
  return h * a * igamma_factor(a, x);
}
// The regularized lower incomplete gamma function P(a, x), and its complement. Edges: both infinite is undefined.
inline double igamma(double a, double x, bool complement) {
  const double none = complement ? 1 : 0, all = complement ? 0 : 1;
  if (a != a || x != x || a < 0 || x < 0) return kNan<double>;
  if (a == 0) return x > 0 ? all : kNan<double>;
  if (x == 0) return none;
  if (std::isinf(a)) return std::isinf(x) ? kNan<double> : none;
  if (std::isinf(x)) return all;
  const bool series = x <= 1 || x <= a;
  if (series == complement) return 1 - (series ? igamma_series(a, x) : igammac_fraction(a, x));
  return series ? igamma_series(a, x) : igammac_fraction(a, x);
}

}  // namespace rl::RL_ISA::special
