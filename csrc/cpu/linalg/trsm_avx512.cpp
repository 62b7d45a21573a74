// Triangular systems with many right sides, and the order of matrices in memory.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/parallel.h"
#include "cpu/gemm/microkernel_avx512.h"
#include "cpu/linalg/dense.h"
#include "cpu/linalg/triangular.h"
#include "cpu/linalg/vectors.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

// Sizes, as whole numbers, are in the order of their bits, and NaN is above all.
template <class T> T largest(int64_t n, const T* x) {
  using V = Vec<T>;
  using U = simd::Vec<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>, 64>;
  auto most = U::zero();
  for (int64_t i = 0; i < n; i += V::W)
    most = U::max(most, std::bit_cast<typename U::Reg>(V::abs(V::load(x + i, V::first(n - i)))));
  return std::bit_cast<T>(U::largest(most));
}

// Bands of rows of what is written are the pieces.
template <class T>
void move(int64_t rows, int64_t cols, const T* from, int64_t frs, int64_t fcs, T* to, int64_t trs, int64_t tcs) {
  using V = Vec<T>;
  constexpr int64_t W = V::W;
  if (tcs != 1 && trs == 1) return move(cols, rows, from, fcs, frs, to, tcs, trs);
  const bool transposed = tcs == 1 && frs == 1, along = tcs == 1 && fcs == 1;
  parallel_for(0, (rows + W - 1) / W, std::max<int64_t>(1, 20480 / (W * (cols + 1))), [&](int64_t first, int64_t last) {
    for (int64_t band = first; band < last; ++band) {
      const int64_t i0 = band * W, i1 = std::min(rows, i0 + W);
      if (along) {
        for (int64_t i = i0; i < i1; ++i) std::copy_n(from + i * frs, cols, to + i * trs);
        continue;
      }
      if (transposed) {
        const auto down = first_lanes<T>(i1 - i0);
        for (int64_t j = 0; j < cols; j += W) {
          typename V::Reg r[W];
          const T* source = from + i0 + j * fcs;
          T* target = to + i0 * trs + j;
          if (i1 - i0 == W && j + W <= cols) {
#pragma GCC unroll 16
            for (int64_t c = 0; c < W; ++c) r[c] = V::load(source + c * fcs);
            transpose(r);
#pragma GCC unroll 16
            for (int64_t c = 0; c < W; ++c) V::store(target + c * trs, r[c]);
            continue;
          }
          const auto across = first_lanes<T>(cols - j);
          for (int64_t c = 0; c < W; ++c) r[c] = j + c < cols ? V::load(source + c * fcs, down) : V::zero();
          transpose(r);
          for (int64_t c = 0; c < i1 - i0; ++c) V::store(target + c * trs, r[c], across);
        }
        continue;
      }
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t j = 0; j < cols; ++j) to[i * trs + j * tcs] = from[i * frs + j * fcs];
    }
  });
}

// One right side: the elements of a triangular matrix are read once, in the order they have in memory, along rows or
// columns.
template <class T> void solve_vector(bool upper, bool unit, int64_t n, const T* a, int64_t ars, int64_t acs, T* x) {
  constexpr int64_t W = Vec<T>::W;
  T sums[W];
  for (int64_t s = 0; s < n; s += W) {
    const int64_t w = std::min(W, n - s), i0 = upper ? n - s - w : s, i1 = i0 + w;
    if (acs == 1) {  // what the solved ones are in these rows
      const int64_t first = upper ? i1 : 0;
      dot_columns(s, w, a + i0 * ars + first, ars, x + first, sums);
      for (int64_t r = 0; r < w; ++r) x[i0 + r] -= sums[r];
    }
    for (int64_t q = 0; q < w; ++q) {
      const int64_t j = upper ? i1 - 1 - q : i0 + q;
      if (!unit) x[j] /= a[j * (ars + acs)];
      for (int64_t i = upper ? i0 : j + 1; i < (upper ? j : i1); ++i) x[i] -= a[i * ars + j * acs] * x[j];
    }
    if (acs != 1) {  // what these are in the rows to come
      const int64_t first = upper ? 0 : i1;
      add_columns(n - s - w, w, a + first + i0 * acs, acs, x + i0, int64_t{1}, T(-1), x + first);
    }
  }
}
// Columns of the right side know nothing of each other: blocks of them are the pieces, of triangular matrices that are
// not too large to be read by each; those are solved recursively.
template <class T>
void solve(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld) {
  constexpr int64_t kBlockColumns = 4 * Vec<T>::W, kRead = 192;
  if (k == 1 && ld == 1 && (ars == 1 || acs == 1)) return solve_vector(upper, unit, n, a, ars, acs, b);
  if (n > kRead && k >= kBlockColumns) {
    solve_recursive(upper, n, k, a, ars, acs, b, ld, [&](int64_t some, const T* corner, T* rows) {
      solve(upper, unit, some, k, corner, ars, acs, rows, ld);
    });
    return;
  }
  const int64_t blocks = (k + kBlockColumns - 1) / kBlockColumns,
                grain = std::max<int64_t>(1, 100000 / (n * n * kBlockColumns));
  parallel_for(0, blocks, grain, [&](int64_t first, int64_t last) {
    const int64_t j0 = first * kBlockColumns, j1 = std::min(k, last * kBlockColumns);
    solve_block(upper, unit, n, j1 - j0, a, ars, acs, b + j0, ld);
  });
}

}  // namespace

template <class T> T largest_of(int64_t n, const T* x) { return largest(n, x); }
template <class T>
void solve_rows(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld) {
  solve(upper, unit, n, k, a, ars, acs, b, ld);
}
template <class T>
void move_matrix(int64_t rows, int64_t cols, const T* from, int64_t frs, int64_t fcs, T* to, int64_t trs, int64_t tcs) {
  move(rows, cols, from, frs, fcs, to, trs, tcs);
}

#define RL_INSTANTIATE(T)                                                                          \
  template T largest_of(int64_t, const T*);                                                        \
  template void solve_rows(bool, bool, int64_t, int64_t, const T*, int64_t, int64_t, T*, int64_t); \
  template void move_matrix(int64_t, int64_t, const T*, int64_t, int64_t, T*, int64_t, int64_t);
RL_INSTANTIATE(float)
RL_INSTANTIATE(double)
#undef RL_INSTANTIATE

}  // namespace rl::RL_ISA
