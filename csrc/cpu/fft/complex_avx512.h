// Registers of complex numbers as they are in memory, and transforms of several such registers.
#pragma once
#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "cpu/fft/stages.h"
#include "cpu/simd/vector.h"

namespace rl::fft {
namespace {

namespace simd = RL_ISA::simd;
using simd::Vec;

template <class T> struct Pairs {
  static constexpr int W = 32 / sizeof(T);  // complex numbers
  using Register = typename Vec<T, 64>::Reg;
  Register v;
};
template <class T> inline Pairs<T> operator+(Pairs<T> a, Pairs<T> b) { return {a.v + b.v}; }
template <class T> inline Pairs<T> operator-(Pairs<T> a, Pairs<T> b) { return {a.v - b.v}; }
template <class S, class T> inline Pairs<T> times(S s, Pairs<T> a) { return {a.v * s}; }

// (im, re)
template <class T> inline Pairs<T> swapped(Pairs<T> a) {
  return {simd::permute<[](int lane) { return lane ^ 1; }>(a.v)};
}
// Conjugates where `sign` has the sign of odd numbers set, the same where it is zero.
template <class T> inline Pairs<T> flipped(Pairs<T> a, Pairs<T> sign) {
  using Bits = typename Vec<T, 64>::Bits;
  return {std::bit_cast<typename Pairs<T>::Register>(std::bit_cast<Bits>(a.v) ^ std::bit_cast<Bits>(sign.v))};
}
template <class T> inline Pairs<T> alternating(T even, T odd) {
  using V = Vec<T, 64>;
  return {simd::permute<[](int lane) { return lane & 1 ? V::W + lane : lane; }>(V::all(even), V::all(odd))};
}
template <class T> inline Pairs<T> minus_i(Pairs<T> a) { return flipped(swapped(a), alternating(T(0), T(-0.0))); }

inline Pairs<float> less_i(Pairs<float> a, Pairs<float> b) {
  return {_mm512_fmsubadd_ps(a.v, _mm512_set1_ps(1), swapped(b).v)};
}
inline Pairs<float> plus_i(Pairs<float> a, Pairs<float> b) {
  return {_mm512_fmaddsub_ps(a.v, _mm512_set1_ps(1), swapped(b).v)};
}
template <class T> inline Pairs<T> plus_times(Pairs<T> a, T s, Pairs<T> b) {
  return {Vec<T, 64>::fma(b.v, Vec<T, 64>::all(s), a.v)};
}
inline Pairs<double> less_i(Pairs<double> a, Pairs<double> b) {
  return {_mm512_fmsubadd_pd(a.v, _mm512_set1_pd(1), swapped(b).v)};
}
inline Pairs<double> plus_i(Pairs<double> a, Pairs<double> b) {
  return {_mm512_fmaddsub_pd(a.v, _mm512_set1_pd(1), swapped(b).v)};
}

// a (re + i im), each part of the factor given twice
inline Pairs<float> multiplied(Pairs<float> a, Pairs<float> re, Pairs<float> im) {
  return {_mm512_fmaddsub_ps(a.v, re.v, swapped(a).v * im.v)};
}
inline Pairs<double> multiplied(Pairs<double> a, Pairs<double> re, Pairs<double> im) {
  return {_mm512_fmaddsub_pd(a.v, re.v, swapped(a).v * im.v)};
}
template <class T> inline Pairs<T> all(T x) { return {typename Pairs<T>::Register{} + x}; }

// The first `count` elements in memory; the others read as zero and are not written.
struct First {
  uint32_t bits;
  explicit First(int64_t parts) : bits(parts >= 32 ? ~0u : parts <= 0 ? 0u : (1u << parts) - 1) {}
};
template <class T> inline Pairs<T> load(const T* p, First f) {
  return {Vec<T, 64>::load(p, static_cast<typename Vec<T, 64>::Mask>(f.bits))};
}
template <class T> inline void store(T* p, First f, Pairs<T> x) {
  Vec<T, 64>::store(p, x.v, static_cast<typename Vec<T, 64>::Mask>(f.bits));
}
template <class T> inline Pairs<T> load(const T* p) {
  Pairs<T> x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
template <class T> inline void store(T* p, Pairs<T> x) { __builtin_memcpy(p, &x, sizeof x); }

// The elements at p, p - 1, .. of pairs, `count` of them, or as many as there is room for; the others are zero.
inline Pairs<float> load_back(const float* p, int64_t count) {
  const uint32_t bits = count >= 8 ? 0xffffu : ~0u << (16 - 2 * count);
  const __m512 x = _mm512_maskz_loadu_ps(static_cast<__mmask16>(bits), p - 14);
  const __m512i back = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  return {reinterpret_cast<__m512>(_mm512_permutexvar_pd(back, reinterpret_cast<__m512d>(x)))};
}
inline Pairs<double> load_back(const double* p, int64_t count) {
  const uint32_t bits = count >= 4 ? 0xffu : ~0u << (8 - 2 * count);
  const __m512d x = _mm512_maskz_loadu_pd(static_cast<__mmask8>(bits), p - 6);
  return {_mm512_shuffle_f64x2(x, x, 0x1b)};
}
// Each part of a factor twice.
template <class T> inline Pairs<T> real_parts(Pairs<T> a) {
  return {simd::permute<[](int lane) { return lane & ~1; }>(a.v)};
}
template <class T> inline Pairs<T> imag_parts(Pairs<T> a) {
  return {simd::permute<[](int lane) { return lane | 1; }>(a.v)};
}

// Four registers as a matrix of quarters, transposed.
template <class T> inline void transpose_quarters(Pairs<T>* r) {
  auto a = reinterpret_cast<__m512d>(r[0].v), b = reinterpret_cast<__m512d>(r[1].v);
  auto c = reinterpret_cast<__m512d>(r[2].v), d = reinterpret_cast<__m512d>(r[3].v);
  const __m512d ab = _mm512_shuffle_f64x2(a, b, 0x44), cd = _mm512_shuffle_f64x2(c, d, 0x44);
  const __m512d ab2 = _mm512_shuffle_f64x2(a, b, 0xee), cd2 = _mm512_shuffle_f64x2(c, d, 0xee);
  using V = typename Pairs<T>::Register;
  r[0].v = reinterpret_cast<V>(_mm512_shuffle_f64x2(ab, cd, 0x88));
  r[1].v = reinterpret_cast<V>(_mm512_shuffle_f64x2(ab, cd, 0xdd));
  r[2].v = reinterpret_cast<V>(_mm512_shuffle_f64x2(ab2, cd2, 0x88));
  r[3].v = reinterpret_cast<V>(_mm512_shuffle_f64x2(ab2, cd2, 0xdd));
}
// Two registers as a matrix of halves.
template <class T> inline void transpose_halves(Pairs<T>* r) {
  auto a = reinterpret_cast<__m512d>(r[0].v), b = reinterpret_cast<__m512d>(r[1].v);
  using V = typename Pairs<T>::Register;
  r[0].v = reinterpret_cast<V>(_mm512_shuffle_f64x2(a, b, 0x44));
  r[1].v = reinterpret_cast<V>(_mm512_shuffle_f64x2(a, b, 0xee));
}
// W registers as a matrix of complex numbers.
inline void transpose(Pairs<double>* r) { transpose_quarters(r); }
inline void transpose(Pairs<float>* r) {
  Pairs<float> t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    auto a = reinterpret_cast<__m512d>(r[2 * i].v), b = reinterpret_cast<__m512d>(r[2 * i + 1].v);
    t[i].v = reinterpret_cast<__m512>(_mm512_unpacklo_pd(a, b));
    t[4 + i].v = reinterpret_cast<__m512>(_mm512_unpackhi_pd(a, b));
  }
  transpose_quarters(t);
  transpose_quarters(t + 4);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[2 * i] = t[i], r[2 * i + 1] = t[4 + i];
}

// exp(-2 pi i k / n) by the series of cos and sin
struct UnitRoot {
  double re, im;
};
constexpr UnitRoot unit_root(int k, int n) {
  const long double x = 6.28318530717958647692528676655900577L * static_cast<long double>(k % n) / n;
  long double term = 1, re = 0, im = 0;
  for (int i = 0; i < 60; ++i) {
    (i % 2 ? im : re) += i % 4 < 2 ? term : -term;
    term *= x / (i + 1);
  }
  return {static_cast<double>(re), static_cast<double>(-im)};
}
template <int N> struct UnitRoots {
  double re[N], im[N];
  constexpr UnitRoots() : re{}, im{} {
    for (int k = 0; k < N; ++k) re[k] = unit_root(k, N).re, im[k] = unit_root(k, N).im;
  }
};
template <int N> inline constexpr UnitRoots<N> kUnitRoots;

// The transform of length N of registers, N up to 16 of factors up to 8.
template <int N, class T> [[gnu::always_inline]] inline void transform(Pairs<T>* v) {
  constexpr int A = N == 16 || N == 12 ? 4 : N == 9 || N == 15 ? 3 : N == 6 || N == 10 || N == 14 ? 2 : N, B = N / A;
  if constexpr (N == 1) return;
  else if constexpr (B == 1) butterfly<N, T>(v);
  else {
    Pairs<T> t[N];
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) {
      Pairs<T> column[A];
#pragma GCC unroll 8
      for (int a = 0; a < A; ++a) column[a] = v[b + B * a];
      butterfly<A, T>(column);
#pragma GCC unroll 8
      for (int u = 0; u < A; ++u) {
        const int k = u * b;
        t[u * B + b] = k == 0       ? column[u]
                       : 4 * k == N ? minus_i(column[u])
                                    : multiplied(column[u], all(static_cast<T>(kUnitRoots<N>.re[k])),
                                                 all(static_cast<T>(kUnitRoots<N>.im[k])));
      }
    }
#pragma GCC unroll 8
    for (int u = 0; u < A; ++u) {
      butterfly<B, T>(t + u * B);
#pragma GCC unroll 8
      for (int w = 0; w < B; ++w) v[u + A * w] = t[u * B + w];
    }
  }
}

}  // namespace
}  // namespace rl::fft
