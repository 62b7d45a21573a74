// Normal values from uniform ones, sixteen at a time: element j of the first eight and element j of the last eight are
// a pair (u1, u2) that becomes sqrt(-2 log(1 - u1)) times cos and sin of 2 pi u2.
//
// The float version evaluates the single-precision log, sine and cosine of the Cephes library with every multiply-add
// fused, because that is how torch's stream is defined on AVX2 and later; a better polynomial would change the stream.
#pragma once
#include <cmath>
#include <cstdint>

#include "cpu/simd/vector.h"

namespace rl::RL_ISA {
namespace {

#ifdef __AVX2__
using Normals = simd::Vec<float, 32>;
#else
using Normals = simd::Vec<float, 16>;
#endif
constexpr int kNormalLanes = Normals::W;
using Floats = Normals::Reg;
using Ints = Normals::Bits;

inline Floats all(float x) { return Normals::all(x); }
// a * b + c, rounded once on every machine.
inline Floats fused(Floats a, Floats b, Floats c) {
#ifdef __FMA__
  return Normals::fma(a, b, c);
#else
  for (int i = 0; i < kNormalLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

template <int n> inline Floats polynomial(Floats x, const float (&coefficients)[n]) {
  Floats y = all(coefficients[0]);
  for (int i = 1; i < n; ++i) y = fused(y, x, all(coefficients[i]));
  return y;
}

// x in [2^-24, 1].
inline Floats cephes_log(Floats x) {
  static constexpr float kLog[] = {7.0376836292E-2f,  -1.1514610310E-1f, 1.1676998740E-1f,
                                   -1.2420140846E-1f, 1.4249322787E-1f,  -1.6668057665E-1f,
                                   2.0000714765E-1f,  -2.4999993993E-1f, 3.3333331174E-1f};
  Ints bits = reinterpret_cast<Ints>(x);
  Floats exponent = __builtin_convertvector((bits >> 23) - 0x7f, Floats) + 1.0f;
  Floats mantissa = reinterpret_cast<Floats>((bits & ~0x7f800000) | 0x3f000000);  // in [1/2, 1)
  Ints small = mantissa < 0.707106781186547524f;
  Floats doubled = reinterpret_cast<Floats>(reinterpret_cast<Ints>(mantissa) & small);
  exponent -= reinterpret_cast<Floats>(reinterpret_cast<Ints>(all(1.0f)) & small);
  x = (mantissa - 1.0f) + doubled;
  Floats z = x * x, y = polynomial(x, kLog) * x;
  y = fused(y, z, exponent * -2.12194440e-4f);
  y -= z * 0.5f;
  return fused(exponent, all(0.693359375f), x + y);
}

// x in [0, 2 pi].
inline void cephes_sincos(Floats x, Floats& sine, Floats& cosine) {
  static constexpr float kSin[] = {-1.9515295891E-4f, 8.3321608736E-3f, -1.6666654611E-1f};
  static constexpr float kCos[] = {2.443315711809948E-005f, -1.388731625493765E-003f, 4.166664568298827E-002f};
  Ints octant = __builtin_convertvector(x * 1.27323954473516f, Ints);
  octant = (octant + 1) & ~1;
  Floats turns = __builtin_convertvector(octant, Floats);
  x = fused(turns, all(-0.78515625f), x);
  x = fused(turns, all(-2.4187564849853515625e-4f), x);
  x = fused(turns, all(-3.77489497744594108e-8f), x);
  Floats z = x * x;
  Floats c = polynomial(z, kCos) * z;
  c = fused(c, z, z * -0.5f) + 1.0f;
  Floats s = polynomial(z, kSin) * z;
  s = fused(s, x, x);
  Ints straight = (octant & 2) == 0;  // in the other octants sine and cosine are exchanged
  Ints from_s = reinterpret_cast<Ints>(s), from_c = reinterpret_cast<Ints>(c);
  Ints sine_bits = (from_s & straight) | (from_c & ~straight), cosine_bits = (from_c & straight) | (from_s & ~straight);
  sine = reinterpret_cast<Floats>(sine_bits ^ ((octant & 4) << 29));
  cosine = reinterpret_cast<Floats>(cosine_bits ^ ((~(octant - 2) & 4) << 29));
}

inline void box_muller_16(float* data, float mean, float std) {
  for (int j = 0; j < 8; j += kNormalLanes) {
    Floats u1, u2;
    __builtin_memcpy(&u1, data + j, sizeof u1);
    __builtin_memcpy(&u2, data + 8 + j, sizeof u2);
    Floats radius = Normals::sqrt(cephes_log(1.0f - u1) * -2.0f), sine, cosine;
    cephes_sincos(u2 * static_cast<float>(2.0 * M_PI), sine, cosine);
    Floats first = fused(radius * cosine, all(std), all(mean)), second = fused(radius * sine, all(std), all(mean));
    __builtin_memcpy(data + j, &first, sizeof first);
    __builtin_memcpy(data + 8 + j, &second, sizeof second);
  }
}

inline void box_muller_16(double* data, double mean, double std) {
  for (int j = 0; j < 8; ++j) {
    double u1 = 1.0 - data[j], u2 = data[j + 8];
    double radius = std::sqrt(-2.0 * std::log(u1)), theta = 2.0 * M_PI * u2;
    data[j] = __builtin_fma(radius * std::cos(theta), std, mean);
    data[j + 8] = __builtin_fma(radius * std::sin(theta), std, mean);
  }
}

}  // namespace
}  // namespace rl::RL_ISA
