// e^x on registers of float and double, to about one unit in the last place: x = n ln2 + r with |r| <= ln2 / 2, and
// e^x = 2^n P(r), P the Taylor polynomial.
#pragma once
#include <bit>
#include <iterator>

#include "cpu/simd/vector.h"

namespace rl::RL_ISA {

template <class T> struct ExpConstants;
template <> struct ExpConstants<float> {
  static constexpr float kLog2e = 1.44269504f, kLn2High = -0.693145752f, kLn2Low = -1.42860677e-6f;
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^(mantissa bits)
  static constexpr float kLow = -110.0f, kHigh = 100.0f, kLeastNormal = -87.33f;
  static constexpr float kTaylor[] = {1.98412698e-4f, 1.38888889e-3f, 8.33333333e-3f,
                                      4.16666667e-2f, 1.66666667e-1f, 0.5f};
  static constexpr int kShort = 1;  // the first coefficient where less will do
};
template <> struct ExpConstants<double> {
  static constexpr double kLog2e = 1.4426950408889634, kLn2High = -6.93147180369123816490e-01;
  static constexpr double kLn2Low = -1.90821492927058770002e-10, kRound = 6755399441055744.0;
  static constexpr double kLow = -760.0, kHigh = 720.0, kLeastNormal = -708.3;
  static constexpr double kTaylor[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                       1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                       1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
  static constexpr int kShort = 0;
};

// e^r from coefficient kFirst on.
template <int kFirst, class R> [[gnu::always_inline]] inline R exp_of_rest_vec(R r) {
  using V = simd::Of<R>;
  using C = ExpConstants<typename V::Element>;
  constexpr int kCount = static_cast<int>(std::size(C::kTaylor));
  R p = V::fma(r, V::all(C::kTaylor[kFirst]), V::all(C::kTaylor[kFirst + 1]));
#pragma GCC unroll 16
  for (int i = kFirst + 2; i < kCount; ++i) p = V::fma(p, r, V::all(C::kTaylor[i]));
  return V::fma(p, r * r, r) + typename V::Element(1);
}

// Results below the smallest subnormal become 0, above the largest number inf; NaN stays. Adding kRound rounds to an
// integer and leaves it in the low bits. 2^n is multiplied in as two factors so that subnormal results come out right.
template <class R> [[gnu::always_inline]] inline R exp_vec(R x) {
  using V = simd::Of<R>;
  using T = typename V::Element;
  using C = ExpConstants<T>;
  using Int = typename V::Bits;
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52, kBias = sizeof(T) == 4 ? 127 : 1023;
  x = x < C::kLow ? R{} + C::kLow : x;
  x = x > C::kHigh ? R{} + C::kHigh : x;
  const R t = V::fma(x, V::all(C::kLog2e), V::all(C::kRound)), n = t - C::kRound;
  const R r = V::fma(n, V::all(C::kLn2Low), V::fma(n, V::all(C::kLn2High), x));
  const R p = exp_of_rest_vec<0>(r), half = n * T(0.5) + C::kRound;
  const Int bias = Int{} + std::bit_cast<simd::int_of<sizeof(T)>>(C::kRound);
  const Int first = std::bit_cast<Int>(half) - bias, second = std::bit_cast<Int>(t) - bias - first;
  const Int a = (first + kBias) << kMantissa, b = (second + kBias) << kMantissa;
  return p * std::bit_cast<R>(a) * std::bit_cast<R>(b);
}

// For x <= 0, as in softmax: one factor is enough when results below the smallest normal number are 0. NaN stays.
template <class R> [[gnu::always_inline]] inline R exp_below_one(R x) {
  using V = simd::Of<R>;
  using C = ExpConstants<typename V::Element>;
  if constexpr (V::kWide) {  // which scales by powers of two
    const R n = V::round(x * C::kLog2e);
    const R r = V::fma(n, V::all(C::kLn2Low), V::fma(n, V::all(C::kLn2High), x));
    return V::scale(V::not_less(x, V::all(C::kLeastNormal)), exp_of_rest_vec<C::kShort>(r), n);
  } else if constexpr (V::kDouble) {
    return exp_vec(x);
  } else {
    using Int = typename V::Bits;
    const R t = V::fma(x, V::all(C::kLog2e), V::all(C::kRound)), n = t - C::kRound;
    const R r = V::fma(n, V::all(C::kLn2Low), V::fma(n, V::all(C::kLn2High), x));
    R p = exp_of_rest_vec<C::kShort>(r);
    // p is in [0.7, 1.5): adding to its exponent is multiplying by 2^n. The rounding constant's own bits leave at the
    // top.
    p = std::bit_cast<R>(std::bit_cast<Int>(p) + (std::bit_cast<Int>(t) << 23));
    p = x < C::kLeastNormal ? R{} : p;
    return x == x ? p : x;
  }
}

}  // namespace rl::RL_ISA
