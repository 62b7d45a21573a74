// Vectors as wide as a register of the full instruction sets.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "cpu/isa.h"
#include "cpu/simd/vector.h"

namespace rl::RL_ISA {

#ifdef __AVX__
inline constexpr int kVecBytes = 32;
#else
inline constexpr int kVecBytes = 16;
#endif

template <class T> using Vec = typename simd::Vec<T, kVecBytes>::Reg;
template <class T> inline constexpr int kLanes = kVecBytes / sizeof(T);

// As many fp16 or bf16 as a vector has floats.
template <class T> [[gnu::always_inline]] inline Vec<compute_t<T>> load_vec(const T* p) {
  return simd::Vec<compute_t<T>, kVecBytes>::load(p);
}
template <class T> [[gnu::always_inline]] inline void store_vec(T* p, const Vec<compute_t<T>>& v) {
  simd::Vec<compute_t<T>, kVecBytes>::store(p, v);
}

// One bit per lane of a comparison's result.
template <class M> [[gnu::always_inline]] inline unsigned lane_bits(const M& mask) { return simd::Of<M>::bits(mask); }

}  // namespace rl::RL_ISA

// n half-precision elements to float and back (convert_half.cpp).
#define RL_CONVERT_HALF(isa)                              \
  namespace rl::isa {                                     \
  void widen(const bfloat16* in, float* out, int64_t n);  \
  void widen(const float16* in, float* out, int64_t n);   \
  void narrow(const float* in, bfloat16* out, int64_t n); \
  void narrow(const float* in, float16* out, int64_t n);  \
  }
RL_CONVERT_HALF(RL_ISA)
RL_CONVERT_HALF(avx512)
#undef RL_CONVERT_HALF
