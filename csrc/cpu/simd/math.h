// exp, log and their relatives for float and double, written without branches so that a plain loop over
// them becomes SIMD code. Errors stay within about two units in the last place, over the whole range.
// See also trig.h and erf.h.
#pragma once
#include <cstdint>
#include <limits>

#include "cpu/isa.h"

namespace rl::RL_ISA {

#define RL_INLINE [[gnu::always_inline]] inline

template <class T> struct FloatTraits;
template <> struct FloatTraits<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kOne = 0x3f800000u, kSqrtHalf = 0x3f3504f3u, kSign = 0x80000000u;
  static constexpr float kMagic = 0x1.8p23f;  // adding it leaves the rounded integer in the low bits
  static constexpr float kExpHigh = 90.0f, kExpLow = -106.0f;
  static constexpr float kLn2Hi = 0x1.62e4p-1f, kLn2Lo = 0x1.7f7d1cp-20f;
  // (e^r - 1 - r) / r^2 on |r| <= ln(2)/2
  static constexpr float kExp[] = {0x1p-1f, 0x1.555486p-3f, 0x1.555454p-5f, 0x1.124148p-7f, 0x1.6dbc34p-10f};
};
template <> struct FloatTraits<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kOne = 0x3ff0000000000000u, kSqrtHalf = 0x3fe6a09e667f3bcdu, kSign = 0x8000000000000000u;
  static constexpr double kMagic = 0x1.8p52;
  static constexpr double kExpHigh = 711.0, kExpLow = -748.0;
  static constexpr double kLn2Hi = 0x1.62e42fee00000p-1, kLn2Lo = 0x1.a39ef35793c76p-33;
  static constexpr double kExp[] = {0x1.0000000000000p-1,  0x1.555555555555cp-3,  0x1.555555555555fp-5,
                                    0x1.111111110e8a2p-7,  0x1.6c16c16c130dbp-10, 0x1.a01a01b4ed4b1p-13,
                                    0x1.a01a01b59cc92p-16, 0x1.71ddec9204b7cp-19, 0x1.27e4bcb10de7ap-22,
                                    0x1.af721189f668bp-26, 0x1.1fa189490dc99p-29};
};
template <class T> using bits_t = typename FloatTraits<T>::Bits;
template <class T> inline constexpr T kInf = std::numeric_limits<T>::infinity();
template <class T> inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
inline constexpr double kPi = 3.14159265358979323846;

template <class T> RL_INLINE bits_t<T> to_bits(T x) { return __builtin_bit_cast(bits_t<T>, x); }
template <class T> RL_INLINE T from_bits(bits_t<T> b) { return __builtin_bit_cast(T, b); }

// a * b + c; fused where the machine does it in one instruction.
RL_INLINE float fma(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
RL_INLINE double fma(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

RL_INLINE float abs_(float x) { return __builtin_fabsf(x); }
RL_INLINE double abs_(double x) { return __builtin_fabs(x); }
RL_INLINE float sqrt_(float x) { return __builtin_sqrtf(x); }
RL_INLINE double sqrt_(double x) { return __builtin_sqrt(x); }
RL_INLINE float rint_(float x) { return __builtin_rintf(x); }
RL_INLINE double rint_(double x) { return __builtin_rint(x); }
RL_INLINE float floor_(float x) { return __builtin_floorf(x); }
RL_INLINE double floor_(double x) { return __builtin_floor(x); }
// The magnitude of x with the sign of s.
template <class T> RL_INLINE T with_sign(T x, T s) {
  constexpr auto kSign = FloatTraits<T>::kSign;
  return from_bits<T>((to_bits(x) & ~kSign) | (to_bits(s) & kSign));
}
// Evaluates c[0] + c[1] x + ... by Horner's rule.
template <class T, int N> RL_INLINE T poly(T x, const T (&c)[N]) {
  T y = c[N - 1];
#pragma GCC unroll 32
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, c[i]);
  return y;
}
// 2^n where t = kMagic + n.
template <class T> RL_INLINE T pow2_of(T t) {
  return from_bits<T>((to_bits(t) << FloatTraits<T>::kMantissa) + FloatTraits<T>::kOne);
}

// x = n ln2 + r
template <class T> struct ExpSplit {
  T n, r;
};
template <class T> RL_INLINE ExpSplit<T> exp_split(T x) {
  using F = FloatTraits<T>;
  T c = x > F::kExpHigh ? F::kExpHigh : x;  // a NaN passes both
  c = c < F::kExpLow ? F::kExpLow : c;
  T n = fma(c, static_cast<T>(1.44269504088896340736), F::kMagic) - F::kMagic;
  T r = fma(-n, F::kLn2Lo, fma(-n, F::kLn2Hi, c));
  return {n, r};
}
// p * 2^n of p near 1, right also where 2^n itself over- or underflows. What is smaller than every number is 0 by a
// factor of 0: the processor would take long over it.
template <class T> RL_INLINE T scale2(T p, T n) {
  using F = FloatTraits<T>;
  constexpr T kNone = sizeof(T) == 4 ? T(-151) : T(-1076);
  T half = fma(n, T(0.5), F::kMagic);
  T rest = (n - (half - F::kMagic)) + F::kMagic;
  const T last = n < kNone ? T(0) : pow2_of(rest);
  return p * pow2_of(half) * last;
}
template <class T> RL_INLINE T exp_of_rest(T r) { return fma(r * r, poly(r, FloatTraits<T>::kExp), r) + T(1); }

template <class T> RL_INLINE T exp(T x) {
  auto [n, r] = exp_split(x);
  return scale2(exp_of_rest(r), n);
}
template <class T> RL_INLINE T half_exp(T x) {  // e^x / 2, finite as long as that is
  auto [n, r] = exp_split(x);
  return scale2(exp_of_rest(r), n - T(1));
}
// e^x for |x| < 86 (700 in double), where 2^n is a normal number; NaN stays NaN.
template <class T> RL_INLINE T exp_inside(T x) {
  using F = FloatTraits<T>;
  T t = fma(x, static_cast<T>(1.44269504088896340736), F::kMagic), n = t - F::kMagic;
  return exp_of_rest(fma(-n, F::kLn2Lo, fma(-n, F::kLn2Hi, x))) * pow2_of(t);
}
template <class T> RL_INLINE T exp2(T x) {
  using F = FloatTraits<T>;
  T c = x > T(F::kExpHigh * 1.45) ? T(F::kExpHigh * 1.45) : x;
  c = c < T(F::kExpLow * 1.45) ? T(F::kExpLow * 1.45) : c;
  T n = (c + F::kMagic) - F::kMagic;
  return scale2(exp_of_rest((c - n) * T(0.69314718055994530942)), n);
}
template <class T> RL_INLINE T half_expm1(T x) {  // (e^x - 1) / 2; up to e^x = 2^128 or 2^1024, then constant
  using F = FloatTraits<T>;
  constexpr T kHigh = sizeof(T) == 4 ? T(89) : T(710);
  T c = x > kHigh ? kHigh : x;
  c = c < T(-50) ? T(-50) : c;
  auto [n, r] = exp_split(c);
  T s = pow2_of((n - T(1)) + F::kMagic);
  T p = fma(r * r, poly(r, F::kExp), r);
  return fma(s, p, s - T(0.5));
}
template <class T> RL_INLINE T expm1(T x) {
  T y = half_expm1(x) * T(2);
  return abs_(x) < T(1e-30) ? x : y;
}
template <class T> RL_INLINE T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <class T> RL_INLINE T tanh(T x) {
  using F = FloatTraits<T>;
  T a = T(-2) * abs_(x), c = a < T(-50) ? T(-50) : a;
  T t = fma(c, static_cast<T>(1.44269504088896340736), F::kMagic), n = t - F::kMagic;
  T r = fma(-n, F::kLn2Lo, fma(-n, F::kLn2Hi, c)), s = pow2_of(t);
  T e = fma(s, fma(r * r, poly(r, F::kExp), r), s - T(1));  // e^-2|x| - 1
  T y = -e / (T(2) + e);
  return abs_(x) < T(1e-30) ? x : with_sign(y, x);
}
template <class T> RL_INLINE T sinh(T x) {
  T a = abs_(x), h = half_expm1(a);
  T y = a > T(40) ? half_exp(a) : h + h / fma(T(2), h, T(1));
  return a < T(1e-30) ? x : with_sign(y, x);
}
template <class T> RL_INLINE T cosh(T x) {
  T h = half_exp(abs_(x));
  return h + T(0.25) / h;
}

// u = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), for 0 < u < inf; and log(1 + f).
template <class T> struct LogSplit {
  T k, f, log_f;
};
RL_INLINE float log_of_rest(float f) {
  constexpr float kLog[] = {0x1.55554ap-2f, -0x1.00022p-2f,  0x1.99a594p-3f, -0x1.54788cp-3f,
                            0x1.226e84p-3f, -0x1.0ce0a8p-3f, 0x1.07cf7ap-3f, -0x1.41e984p-4f};
  float f2 = f * f;
  return fma(f2 * f, poly(f, kLog), -0.5f * f2);  // log(1 + f) - f
}
RL_INLINE double log_of_rest(double f) {
  constexpr double kLog[] = {0x1.5555555555597p-1, 0x1.999999997e3e3p-2, 0x1.2492494379439p-2, 0x1.c71c50b6aa3d9p-3,
                             0x1.746688424e270p-3, 0x1.3999f7f4fa574p-3, 0x1.2f57199a402f5p-3};
  double s = f / (2.0 + f), z = s * s, half_f2 = 0.5 * f * f;
  return s * (half_f2 + z * poly(z, kLog)) - half_f2;
}
template <class T> RL_INLINE LogSplit<T> log_split(T u) {
  using F = FloatTraits<T>;
  bool tiny = u < std::numeric_limits<T>::min();
  constexpr T kLift = sizeof(T) == 4 ? T(0x1p25) : T(0x1p54);
  u = tiny ? u * kLift : u;
  bits_t<T> b = to_bits(u) + (F::kOne - F::kSqrtHalf);
  constexpr bits_t<T> kMask = (bits_t<T>(1) << F::kMantissa) - 1;
  // The exponent as a float without an integer conversion: its bits below those of 2^mantissa.
  constexpr T kBase = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
  constexpr T kBias = kBase + (sizeof(T) == 4 ? T(127) : T(1023));
  T k = from_bits<T>((b >> F::kMantissa) | to_bits(kBase)) - kBias;
  k = tiny ? k - (sizeof(T) == 4 ? T(25) : T(54)) : k;
  T f = from_bits<T>((b & kMask) + F::kSqrtHalf) - T(1);
  return {k, f, log_of_rest(f)};
}
// The logarithm's value at the edges of its domain: 0 -> -inf, inf -> inf, below 0 and NaN -> NaN.
template <class T> RL_INLINE T log_edges(T u, T y) {
  T edge = u == T(0) ? -kInf<T> : (u > T(0) ? kInf<T> : kNan<T>);
  return (u > T(0)) & (u < kInf<T>) ? y : edge;
}
template <class T> RL_INLINE T log(T x) {
  using F = FloatTraits<T>;
  auto [k, f, log_f] = log_split(x);
  return log_edges(x, fma(k, F::kLn2Hi, f + fma(k, F::kLn2Lo, log_f)));
}
template <class T> RL_INLINE T log2_of(T k, T f, T log_f) {
  constexpr T kHi = sizeof(T) == 4 ? T(0x1.715p0) : T(0x1.71547652p0);  // 1/ln2, few bits: kHi * head is exact
  constexpr T kLo = T(1.44269504088896340736L - static_cast<long double>(kHi));
  constexpr auto kHead = ~((bits_t<T>(1) << (sizeof(T) == 4 ? 12 : 29)) - 1);
  T head = from_bits<T>(to_bits(f) & kHead), tail = (f - head) + log_f;
  return k + fma(head, kHi, fma(tail, kHi, (head + tail) * kLo));
}
template <class T> RL_INLINE T log2(T x) {
  auto [k, f, log_f] = log_split(x);
  return log_edges(x, log2_of(k, f, log_f));
}
template <class T> RL_INLINE T log10_of(T k, T f, T log_f) {
  constexpr T kHi = sizeof(T) == 4 ? T(0x1.344p-2) : T(0x1.34413509p-2);  // log10(2)
  constexpr T kLo = T(0.30102999566398119521L - static_cast<long double>(kHi));
  constexpr T kInvLn10 = T(0.43429448190325182765);
  return fma(k, kHi, fma(f + log_f, kInvLn10, k * kLo));
}
template <class T> RL_INLINE T log10(T x) {
  auto [k, f, log_f] = log_split(x);
  return log_edges(x, log10_of(k, f, log_f));
}
template <class T> RL_INLINE T log1p(T x) {
  using F = FloatTraits<T>;
  T u = T(1) + x;
  T lost = (x < T(1) ? x - (u - T(1)) : T(1) - (u - x)) / u;  // what rounding u dropped
  auto [k, f, log_f] = log_split(u);
  T y = fma(k, F::kLn2Hi, f + (fma(k, F::kLn2Lo, log_f) + lost));
  return abs_(x) < T(1e-30) ? x : log_edges(u, y);
}
template <class T> RL_INLINE T asinh(T x) {
  T a = abs_(x);
  constexpr T kBig = sizeof(T) == 4 ? T(1e15) : T(1e150);
  bool big = a > kBig;
  T b = big ? T(1) : a;
  T y = log1p(big ? a : b + b * b / (T(1) + sqrt_(fma(b, b, T(1)))));
  y = big ? y + T(0.69314718055994530942) : y;
  return a < T(1e-30) ? x : with_sign(y, x);
}
template <class T> RL_INLINE T acosh(T x) {
  constexpr T kBig = sizeof(T) == 4 ? T(1e15) : T(1e150);
  bool big = x > kBig;
  T t = big ? T(1) : x - T(1);
  T y = log1p(big ? x : t + sqrt_(fma(t, t, t + t)));
  y = big ? y + T(0.69314718055994530942) : y;
  return x >= T(1) ? y : kNan<T>;
}
template <class T> RL_INLINE T atanh(T x) {
  T a = abs_(x);
  T y = T(0.5) * log1p((a + a) / (T(1) - a));
  return a < T(1e-30) ? x : with_sign(y, x);
}

}  // namespace rl::RL_ISA
