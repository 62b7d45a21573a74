// GEMMs of integers and bools: blocks of rows and columns in registers, vectors along the columns. Sums wrap around;
// those of bools are "any".
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/features.h"
#include "cpu/gemm/int_gemv.h"
#include "cpu/gemm/int_microkernel.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

// Whether 64-bit values, n by m of them, all fit 32 bits.
inline bool all_fit_32_bits(const int64_t* x, int64_t stride, int64_t n, int64_t m) {
  uint64_t beyond = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) beyond |= (static_cast<uint64_t>(x[i * stride + j]) + 0x80000000u) >> 32;
  return beyond == 0;
}

// to (k, padded) = the first n columns of b, and zeros.
template <class T, class U>
void pack_columns(const T* b, int64_t brs, int64_t bcs, int64_t k, int64_t n, int64_t padded, U* to) {
  if (n < padded) std::memset(to, 0, static_cast<size_t>(k * padded) * sizeof(U));
  if (bcs == 1) {
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) to[p * padded + j] = static_cast<U>(b[p * brs + j]);
  } else {
    constexpr int64_t kRound = 16;  // columns whose lines stay in the first cache
    for (int64_t j0 = 0; j0 < n; j0 += kRound)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = j0; j < std::min(n, j0 + kRound); ++j)
          to[p * padded + j] = static_cast<U>(b[p * brs + j * bcs]);
  }
}

// c = alpha * sums + beta * c, of one row.
template <class T, class U> void int_result(T* c, const U* sums, int64_t n, T alpha, T beta) {
  if constexpr (std::is_same_v<T, bool>) {
    for (int64_t j = 0; j < n; ++j) c[j] = (alpha && sums[j]) || (beta && c[j]);
  } else if (alpha == T(1) && beta == T(0)) {
    for (int64_t j = 0; j < n; ++j) c[j] = static_cast<T>(sums[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) {
      const T sum = times(alpha, static_cast<T>(sums[j]));
      c[j] = beta == T(0) ? sum : plus(sum, times(beta, c[j]));
    }
  }
}

// A few rows or columns of a result, one after the other.
template <class T> void int_gemvs(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t ars, int64_t acs,
                                  const T* b, int64_t brs, int64_t bcs, T beta, T* c, int64_t ldc) {
  using U = typename wrap<T>::type;
  const bool across = m <= n;
  const int64_t length = across ? n : m;
  Scratch<U> x(k), sums(length);
  auto gemv = has_avx512() ? &avx512::int_gemv<T, U> : &int_gemv_of<T, U>;
  for (int64_t i = 0; i < std::min(m, n); ++i) {
    const T* from = across ? a + i * ars : b + i * bcs;
    for (int64_t p = 0; p < k; ++p) x[p] = static_cast<U>(from[p * (across ? acs : brs)]);
    if (across) {
      gemv(b, bcs, brs, x.get(), n, k, sums.get());
      int_result(c + i * ldc, sums.get(), n, alpha, beta);
    } else {
      gemv(a, ars, acs, x.get(), m, k, sums.get());
      for (int64_t r = 0; r < m; ++r) int_result(c + r * ldc + i, sums.get() + r, 1, alpha, beta);
    }
  }
}

template <class T> void int_gemm(bool ta, bool tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b,
                                 int ldb, T beta, T* c, int ldc) {
  using U = typename wrap<T>::type;
  constexpr int64_t kDeep = 256, kAcross = 512;  // of b, so much is packed at a time
  int64_t ars = ta ? 1 : lda, acs = ta ? lda : 1;
  const int64_t brs = tb ? 1 : ldb, bcs = tb ? ldb : 1;
  if (std::min(m, n) < 4 || k == 0) return int_gemvs<T>(m, n, k, alpha, a, ars, acs, b, brs, bcs, beta, c, ldc);
  IntMultiply kind = IntMultiply::Plain;
  if constexpr (sizeof(T) == 8) {
    if (all_fit_32_bits(a, lda, ta ? k : m, ta ? m : k) && all_fit_32_bits(b, ldb, tb ? n : k, tb ? k : n))
      kind = IntMultiply::Short;
  }
  const IntBlocks<U> blocks = has_avx512() ? avx512::int_blocks<U>(kind) : int_blocks_of<U, 32, 4>(kind);
  Scratch<U> whole;
  const U* left;
  if constexpr (sizeof(U) == sizeof(T)) {
    left = reinterpret_cast<const U*>(a);
  } else {
    whole.reset(static_cast<int64_t>(m) * k);
    for (int64_t i = 0; i < (ta ? k : m); ++i)
      for (int64_t j = 0; j < (ta ? m : k); ++j) whole[i * (ta ? m : k) + j] = a[i * lda + j];
    left = whole.get();
    (ta ? acs : ars) = ta ? m : k;
  }
  const int64_t lanes = blocks.lanes, most = 2 * lanes;
  alignas(64) U sums[8 * 2 * 64 / sizeof(U)];
  Scratch<U> packed(std::min<int64_t>(kDeep, k) * std::min<int64_t>(kAcross, (n + lanes - 1) / lanes * lanes));
  for (int64_t p0 = 0; p0 < k; p0 += kDeep) {
    const int64_t deep = std::min<int64_t>(kDeep, k - p0);
    const T weight = p0 ? T(1) : beta;
    for (int64_t j0 = 0; j0 < n; j0 += kAcross) {
      const int64_t across = std::min<int64_t>(kAcross, n - j0);
      auto padded = [&](int64_t j) { return across - j > lanes ? most : lanes; };
      for (int64_t j = 0; j < across; j += most)
        pack_columns(b + p0 * brs + (j0 + j) * bcs, brs, bcs, deep, std::min(most, across - j), padded(j),
                     packed.get() + j * deep);
      for (int64_t i = 0; i < m; i += blocks.rows) {
        const int64_t rows = std::min<int64_t>(blocks.rows, m - i);
        const U* at[8];
        for (int64_t r = 0; r < blocks.rows; ++r) at[r] = left + (i + std::min(r, rows - 1)) * ars + p0 * acs;
        for (int64_t j = 0; j < across; j += most) {
          blocks.of[padded(j) / lanes - 1](deep, at, acs, packed.get() + j * deep, sums);
          for (int64_t r = 0; r < rows; ++r)
            int_result(c + (i + r) * ldc + j0 + j, sums + r * padded(j), std::min(most, across - j), alpha, weight);
        }
      }
    }
  }
}

// The same of so few elements that a block takes longer to prepare than to multiply; c has strides of its own, and d is
// added beta times, or nothing where it is null.
inline constexpr int64_t kTinyMacs = 256;
template <class T> void int_tiny(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t ars, int64_t acs,
                                 const T* b, int64_t brs, int64_t bcs, T* c, int64_t crs, int64_t ccs, T beta,
                                 const T* d, int64_t drs, int64_t dcs) {
  using U = accumulator_t<T>;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const T *x = a + i * ars, *y = b + j * bcs;
      U sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += static_cast<U>(x[p * acs]) * static_cast<U>(y[p * brs]);
      const T scaled = times(alpha, static_cast<T>(sum));
      c[i * crs + j * ccs] = d ? plus(scaled, times(beta, d[i * drs + j * dcs])) : scaled;
    }
}

}  // namespace
}  // namespace rl::RL_ISA
