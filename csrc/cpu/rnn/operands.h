// How operands enter the GEMMs of a recurrent layer: Note [Pairs of bf16] in gemm/pack_bf16.h. Layers are stored in
// S and computed in compute_t<S>; a dword is one step of the sum in float, or a pair of bfloat16.
// Included once per register width: see layer.h.
#pragma once

namespace rl::RL_ISA {
namespace {

template <class S> inline constexpr int kSteps = is_half_v<S> ? 2 : 1;  // of a dword
template <class S> inline int64_t dwords(int64_t k) { return (k + kSteps<S> - 1) / kSteps<S>; }

template <class S, class T>
[[gnu::always_inline]] inline Lanes<T> multiply_add(T dword, Lanes<T> others, Lanes<T> sums) {
  return fma_lanes(dword, others, sums);
}
// At most W elements, zeros behind them; W elements as dwords; the dword at each of W lanes, whose steps are rows of
// `count` elements, of which the second may be null.
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
template <class S, class T> void put_dwords(T* to, const T* from) { __builtin_memcpy(to, from, kBytes); }
template <class S> void load_dwords(S* to, const S* row, const S*, int64_t count) { load(to, row, count); }

#ifdef RL_RNN_PAIRS
template <> [[gnu::always_inline]] inline Lanes<float> multiply_add<bfloat16, float>(float dword, Lanes<float> others,
                                                                                     Lanes<float> sums) {
  return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(_mm512_set1_ps(dword)), reinterpret_cast<__m512bh>(others));
}
inline __m512i zero_extend(const bfloat16* from, int64_t count) {
  const auto wanted = static_cast<__mmask16>(count >= 16 ? 0xffffu : count <= 0 ? 0u : (1u << count) - 1);
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(wanted, from));
}
inline void load(float* to, const bfloat16* from, int64_t count) {
  _mm512_storeu_si512(to, _mm512_slli_epi32(zero_extend(from, count), 16));
}
template <> inline void put_dwords<bfloat16, float>(float* to, const float* from) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(from))));
}
inline void store(bfloat16* to, const float* from, int64_t count) {
  const auto wanted = static_cast<__mmask16>(count >= 16 ? 0xffffu : count <= 0 ? 0u : (1u << count) - 1);
  _mm256_mask_storeu_epi16(to, wanted, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(from))));
}
inline void load_dwords(float* to, const bfloat16* row, const bfloat16* next, int64_t count) {
  const __m512i second = next ? _mm512_slli_epi32(zero_extend(next, count), 16) : _mm512_setzero_si512();
  _mm512_storeu_si512(to, _mm512_or_si512(zero_extend(row, count), second));
}
#endif

// Rows of k elements, one after the other, as rows of dwords: where they lie, or a copy with an odd last element paired
// with zero.
template <class S> class DwordRows {
 public:
  using T = compute_t<S>;
  DwordRows(const S* rows, int64_t count, int64_t k) : from_(reinterpret_cast<const T*>(rows)) {
    if (kSteps<S> == 1 || (k % 2 == 0 && reinterpret_cast<uintptr_t>(rows) % sizeof(T) == 0)) return;
    copy_.reset(count * dwords<S>(k));
    S* to = reinterpret_cast<S*>(copy_.get());
    for (int64_t r = 0; r < count; ++r, rows += k, to += kSteps<S> * dwords<S>(k)) {
      __builtin_memcpy(static_cast<void*>(to), rows, static_cast<size_t>(k) * sizeof(S));
      if (k % 2) std::memset(static_cast<void*>(to + k), 0, sizeof(S));
    }
    from_ = copy_.get();
  }
  const T* get() const { return from_; }

 private:
  const T* from_;
  Scratch<T> copy_;
};

// c (M, V registers) += a (M, k dwords) @ b (k, V registers); b and c are packed. k registers from `ahead` on are
// fetched.
template <int M, int V, class S, class T>
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
      for (int v = 0; v < V; ++v) acc[r][v] = multiply_add<S>(x, y[v], acc[r][v]);
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
template <int V, class S, class T, int M = kTileRows<V>>
void tile_rows(int64_t rows, int64_t k, const T* a, int64_t lda, const T* b, T* c, const T* ahead) {
  if constexpr (M > 0) {
    if (rows == M) tile<M, V, S>(k, a, lda, b, c, ahead);
    else tile_rows<V, S, T, M - 1>(rows, k, a, lda, b, c, ahead);
  }
}

// c (rows, V registers) += a (rows, k) @ b (k, V registers), in tiles of rows. Along the sum it is cut so that a piece
// of b stays in the first-level cache for all rows, while the next one comes to the second-level cache.
template <int V, class S, class T> void panel_gemm(int64_t rows, int64_t k, const T* a, int64_t lda, const T* b, T* c) {
  constexpr int64_t kWidth = V * W<T>, kSum = (32 << 10) / static_cast<int64_t>(kWidth * sizeof(T));
  int64_t sums = (k + kSum - 1) / kSum, tiles = (rows + kTileRows<V> - 1) / kTileRows<V>;
  for (int64_t s = 0; s < sums; ++s) {
    int64_t p0 = k * s / sums, p1 = k * (s + 1) / sums;
    for (int64_t t = 0; t < tiles; ++t) {
      int64_t r = rows * t / tiles, count = rows * (t + 1) / tiles - r;
      tile_rows<V, S>(count, p1 - p0, a + r * lda + p0, lda, b + p0 * kWidth, c + r * kWidth,
                      b + p1 * kWidth + t * (p1 - p0) * W<T>);
    }
  }
}

}  // namespace
}  // namespace rl::RL_ISA
