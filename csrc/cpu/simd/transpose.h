// Transposition of a plane of elements of 1, 2, 4, 8 or 16 bytes.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#include "cpu/isa.h"
#include "cpu/simd/vector.h"

namespace rl::RL_ISA {

struct Bytes16 {
  uint64_t lo, hi;
};

// f(type_tag-like value of an unsigned type of that size): U u = {}.
template <class F> inline void visit_size(int64_t size, F&& f) {
  switch (size) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Bytes16{});
  }
}

template <class U> using Lanes = typename simd::Vec<U, 16>::Reg;

template <class U, size_t... I> inline Lanes<U> zip_low(Lanes<U> a, Lanes<U> b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + (I % 2) * sizeof...(I))...);
}
template <class U, size_t... I> inline Lanes<U> zip_high(Lanes<U> a, Lanes<U> b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + sizeof...(I) / 2 + (I % 2) * sizeof...(I))...);
}

// An n x n block, n = 16 / sizeof(U): log2(n) rounds of interleaving the upper and the lower half of the rows.
template <class U> inline void transpose_block(char* out, int64_t out_row, const char* in, int64_t in_row) {
  constexpr int n = 16 / sizeof(U);
  using V = Lanes<U>;
  using Seq = std::make_index_sequence<n>;
  V a[n], b[n];
  for (int i = 0; i < n; ++i) __builtin_memcpy(&a[i], in + i * in_row, 16);
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < n / 2; ++i) {
      b[2 * i] = zip_low<U>(a[i], a[i + n / 2], Seq{});
      b[2 * i + 1] = zip_high<U>(a[i], a[i + n / 2], Seq{});
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) a[i] = b[i];
  }
  for (int i = 0; i < n; ++i) __builtin_memcpy(out + i * out_row, &a[i], 16);
}

// out[i][j] = in[j][i] for i < rows, j < columns, where out's rows and in's rows are contiguous;
// out_row and in_row are the bytes from one row to the next. Reads each row of `in` to its end before the next ones.
template <class U>
inline void transpose_tile(char* out, int64_t out_row, const char* in, int64_t in_row, int64_t rows, int64_t columns) {
  constexpr int64_t n = sizeof(U) < 16 ? 16 / sizeof(U) : 1;
  int64_t j = 0;
  if constexpr (n > 1) {
    for (; j + n <= columns; j += n) {
      int64_t i = 0;
      for (; i + n <= rows; i += n)
        transpose_block<U>(out + i * out_row + j * sizeof(U), out_row, in + j * in_row + i * sizeof(U), in_row);
      for (; i < rows; ++i)
        for (int64_t k = j; k < j + n; ++k)
          __builtin_memcpy(out + i * out_row + k * sizeof(U), in + k * in_row + i * sizeof(U), sizeof(U));
    }
  }
  for (; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      __builtin_memcpy(out + i * out_row + j * sizeof(U), in + j * in_row + i * sizeof(U), sizeof(U));
}

}  // namespace rl::RL_ISA
