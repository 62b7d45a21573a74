// Registers' worth of products.
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "cpu/simd/transpose_avx512.h"

namespace rl::avx512::conv {
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

// Rows of a: packed as [k][R], or with stride `step`.
template <int R> struct Packed {
  const float* data;
  float at(int r, int64_t p) const { return data[p * R + r]; }
};
struct Strided {
  const float *data, *half;  // half: four rows on
  int64_t step;
  // Not (r < 4 ? data : half)[r % 4 * ...]: GCC 12 copies the index into both cases, and of a remainder or a shift that
  // -fsanitize=undefined watches, the second case then reads the operand that only the first one has set.
  float at(int r, int64_t p) const {
    const float* from = r < 4 ? data : half;
    return from[r % 4 * step + p];
  }
};
// Rows of b, with stride `step`.
struct Rows {
  const float* data;
  int64_t step;
  const float* row(int64_t p) const { return data + p * step; }
};
// Rows of b at any offset.
struct Scattered {
  const float* data;
  const int32_t* offsets;
  const float* row(int64_t p) const { return data + offsets[p]; }
};

// c (R rows, V registers) = or += a @ b. What was there is added last, so that sums taken in parts have the errors of
// the parts alone.
template <int R, int V, class A, class B> void block(int64_t k, A a, B b, float* c, int64_t ldc, bool add) {
  Reg acc[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) acc[r][v] = _mm512_setzero_ps();
  for (int64_t p = 0; p < k; ++p) {
    const float* row = b.row(p);
    Reg x[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) x[v] = load(row + v * W);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      Reg f = all(a.at(r, p));
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc[r][v] = fma(f, x[v], acc[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store(c + r * ldc + v * W, add ? load(c + r * ldc + v * W) + acc[r][v] : acc[r][v]);
}

}  // namespace
}  // namespace rl::avx512::conv
