// e^x on vectors of float and double, to about one unit in the last place. Results below the smallest
// subnormal become 0, above the largest number inf; NaN stays.
#pragma once
#include "cpu/vec.h"

namespace rl::RL_ISA {

// x = n ln2 + r with |r| <= ln2 / 2; e^x = 2^n P(r), P the Taylor polynomial. Adding 1.5 * 2^(mantissa bits)
// rounds to an integer and leaves it in the low bits. 2^n is multiplied in as two factors so that subnormal
// results come out right.
[[gnu::always_inline]] inline Vec<float> exp_vec(Vec<float> x) {
  typedef int32_t Int __attribute__((vector_size(32)));
  constexpr float kRound = 12582912.0f, kLow = -110.0f, kHigh = 100.0f;
  x = x < kLow ? Vec<float>{} + kLow : x;
  x = x > kHigh ? Vec<float>{} + kHigh : x;
  Vec<float> t = x * 1.44269504f + kRound, n = t - kRound;
  Vec<float> r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  Vec<float> p = r * 1.98412698e-4f + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  Vec<float> half = n * 0.5f + kRound;
  Int whole, first;
  __builtin_memcpy(&whole, &t, 32);
  __builtin_memcpy(&first, &half, 32);
  Int bias = Int{} + 0x4b400000;  // the bits of kRound
  Int a = first - bias, b = whole - bias - a;
  a = (a + 127) << 23;
  b = (b + 127) << 23;
  Vec<float> fa, fb;
  __builtin_memcpy(&fa, &a, 32);
  __builtin_memcpy(&fb, &b, 32);
  return p * fa * fb;
}

[[gnu::always_inline]] inline Vec<double> exp_vec(Vec<double> x) {
  typedef int64_t Int __attribute__((vector_size(32)));
  constexpr double kRound = 6755399441055744.0, kLow = -760.0, kHigh = 720.0;
  x = x < kLow ? Vec<double>{} + kLow : x;
  x = x > kHigh ? Vec<double>{} + kHigh : x;
  Vec<double> t = x * 1.4426950408889634 + kRound, n = t - kRound;
  Vec<double> r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  Vec<double> p = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  Vec<double> half = n * 0.5 + kRound;
  Int whole, first;
  __builtin_memcpy(&whole, &t, 32);
  __builtin_memcpy(&first, &half, 32);
  Int bias = Int{} + 0x4338000000000000;
  Int a = first - bias, b = whole - bias - a;
  a = (a + 1023) << 52;
  b = (b + 1023) << 52;
  Vec<double> fa, fb;
  __builtin_memcpy(&fa, &a, 32);
  __builtin_memcpy(&fb, &b, 32);
  return p * fa * fb;
}

}  // namespace rl::RL_ISA
