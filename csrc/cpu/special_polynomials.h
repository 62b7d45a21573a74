// Orthogonal polynomials of degree n at x, by their recurrences; far degrees by closed forms where there are such.
// The degree comes as a number of the operands' type: its fraction is dropped, and for -1 or less the polynomial is 0.
#pragma once
#include <cmath>
#include <cstdint>

#include "cpu/isa.h"
#include "cpu/simd_math.h"

namespace rl::RL_ISA::special {

inline constexpr int64_t kLongestRecurrence = int64_t(1) << 24;  // degrees beyond it give NaN rather than a hang

inline int64_t degree(double n) { return n > -1 && n < 9e18 ? static_cast<int64_t>(n) : n >= 9e18 ? INT64_MAX : -1; }
inline double sign_if_odd(int64_t n) { return n % 2 ? -1 : 1; }

// p(k+1) = next(k, p(k), p(k-1)), from p(0) and p(1) to p(n); stops where it has overflowed.
template <class F> double recurrence(int64_t n, double p0, double p1, F next) {
  if (n == 0) return p0;
  if (n > kLongestRecurrence) return kNan<double>;
  for (int64_t k = 1; k < n; ++k) {
    const double p2 = next(static_cast<double>(k), p1, p0);
    p0 = p1;
    p1 = p2;
    if (p1 != p1) break;
  }
  return p1;
}
inline double chebyshev_recurrence(int64_t n, double x, double p1) {
  return recurrence(n, 1, p1, [x](double, double p, double q) { return 2 * x * p - q; });
}
inline double chebyshev_t(double x, double d) {
  const int64_t n = degree(d);
  if (n < 0) return 0;
  if (std::fabs(x) == 1) return x > 0 ? 1 : sign_if_odd(n);
  if (n > 6 && std::fabs(x) < 1) return std::cos(static_cast<double>(n) * std::acos(x));
  return chebyshev_recurrence(n, x, x);
}
inline double chebyshev_u(double x, double d) {
  const int64_t n = degree(d);
  if (n < 0) return 0;
  const double next = static_cast<double>(n) + 1;
  if (std::fabs(x) == 1) return x > 0 ? next : sign_if_odd(n) * next;
  if (n > 8 && std::fabs(x) < 1) return std::sin(next * std::acos(x)) / std::sin(std::acos(x));
  return chebyshev_recurrence(n, x, 2 * x);
}
inline double chebyshev_v(double x, double d) {
  const int64_t n = degree(d);
  if (n < 0) return 0;
  const double m = static_cast<double>(n);
  if (std::fabs(x) == 1) return x > 0 ? 1 : sign_if_odd(n) * (2 * m + 1);
  if (n > 8 && std::fabs(x) < 1) return std::cos((m + 0.5) * std::acos(x)) / std::cos(std::acos(x) / 2);
  return chebyshev_recurrence(n, x, 2 * x - 1);
}
inline double chebyshev_w(double x, double d) {
  const int64_t n = degree(d);
  if (n < 0) return 0;
  const double m = static_cast<double>(n);
  if (std::fabs(x) == 1) return x > 0 ? 2 * m + 1 : sign_if_odd(n);
  if (n > 8 && std::fabs(x) < 1) return std::sin((m + 0.5) * std::acos(x)) / std::sin(std::acos(x) / 2);
  return chebyshev_recurrence(n, x, 2 * x + 1);
}
// `limit`: the degree from which the value overflows the operands' type everywhere of interest.
inline double hermite_h(double x, double d, int64_t limit) {
  const int64_t n = degree(d);
  if (n < 0) return 0;
  if (n > limit) return kNan<double>;
  return recurrence(n, 1, 2 * x, [x](double k, double p, double q) { return 2 * x * p - 2 * k * q; });
}
inline double hermite_he(double x, double d, int64_t limit) {
  const int64_t n = degree(d);
  if (n < 0) return 0;
  if (n > limit) return kNan<double>;
  return recurrence(n, 1, x, [x](double k, double p, double q) { return x * p - k * q; });
}
inline double laguerre_l(double x, double d) {
  const int64_t n = degree(d);
  if (n < 0) return 0;
  if (x == 0) return 1;
  return recurrence(n, 1, 1 - x, [x](double k, double p, double q) { return ((2 * k + 1 - x) * p - k * q) / (k + 1); });
}
inline double legendre_p(double x, double d) {
  const int64_t n = degree(d);
  if (n < 0) return 0;
  if (std::fabs(x) == 1) return x > 0 ? 1 : sign_if_odd(n);
  return recurrence(n, 1, x, [x](double k, double p, double q) { return ((2 * k + 1) * x * p - k * q) / (k + 1); });
}

}  // namespace rl::RL_ISA::special
