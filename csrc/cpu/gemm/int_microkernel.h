// Microkernels of integer GEMMs.
#pragma once
#include <cstdint>
#include <type_traits>

#include "cpu/isa.h"
#include "cpu/simd/vector.h"

namespace rl::cpu {

// Multiplications of 64 bits take several instructions, those of 32-bit values in such lanes one.
enum class IntMultiply { Plain, Short, Any };
// sums (rows, V vectors) = a (rows, k) @ b (k, V vectors): b is packed, rows of a lie anywhere.
template <class U> using IntBlock = void (*)(int64_t k, const U* const* a, int64_t acs, const U* b, U* sums);
// The blocks of one and two vectors of an instruction set.
template <class U> struct IntBlocks {
  int64_t rows, lanes;
  IntBlock<U> of[2];
};

}  // namespace rl::cpu

namespace rl::avx512 {
template <class U>
cpu::IntBlocks<U> int_blocks(cpu::IntMultiply kind);  // Plain, of bools (uint8_t) Any; uint64_t: Short too
}

namespace rl::RL_ISA {
namespace {

template <IntMultiply kKind, class V> [[gnu::always_inline]] inline void multiply_add(V& sum, const V& x, const V& y) {
  if constexpr (kKind == IntMultiply::Any) {
    sum |= x & y;
  } else if constexpr (kKind == IntMultiply::Short) {
    sum += simd::Of<V>::multiply_low(x, y);
  } else {
    sum += x * y;
  }
}

template <class U, int kBytes, IntMultiply kKind, int R, int V>
void int_block(int64_t k, const U* const* a, int64_t acs, const U* b, U* sums) {
  using Vector = typename simd::Vec<U, kBytes>::Reg;
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
template <class U, int kBytes, int R> IntBlocks<U> int_blocks_of(IntMultiply kind) {
  constexpr IntMultiply kUsual = std::is_same_v<U, uint8_t> ? IntMultiply::Any : IntMultiply::Plain;
  constexpr int64_t kLanes = kBytes / sizeof(U);
  if constexpr (sizeof(U) == 8)
    if (kind == IntMultiply::Short)
      return {R,
              kLanes,
              {&int_block<U, kBytes, IntMultiply::Short, R, 1>, &int_block<U, kBytes, IntMultiply::Short, R, 2>}};
  return {R, kLanes, {&int_block<U, kBytes, kUsual, R, 1>, &int_block<U, kBytes, kUsual, R, 2>}};
}

}  // namespace
}  // namespace rl::RL_ISA
