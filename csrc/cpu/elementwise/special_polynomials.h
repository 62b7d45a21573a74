// Orthogonal polynomials of degree n at x, by their recurrences; far degrees by closed forms where there are such.
// The degree comes as a number of the operands' type: its fraction is dropped, and for -1 or less the polynomial is 0.
#pragma once
#include <cmath>
#include <cstdint>

#include "cpu/isa.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA::special {

inline constexpr int64_t kLongestRecurrence = int64_t(1) << 24;  // degrees beyond it give NaN rather than a hang
inline constexpr int kShortRecurrence = 64;                      // up to here elements run side by side

inline double sign_if_odd(int64_t n) { return n % 2 ? -1 : 1; }

// p(0) = 1, p(1) = first(x), p(k+1) = next(x, k, p(k), p(k-1)). far(x, n) where the recurrence would
// be long and |x| <= 1; NaN if it has no closed form there.
struct Chebyshev {
  RL_INLINE static double next(double x, double, double p, double q) { return 2 * x * p - q; }
};
struct ChebyshevT : Chebyshev {
  RL_INLINE static double first(double x) { return x; }
  static double far(double x, int64_t n) {
    if (std::fabs(x) == 1) return x > 0 ? 1 : sign_if_odd(n);
    return std::cos(static_cast<double>(n) * std::acos(x));
  }
};
struct ChebyshevU : Chebyshev {
  RL_INLINE static double first(double x) { return 2 * x; }
  static double far(double x, int64_t n) {
    const double next = static_cast<double>(n) + 1;
    if (std::fabs(x) == 1) return x > 0 ? next : sign_if_odd(n) * next;
    return std::sin(next * std::acos(x)) / std::sin(std::acos(x));
  }
};
struct ChebyshevV : Chebyshev {
  RL_INLINE static double first(double x) { return 2 * x - 1; }
  static double far(double x, int64_t n) {
    const double m = static_cast<double>(n);
    if (std::fabs(x) == 1) return x > 0 ? 1 : sign_if_odd(n) * (2 * m + 1);
    return std::cos((m + 0.5) * std::acos(x)) / std::cos(std::acos(x) / 2);
  }
};
struct ChebyshevW : Chebyshev {
  RL_INLINE static double first(double x) { return 2 * x + 1; }
  static double far(double x, int64_t n) {
    const double m = static_cast<double>(n);
    if (std::fabs(x) == 1) return x > 0 ? 2 * m + 1 : sign_if_odd(n);
    return std::sin((m + 0.5) * std::acos(x)) / std::sin(std::acos(x) / 2);
  }
};
template <class P> struct Shifted : P {
  RL_INLINE static double argument(double x) { return 2 * x - 1; }
};
// Beyond this degree the value overflows a float everywhere of interest, or a double.
template <class T> inline constexpr int64_t kHermiteLimit = sizeof(T) == 4 ? 128 : 512;
struct HermiteH {
  RL_INLINE static double first(double x) { return 2 * x; }
  RL_INLINE static double next(double x, double k, double p, double q) { return 2 * x * p - 2 * k * q; }
  template <class T> static constexpr int64_t kLimit = kHermiteLimit<T>;
};
struct HermiteHe {
  RL_INLINE static double first(double x) { return x; }
  RL_INLINE static double next(double x, double k, double p, double q) { return x * p - k * q; }
  template <class T> static constexpr int64_t kLimit = kHermiteLimit<T>;
};
struct Laguerre {
  static double far(double x, int64_t) { return x == 0 ? 1 : kNan<double>; }
  RL_INLINE static double first(double x) { return 1 - x; }
  RL_INLINE static double next(double x, double k, double p, double q) {
    return ((2 * k + 1 - x) * p - k * q) / (k + 1);
  }
};
struct Legendre {
  static double far(double x, int64_t n) { return x == 1 ? 1 : x == -1 ? sign_if_odd(n) : kNan<double>; }
  RL_INLINE static double first(double x) { return x; }
  RL_INLINE static double next(double x, double k, double p, double q) {
    return ((2 * k + 1) * x * p - k * q) / (k + 1);
  }
};

template <class P> RL_INLINE double argument(double x) {
  if constexpr (requires { P::argument(x); }) return P::argument(x);
  return x;
}
template <class P, class T> constexpr int64_t degree_limit() {
  if constexpr (requires { P::template kLimit<T>; }) return P::template kLimit<T>;
  return kLongestRecurrence;
}
// One element of a degree beyond kShortRecurrence; the recurrence stops where it has overflowed.
template <class P, class T> double long_recurrence(double x, double degree) {
  const int64_t n = degree < 9e18 ? static_cast<int64_t>(degree) : INT64_MAX;
  x = argument<P>(x);
  if constexpr (requires { P::far(x, n); }) {
    const double y = std::fabs(x) <= 1 ? P::far(x, n) : kNan<double>;
    if (y == y) return y;
  }
  if (n > degree_limit<P, T>()) return kNan<double>;
  double p0 = 1, p1 = P::first(x);
  for (int64_t k = 1; k < n && p1 == p1; ++k) {
    const double p2 = P::next(x, static_cast<double>(k), p1, p0);
    p0 = p1;
    p1 = p2;
  }
  return p1;
}
template <class P, class T> RL_INLINE void polynomial_run(char* const* data, int64_t n) {
  constexpr int kBlock = 64;
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* xs = reinterpret_cast<const T*>(data[1]);
  auto* degrees = reinterpret_cast<const T*>(data[2]);
  double x[kBlock], last[kBlock], p[kBlock], q[kBlock], y[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int count = static_cast<int>(n - first < kBlock ? n - first : kBlock);
    double most = 0;
    for (int i = 0; i < count; ++i) {
      const auto d = static_cast<double>(degrees[first + i]);
      x[i] = argument<P>(static_cast<double>(xs[first + i]));
      last[i] = d > -1 ? d : -1.0;  // -1 for NaN, too
      most = last[i] > most ? last[i] : most;
    }
    const int steps = static_cast<int>(most < kShortRecurrence ? most : kShortRecurrence);
    for (int i = 0; i < count; ++i) {
      q[i] = 1;
      p[i] = P::first(x[i]);
      const double low = last[i] > -1 ? 1.0 : 0.0;
      y[i] = last[i] >= 1 ? p[i] : low;
    }
    for (int k = 1; k < steps; ++k) {
      const auto number = static_cast<double>(k);
      for (int i = 0; i < count; ++i) {
        const double next = P::next(x[i], number, p[i], q[i]);
        q[i] = p[i];
        p[i] = next;
        y[i] = last[i] >= number + 1 ? next : y[i];
      }
    }
    if (most >= kShortRecurrence + 1) {
      for (int i = 0; i < count; ++i) {
        if (last[i] >= kShortRecurrence + 1) {
          y[i] = long_recurrence<P, T>(static_cast<double>(xs[first + i]), last[i]);
        }
      }
    }
    for (int i = 0; i < count; ++i) out[first + i] = static_cast<T>(y[i]);
  }
}

}  // namespace rl::RL_ISA::special
