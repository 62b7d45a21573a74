// A few rows against a stored matrix, as in decoding a text (a GEMV, or a GEMM of small M): the matrix is read once,
// where it lies, at the speed of memory. Included by half_avx512.cpp alone.
#pragma once
#include "cpu/gemm/half_avx512.h"
#include "cpu/gemm/pack_bf16.h"
#include "cpu/gemm/tiles.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int64_t kSmallM = 12, kSmallN = 6;  // rows

// c[r][j] = alpha * sums[r][j] + beta * d for `rows` rows, with stride `step` in sums, at row i and columns j on.
template <class K> void put_rows(const HalfGemm<typename K::Number>& g, const float* sums, int64_t step, int64_t i,
                                 int64_t rows, int64_t j, int64_t cols) {
  using S = typename K::Number;
  const bool adds = g.d && g.beta != 0;
  if (cols == 32 && g.ccs == 1 && (!adds || g.dcs == 1 || g.dcs == 0)) {
    const __m512 alpha = _mm512_set1_ps(g.alpha), beta = _mm512_set1_ps(g.beta);
    S* to = g.c + i * g.crs + j;
    const S* d = adds ? g.d + i * g.drs + j * g.dcs : nullptr;
    for (int64_t r = 0; r < rows; ++r, to += g.crs, sums += step) {
      __m512 x0 = _mm512_mul_ps(_mm512_loadu_ps(sums), alpha), x1 = _mm512_mul_ps(_mm512_loadu_ps(sums + 16), alpha);
      if (adds && g.dcs == 0) {
        const __m512 one = _mm512_mul_ps(_mm512_set1_ps(static_cast<float>(*d)), beta);
        x0 = _mm512_add_ps(x0, one), x1 = _mm512_add_ps(x1, one);
      } else if (adds) {
        x0 = _mm512_fmadd_ps(get(d, 0xffff), beta, x0), x1 = _mm512_fmadd_ps(get(d + 16, 0xffff), beta, x1);
      }
      K::put_two(to, x0, x1);
      d += adds ? g.drs : 0;
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = sums + r * step;
    S* to = g.c + (i + r) * g.crs + j * g.ccs;
    const S* d = adds ? g.d + (i + r) * g.drs + j * g.dcs : nullptr;
    if (g.ccs == 1 && (!adds || g.dcs == 1 || g.dcs == 0)) {
      const __m512 beta = _mm512_set1_ps(g.beta), alpha = _mm512_set1_ps(g.alpha);
      const __m512 one = _mm512_set1_ps(adds && g.dcs == 0 ? static_cast<float>(*d) : 0);
      for (int64_t q = 0; q < cols; q += 16) {
        const __mmask16 mask = first16(cols - q);
        const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, from + q), alpha);
        put(to + q, adds ? _mm512_fmadd_ps(g.dcs ? get(d + q, mask) : one, beta, x) : x, mask);
      }
    } else {
      for (int64_t q = 0; q < cols; ++q) {
        const float x = g.alpha * from[q];
        to[q * g.ccs] = S(adds ? __builtin_fmaf(g.beta, static_cast<float>(d[q * g.dcs]), x) : x);
      }
    }
  }
}

// R by kCols dot products of rows that both lie along the sum; sums[r][s]. The rows of b behind these are asked for
// meanwhile: rows are too short for the processor to see that they follow.
template <class K, int R, int kCols>
void dots(int64_t k, const typename K::Number* a, int64_t ars, const typename K::Number* b, int64_t bcs, float* sums) {
  constexpr int kPadded = (R * kCols + 15) / 16 * 16;
  constexpr int64_t kTaken = 16 * K::kSteps;
  __m512 acc[kPadded];
#pragma GCC unroll 32
  for (int i = 0; i < kPadded; ++i) acc[i] = _mm512_setzero_ps();
  auto step = [&](int64_t p, int64_t left) __attribute__((always_inline)) {
    __m512 y[kCols];
#pragma GCC unroll 16
    for (int s = 0; s < kCols; ++s) {
      y[s] = K::along(b + s * bcs + p, left);
      _mm_prefetch(reinterpret_cast<const char*>(b + (kCols + s) * bcs + p), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512 x = K::along(a + r * ars + p, left);
#pragma GCC unroll 16
      for (int s = 0; s < kCols; ++s) K::multiply_add(acc[r * kCols + s], x, y[s]);
    }
  };
  int64_t p = 0;
  for (; p + kTaken <= k; p += kTaken) step(p, kTaken);
  if (p < k) step(p, k - p);
#pragma GCC unroll 2
  for (int i = 0; i < kPadded; i += 16) lane_sums(acc + i, sums + i);
}

// b's columns lie along the sum.
template <class K> void gemv_small_m(const HalfGemm<typename K::Number>& g) {
  using DotsFn = void (*)(int64_t, const typename K::Number*, int64_t, const typename K::Number*, int64_t, float*);
  static constexpr DotsFn kFour[] = {nullptr,       dots<K, 1, 4>, dots<K, 2, 4>, dots<K, 3, 4>,
                                     dots<K, 4, 4>, dots<K, 5, 4>, dots<K, 6, 4>};
  static constexpr DotsFn kOne[] = {nullptr,       dots<K, 1, 1>, dots<K, 2, 1>, dots<K, 3, 1>,
                                    dots<K, 4, 1>, dots<K, 5, 1>, dots<K, 6, 1>};
  // Adding up the lanes of sixteen sums takes no longer than those of four: what counts where the sum is short.
  const bool sixteen = g.m == 1 && g.k <= 512;
  const int64_t most = sixteen ? 16 : 4;
  const int64_t work = g.k * std::max<int64_t>(1, g.m / 4);
  const int64_t grain = std::max<int64_t>(most, 131072 / std::max<int64_t>(work, 1) / most * most);
  parallel_for(0, g.n, grain, [&](int64_t first, int64_t last) {
    alignas(64) float sums[32];
    for (int64_t j = first; j < last;) {
      const int64_t cols = last - j >= most ? most : 1;
      (cols == 1 ? kOne[g.m] : sixteen ? &dots<K, 1, 16> : kFour[g.m])(g.k, g.a, g.ars, g.b + j * g.bcs, g.bcs, sums);
      put_rows<K>(g, sums, cols, 0, g.m, j, cols);
      j += cols;
    }
  });
}

inline constexpr int64_t kRowsAhead = 8;  // of b, which lie too far apart for the processor to see that they follow

// R rows, packed as dwords one row after another, by NV vectors of b's columns, of which `cols` are there.
template <class K, int R, int NV>
void across(int64_t k, const float* a, const typename K::Number* b, int64_t brs, int64_t cols, float* sums) {
  __m512 acc[R][NV];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) acc[r][v] = _mm512_setzero_ps();
  const __mmask16 last = first16(cols - 16 * (NV - 1));
  for (int64_t p = 0; p < k; p += K::kSteps, a += R, b += K::kSteps * brs) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      if (v % 2 == 0)
        for (int64_t s = 0; s < K::kSteps; ++s)
          _mm_prefetch(reinterpret_cast<const char*>(b + (kRowsAhead + s) * brs + 16 * v), _MM_HINT_T0);
      const __m512 y = K::across(b + 16 * v, brs, k - p, v == NV - 1 ? last : static_cast<__mmask16>(0xffff));
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) K::multiply_add(acc[r][v], _mm512_set1_ps(a[r]), y);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) _mm512_store_ps(sums + (r * NV + v) * 16, acc[r][v]);
}

// b's rows lie across the sum.
template <class K> void dots_small_m(const HalfGemm<typename K::Number>& g) {
  using AcrossFn = void (*)(int64_t, const float*, const typename K::Number*, int64_t, int64_t, float*);
  // As many vectors as registers hold sums; columns that are left over take one vector at a time.
  static constexpr AcrossFn kMany[] = {nullptr,         across<K, 1, 8>, across<K, 2, 8>,  across<K, 3, 8>,
                                       across<K, 4, 4>, across<K, 5, 4>, across<K, 6, 4>,  across<K, 7, 2>,
                                       across<K, 8, 2>, across<K, 9, 2>, across<K, 10, 2>, across<K, 11, 2>,
                                       across<K, 12, 2>};
  static constexpr AcrossFn kOne[] = {nullptr,         across<K, 1, 1>, across<K, 2, 1>,  across<K, 3, 1>,
                                      across<K, 4, 1>, across<K, 5, 1>, across<K, 6, 1>,  across<K, 7, 1>,
                                      across<K, 8, 1>, across<K, 9, 1>, across<K, 10, 1>, across<K, 11, 1>,
                                      across<K, 12, 1>};
  const int64_t padded = g.m <= 3 ? 128 : g.m <= 6 ? 64 : 32;
  const int64_t dwords = (g.k + K::kSteps - 1) / K::kSteps;
  Scratch<float> packed(dwords * g.m);
  pack_dwords<K>(g.a, g.ars, g.acs, g.k, g.m, g.m, packed.get());
  const int64_t work = g.k * std::max<int64_t>(1, g.m / 4);
  const int64_t grain = std::max<int64_t>(padded, 131072 / std::max<int64_t>(work, 1) / padded * padded);
  parallel_for(0, g.n, grain, [&](int64_t first, int64_t last) {
    alignas(64) float sums[24 * 16];
    for (int64_t j = first; j < last;) {
      const bool many = last - j > padded - 16;
      const int64_t width = many ? padded : 16, cols = std::min(width, last - j);
      (many ? kMany : kOne)[g.m](g.k, packed.get(), g.b + j * g.bcs, g.brs, cols, sums);
      put_rows<K>(g, sums, width, 0, g.m, j, cols);
      j += cols;
    }
  });
}

}  // namespace
}  // namespace rl::RL_ISA
