// Registers of a recurrent layer's units, small-M GEMMs with packed weights, and the cell's functions.
// Included once per register width: see layer.h.
#pragma once
#if RL_RNN_BYTES == 64
#include "cpu/simd/math_avx512.h"
#endif
#include "cpu/simd/vector.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int kBytes = RL_RNN_BYTES;
template <class T> inline constexpr int W = simd::Vec<T, kBytes>::W;  // units of a register
template <class T> using Lanes = typename simd::Vec<T, kBytes>::Reg;
template <class T> [[gnu::always_inline]] inline Lanes<T> get(const T* p) { return simd::Vec<T, kBytes>::load(p); }
template <class T> [[gnu::always_inline]] inline void put(T* p, Lanes<T> x) { simd::Vec<T, kBytes>::store(p, x); }
// Past the caches, to whole cache lines, so that they go on holding the weights. settle() before another thread
// may read it.
template <class T> [[gnu::always_inline]] inline void put_away(T* p, Lanes<T> x) { simd::Vec<T, kBytes>::stream(p, x); }
#if RL_RNN_BYTES == 64
inline void settle() { _mm_sfence(); }
#else
inline void settle() {}
#endif
inline constexpr int kSumRegisters = kBytes == 64 ? 24 : 12;  // of a tile
inline constexpr int kPadding = 16;  // elements between rows, so that they differ in cache sets

template <class T> [[gnu::always_inline]] inline Lanes<T> fma_lanes(T a, Lanes<T> b, Lanes<T> c) {
  using V = simd::Vec<T, kBytes>;
  return V::fma(V::all(a), b, c);
}

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
RL_STEP F gate(F x) {
  const F negative = F{} - x;
  const F e = exp_within<false>(simd::min(all(87.0f), simd::max(all(-104.0f), negative)));
  const F bottom = e + all(1.0f), y = reciprocal_estimate(bottom);
  return fmadd(simd::fnma(bottom, y, all(1.0f)), y, y);
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
  if constexpr (std::is_same_v<T, float>) return gate(x);
#endif
  return each<[](T v) { return RL_ISA::sigmoid(v); }, T>(x);
}
template <class T> [[gnu::always_inline]] inline Lanes<T> tanh_lanes(Lanes<T> x) {
#if RL_RNN_BYTES == 64
  if constexpr (std::is_same_v<T, float>) return tanh(x);
#endif
  return each<[](T v) { return RL_ISA::tanh(v); }, T>(x);
}

}  // namespace
}  // namespace rl::RL_ISA
