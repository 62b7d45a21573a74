// LU, inverses and triangular systems.
#include <numeric>
#include <utility>

#include "cpu/linalg.h"
#include "cpu/linalg_layout.h"

namespace rl::cpu {
namespace {

// Gauss elimination without exchanges, as an LU with pivots 1, 2, ...; info is the first zero pivot.
template <class T> int lu_unpivoted(const ColMajor<T>& a, int m, int n) {
  int info = 0;
  for (int k = 0; k < std::min(m, n); ++k) {
    T p = a.at(k, k);
    if (p == T(0)) {
      if (!info) info = k + 1;
      continue;
    }
    for (int i = k + 1; i < m; ++i) a.at(i, k) /= p;
    for (int j = k + 1; j < n; ++j) {
      T u = a.at(k, j);
      for (int i = k + 1; i < m; ++i) a.at(i, j) -= a.at(i, k) * u;
    }
  }
  return info;
}

}  // namespace

void lu_factor(const View& a, const View& pivots, const View& info, bool pivot) {
  int m = rows_of(a), n = cols_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 1.0 * m * n * std::min(m, n), [&](int64_t i) {
      ColMajor<T> x(a, i, Access::ReadWrite);
      Column<int> p(pivots, i, Access::Write);
      int code = 0;
      if (pivot) {
        if (m && n) lapack::getrf<T>(m, n, x.data(), x.ld(), p.data(), &code);
      } else {
        code = lu_unpivoted(x, m, n);
        std::iota(p.data(), p.data() + std::min(m, n), 1);
      }
      item<int>(info, i) = code;
    });
  });
}

void lu_solve(const View& lu, const View& pivots, const View& b, char trans) {
  int n = rows_of(lu), k = cols_of(b);
  if (!n || !k) return;
  visit_lapack(lu.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(b, 2), 2.0 * n * n * k, [&](int64_t i) {
      ColMajor<T> x(lu, i, Access::Read), y(b, i, Access::ReadWrite);
      Column<int> p(pivots, i, Access::Read);
      for (int j = 0; j < n; ++j)
        CHECK(p.data()[j] >= 1 && p.data()[j] <= n, Runtime, "lu_solve: pivots must be between 1 and ", n, ", got ",
              p.data()[j]);
      int code = 0;
      lapack::getrs<T>(trans, n, k, x.data(), x.ld(), p.data(), y.data(), y.ld(), &code);
    });
  });
}

void inverse(const View& a, const View& info) {
  int n = rows_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 2.0 * n * n * n, [&](int64_t i) {
      int code = 0;
      if (n) {
        ColMajor<T> x(a, i, Access::ReadWrite);
        Scratch<int> pivots(n);
        lapack::getrf<T>(n, n, x.data(), x.ld(), pivots.get(), &code);
        if (code == 0) {
          T query;
          lapack::getri<T>(n, x.data(), x.ld(), pivots.get(), &query, -1, &code);
          int size = work_size(query);
          Scratch<T> work(size);
          lapack::getri<T>(n, x.data(), x.ld(), pivots.get(), work.get(), size, &code);
        }
      }
      item<int>(info, i) = code;
    });
  });
}

void triangular_solve(const View& a, const View& b, bool left, bool upper, char trans, bool unit) {
  int m = rows_of(b), n = cols_of(b);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(b, 2), 1.0 * m * n * (left ? m : n), [&](int64_t i) {
      // A row-major triangle is the transpose of a column-major one: no copy is needed to read it.
      View at = a;
      int64_t sizes[kMaxDims], strides[kMaxDims];
      bool flip = a.strides[a.ndim - 1] == 1 && a.strides[a.ndim - 2] != 1 && trans != 'C';
      if (flip) {
        std::copy_n(a.sizes, a.ndim, sizes);
        std::copy_n(a.strides, a.ndim, strides);
        std::swap(sizes[a.ndim - 1], sizes[a.ndim - 2]);
        std::swap(strides[a.ndim - 1], strides[a.ndim - 2]);
        at.sizes = sizes;
        at.strides = strides;
      }
      char op = flip ? (trans == 'N' ? 'T' : 'N') : trans, side = left ? 'L' : 'R', uplo = upper != flip ? 'U' : 'L';
      char diag = unit ? 'U' : 'N';
      ColMajor<T> x(at, i, Access::Read), y(b, i, Access::ReadWrite);
      lapack::trsm<T>(side, uplo, op, diag, m, n, T(1), x.data(), x.ld(), y.data(), y.ld());
    });
  });
}

}  // namespace rl::cpu
