// Trigonometry without branches, for loops that become SIMD code. See math.h.
#pragma once
#include "cpu/simd/math.h"

namespace rl::RL_ISA {

// |x| up to which sin, cos and tan below are right; loops send larger arguments, infinities and NaNs to libm.
template <class T> inline constexpr T kTrigLimit = sizeof(T) == 4 ? T(30000) : T(1e5);

// x = quarter * pi/2 + r; the two low bits of `quarter` are the quadrant.
template <class T> struct TrigSplit {
  bits_t<T> quarter;
  T r;
};
RL_INLINE TrigSplit<float> trig_split(float x) {
  using F = FloatTraits<float>;
  float t = fma(x, 0x1.45f306p-1f, F::kMagic), n = t - F::kMagic;
#ifdef __FMA__
  float r = fma(-n, 0x1.921fb6p0f, x);
  r = fma(-n, -0x1.777a5cp-25f, r);
  r = fma(-n, -0x1.ee59dap-50f, r);
#else
  double wide = static_cast<double>(x) - static_cast<double>(n) * 0x1.921fb54442d18p0;
  float r = static_cast<float>(wide);
#endif
  return {to_bits(t), r};
}
RL_INLINE TrigSplit<double> trig_split(double x) {
  using F = FloatTraits<double>;
  double t = fma(x, 0x1.45f306dc9c883p-1, F::kMagic), n = t - F::kMagic;
  double r = x - n * 0x1.921fb54400000p0;  // exact: 33 bits times at most 17
  r = r - n * 0x1.0b4611a600000p-34;
  r = r - n * 0x1.3198a2e037073p-69;
  return {to_bits(t), r};
}
RL_INLINE float sin_poly(float r) {
  constexpr float c[] = {-0x1.555556p-3f, 0x1.111108p-7f, -0x1.a00f88p-13f, 0x1.6cd35ep-19f};
  float z = r * r;
  return fma(r * z, poly(z, c), r);
}
RL_INLINE float cos_poly(float r) {
  constexpr float c[] = {0x1.55554ap-5f, -0x1.6c0c76p-10f, 0x1.99fc2ap-16f};
  float z = r * r;
  return fma(z * z, poly(z, c), fma(-0.5f, z, 1.0f));
}
RL_INLINE double sin_poly(double r) {
  constexpr double c[] = {-0x1.5555555555555p-3,  0x1.111111111110bp-7,  -0x1.a01a01a018a7cp-13, 0x1.71de3a5330db8p-19,
                          -0x1.ae64528cdf403p-26, 0x1.61208b4f96362p-33, -0x1.aaa18b7a95590p-41};
  double z = r * r;
  return fma(r * z, poly(z, c), r);
}
RL_INLINE double cos_poly(double r) {
  constexpr double c[] = {0x1.5555555555555p-5,  -0x1.6c16c16c16c10p-10, 0x1.a01a01a018d90p-16, -0x1.27e4fb75f7602p-22,
                          0x1.1eed8c9cbb563p-29, -0x1.9393304e09d27p-37, 0x1.aac20d3ef2ff2p-45};
  double z = r * r, half = 0.5 * z, one = 1.0 - half;
  return one + (((1.0 - one) - half) + z * z * poly(z, c));
}
template <class T> RL_INLINE T sin(T x) {
  auto [q, r] = trig_split(x);
  T y = (q & 1) ? cos_poly(r) : sin_poly(r);
  y = from_bits<T>(to_bits(y) ^ ((q & 2) << (sizeof(T) * 8 - 2)));
  return abs_(x) < T(1e-18) ? x : y;
}
template <class T> RL_INLINE T cos(T x) {
  auto [q, r] = trig_split(x);
  T y = (q & 1) ? sin_poly(r) : cos_poly(r);
  return from_bits<T>(to_bits(y) ^ (((q + 1) & 2) << (sizeof(T) * 8 - 2)));
}
template <class T> RL_INLINE T tan(T x) {
  auto [q, r] = trig_split(x);
  T s = sin_poly(r), c = cos_poly(r);
  T y = ((q & 1) ? -c : s) / ((q & 1) ? s : c);
  return abs_(x) < T(1e-18) ? x : y;
}

RL_INLINE float atan_poly(float a) {  // 0 <= a <= 1
  constexpr float c[] = {-0x1.55554p-2f, 0x1.999276p-3f,  -0x1.2426f6p-3f, 0x1.c0d27p-4f,   -0x1.58dc3cp-4f,
                         0x1.dd0e26p-5f, -0x1.01aeeep-5f, 0x1.6a8e78p-7f,  -0x1.defd14p-10f};
  float z = a * a;
  return fma(a * z, poly(z, c), a);
}
RL_INLINE double atan_poly(double a) {
  constexpr double c[] = {-0x1.555555555552ap-2, 0x1.9999999995ae1p-3,  -0x1.24924923921ffp-3,  0x1.c71c71842247fp-4,
                          -0x1.745d11fadb60cp-4, 0x1.3b136a1405678p-4,  -0x1.110e6d7abee9ep-4,  0x1.e1bcf6ade74dbp-5,
                          -0x1.ae6448fb5741ep-5, 0x1.82eea1b0f8111p-5,  -0x1.59d7d123c9f5bp-5,  0x1.2c97dc40fd348p-5,
                          -0x1.eb48765943c32p-6, 0x1.69d7acc264f60p-6,  -0x1.ca962f049320bp-7,  0x1.dc029a2108cf8p-8,
                          -0x1.7ea4a0bad3063p-9, 0x1.ba3a69fc3eab2p-11, -0x1.44a206cb6338fp-13, 0x1.c4a03edfd5287p-17};
  double z = a * a;
  return fma(a * z, poly(z, c), a);
}
template <class T> inline constexpr T kHalfPiLo = sizeof(T) == 4 ? T(-0x1.777a5cp-25) : T(0x1.1a62633145c07p-54);
template <class T> RL_INLINE T atan(T x) {
  T a = abs_(x);
  bool over = a > T(1);
  T p = atan_poly(over ? T(1) / a : a);
  T y = over ? T(kPi / 2) - (p - kHalfPiLo<T>) : p;
  return with_sign(y, x);
}
template <class T> RL_INLINE T atan2(T y, T x) {
  T ax = abs_(x), ay = abs_(y);
  bool steep = ay > ax;
  T low = steep ? ax : ay, high = steep ? ay : ax;
  T q = low / high;
  q = high == T(0) ? T(0) : q;
  q = low == kInf<T> ? T(1) : q;  // both infinite
  T a = atan_poly(q);
  a = steep ? T(kPi / 2) - (a - kHalfPiLo<T>) : a;
  a = to_bits(x) >> (sizeof(T) * 8 - 1) ? T(kPi) - (a - 2 * kHalfPiLo<T>) : a;
  a = (x != x) | (y != y) ? kNan<T> : a;
  return with_sign(a, y);
}

RL_INLINE float asin_poly(float z) {  // (asin(s) - s) / s at s^2 = z <= 1/4
  constexpr float c[] = {0x1.5555cap-3f, 0x1.330136p-4f, 0x1.748ef4p-5f, 0x1.8b871ep-6f, 0x1.59f37ap-5f};
  return z * poly(z, c);
}
RL_INLINE double asin_poly(double z) {
  constexpr double c[] = {0x1.5555555555384p-3, 0x1.333333336fe28p-4, 0x1.6db6db4199507p-5,  0x1.f1c72c806e71ep-6,
                          0x1.6e89eda82cd01p-6, 0x1.1c6c439c4ad9ap-6, 0x1.c6f64e9a29c2ap-7,  0x1.8ef335f2ab263p-7,
                          0x1.aa33d9e660400p-8, 0x1.410a9998a0bdap-6, -0x1.0b8203a2a0362p-6, 0x1.05ff6669b0f86p-5};
  return z * poly(z, c);
}
// For |x| > 1/2, asin and acos come from s = sqrt((1 - |x|) / 2).
template <class T> RL_INLINE T asin(T x) {
  T a = abs_(x);
  bool big = a > T(0.5);
  T z = big ? T(0.5) * (T(1) - a) : a * a;
  T s = big ? sqrt_(z) : a;
  T p = fma(s, asin_poly(z), s);
  return with_sign(big ? T(kPi / 2) - (p + p - kHalfPiLo<T>) : p, x);
}
template <class T> RL_INLINE T acos(T x) {
  T a = abs_(x);
  bool big = a > T(0.5);
  T z = big ? T(0.5) * (T(1) - a) : a * a;
  T s = big ? sqrt_(z) : x;
  T p = fma(s, asin_poly(z), s);
  T tail = x > T(0) ? p + p : T(kPi) - (p + p - 2 * kHalfPiLo<T>);
  return big ? tail : T(kPi / 2) - (p - kHalfPiLo<T>);
}

}  // namespace rl::RL_ISA
