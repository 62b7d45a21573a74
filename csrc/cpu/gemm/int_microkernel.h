// Microkernels of integer GEMMs.
#pragma once
#include <cstdint>

#include "cpu/gemm/gemm.h"
#include "cpu/isa.h"
#ifdef __AVX2__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace rl::RL_ISA {
namespace {

// Multiplications of 64 bits take several instructions, those of 32-bit values in such lanes one.
enum class IntMultiply { Plain, Short, Any };
template <IntMultiply kKind, class V> [[gnu::always_inline]] inline void multiply_add(V& sum, const V& x, const V& y) {
  if constexpr (kKind == IntMultiply::Any) {
    sum |= x & y;
#ifdef __AVX2__
  } else if constexpr (kKind == IntMultiply::Short && sizeof(V) == 32) {
    sum += reinterpret_cast<V>(__builtin_ia32_pmuldq256(reinterpret_cast<__v8si>(x), reinterpret_cast<__v8si>(y)));
#endif
  } else {
    sum += x * y;
  }
}

// sums (R, V vectors) = a (R, k) @ b (k, V vectors): b is packed, rows of a lie anywhere.
template <class U> using IntBlock = void (*)(int64_t k, const U* const* a, int64_t acs, const U* b, U* sums);
template <class U, int kBytes, IntMultiply kKind, int R, int V>
[[gnu::always_inline]] inline void int_block_of(int64_t k, const U* const* a, int64_t acs, const U* b, U* sums) {
  typedef U Vector __attribute__((vector_size(kBytes)));
  Vector acc[R][V] = {};
  const U* rows[R];
  for (int r = 0; r < R; ++r) rows[r] = a[r];
  for (int64_t p = 0; p < k; ++p, b += V * kBytes / sizeof(U)) {
    Vector y[V];
    __builtin_memcpy(y, b, sizeof y);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector x = Vector{} + rows[r][p * acs];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) multiply_add<kKind>(acc[r][v], x, y[v]);
    }
  }
  __builtin_memcpy(sums, acc, sizeof acc);
}
template <class U, IntMultiply kKind, int V>
void int_block(int64_t k, const U* const* a, int64_t acs, const U* b, U* sums) {
  int_block_of<U, 32, kKind, 4, V>(k, a, acs, b, sums);
}
#ifdef RL_HAS_AVX512
// The same on AVX-512 registers.
template <class U, IntMultiply kKind, int V>
RL_AVX512 void int_block_avx512(int64_t k, const U* const* a, int64_t acs, const U* b, U* sums) {
  int_block_of<U, 64, kKind, 8, V>(k, a, acs, b, sums);
}
// Microkernels of int64 whose values fit 32 bits.
template <int V>
RL_AVX512 void int_block_short(int64_t k, const uint64_t* const* a, int64_t acs, const uint64_t* b, uint64_t* sums) {
  constexpr int R = 8;
  __m512i acc[R][V];
  const uint64_t* rows[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    rows[r] = a[r];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) acc[r][v] = _mm512_setzero_si512();
  }
  for (int64_t p = 0; p < k; ++p, b += V * 8) {
    __m512i y[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) y[v] = _mm512_loadu_si512(b + v * 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512i x = _mm512_set1_epi64(static_cast<long long>(rows[r][p * acs]));
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[r][v] = _mm512_add_epi64(acc[r][v], _mm512_mul_epi32(x, y[v]));
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) _mm512_storeu_si512(sums + (r * V + v) * 8, acc[r][v]);
}
#endif

// The blocks of one or two vectors for these registers.
template <class U> struct IntBlocks {
  int64_t rows = 4, lanes = 32 / sizeof(U);
  IntBlock<U> of[2];
  template <IntMultiply kKind> IntBlocks<U>& set() {
    of[0] = int_block<U, kKind, 1>, of[1] = int_block<U, kKind, 2>;
#ifdef RL_HAS_AVX512
    if (!cpu::gemm_available()) return *this;
    rows = 8, lanes = 64 / sizeof(U);
    if constexpr (kKind == IntMultiply::Short) of[0] = int_block_short<1>, of[1] = int_block_short<2>;
    else of[0] = int_block_avx512<U, kKind, 1>, of[1] = int_block_avx512<U, kKind, 2>;
#endif
    return *this;
  }
};

}  // namespace
}  // namespace rl::RL_ISA
