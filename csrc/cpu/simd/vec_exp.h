// e^x on vectors of float and double, to about one unit in the last place. Results below the smallest
// subnormal become 0, above the largest number inf; NaN stays.
#pragma once
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {

// a * b + c, in one rounding where the machine can.
[[gnu::always_inline]] inline Vec<float> mul_add(Vec<float> a, Vec<float> b, Vec<float> c) {
#ifdef __FMA__
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  return a * b + c;
#endif
}
[[gnu::always_inline]] inline Vec<double> mul_add(Vec<double> a, Vec<double> b, Vec<double> c) {
#ifdef __FMA__
  return __builtin_ia32_vfmaddpd256(a, b, c);
#else
  return a * b + c;
#endif
}
template <class T> [[gnu::always_inline]] inline Vec<T> fill_vec(T x) { return Vec<T>{} + x; }

// x = n ln2 + r with |r| <= ln2 / 2; e^x = 2^n P(r), P the Taylor polynomial. Adding 1.5 * 2^(mantissa bits)
// rounds to an integer and leaves it in the low bits. 2^n is multiplied in as two factors so that subnormal
// results come out right.
[[gnu::always_inline]] inline Vec<float> exp_vec(Vec<float> x) {
  using Int = Vec<int32_t>;
  constexpr float kRound = 12582912.0f, kLow = -110.0f, kHigh = 100.0f;
  x = x < kLow ? Vec<float>{} + kLow : x;
  x = x > kHigh ? Vec<float>{} + kHigh : x;
  Vec<float> t = mul_add(x, fill_vec(1.44269504f), fill_vec(kRound)), n = t - kRound;
  Vec<float> r = mul_add(n, fill_vec(-1.42860677e-6f), mul_add(n, fill_vec(-0.693145752f), x));
  Vec<float> p = mul_add(r, fill_vec<float>(1.98412698e-4f), fill_vec<float>(1.38888889e-3f));
  p = mul_add(p, r, fill_vec<float>(8.33333333e-3f));
  p = mul_add(p, r, fill_vec<float>(4.16666667e-2f));
  p = mul_add(p, r, fill_vec<float>(1.66666667e-1f));
  p = mul_add(p, r, fill_vec<float>(0.5f));
  p = mul_add(p, r * r, r) + 1.0f;
  Vec<float> half = n * 0.5f + kRound;
  Int whole, first;
  __builtin_memcpy(&whole, &t, sizeof(Int));
  __builtin_memcpy(&first, &half, sizeof(Int));
  Int bias = Int{} + 0x4b400000;  // the bits of kRound
  Int a = first - bias, b = whole - bias - a;
  a = (a + 127) << 23;
  b = (b + 127) << 23;
  Vec<float> fa, fb;
  __builtin_memcpy(&fa, &a, sizeof(Int));
  __builtin_memcpy(&fb, &b, sizeof(Int));
  return p * fa * fb;
}

[[gnu::always_inline]] inline Vec<double> exp_vec(Vec<double> x) {
  using Int = Vec<int64_t>;
  constexpr double kRound = 6755399441055744.0, kLow = -760.0, kHigh = 720.0;
  x = x < kLow ? Vec<double>{} + kLow : x;
  x = x > kHigh ? Vec<double>{} + kHigh : x;
  Vec<double> t = mul_add(x, fill_vec(1.4426950408889634), fill_vec(kRound)), n = t - kRound;
  Vec<double> r =
      mul_add(n, fill_vec(-1.90821492927058770002e-10), mul_add(n, fill_vec(-6.93147180369123816490e-01), x));
  Vec<double> p = mul_add(r, fill_vec<double>(1.0 / 6227020800.0), fill_vec<double>(1.0 / 479001600.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 39916800.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 3628800.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 362880.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 40320.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 5040.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 720.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 120.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 24.0));
  p = mul_add(p, r, fill_vec<double>(1.0 / 6.0));
  p = mul_add(p, r, fill_vec<double>(0.5));
  p = mul_add(p, r * r, r) + 1.0;
  Vec<double> half = n * 0.5 + kRound;
  Int whole, first;
  __builtin_memcpy(&whole, &t, sizeof(Int));
  __builtin_memcpy(&first, &half, sizeof(Int));
  Int bias = Int{} + 0x4338000000000000;
  Int a = first - bias, b = whole - bias - a;
  a = (a + 1023) << 52;
  b = (b + 1023) << 52;
  Vec<double> fa, fb;
  __builtin_memcpy(&fa, &a, sizeof(Int));
  __builtin_memcpy(&fb, &b, sizeof(Int));
  return p * fa * fb;
}

// For x <= 0, as in softmax: one factor is enough when results below the smallest normal number are 0.
[[gnu::always_inline]] inline Vec<float> exp_below_one(Vec<float> x) {
  using Int = Vec<int32_t>;
  constexpr float kRound = 12582912.0f, kLow = -87.33f;
  Vec<float> t = mul_add(x, fill_vec(1.44269504f), fill_vec(kRound)), n = t - kRound;
  Vec<float> r = mul_add(n, fill_vec(-1.42860677e-6f), mul_add(n, fill_vec(-0.693145752f), x));
  Vec<float> p = mul_add(r, fill_vec<float>(1.38888889e-3f), fill_vec<float>(8.33333333e-3f));
  p = mul_add(p, r, fill_vec<float>(4.16666667e-2f));
  p = mul_add(p, r, fill_vec<float>(1.66666667e-1f));
  p = mul_add(p, r, fill_vec<float>(0.5f));
  p = mul_add(p, r * r, r) + 1.0f;
  Int whole;
  __builtin_memcpy(&whole, &t, sizeof(Int));
  whole = whole << 23;  // the rounding constant's own bits leave at the top
  Int bits;
  __builtin_memcpy(&bits, &p, sizeof(Int));
  bits += whole;  // p is in [0.7, 1.5): adding to its exponent is multiplying by 2^n
  __builtin_memcpy(&p, &bits, sizeof(Int));
  p = x < kLow ? Vec<float>{} : p;
  return x == x ? p : x;
}
[[gnu::always_inline]] inline Vec<double> exp_below_one(Vec<double> x) { return exp_vec(x); }

}  // namespace rl::RL_ISA
