// Triangular systems on our own GEMM, and the pieces that decompositions of rows are made of.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cpu/gemm/gemm.h"

namespace rl::RL_ISA {
namespace {

// Triangular matrices that are solved without GEMM, by the width of right sides.
template <class T> int64_t unblocked_size(int64_t k) { return k <= Vec<T>::W ? 512 : 96; }

// c -= a b
template <class T> void subtract(int64_t m, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, const T* b,
                                 int64_t brs, int64_t bcs, T* c, int64_t ld) {
  if (m == 0 || n == 0 || k == 0) return;
  gemm(Gemm<T>{.m = m,
               .n = n,
               .k = k,
               .a = a,
               .ars = ars,
               .acs = acs,
               .b = b,
               .brs = brs,
               .bcs = bcs,
               .c = c,
               .crs = ld,
               .ccs = 1,
               .alpha = T(-1),
               .beta = T(1),
               .d = c,
               .drs = ld,
               .dcs = 1});
}

// R rows of a lower triangular matrix, from row i on, against N vectors of columns, the last of them masked: they stay
// in registers while the rows above are taken off them, and then those among themselves.
template <int R, int N, class T> void solve_registers(int64_t i, bool unit, const T* a, int64_t ars, int64_t acs, T* b,
                                                      int64_t ld, typename Vec<T>::Mask last) {
  using V = Vec<T>;
  constexpr T kLeast = std::numeric_limits<T>::min();
  auto load = [&](const T* from, int v) {
    return v + 1 < N ? V::load(from + v * V::W) : V::load(from + v * V::W, last);
  };
  typename V::Reg acc[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) acc[r][v] = load(b + (i + r) * ld, v);
  const T* rows = a + i * ars;
  for (int64_t p = 0; p < i; ++p) {
    typename V::Reg x[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) x[v] = load(b + p * ld, v);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto by = V::all(rows[r * ars + p * acs]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[r][v] = simd::fnma(by, x[v], acc[r][v]);
    }
  }
  const T* corner = rows + i * acs;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int q = 0; q < r; ++q) {
      const auto by = V::all(corner[r * ars + q * acs]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[r][v] = simd::fnma(by, acc[q][v], acc[r][v]);
    }
    if (!unit) {
      const T d = corner[r * (ars + acs)], size = std::fabs(d);
      const bool inverts = size >= kLeast && size <= 1 / kLeast;  // the others have no good reciprocal
      const auto by = V::all(inverts ? 1 / d : d);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[r][v] = inverts ? acc[r][v] * by : acc[r][v] / by;
    }
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v)
      V::store(b + (i + r) * ld + v * V::W, acc[r][v], v + 1 < N ? first_lanes<T>(V::W) : last);
  }
}
// A small triangular matrix. An upper one is a lower one whose last row comes first.
template <class T>
void solve_small(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld) {
  constexpr int64_t W = Vec<T>::W;
  if (upper) return solve_small(false, unit, n, k, a + (n - 1) * (ars + acs), -ars, -acs, b + (n - 1) * ld, -ld);
  auto some = [&](auto vectors, T* right, typename Vec<T>::Mask last) {
    constexpr int N = decltype(vectors)::value;
    int64_t i = 0;
    if constexpr (N == 1)  // as many rows as a cache line has, if the triangular matrix is column by column
      for (; i + 16 <= n; i += 16) solve_registers<16, N>(i, unit, a, ars, acs, right, ld, last);
    for (; i + 6 <= n; i += 6) solve_registers<6, N>(i, unit, a, ars, acs, right, ld, last);
    if (i + 4 <= n) solve_registers<4, N>(i, unit, a, ars, acs, right, ld, last), i += 4;
    if (i + 2 <= n) solve_registers<2, N>(i, unit, a, ars, acs, right, ld, last), i += 2;
    if (i < n) solve_registers<1, N>(i, unit, a, ars, acs, right, ld, last);
  };
  for (int64_t j = 0; j < k; j += 4 * W) {
    const int64_t vectors = (std::min(k - j, 4 * W) + W - 1) / W;
    const auto last = first_lanes<T>(k - j - (vectors - 1) * W);
    switch (vectors) {
      case 1: some(std::integral_constant<int, 1>{}, b + j, last); break;
      case 2: some(std::integral_constant<int, 2>{}, b + j, last); break;
      case 3: some(std::integral_constant<int, 3>{}, b + j, last); break;
      default: some(std::integral_constant<int, 4>{}, b + j, last);
    }
  }
}
// A X = B recursively, for a triangular matrix A (n, n); B (n, k) becomes X. f(size, corner of A, rows of B) solves a
// half.
template <class T, class F>
void solve_recursive(bool upper, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld, F f) {
  const int64_t n1 = (n / 2 + 31) / 32 * 32, n2 = n - n1;
  const T* corner = a + n1 * (ars + acs);
  T* low = b + n1 * ld;
  if (upper) {
    f(n2, corner, low);
    subtract(n1, k, n2, a + n1 * acs, ars, acs, low, ld, int64_t{1}, b, ld);
    f(n1, a, b);
  } else {
    f(n1, a, b);
    subtract(n2, k, n1, a + n1 * ars, ars, acs, b, ld, int64_t{1}, low, ld);
    f(n2, corner, low);
  }
}
// On this thread, as far as GEMMs are small.
template <class T>
void solve_block(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld) {
  if (n <= unblocked_size<T>(k)) return solve_small(upper, unit, n, k, a, ars, acs, b, ld);
  solve_recursive(upper, n, k, a, ars, acs, b, ld, [&](int64_t some, const T* corner, T* rows) {
    solve_block(upper, unit, some, k, corner, ars, acs, rows, ld);
  });
}

}  // namespace
}  // namespace rl::RL_ISA
