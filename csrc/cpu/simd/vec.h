// Vectors by the compiler's own extension, as wide as a register.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

#ifdef __AVX__
inline constexpr int kVecBytes = 32;
#else
inline constexpr int kVecBytes = 16;
#endif

template <class T> struct VecOf {
  typedef T type __attribute__((vector_size(kVecBytes)));
};
template <class T> using Vec = typename VecOf<T>::type;
template <class T> inline constexpr int kLanes = kVecBytes / sizeof(T);

template <class T>
  requires(!is_half_v<T>)
[[gnu::always_inline]] inline Vec<T> load_vec(const T* p) {
  Vec<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
  requires(!is_half_v<T>)
[[gnu::always_inline]] inline void store_vec(T* p, const Vec<T>& v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// One bit per lane of a comparison's result.
template <class M> [[gnu::always_inline]] inline unsigned lane_bits(const M& mask) {
#if defined(__x86_64__)
  if constexpr (sizeof(mask[0]) == 4) {
    Vec<float> v;
    __builtin_memcpy(&v, &mask, sizeof v);
#ifdef __AVX__
    return static_cast<unsigned>(__builtin_ia32_movmskps256(v));
#else
    return static_cast<unsigned>(__builtin_ia32_movmskps(v));
#endif
  } else {
    Vec<double> v;
    __builtin_memcpy(&v, &mask, sizeof v);
#ifdef __AVX__
    return static_cast<unsigned>(__builtin_ia32_movmskpd256(v));
#else
    return static_cast<unsigned>(__builtin_ia32_movmskpd(v));
#endif
  }
#else
  unsigned bits = 0;
  for (size_t i = 0; i < kVecBytes / sizeof(mask[0]); ++i) bits |= (mask[i] != 0 ? 1u : 0u) << i;
  return bits;
#endif
}

// As many fp16 or bf16 as a vector has floats.
[[gnu::always_inline]] inline Vec<float> load_vec(const bfloat16* p) {
#ifdef __AVX2__
  typedef short Short8 __attribute__((vector_size(16)));
  Short8 h;
  __builtin_memcpy(&h, p, sizeof h);
  const Vec<int> wide = __builtin_ia32_pmovzxwd256(h) << 16;
#else
  typedef uint16_t Short __attribute__((vector_size(kVecBytes / 2)));
  Short h;
  __builtin_memcpy(&h, p, sizeof h);
  const Vec<uint32_t> wide = __builtin_convertvector(h, Vec<uint32_t>) << 16;
#endif
  Vec<float> v;
  __builtin_memcpy(&v, &wide, sizeof v);
  return v;
}
[[gnu::always_inline]] inline Vec<float> load_vec(const float16* p) {
#ifdef __F16C__
  typedef short Short8 __attribute__((vector_size(16)));
  Short8 h;
  __builtin_memcpy(&h, p, sizeof h);
  return __builtin_ia32_vcvtph2ps256(h);
#else
  Vec<float> v;
  for (int i = 0; i < kLanes<float>; ++i) v[i] = static_cast<float>(p[i]);
  return v;
#endif
}

[[gnu::always_inline]] inline void store_vec(bfloat16* p, const Vec<float>& v) {
  typedef uint16_t Short __attribute__((vector_size(kVecBytes / 2)));
  Vec<uint32_t> bits;
  __builtin_memcpy(&bits, &v, sizeof v);
  const Vec<uint32_t> rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Short h = __builtin_convertvector(v == v ? rounded : Vec<uint32_t>{} + 0x7fc0u, Short);
  __builtin_memcpy(p, &h, sizeof h);
}
[[gnu::always_inline]] inline void store_vec(float16* p, const Vec<float>& v) {
#ifdef __F16C__
  const auto h = __builtin_ia32_vcvtps2ph256(v, 0);
  __builtin_memcpy(p, &h, sizeof h);
#else
  for (int i = 0; i < kLanes<float>; ++i) p[i] = float16(v[i]);
#endif
}

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
