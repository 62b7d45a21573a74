// Registers' worth of products. Included after a target pragma, by the conv512 files alone.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace rl::cpu::conv512 {
namespace {

constexpr int W = 16;     // floats of a register
constexpr int kRows = 8;  // of one block
constexpr int kVecs = 3;  // registers along a block's row
using Reg = __m512;

inline Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
inline Reg all(float x) { return _mm512_set1_ps(x); }
inline Reg load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Reg x) { _mm512_storeu_ps(p, x); }
inline __mmask16 lanes(int64_t count) {
  return static_cast<__mmask16>(count >= W ? 0xffffu : count <= 0 ? 0u : (1u << count) - 1);
}

// Rows of a: packed as [k][R], or `step` apart.
template <int R> struct Packed {
  const float* data;
  float at(int r, int64_t p) const { return data[p * R + r]; }
};
struct Strided {
  const float *data, *half;  // half: four rows on
  int64_t step;
  float at(int r, int64_t p) const { return (r < 4 ? data : half)[r % 4 * step + p]; }
};
// Rows of b: `step` apart, or anywhere.
struct Rows {
  const float* data;
  int64_t step;
  const float* row(int64_t p) const { return data + p * step; }
};
struct Scattered {
  const float* data;
  const int32_t* offsets;
  const float* row(int64_t p) const { return data + offsets[p]; }
};

// c (R rows, V registers) = or += a @ b
template <int R, int V, class A, class B> void block(int64_t k, A a, B b, float* c, int64_t ldc, bool add) {
  Reg acc[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) acc[r][v] = add ? load(c + r * ldc + v * W) : _mm512_setzero_ps();
  for (int64_t p = 0; p < k; ++p) {
    const float* row = b.row(p);
    Reg x[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) x[v] = load(row + v * W);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      Reg f = all(a.at(r, p));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc[r][v] = fma(f, x[v], acc[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store(c + r * ldc + v * W, acc[r][v]);
}

// Four registers as four 4x4 matrices, one in each quarter, turned in place.
inline void turn_quarters(Reg& a, Reg& b, Reg& c, Reg& d) {
  __m512d ab0 = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)), ab1 = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
  __m512d cd0 = _mm512_castps_pd(_mm512_unpacklo_ps(c, d)), cd1 = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
  a = _mm512_castpd_ps(_mm512_unpacklo_pd(ab0, cd0));
  b = _mm512_castpd_ps(_mm512_unpackhi_pd(ab0, cd0));
  c = _mm512_castpd_ps(_mm512_unpacklo_pd(ab1, cd1));
  d = _mm512_castpd_ps(_mm512_unpackhi_pd(ab1, cd1));
}

// 16x16, turned.
inline void turn(Reg* r) {
  for (int i = 0; i < 4; ++i) turn_quarters(r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
  Reg t[16];
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

}  // namespace
}  // namespace rl::cpu::conv512
