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

template <class T> [[gnu::always_inline]] inline Vec<T> load_vec(const T* p) {
  Vec<T> v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T> [[gnu::always_inline]] inline void store_vec(T* p, const Vec<T>& v) {
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

// As many halves as a vector has floats.
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

// n half-precision numbers to float and back.
inline void widen(const bfloat16* __restrict in, float* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
inline void narrow(const float* __restrict in, bfloat16* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bfloat16(in[i]);
}
inline void widen(const float16* in, float* out, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  typedef short Short8 __attribute__((vector_size(16)));
  for (; i + 8 <= n; i += 8) {
    Short8 h;
    __builtin_memcpy(&h, in + i, 16);
    Vec<float> v = __builtin_ia32_vcvtph2ps256(h);
    store_vec(out + i, v);
  }
#endif
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
inline void narrow(const float* in, float16* out, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) {
    auto h = __builtin_ia32_vcvtps2ph256(load_vec(in + i), 0);
    __builtin_memcpy(out + i, &h, 16);
  }
#endif
  for (; i < n; ++i) out[i] = float16(in[i]);
}

}  // namespace rl::RL_ISA
