// Registers of a recurrent layer's units, small-M GEMMs with packed weights, and the cell's functions.
// Included once per register width: see layer.h.
#pragma once
#if RL_RNN_BYTES == 64
#include "cpu/simd/math_avx512.h"
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
// Past the caches, to whole cache lines, so that they go on holding the weights. settle() before another thread
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

inline constexpr int kRowsAtOnce = 48;  // whose sums are held at a time

// Asks for memory that is touched after a GEMM, so that it comes to the second-level cache meanwhile: a row's part
// of it is short and far from the next row's, which the processor does not foresee.
template <class T> [[gnu::always_inline]] inline void fetch(const T* from, int64_t count) {
  for (int64_t j = 0; j < count; j += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(from + j, 0, 2);
}
inline int64_t up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }
// `count` elements, or zeros for a null pointer, and zeros behind them.
template <class S, class T> void copy_padded(T* to, int64_t size, const S* from, int64_t count) {
  T* end = from ? std::transform(from, from + count, to, [](S x) { return static_cast<T>(x); }) : to;
  std::fill(end, to + size, T(0));
}
#if RL_RNN_BYTES == 64
// 1 / (1 + e^-x) in fewer steps than sigmoid() of simd/math_avx512.h, which goes on below -87, where this stays.
RL_STEP __m512 gate(__m512 x) {
  const __m512 negative = _mm512_sub_ps(_mm512_setzero_ps(), x);
  const __m512 e = exp_within<false>(_mm512_min_ps(all(87.0f), _mm512_max_ps(all(-104.0f), negative)));
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
