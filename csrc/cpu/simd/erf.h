// The error function and powers without branches. See math.h.
#pragma once
#include "cpu/simd/math.h"

namespace rl::RL_ISA {

// Near zero an odd polynomial; further out 1 - e^q(|x|), where q approximates log(erfc).
RL_INLINE float erf(float x) {
  constexpr float kNear[] = {0x1.20dd74p0f, -0x1.81273ep-2f,  0x1.ce2cf8p-4f, -0x1.b7f90cp-6f,
                             0x1.5405bp-8f, -0x1.a3f6eep-11f, 0x1.496a06p-14f};
  constexpr float kFar[] = {0x1.65b2f8p-13f, -0x1.21269ap0f,  -0x1.444b3cp-1f, -0x1.bb5678p-4f,
                            0x1.9b19c2p-6f,  -0x1.10aaaap-8f, 0x1.c54f7ap-12f, -0x1.5ed0b2p-16f};
  float a = abs_(x), c = a > 4.0f ? 4.0f : a;
  float y = 1.0f - exp_inside(poly(c, kFar));
  return a < 1.0f ? x * poly(x * x, kNear) : with_sign(y, x);
}
RL_INLINE double erf(double x) {
  constexpr double kNear[] = {0x1.20dd750429b6dp0,    -0x1.812746b0379e6p-2,  0x1.ce2f21a042b20p-4,
                              -0x1.b82ce31284998p-6,  0x1.565bcd0db0257p-8,   -0x1.c02db3d8ebc21p-11,
                              0x1.f9a321a0f9e34p-14,  -0x1.f4d1df36dc930p-17, 0x1.b9def18181e98p-20,
                              -0x1.5f1d35e4a78c6p-23, 0x1.f7a409901fdf6p-27,  -0x1.386aa7f9f3230p-30,
                              0x1.05796bf90c7f1p-34};
  constexpr double kFar[] = {-0x1.86ad136d74b39p-22, -0x1.20dd35cad8e80p0,   -0x1.45f5673e2ce63p-1,
                             -0x1.a4bc8ad8496bfp-4,  0x1.379b041d0ccf4p-6,   0x1.858a6fdfb32efp-12,
                             -0x1.eba6b551cd0d0p-10, 0x1.83117b9788334p-11,  -0x1.e141d8d0f148dp-14,
                             -0x1.fc9010cb80337p-16, 0x1.c09df017ca8e5p-16,  -0x1.4afd6695f0d16p-17,
                             0x1.44a86a0ab6f14p-19,  -0x1.c75b36720aec8p-22, 0x1.c8039b86ed871p-25,
                             -0x1.37cfa1ab1793ep-28, 0x1.05d06c7285f45p-32,  -0x1.97f9fe5993632p-38};
  double a = abs_(x), c = a > 6.0 ? 6.0 : a;
  double y = 1.0 - exp_inside(poly(c, kFar));
  return a < 1.0 ? x * poly(x * x, kNear) : with_sign(y, x);
}
// e^-x^2 times a polynomial in (|x| - 2) / (|x| + 2), in double so that the tail keeps its digits.
RL_INLINE float erfc(float x) {
  constexpr double kScaled[] = {0x1.058671b569167p-2,   -0x1.b57034f41ef94p-2,  0x1.eeea7d917c26ap-3,
                                -0x1.437f07e3dff2ep-4,  0x1.e9482b47836fap-9,   0x1.ca92cfd3361b5p-8,
                                -0x1.bc4aa8b07172ep-11, -0x1.01217d82ba2bep-10, 0x1.7853cb16f98f3p-15,
                                0x1.671c53e21f14bp-13,  0x1.90d9bcde3bd91p-16,  -0x1.8a8732d079f1dp-16,
                                -0x1.1aa248dc40db4p-17};
  double a = abs_(x);
  a = a > 10.2 ? 10.2 : a;
  double tail = exp_inside(-a * a) * poly((a - 2.0) / (a + 2.0), kScaled);
  return static_cast<float>(x < 0.0f ? 2.0 - tail : tail);
}

// x^y for float through double: y log2|x| needs more digits than a float has.
RL_INLINE float pow(float x, float y) {
  constexpr double kLog[] = {0x1.55555556289e3p-1, 0x1.9999968a5bbf9p-2, 0x1.249420014e295p-2, 0x1.c6261c17818a5p-3,
                             0x1.9162167289effp-3};
  constexpr double kExp[] = {0x1.62e42fef7b5c8p-1,  0x1.ebfbe07ab83eap-3,  0x1.c6b08df4712fap-5, 0x1.3b29f0fe2baf1p-7,
                             0x1.5d87239491477p-10, 0x1.445e6a6f0b8d5p-13, 0x1.00f13ee024cd2p-16};
  using F = FloatTraits<double>;
  double a = static_cast<double>(abs_(x)), b = static_cast<double>(y);
  uint64_t u = to_bits(a) + (F::kOne - F::kSqrtHalf);
  double k = from_bits<double>((u >> 52) | to_bits(0x1p52)) - (0x1p52 + 1023);
  double f = from_bits<double>((u & 0xfffffffffffffu) + F::kSqrtHalf) - 1.0;
  double s = f / (2.0 + f), z = s * s;
  double log2_a = k + (2.0 * s + s * z * poly(z, kLog)) * 1.44269504088896340736;
  log2_a = a == 0.0 ? -kInf<double> : log2_a;
  log2_a = a == kInf<double> ? kInf<double> : log2_a;
  double e = b * log2_a;  // NaN for 0 * inf, settled below
  e = e > 200.0 ? 200.0 : e;
  e = e < -200.0 ? -200.0 : e;
  double t = e + F::kMagic, r = e - (t - F::kMagic);
  double m = fma(r, poly(r, kExp), 1.0) * pow2_of(t);
  float p = static_cast<float>(m);
  p = (x != x) | (y != y) ? kNan<float> : p;
  bool whole = rint_(y) == y, odd = whole & (rint_(y * 0.5f) != y * 0.5f);
  bool negative = to_bits(x) >> 31;
  p = negative & odd ? -p : p;
  p = (x < 0.0f) & (x > -kInf<float>)&!whole ? kNan<float> : p;
  bool one = (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (abs_(y) == kInf<float>));
  return one ? 1.0f : p;
}

#ifdef __FMA__
// x^y for double: log2|x| and its product with y as two doubles each, 2^r with a first-order correction.
RL_INLINE double pow(double x, double y) {
  using F = FloatTraits<double>;
  // log(1 + f) = 2 s + 2/3 s^3 + s^5 p(s^2), the first two terms to twice the digits
  constexpr double kLog[] = {0x1.999999999999ap-2, 0x1.2492492492492p-2, 0x1.c71c71c71c71cp-3,
                             0x1.745d1745d1746p-3, 0x1.3b13b13b13b14p-3, 0x1.1111111111111p-3,
                             0x1.e1e1e1e1e1e1ep-4, 0x1.af286bca1af28p-4, 0x1.8618618618618p-4};
  constexpr double kThird = 0x1.5555555555555p-1, kThirdLow = 0x1.5555555555555p-55;  // 2/3
  constexpr double kLog2e = 0x1.71547652b82fep0, kLog2eLow = 0x1.777d0ffda0d24p-56;   // 1 / ln 2
  const double a = abs_(x);
  const bool tiny = a < 0x1p-1022;
  const uint64_t u = to_bits(tiny ? a * 0x1p54 : a) + (F::kOne - F::kSqrtHalf);
  const double k = from_bits<double>((u >> 52) | to_bits(0x1p52)) - (0x1p52 + 1023) - (tiny ? 54.0 : 0.0);
  const double f = from_bits<double>((u & 0xfffffffffffffu) + F::kSqrtHalf) - 1.0;
  const double d = 2.0 + f, d_low = f - (d - 2.0);
  const double s = f / d, s_low = (fma(-s, d, f) - s * d_low) / d;
  const double z = s * s, z_low = fma(s, s, -z) + 2.0 * s * s_low;
  const double cube = z * s, cube_low = fma(z, s, -cube) + fma(z, s_low, z_low * s);
  const double t = cube * kThird, t_low = fma(cube, kThird, -t) + fma(cube, kThirdLow, cube_low * kThird);
  double log_a = 2.0 * s + t;
  const double log_low = (2.0 * s - log_a + t) + (t_low + 2.0 * s_low + cube * z * poly(z, kLog));
  const double m = log_a * kLog2e, m_low = fma(log_a, kLog2e, -m) + fma(log_a, kLog2eLow, log_low * kLog2e);
  double high = k + m;
  const double low = (k - high + m) + m_low;
  high = a == 0.0 ? -kInf<double> : high;
  high = a == kInf<double> ? kInf<double> : high;
  double e = y * high;  // NaN for 0 * inf, settled below
  const double e_low = fma(y, high, -e) + y * low;
  const bool inside = abs_(e) < 1100.0;
  e = e > 1100.0 ? 1100.0 : e;
  e = e < -1100.0 ? -1100.0 : e;
  const double n = (e + F::kMagic) - F::kMagic, r = (e - n) + (inside ? e_low : 0.0);
  double p = scale2(exp_of_rest(r * 0.69314718055994530942), n);
  p = (x != x) | (y != y) ? kNan<double> : p;
  const bool whole = rint_(y) == y, odd = whole & (rint_(y * 0.5) != y * 0.5);
  p = ((to_bits(x) >> 63) != 0) & odd ? -p : p;
  p = (x < 0.0) & (x > -kInf<double>)&!whole ? kNan<double> : p;
  const bool one = (y == 0.0) | (x == 1.0) | ((x == -1.0) & (abs_(y) == kInf<double>));
  return one ? 1.0 : p;
}
#endif

}  // namespace rl::RL_ISA
