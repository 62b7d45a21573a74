// LU, inverses and triangular systems.
#include <numeric>
#include <utility>

#include "cpu/linalg/column_major.h"
#include "cpu/linalg/linalg.h"
#include "cpu/linalg/tiny.h"

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

bool by_rows(DType dtype, int64_t m, int64_t n) {
  if (m == n && n <= kTiny) return true;
  return (dtype == DType::Float32 || dtype == DType::Float64) && is_dense<float>(std::min(m, n), kEliminated);
}

void lu_factor(const View& a, const View& pivots, const View& info, bool pivot) {
  int m = rows_of(a), n = cols_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 1.0 * m * n * std::min(m, n), [&](int64_t i) {
      if (pivot && m == n && n <= kTiny) {
        T* at = a.as<T>() + batch_offset(a, i, 2);
        const int64_t rs = a.strides[a.ndim - 2], cs = a.strides[a.ndim - 1];
        int* p = pivots.as<int>() + batch_offset(pivots, i, 1);
        return with_size(n, [&](auto size) {
          Tiny<T> x(at, rs, cs, size);
          item<int>(info, i) = x.lu(size);
          x.put(at, rs, cs, size);
          for (int j = 0; j < size; ++j) p[j * pivots.strides[pivots.ndim - 1]] = x.pivots[j];
        });
      }
      Column<int> p(pivots, i, Access::Write);
      int code = 0;
      if constexpr (!lapack::is_complex<T>)
        if (pivot && is_dense<T>(std::min(m, n), kEliminated)) {
          RowMajor<T> x(a, i);
          item<int>(info, i) = lu_rows(m, n, x.data(), x.ld(), p.data());
          return x.put();
        }
      ColMajor<T> x(a, i, Access::ReadWrite);
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
      if (n <= kTiny) {
        Tiny<T> x(lu.as<T>() + batch_offset(lu, i, 2), lu.strides[lu.ndim - 2], lu.strides[lu.ndim - 1], n);
        const int* p = pivots.as<int>() + batch_offset(pivots, i, 1);
        for (int j = 0; j < n; ++j) {
          x.pivots[j] = p[j * pivots.strides[pivots.ndim - 1]];
          CHECK(x.pivots[j] >= 1 && x.pivots[j] <= n, Runtime,
                "Pivots given to lu_solve must all be greater or equal to 1 and smaller or equal to LU.size(-2), ", n,
                ", got ", x.pivots[j]);
        }
        return x.solve(n, k, b.as<T>() + batch_offset(b, i, 2), b.strides[b.ndim - 2], b.strides[b.ndim - 1], trans);
      }
      Column<int> p(pivots, i, Access::Read);
      for (int j = 0; j < n; ++j)
        CHECK(p.data()[j] >= 1 && p.data()[j] <= n, Runtime,
              "Pivots given to lu_solve must all be greater or equal to 1 and smaller or equal to LU.size(-2), ", n,
              ", got ", p.data()[j]);
      if constexpr (!lapack::is_complex<T>)
        if (is_dense<T>(n, 1)) {
          RowMajor<T> y(b, i);
          const T* packed = lu.as<T>() + batch_offset(lu, i, 2);
          const int64_t rs = lu.strides[lu.ndim - 2], cs = lu.strides[lu.ndim - 1];
          if (trans == 'N') {
            exchange_rows(p.data(), n, y.data(), y.ld(), k, false);
            solve_rows(false, true, n, k, packed, rs, cs, y.data(), y.ld());
            solve_rows(true, false, n, k, packed, rs, cs, y.data(), y.ld());
          } else {
            solve_rows(false, false, n, k, packed, cs, rs, y.data(), y.ld());
            solve_rows(true, true, n, k, packed, cs, rs, y.data(), y.ld());
            exchange_rows(p.data(), n, y.data(), y.ld(), k, true);
          }
          return y.put();
        }
      ColMajor<T> x(lu, i, Access::Read), y(b, i, Access::ReadWrite);
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
      if (n && n <= kTiny) {
        T* at = a.as<T>() + batch_offset(a, i, 2);
        const int64_t rs = a.strides[a.ndim - 2], cs = a.strides[a.ndim - 1];
        return with_size(n, [&](auto size) {
          Tiny<T> x(at, rs, cs, size);
          item<int>(info, i) = code = x.lu(size);
          if (code) return x.put(at, rs, cs, size);
          for (int r = 0; r < size; ++r)
            for (int c = 0; c < size; ++c) at[r * rs + c * cs] = T(r == c ? 1 : 0);
          x.solve(size, size, at, rs, cs, 'N');
        });
      }
      if constexpr (!lapack::is_complex<T>)
        if (is_dense<T>(n, kEliminated)) {
          RowMajor<T> x(a, i);
          Scratch<int> pivots(n);
          item<int>(info, i) = code = lu_rows(n, n, x.data(), x.ld(), pivots.get());
          if (code) return x.put();
          const int64_t ld = padded_ld<T>(n);
          Scratch<T> y(checked_mul(ld, n));
          inverse_rows(n, x.data(), x.ld(), pivots.get(), y.get(), ld);
          return x.put(y.get(), ld);
        }
      if (n) {
        ColMajor<T> x(a, i, Access::ReadWrite);
        Scratch<int> pivots(n);
        lapack::getrf<T>(n, n, x.data(), x.ld(), pivots.get(), &code);
        if (code == 0) {
          with_work<T>(
              [&](T* work, int size) { lapack::getri<T>(n, x.data(), x.ld(), pivots.get(), work, size, &code); });
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
      if constexpr (!lapack::is_complex<T>)
        if (is_dense<T>(left ? m : n, 1)) {
          // X A = B is A^T X^T = B^T.
          RowMajor<T> y(left ? b : Transposed(b).view, i);
          int64_t rs = a.strides[a.ndim - 2], cs = a.strides[a.ndim - 1];
          const bool flipped = (trans != 'N') == left;
          if (flipped) std::swap(rs, cs);
          // The triangular matrix's other half, seen through exchanged strides, is the upper one of a lower one.
          solve_rows(upper != flipped, unit, left ? m : n, left ? n : m, a.as<T>() + batch_offset(a, i, 2), rs, cs,
                     y.data(), y.ld());
          return y.put();
        }
      // A row-major triangular matrix is the transpose of a column-major one: no copy is needed to read it.
      bool flip = a.strides[a.ndim - 1] == 1 && a.strides[a.ndim - 2] != 1 && trans != 'C';
      const Transposed other(a);
      char op = flip ? (trans == 'N' ? 'T' : 'N') : trans, side = left ? 'L' : 'R', uplo = upper != flip ? 'U' : 'L';
      char diag = unit ? 'U' : 'N';
      ColMajor<T> x(flip ? other.view : a, i, Access::Read), y(b, i, Access::ReadWrite);
      lapack::trsm<T>(side, uplo, op, diag, m, n, T(1), x.data(), x.ld(), y.data(), y.ld());
    });
  });
}

}  // namespace rl::cpu
