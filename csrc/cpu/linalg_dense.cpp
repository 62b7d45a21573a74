#include "cpu/linalg_dense.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "cpu/scratch.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "cpu/gemm_avx512.h"

namespace rl::cpu {
namespace {

constexpr int64_t kSmall = 32;    // triangles that are solved row by row
constexpr int64_t kMiddle = 256;  // those whose right side is shared out

// Bands of rows of what is written are the pieces.
template <class T>
void move(int64_t rows, int64_t cols, const T* from, int64_t frs, int64_t fcs, T* to, int64_t trs, int64_t tcs) {
  using V = Vec<T>;
  constexpr int64_t W = V::W;
  if (tcs != 1 && trs == 1) return move(cols, rows, from, fcs, frs, to, tcs, trs);
  const bool turned = tcs == 1 && frs == 1;
  parallel_for(0, (rows + W - 1) / W, std::max<int64_t>(1, 65536 / (W * (cols + 1))), [&](int64_t first, int64_t last) {
    for (int64_t band = first; band < last; ++band) {
      const int64_t i0 = band * W, i1 = std::min(rows, i0 + W);
      int64_t j = 0;
      if (turned && i1 - i0 == W)
        for (; j + W <= cols; j += W) {
          typename V::Reg r[W];
#pragma GCC unroll 16
          for (int64_t c = 0; c < W; ++c) r[c] = V::load(from + i0 + (j + c) * fcs);
          V::transpose(r);
#pragma GCC unroll 16
          for (int64_t c = 0; c < W; ++c) V::store(to + (i0 + c) * trs + j, r[c]);
        }
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t c = j; c < cols; ++c) to[i * trs + c * tcs] = from[i * frs + c * fcs];
    }
  });
}

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
// Columns of the right side know nothing of each other: slabs of them are the pieces.
template <class T>
void solve(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld) {
  constexpr int64_t kSlab = 4 * Vec<T>::W;
  const int64_t slabs = (k + kSlab - 1) / kSlab, grain = std::max<int64_t>(1, 100000 / (n * n * kSlab));
  parallel_for(0, slabs, grain, [&](int64_t first, int64_t last) {
    const int64_t j0 = first * kSlab, j1 = std::min(k, last * kSlab);
    solve_slab(upper, unit, n, j1 - j0, a, ars, acs, b + j0, ld);
  });
}

// Panels of kPanel columns are decomposed side by side in memory of their own.
constexpr int64_t kPanel = 16;

template <class T> int lu_panel(int64_t m, int64_t n, T* a, int64_t ld, int* pivots) {
  using V = Vec<T>;
  constexpr int kRegs = kPanel / V::W;
  Scratch<T> copy(m * kPanel);
  T* p = copy.get();
  for (int64_t i = 0; i < m; ++i) {
    std::memcpy(p + i * kPanel, a + i * ld, static_cast<size_t>(n) * sizeof(T));
    for (int64_t j = n; j < kPanel; ++j) p[i * kPanel + j] = T(0);
  }
  int info = 0;
  int64_t best = 0;  // the row of the largest number in the column that is next
  T most = T(-1);
  auto look_at = [&](int64_t i, int64_t j) {
    const T x = std::fabs(p[i * kPanel + j]);
    if (x > most) most = x, best = i;
  };
  for (int64_t i = 0; i < m; ++i) look_at(i, 0);
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    pivots[j] = static_cast<int>(best) + 1;
    if (best != j)
      for (int64_t c = 0; c < kPanel; ++c) std::swap(p[j * kPanel + c], p[best * kPanel + c]);
    const T pivot = p[j * kPanel + j];
    best = j + 1, most = T(-1);
    const int64_t next = std::min(j + 1, kPanel - 1);
    if (pivot == T(0)) {
      if (!info) info = static_cast<int>(j) + 1;
      for (int64_t i = j + 1; i < m; ++i) look_at(i, next);
      continue;
    }
    // The row of the pivot, with nothing up to its column.
    typename V::Reg row[kRegs];
    for (int v = 0; v < kRegs; ++v) {
      const auto done = first_lanes<T>(j + 1 - v * V::W);
      row[v] = V::load(p + j * kPanel + v * V::W, static_cast<typename V::Mask>(~done));
    }
    for (int64_t i = j + 1; i < m; ++i) {
      T* at = p + i * kPanel;
      const T factor = at[j] / pivot;
      const typename V::Reg by = V::all(-factor);
#pragma GCC unroll 2
      for (int v = 0; v < kRegs; ++v) V::store(at + v * V::W, V::fma(by, row[v], V::load(at + v * V::W)));
      at[j] = factor;
      look_at(i, next);
    }
  }
  for (int64_t i = 0; i < m; ++i) std::memcpy(a + i * ld, p + i * kPanel, static_cast<size_t>(n) * sizeof(T));
  return info;
}
// m >= n
template <class T> int lu_halves(int64_t m, int64_t n, T* a, int64_t ld, int* pivots) {
  if (n <= kPanel) return lu_panel(m, n, a, ld, pivots);
  const int64_t n1 = (n / 2 + kPanel - 1) / kPanel * kPanel, n2 = n - n1;
  const int info = lu_halves(m, n1, a, ld, pivots);
  T *right = a + n1, *low = a + n1 * ld;
  exchange_rows(pivots, n1, right, ld, n2, false);
  solve(false, true, n1, n2, a, ld, int64_t{1}, right, ld);
  subtract(m - n1, n2, n1, low, ld, int64_t{1}, right, ld, int64_t{1}, low + n1, ld);
  const int more = lu_halves(m - n1, n2, low + n1, ld, pivots + n1);
  exchange_rows(pivots + n1, n2, low, ld, n1, false);
  for (int64_t j = n1; j < n; ++j) pivots[j] += static_cast<int>(n1);
  return info ? info : more ? more + static_cast<int>(n1) : 0;
}
template <class T> int lu(int64_t m, int64_t n, T* a, int64_t ld, int* pivots) {
  const int64_t k = std::min(m, n);
  const int info = lu_halves(m, k, a, ld, pivots);
  if (n > k) {
    exchange_rows(pivots, k, a + k, ld, n - k, false);
    solve(false, true, k, n - k, a, ld, int64_t{1}, a + k, ld);
  }
  return info;
}

template <class T> int cholesky_small(int64_t n, T* a, int64_t ld) {
  for (int64_t j = 0; j < n; ++j) {
    T d = a[j * ld + j];
    for (int64_t p = 0; p < j; ++p) d -= a[j * ld + p] * a[j * ld + p];
    if (!(d > T(0))) return static_cast<int>(j) + 1;
    d = std::sqrt(d);
    a[j * ld + j] = d;
    for (int64_t i = j + 1; i < n; ++i) {
      T x = a[i * ld + j];
      for (int64_t p = 0; p < j; ++p) x -= a[i * ld + p] * a[j * ld + p];
      a[i * ld + j] = x / d;
    }
  }
  return 0;
}
template <class T> int cholesky(int64_t n, T* a, int64_t ld) {
  if (n <= kSmall) return cholesky_small(n, a, ld);
  const int64_t n1 = (n / 2 + kSmall - 1) / kSmall * kSmall, n2 = n - n1;
  if (int info = cholesky(n1, a, ld)) return info;
  // L11 W = A21^T; A21 = W^T
  T *low = a + n1 * ld, *rest = low + n1;
  Scratch<T> w(n1 * n2);
  move(n1, n2, low, int64_t{1}, ld, w.get(), n2, int64_t{1});
  solve(false, false, n1, n2, a, ld, int64_t{1}, w.get(), n2);
  move(n2, n1, w.get(), int64_t{1}, n2, low, ld, int64_t{1});
  for (int64_t i = 0; i < n2; i += 256) {  // the lower half, in bands
    const int64_t end = std::min(n2, i + 256);
    subtract(end - i, end, n1, low + i * ld, ld, int64_t{1}, w.get(), n2, int64_t{1}, rest + i * ld, ld);
  }
  const int info = cholesky(n2, rest, ld);
  return info ? info + static_cast<int>(n1) : 0;
}

}  // namespace

void solve_rows(bool upper, bool unit, int64_t n, int64_t k, const float* a, int64_t ars, int64_t acs, float* b,
                int64_t ld) {
  solve(upper, unit, n, k, a, ars, acs, b, ld);
}
void solve_rows(bool upper, bool unit, int64_t n, int64_t k, const double* a, int64_t ars, int64_t acs, double* b,
                int64_t ld) {
  solve(upper, unit, n, k, a, ars, acs, b, ld);
}
void move_matrix(int64_t rows, int64_t cols, const float* from, int64_t frs, int64_t fcs, float* to, int64_t trs,
                 int64_t tcs) {
  move(rows, cols, from, frs, fcs, to, trs, tcs);
}
void move_matrix(int64_t rows, int64_t cols, const double* from, int64_t frs, int64_t fcs, double* to, int64_t trs,
                 int64_t tcs) {
  move(rows, cols, from, frs, fcs, to, trs, tcs);
}
int lu_rows(int64_t m, int64_t n, float* a, int64_t ld, int* pivots) { return lu(m, n, a, ld, pivots); }
int lu_rows(int64_t m, int64_t n, double* a, int64_t ld, int* pivots) { return lu(m, n, a, ld, pivots); }
int cholesky_rows(int64_t n, float* a, int64_t ld) { return cholesky(n, a, ld); }
int cholesky_rows(int64_t n, double* a, int64_t ld) { return cholesky(n, a, ld); }

}  // namespace rl::cpu
#pragma GCC pop_options
#else
namespace rl::cpu {
void solve_rows(bool, bool, int64_t, int64_t, const float*, int64_t, int64_t, float*, int64_t) {}
void solve_rows(bool, bool, int64_t, int64_t, const double*, int64_t, int64_t, double*, int64_t) {}
void move_matrix(int64_t, int64_t, const float*, int64_t, int64_t, float*, int64_t, int64_t) {}
void move_matrix(int64_t, int64_t, const double*, int64_t, int64_t, double*, int64_t, int64_t) {}
int lu_rows(int64_t, int64_t, float*, int64_t, int*) { return 0; }
int lu_rows(int64_t, int64_t, double*, int64_t, int*) { return 0; }
int cholesky_rows(int64_t, float*, int64_t) { return 0; }
int cholesky_rows(int64_t, double*, int64_t) { return 0; }
}  // namespace rl::cpu
#endif
