// Gauss's elimination and Cholesky's, by blocks of columns on our own GEMM. Matrices are row by row.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "cpu/gemm/microkernel_avx512.h"
#include "cpu/linalg/dense.h"
#include "cpu/linalg/lu_panel.h"
#include "cpu/linalg/triangular.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kInverseColumns = 128;  // columns of an inverse that are one piece of work
constexpr int64_t kBlocks = 192;          // columns from which on blocks and their rest are worked on at the same time
constexpr int64_t kFewRows = 32;          // of a block of the diagonal, that are taken off each other
int64_t block_of(int64_t n) { return n < 1536 ? 64 : 128; }

// exchange_rows by vectors: rows are far from each other in memory, so that those of the exchanges to come are asked
// for in time.
template <class T> void exchange(const int* pivots, int64_t count, T* b, int64_t ld, int64_t k) {
  using V = Vec<T>;
  constexpr int64_t kAhead = 4;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const T* soon = b + (pivots[i + kAhead] - 1) * ld;
      for (int64_t j = 0; j < k; j += V::W) __builtin_prefetch(soon + j, 1);
    }
    const int64_t with = pivots[i] - 1;
    if (with == i) continue;
    T *x = b + i * ld, *y = b + with * ld;
    for (int64_t j = 0; j < k; j += V::W) {
      const auto mask = first_lanes<T>(k - j);
      const auto first = V::load(x + j, mask), second = V::load(y + j, mask);
      V::store(x + j, second, mask);
      V::store(y + j, first, mask);
    }
  }
}
// The columns [0, n1) of a are decomposed: brings k columns at `right`, of the same rows, up to them.
template <class T>
void eliminate(int64_t m, int64_t n1, const T* a, int64_t ld, const int* pivots, int64_t k, T* right) {
  exchange(pivots, n1, right, ld, k);
  solve_block(false, true, n1, k, a, ld, int64_t{1}, right, ld);
  subtract(m - n1, k, n1, a + n1 * ld, ld, int64_t{1}, right, ld, int64_t{1}, right + n1 * ld, ld);
}
int first_of(int info, int later, int64_t offset) { return info ? info : later ? later + static_cast<int>(offset) : 0; }
// m >= n
template <class T> int lu_recursive(int64_t m, int64_t n, T* a, int64_t ld, int* pivots) {
  if (n <= kPanel) return lu_panel(m, n, a, ld, pivots);
  const int64_t n1 = (n / 2 + kPanel - 1) / kPanel * kPanel, n2 = n - n1;
  const int info = lu_recursive(m, n1, a, ld, pivots);
  eliminate(m, n1, a, ld, pivots, n2, a + n1);
  T* low = a + n1 * ld;
  const int more = lu_recursive(m - n1, n2, low + n1, ld, pivots + n1);
  exchange(pivots + n1, n2, low, ld, n1);
  for (int64_t j = n1; j < n; ++j) pivots[j] += static_cast<int>(n1);
  return first_of(info, more, n1);
}
// The columns [first, n) in blocks, as pieces of a loop: f(first column, width). Every other block belongs to the first
// half of the pieces, and each to the same piece in every loop, so that two threads find theirs in their own caches and
// have equal shares of what is left.
template <class F> void each_block(int64_t first, int64_t n, int64_t block, F f) {
  const int64_t count = (n + block - 1) / block, even = (count + 1) / 2;
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t c = (piece < even ? 2 * piece : 2 * (piece - even) + 1) * block;
      if (c >= first) f(c, std::min(block, n - c));
    }
  });
}
// Of the columns behind a block, those of the next block are brought up to it and decomposed while others are still
// waiting: elimination's long chain of pivots is hidden behind GEMMs. Each piece has columns of its own, so that
// nothing but the end of a step has to be waited for.
template <class T> int lu(int64_t m, int64_t n, T* a, int64_t ld, int* pivots) {
  const int64_t k = std::min(m, n), block = k < kBlocks ? k : block_of(k);
  int info = lu_recursive(m, block, a, ld, pivots);
  for (int64_t j = 0; j < k; j += block) {
    const int64_t w = std::min(block, k - j), next = j + w;
    const T* corner = a + j * ld + j;
    each_block(next, n, block, [&](int64_t c, int64_t width) {
      T* right = a + j * ld + c;
      eliminate(m - j, w, corner, ld, pivots + j, width, right);
      if (c == next && next < k)
        info =
            first_of(info, lu_recursive(m - next, std::min(width, k - next), right + w * ld, ld, pivots + next), next);
    });
    // The last block of a wide matrix may end inside a block of columns.
    if (next < k && next + block > k && n > k)
      eliminate(m - next, k - next, a + next * (ld + 1), ld, pivots + next, std::min(n, next + block) - k,
                a + next * ld + k);
  }
  // What stands left of a block follows its exchanges.
  each_block(0, k, block, [&](int64_t c, int64_t width) {
    for (int64_t j = c + block; j < k; j += block)
      exchange(pivots + j, std::min(block, k - j), a + j * ld + c, ld, width);
  });
  for (int64_t j = block; j < k; ++j) pivots[j] += static_cast<int>(j / block * block);
  return info;
}

// U^T U = A of a few rows: each is taken off the ones below it.
template <class T> int cholesky_unblocked(int64_t n, T* a, int64_t ld) {
  using V = Vec<T>;
  for (int64_t j = 0; j < n; ++j) {
    T* row = a + j * ld;
    const T d = row[j];
    if (!(d > T(0))) return static_cast<int>(j) + 1;
    const auto root = V::all(std::sqrt(d));
    for (int64_t c = j; c < n; c += V::W) {
      const auto mask = first_lanes<T>(n - c);
      V::store(row + c, V::load(row + c, mask) / root, mask);
    }
    for (int64_t i = j + 1; i < n; ++i) {
      const auto by = V::all(-row[i]);
      for (int64_t c = i; c < n; c += V::W) {
        const auto mask = first_lanes<T>(n - c);
        V::store(a + i * ld + c, V::fma(by, V::load(row + c, mask), V::load(a + i * ld + c, mask)), mask);
      }
    }
  }
  return 0;
}
// A block of the diagonal, recursively.
template <class T> int cholesky_block(int64_t n, T* a, int64_t ld) {
  if (n <= kFewRows) return cholesky_unblocked(n, a, ld);
  const int64_t n1 = (n / 2 + kPanel - 1) / kPanel * kPanel, n2 = n - n1;
  if (int info = cholesky_block(n1, a, ld)) return info;
  T *right = a + n1, *rest = right + n1 * ld;
  solve_block(false, false, n1, n2, a, int64_t{1}, ld, right, ld);
  subtract(n2, n2, n1, right, int64_t{1}, ld, right, ld, int64_t{1}, rest, ld);
  return first_of(0, cholesky_block(n2, rest, ld), n1);
}
template <class T> int cholesky(int64_t n, T* a, int64_t ld) {
  const int64_t block = n < kBlocks ? n : block_of(n);
  int info = cholesky_block(std::min(block, n), a, ld);
  for (int64_t j = 0; j + block < n && !info; j += block) {
    const T* corner = a + j * ld + j;
    const int64_t first = j + block;
    each_block(first, n, block, [&](int64_t c, int64_t width) {
      solve_block(false, false, block, width, corner, int64_t{1}, ld, a + j * ld + c, ld);
    });
    each_block(first, n, block, [&](int64_t c, int64_t width) {  // the rest's upper half, and the next diagonal block
      const T* rows = a + j * ld;
      subtract(c + width - first, width, block, rows + first, int64_t{1}, ld, rows + c, ld, int64_t{1},
               a + first * ld + c, ld);
      if (c == first) info = first_of(0, cholesky_block(width, a + first * (ld + 1), ld), first);
    });
  }
  return info;
}

// Blocks of the identity go through both triangular factors, each from the row on where it has non-zeros; what A^-1 =
// U^-1 L^-1 P has its columns exchanged for is done last.
template <class T> void inverse(int64_t n, const T* lu, int64_t ld, const int* pivots, T* y, int64_t ldy) {
  parallel_for(0, (n + kInverseColumns - 1) / kInverseColumns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t c0 = s * kInverseColumns, width = std::min(kInverseColumns, n - c0);
      for (int64_t i = 0; i < n; ++i) std::fill_n(y + i * ldy + c0, width, T(0));
      for (int64_t c = c0; c < c0 + width; ++c) y[c * (ldy + 1)] = T(1);
      solve_block(false, true, n - c0, width, lu + c0 * (ld + 1), ld, int64_t{1}, y + c0 * (ldy + 1), ldy);
      solve_block(true, false, n, width, lu, ld, int64_t{1}, y + c0, ldy);
    }
  });
  Scratch<int64_t> from(n);
  for (int64_t c = 0; c < n; ++c) from[c] = c;
  for (int64_t c = n - 1; c >= 0; --c) std::swap(from[c], from[pivots[c] - 1]);
  parallel_for(0, n, std::max<int64_t>(1, 32768 / n), [&](int64_t begin, int64_t end) {
    Scratch<T> row(n);
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(y + i * ldy, n, row.get());
      for (int64_t c = 0; c < n; ++c) y[i * ldy + c] = row[from[c]];
    }
  });
}

}  // namespace

template <class T> int lu_rows(int64_t m, int64_t n, T* a, int64_t ld, int* pivots) { return lu(m, n, a, ld, pivots); }
template <class T> void inverse_rows(int64_t n, const T* lu, int64_t ld, const int* pivots, T* y, int64_t ldy) {
  inverse(n, lu, ld, pivots, y, ldy);
}
template <class T> int cholesky_rows(int64_t n, T* a, int64_t ld) { return cholesky(n, a, ld); }

#define RL_INSTANTIATE(T)                                                          \
  template int lu_rows(int64_t, int64_t, T*, int64_t, int*);                       \
  template void inverse_rows(int64_t, const T*, int64_t, const int*, T*, int64_t); \
  template int cholesky_rows(int64_t, T*, int64_t);
RL_INSTANTIATE(float)
RL_INSTANTIATE(double)
#undef RL_INSTANTIATE

}  // namespace rl::RL_ISA
