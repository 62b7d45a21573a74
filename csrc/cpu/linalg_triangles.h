// Triangular systems on our own products, and the pieces that decompositions of rows are made of.
// Included after cpu/avx512_begin.h.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/gemm.h"

namespace rl::cpu {
namespace {

constexpr int64_t kSmall = 32;  // triangles that are solved row by row

// c -= a b
template <class T> void subtract(int64_t m, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, const T* b,
                                 int64_t brs, int64_t bcs, T* c, int64_t ld) {
  if (m == 0 || n == 0 || k == 0) return;
  gemm(Gemm<T>{m, n, k, a, ars, acs, b, brs, bcs, c, ld, 1, T(-1), T(1), c, ld, 1});
}

// A small triangle against four vectors of columns: a row stays in registers while the solved ones are taken off it.
template <class T>
void solve_small(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld) {
  using V = Vec<T>;
  for (int64_t j0 = 0; j0 < k; j0 += 4 * V::W) {
    typename V::Mask masks[4];
    for (int v = 0; v < 4; ++v) masks[v] = first_lanes<T>(k - j0 - v * V::W);
    for (int64_t s = 0; s < n; ++s) {
      const int64_t i = upper ? n - 1 - s : s;
      T* row = b + i * ld + j0;
      typename V::Reg acc[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) acc[v] = V::load(row + v * V::W, masks[v]);
      for (int64_t p = 0; p < s; ++p) {
        const int64_t j = upper ? n - 1 - p : p;
        const T* from = b + j * ld + j0;
        const typename V::Reg x = V::all(-a[i * ars + j * acs]);
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) acc[v] = V::fma(x, V::load(from + v * V::W, masks[v]), acc[v]);
      }
      if (!unit) {
        const typename V::Reg by = V::all(a[i * (ars + acs)]);
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) acc[v] = acc[v] / by;
      }
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) V::store(row + v * V::W, acc[v], masks[v]);
    }
  }
}
// A X = B in halves of the triangle A (n, n), on this thread as far as products are small; B (n, k) becomes X.
template <class T>
void solve_slab(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld) {
  if (n <= kSmall) return solve_small(upper, unit, n, k, a, ars, acs, b, ld);
  const int64_t n1 = (n / 2 + kSmall - 1) / kSmall * kSmall, n2 = n - n1;
  const T* low = a + n1 * (ars + acs);
  if (upper) {
    solve_slab(upper, unit, n2, k, low, ars, acs, b + n1 * ld, ld);
    subtract(n1, k, n2, a + n1 * acs, ars, acs, b + n1 * ld, ld, int64_t{1}, b, ld);
    solve_slab(upper, unit, n1, k, a, ars, acs, b, ld);
  } else {
    solve_slab(upper, unit, n1, k, a, ars, acs, b, ld);
    subtract(n2, k, n1, a + n1 * ars, ars, acs, b, ld, int64_t{1}, b + n1 * ld, ld);
    solve_slab(upper, unit, n2, k, low, ars, acs, b + n1 * ld, ld);
  }
}

}  // namespace
}  // namespace rl::cpu
