// The regularized lower incomplete gamma function P(a, x) and its complement, in double. Elements of a block that need
// the same expansion run side by side, as long as the slowest of a group takes.
#pragma once
#include <cmath>

#include "cpu/elementwise/special_gamma.h"
#include "cpu/isa.h"

namespace rl::RL_ISA::special {

inline constexpr int kGroup =
    32;  // lanes; from 17 on the compiler makes loops over them vectors rather than straight code

// x^a e^-x / Gamma(a + 1). From 6.5 on with Stirling's series, where the large terms cancel before they are rounded.
RL_INLINE double igamma_factor(double a, double x) {
  using F = FloatTraits<double>;
  const bool far = a >= 6.5;
  const double big = far ? a : 6.5, r = 1 / big, d = (x - big) * r, u = 1 + d;
  const bool near = abs_(d) < 0.5;
  auto [k, f, log_f] = log_split(near ? u : x * r);
  const double lost = near ? (d - (u - 1)) / u : 0.0;
  const double power = fma(k, F::kLn2Hi, f + (fma(k, F::kLn2Lo, log_f) + lost)) - d;
  const double stirling = r * poly(fma(r * r, 2 * 6.5 * 6.5, -1.0), kStirling);
  const double small = far ? 1.0 : a;
  const double low = fma(small, rl::RL_ISA::log(x), -x) - lgamma_above<double>(small + 1);
  const double e = rl::RL_ISA::exp(far ? fma(big, power, -stirling) : low);
  return far ? e / sqrt_(2 * kPi * big) : e;
}
// P by its power series, two terms for a division; `tiny` is what counts no more.
RL_INLINE void igamma_series(const double* a, const double* x, double* y, double tiny) {
  double term[kGroup], sum[kGroup];
  for (int i = 0; i < kGroup; ++i) term[i] = sum[i] = 1;
  for (double k = 1; k < 2e6; k += 2) {
    int more = 0;
    for (int i = 0; i < kGroup; ++i) {
      const double p = a[i] + k, r = p + 1, q = term[i] * x[i] / (p * r);
      sum[i] = fma(q, r + x[i], sum[i]);
      term[i] = q * x[i];
      more |= term[i] > tiny * sum[i];
    }
    if (!more) break;
  }
  for (int i = 0; i < kGroup; ++i) y[i] = sum[i] * igamma_factor(a[i], x[i]);
}
// 1 - P by the continued fraction 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)): numerators and denominators by their
// recurrence, made smaller now and then, and divided every fourth step to see whether they have settled.
RL_INLINE void igamma_fraction(const double* a, const double* x, double* y, double tiny) {
  double top[kGroup], bottom[kGroup], top0[kGroup], bottom0[kGroup], value[kGroup], change[kGroup];
  for (int i = 0; i < kGroup; ++i) {
    top0[i] = 0;
    bottom0[i] = top[i] = 1;
    bottom[i] = x[i] + 1 - a[i];
    value[i] = 0;
    change[i] = kInf<double>;
  }
  for (double k = 1; k < 2e6; k += 4) {
    int more = 0;
    for (int i = 0; i < kGroup; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const double m = k + j, n = m * (a[i] - m), b = x[i] + 1 - a[i] + 2 * m;
        const double t = fma(b, top[i], n * top0[i]), s = fma(b, bottom[i], n * bottom0[i]);
        top0[i] = top[i];
        bottom0[i] = bottom[i];
        top[i] = t;
        bottom[i] = s;
      }
      const double scale = abs_(bottom[i]) > 1e100 ? 1e-100 : 1.0;
      top0[i] *= scale;
      bottom0[i] *= scale;
      top[i] *= scale;
      bottom[i] *= scale;
      const double next = top[i] / bottom[i];
      // A change that grows again, tiny as it is, is rounding: 0 from then on.
      const double step = abs_(next - value[i]), noise = step < change[i] ? step : 0.0;
      change[i] = step <= 1e-12 * abs_(next) ? noise : step;
      more |= change[i] > tiny * abs_(next);
      value[i] = next;
    }
    if (!more) break;
  }
  for (int i = 0; i < kGroup; ++i) y[i] = value[i] * a[i] * igamma_factor(a[i], x[i]);
}
// From a = 10^6 on, where the value leaves 0 and 1 within a few thousandths of x = a only: Temme's expansion,
// erfc(h sqrt(a / 2)) / 2 + e^(-a h^2 / 2) / sqrt(2 pi a) (c0 + c1 / a), with h^2 / 2 = m - log(1 + m), m = x / a - 1.
inline double igamma_uniform(double a, double x, bool complement) {
  const double m = (x - a) / a;
  if (std::fabs(m) > 0.06) return (m > 0) == complement ? 0 : 1;
  double square = 0, power = m * m;  // m^2 - 2/3 m^3 + 2/4 m^4 - ...
  for (int k = 2; k < 18; ++k) {
    square += (k % 2 ? -2 : 2) * power / k;
    power *= m;
  }
  const double h = std::copysign(std::sqrt(square), m), sign = complement ? 1 : -1;
  const double c0 =
      -1.0 / 3 + h * (1.0 / 12 + h * (-2.0 / 135 + h * (1.0 / 864 + h * (1.0 / 2835 + h * (-139.0 / 777600)))));
  const double c1 = -1.0 / 540 + h * (-1.0 / 288 + h / 378);
  const double rest = std::exp(-0.5 * a * square) / std::sqrt(2 * kPi * a) * (c0 + c1 / a);
  return 0.5 * std::erfc(sign * h * std::sqrt(0.5 * a)) + sign * rest;
}
// Both infinite is undefined.
inline double igamma_edge(double a, double x, bool complement) {
  const double none = complement ? 1 : 0, all = complement ? 0 : 1;
  if (a != a || x != x || a < 0 || x < 0) return kNan<double>;
  if (a == 0) return x > 0 ? all : kNan<double>;
  if (x == 0) return none;
  if (std::isinf(a)) return std::isinf(x) ? kNan<double> : none;
  if (std::isinf(x)) return all;
  return a < 1e6 ? all : igamma_uniform(a, x, complement);
}
template <class T, bool kComplement> RL_INLINE void igamma_run(char* const* data, int64_t n) {
  constexpr int kBlock = 256;
  // What is left of 1 needs more digits.
  constexpr double kTiny = sizeof(T) == 4 && !kComplement ? 1e-10 : 1e-17,
                   kSettled = sizeof(T) == 4 && kComplement ? 1e-10 : 1e-16;
  auto* out = reinterpret_cast<T*>(data[0]);
  auto* as = reinterpret_cast<const T*>(data[1]);
  auto* xs = reinterpret_cast<const T*>(data[2]);
  int16_t order[2][kBlock + kGroup];
  double result[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int count = static_cast<int>(n - first < kBlock ? n - first : kBlock);
    int lengths[2] = {0, 0};
    for (int i = 0; i < count; ++i) {
      const auto a = static_cast<double>(as[first + i]), x = static_cast<double>(xs[first + i]);
      if ((a > 0) & (a < 1e6) & (x > 0) & (x < 1e25)) {
        const int fraction = (x > 1) & (x > a);
        order[fraction][lengths[fraction]++] = static_cast<int16_t>(i);
      } else {
        result[i] = igamma_edge(a, x, kComplement);
      }
    }
    for (int fraction = 0; fraction < 2; ++fraction) {
      for (int from = 0; from < lengths[fraction]; from += kGroup) {
        double a[kGroup], x[kGroup], y[kGroup];
        const int used = lengths[fraction] - from < kGroup ? lengths[fraction] - from : kGroup;
        for (int i = 0; i < kGroup; ++i) {  // lanes to spare repeat the first
          const int16_t at = order[fraction][i < used ? from + i : from];
          a[i] = static_cast<double>(as[first + at]);
          x[i] = static_cast<double>(xs[first + at]);
        }
        if (fraction) {
          igamma_fraction(a, x, y, kSettled);
        } else {
          igamma_series(a, x, y, kTiny);
        }
        const bool other = fraction != kComplement;
        for (int i = 0; i < used; ++i) result[order[fraction][from + i]] = other ? 1 - y[i] : y[i];
      }
    }
    for (int i = 0; i < count; ++i) out[first + i] = static_cast<T>(result[i]);
  }
}

}  // namespace rl::RL_ISA::special
