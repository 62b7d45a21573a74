// Registers of a recurrent layer's units, products of a few rows with packed weights, and the cell's functions.
// Included once per register width: see rnn_layer.h.
#pragma once
#if RL_RNN_BYTES == 64
#include "cpu/wide_math.h"
#endif

namespace rl::RL_ISA {
namespace {

inline constexpr int kBytes = RL_RNN_BYTES;
template <class T> inline constexpr int W = kBytes / static_cast<int>(sizeof(T));  // units of a register
template <class T> struct LaneOf {
  typedef T type __attribute__((vector_size(kBytes)));
  typedef T loose __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));  // in memory
};
template <class T> using Lanes = typename LaneOf<T>::type;
template <class T> [[gnu::always_inline]] inline Lanes<T> get(const T* p) {
  return *reinterpret_cast<const typename LaneOf<T>::loose*>(p);
}
template <class T> [[gnu::always_inline]] inline void put(T* p, Lanes<T> x) {
  *reinterpret_cast<typename LaneOf<T>::loose*>(p) = x;
}
// Past the caches, to a place of whole lines, so that they go on holding the weights. settle() before another thread
// may read it.
#if RL_RNN_BYTES == 64
template <class T> [[gnu::always_inline]] inline void put_away(T* p, Lanes<T> x) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), reinterpret_cast<__m512i>(x));
}
inline void settle() { _mm_sfence(); }
#else
template <class T> [[gnu::always_inline]] inline void put_away(T* p, Lanes<T> x) { put(p, x); }
inline void settle() {}
#endif
inline constexpr int kSumRegisters = kBytes == 64 ? 24 : 12;  // of a tile
inline constexpr int kPadding = 16;  // elements between rows, so that they differ in cache sets

#if RL_RNN_BYTES == 64
[[gnu::always_inline]] inline Lanes<float> fma_lanes(float a, Lanes<float> b, Lanes<float> c) {
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
}
[[gnu::always_inline]] inline Lanes<double> fma_lanes(double a, Lanes<double> b, Lanes<double> c) {
  return _mm512_fmadd_pd(_mm512_set1_pd(a), b, c);
}
#elif defined(__FMA__)
[[gnu::always_inline]] inline Lanes<float> fma_lanes(float a, Lanes<float> b, Lanes<float> c) {
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
}
[[gnu::always_inline]] inline Lanes<double> fma_lanes(double a, Lanes<double> b, Lanes<double> c) {
  return _mm256_fmadd_pd(_mm256_set1_pd(a), b, c);
}
#else
template <class T> [[gnu::always_inline]] inline Lanes<T> fma_lanes(T a, Lanes<T> b, Lanes<T> c) { return a * b + c; }
#endif

// c (M, V registers) += a (M, k) @ b (k, V registers); b and c are packed. k registers from `ahead` on are fetched.
template <int M, int V, class T>
[[gnu::noinline]] void tile(int64_t k, const T* a, int64_t lda, const T* b, T* c, const T* ahead) {
  Lanes<T> acc[M][V];
#pragma GCC unroll 16
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = get(c + (r * V + v) * W<T>);
  for (int64_t p = 0; p < k; ++p) {
    Lanes<T> y[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) y[v] = get(b + v * W<T>);
#pragma GCC unroll 16
    for (int r = 0; r < M; ++r) {
      T x = a[r * lda];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = fma_lanes(x, y[v], acc[r][v]);
    }
    __builtin_prefetch(ahead, 0, 2);
    ahead += W<T>;
    ++a;
    b += V * W<T>;
  }
#pragma GCC unroll 16
  for (int r = 0; r < M; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) put(c + (r * V + v) * W<T>, acc[r][v]);
}
template <int V> inline constexpr int kTileRows = kSumRegisters / V;
template <int V, class T, int M = kTileRows<V>>
void tile_rows(int64_t rows, int64_t k, const T* a, int64_t lda, const T* b, T* c, const T* ahead) {
  if constexpr (M > 0) {
    if (rows == M) tile<M, V>(k, a, lda, b, c, ahead);
    else tile_rows<V, T, M - 1>(rows, k, a, lda, b, c, ahead);
  }
}

// c (rows, V registers) += a (rows, k) @ b (k, V registers), in tiles of rows. Along the sum it is cut so that a piece
// of b stays in the first-level cache for all rows, while the next one comes to the second-level cache.
template <int V, class T> void panel_product(int64_t rows, int64_t k, const T* a, int64_t lda, const T* b, T* c) {
  constexpr int64_t kWidth = V * W<T>, kSum = (32 << 10) / static_cast<int64_t>(kWidth * sizeof(T));
  int64_t sums = (k + kSum - 1) / kSum, tiles = (rows + kTileRows<V> - 1) / kTileRows<V>;
  for (int64_t s = 0; s < sums; ++s) {
    int64_t p0 = k * s / sums, p1 = k * (s + 1) / sums;
    for (int64_t t = 0; t < tiles; ++t) {
      int64_t r = rows * t / tiles, count = rows * (t + 1) / tiles - r;
      tile_rows<V>(count, p1 - p0, a + r * lda + p0, lda, b + p0 * kWidth, c + r * kWidth,
                   b + p1 * kWidth + t * (p1 - p0) * W<T>);
    }
  }
}
inline constexpr int kRowsAtOnce = 48;  // whose sums are held at a time

// Asks for memory that is touched after a product, so that it comes to the second-level cache meanwhile: a row's part
// of it is short and far from the next row's, which the processor does not foresee.
template <class T> [[gnu::always_inline]] inline void fetch(const T* from, int64_t count) {
  for (int64_t j = 0; j < count; j += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(from + j, 0, 2);
}
inline int64_t up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
// At most W numbers, zeros behind them.
template <class T> void load(T* to, const T* from, int64_t count) {
  if (count >= W<T>) __builtin_memcpy(to, from, kBytes);
  else
    for (int j = 0; j < W<T>; ++j) to[j] = j < count ? from[j] : T(0);
}
template <class T> void store(T* to, const T* from, int64_t count) {
  if (count >= W<T>) __builtin_memcpy(to, from, kBytes);
  else
    for (int64_t j = 0; j < count; ++j) to[j] = from[j];
}
#if RL_RNN_BYTES == 64
// 1 / (1 + e^-x) in fewer steps than sigmoid() of wide_math.h, which goes on below -87, where this stays.
RL_STEP __m512 gate(__m512 x) {
  const __m512 negative = _mm512_sub_ps(_mm512_setzero_ps(), x);
  const __m512 e = exp_within(_mm512_min_ps(all(87.0f), _mm512_max_ps(all(-104.0f), negative)));
  const __m512 bottom = _mm512_add_ps(e, all(1.0f)), y = _mm512_rcp14_ps(bottom);
  return fmadd(_mm512_fnmadd_ps(bottom, y, all(1.0f)), y, y);
}
#endif
// The cell's functions of a register; the compiler writes the loops where there is nothing better.
template <auto F, class T> [[gnu::always_inline]] inline Lanes<T> each(Lanes<T> x) {
  alignas(64) T y[W<T>];
  put(y, x);
#pragma GCC ivdep
  for (int j = 0; j < W<T>; ++j) y[j] = F(y[j]);
  return get(y);
}
template <class T> [[gnu::always_inline]] inline Lanes<T> sigmoid_lanes(Lanes<T> x) {
#if RL_RNN_BYTES == 64
  if constexpr (std::is_same_v<T, float>) return gate(static_cast<__m512>(x));
#endif
  return each<[](T v) { return RL_ISA::sigmoid(v); }, T>(x);
}
template <class T> [[gnu::always_inline]] inline Lanes<T> tanh_lanes(Lanes<T> x) {
#if RL_RNN_BYTES == 64
  if constexpr (std::is_same_v<T, float>) return tanh(static_cast<__m512>(x));
#endif
  return each<[](T v) { return RL_ISA::tanh(v); }, T>(x);
}

}  // namespace
}  // namespace rl::RL_ISA
