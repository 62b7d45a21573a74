// Symmetric and Hermitian matrices: Cholesky, Bunch and Kaufman's LDL, eigenvalues.
#include <utility>

#include "cpu/linalg/column_major.h"
#include "cpu/linalg/linalg.h"
#include "cpu/linalg/tiny.h"

namespace rl::cpu {
namespace {

template <class T> T conjugate(T x) {
  if constexpr (lapack::is_complex<T>) return std::conj(x);
  else return x;
}

template <class F> void each_row(int64_t n, F f) {
  parallel_for(0, n, std::max<int64_t>(1, 65536 / n), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) f(r);
  });
}

// Eigenvalues of the lower half of x by tridiagonalization, and eigenvectors where wanted: those of the diagonals,
// reflected back.
template <class T> int eigh_tridiagonal(int n, const ColMajor<T>& x, T* values, bool vectors) {
  const int64_t ld = padded_ld<T>(n);
  Scratch<T> a(checked_mul(ld, n)), e(n), tau(n);
  for (int64_t j = 0; j < n; ++j) {
    T* column = a.get() + j * ld;  // with zeros before and behind its own elements
    std::fill_n(column, j, T(0));
    std::copy(&x.at(j, j), &x.at(0, j) + n, column + j);
    std::fill(column + n, column + ld, T(0));
  }
  tridiagonal_columns(n, a.get(), ld, values, e.get(), tau.get());
  int code = 0;
  if (!vectors) {
    lapack::sterf<T>(n, values, e.get(), &code);
    return code;
  }
  if ((code = divide_columns(n, values, e.get(), x.data(), x.ld()))) return code;
  reflect_columns(false, n - 1, n, n - 1, a.get() + 1, ld, tau.get(), x.data() + 1, x.ld());
  return code;
}

}  // namespace

void cholesky(const View& a, const View& info, bool upper) {
  int n = rows_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), n * 1.0 * n * n / 3, [&](int64_t i) {
      int code = 0;
      if (n && n <= kTiny) {
        T* at = a.as<T>() + batch_offset(a, i, 2);
        int64_t rs = a.strides[a.ndim - 2], cs = a.strides[a.ndim - 1];
        if (upper) std::swap(rs, cs);  // U^H, but for its signs, is L
        return with_size(n, [&](auto size) {
          Tiny<T> x(at, rs, cs, size);
          if (upper) x.conjugate_all(size);
          item<int>(info, i) = x.cholesky(size);
          if (upper) x.conjugate_all(size);
          x.put(at, rs, cs, size);
        });
      }
      if constexpr (!lapack::is_complex<T>)
        if (is_dense<T>(n, kEliminated)) {
          // L column by column is U row by row.
          T* at = a.as<T>() + batch_offset(a, i, 2);
          const int64_t rs = a.strides[a.ndim - (upper ? 2 : 1)], cs = a.strides[a.ndim - (upper ? 1 : 2)];
          const int64_t ld = padded_ld<T>(n);
          Scratch<T> x(checked_mul(ld, n));
          if (cs != 1) move_matrix(n, n, at, rs, cs, x.get(), ld, 1);
          else each_row(n, [&](int64_t r) { std::copy(at + r * rs + r, at + r * rs + n, x.get() + r * (ld + 1)); });
          item<int>(info, i) = cholesky_rows(n, x.get(), ld);
          each_row(n, [&](int64_t r) {
            T *from = x.get() + r * ld, *to = cs == 1 ? at + r * rs : from;
            std::fill_n(to, r, T(0));
            if (cs == 1) std::copy(from + r, from + n, to + r);
          });
          if (cs != 1) move_matrix(n, n, x.get(), ld, 1, at, rs, cs);
          return;
        }
      if (n) {
        ColMajor<T> x(a, i, Access::ReadWrite);
        lapack::potrf<T>(upper ? 'U' : 'L', n, x.data(), x.ld(), &code);
        for (int64_t c = 0; c < n; ++c)
          for (int64_t r = upper ? c + 1 : 0; r < (upper ? n : c); ++r) x.at(r, c) = T(0);
      }
      item<int>(info, i) = code;
    });
  });
}

void cholesky_inverse(const View& a, const View& info, bool upper) {
  int n = rows_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), n * 1.0 * n * n, [&](int64_t i) {
      int code = 0;
      if constexpr (!lapack::is_complex<T>)
        if (is_dense<T>(n, 1)) {
          // The inverse of L L^T by two systems, if no element of the diagonal is zero.
          RowMajor<T> x(a, i);
          const T* l = x.data();
          for (int j = n - 1; j >= 0; --j) code = l[j * (x.ld() + 1)] == T(0) ? j + 1 : code;
          item<int>(info, i) = code;
          if (code) return;
          Scratch<T> y(checked_mul(n, n));
          std::fill(y.get(), y.get() + int64_t{n} * n, T(0));
          for (int64_t j = 0; j < n; ++j) y[j * n + j] = T(1);
          solve_rows(false, false, n, n, l, upper ? 1 : x.ld(), upper ? x.ld() : 1, y.get(), n);
          solve_rows(true, false, n, n, l, upper ? x.ld() : 1, upper ? 1 : x.ld(), y.get(), n);
          return x.put(y.get(), n);
        }
      if (n) {
        ColMajor<T> x(a, i, Access::ReadWrite);
        lapack::potri<T>(upper ? 'U' : 'L', n, x.data(), x.ld(), &code);
        for (int64_t c = 0; c < n; ++c)
          for (int64_t r = 0; r < c; ++r)
            if (upper) x.at(c, r) = conjugate(x.at(r, c));
            else x.at(r, c) = conjugate(x.at(c, r));
      }
      item<int>(info, i) = code;
    });
  });
}

void cholesky_solve(const View& factor, const View& b, bool upper) {
  int n = rows_of(factor), k = cols_of(b);
  if (!n || !k) return;
  visit_lapack(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(b, 2), 2.0 * n * n * k, [&](int64_t i) {
      if constexpr (!lapack::is_complex<T>)
        if (is_dense<T>(n, 1)) {
          RowMajor<T> y(b, i);
          const T* l = factor.as<T>() + batch_offset(factor, i, 2);
          int64_t rs = factor.strides[factor.ndim - 2], cs = factor.strides[factor.ndim - 1];
          if (upper) std::swap(rs, cs);
          solve_rows(false, false, n, k, l, rs, cs, y.data(), y.ld());
          solve_rows(true, false, n, k, l, cs, rs, y.data(), y.ld());
          return y.put();
        }
      ColMajor<T> x(factor, i, Access::Read), y(b, i, Access::ReadWrite);
      int code = 0;
      lapack::potrs<T>(upper ? 'U' : 'L', n, k, x.data(), x.ld(), y.data(), y.ld(), &code);
    });
  });
}

void ldl_factor(const View& a, const View& pivots, const View& info, bool hermitian) {
  int n = rows_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), n * 1.0 * n * n / 3, [&](int64_t i) {
      int code = 0;
      if (n) {
        ColMajor<T> x(a, i, Access::ReadWrite);
        Column<int> p(pivots, i, Access::Write);
        auto run = [&](T* work, int size) {
          if (hermitian) lapack::hetrf<T>('L', n, x.data(), x.ld(), p.data(), work, size, &code);
          else lapack::sytrf<T>('L', n, x.data(), x.ld(), p.data(), work, size, &code);
        };
        T query;
        run(&query, -1);
        int size = work_size(query);
        Scratch<T> work(size);
        run(work.get(), size);
      }
      item<int>(info, i) = code;
    });
  });
}

void ldl_solve(const View& ld, const View& pivots, const View& b, bool hermitian) {
  int n = rows_of(ld), k = cols_of(b);
  if (!n || !k) return;
  visit_lapack(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(b, 2), 2.0 * n * n * k, [&](int64_t i) {
      ColMajor<T> x(ld, i, Access::Read), y(b, i, Access::ReadWrite);
      Column<int> p(pivots, i, Access::Read);
      for (int j = 0; j < n; ++j) {  // pairs of negative pivots mark 2x2 blocks
        int v = p.data()[j];
        CHECK(v != 0 && v <= n && v >= -n, Runtime, "ldl_solve: pivots must be between 1 and ", n,
              " in magnitude, got ", v);
        if (v < 0) {
          CHECK(j + 1 < n && p.data()[j + 1] < 0 && p.data()[j + 1] >= -n, Runtime,
                "ldl_solve: a negative pivot stands alone");
          ++j;
        }
      }
      int code = 0;
      if (hermitian) lapack::hetrs<T>('L', n, k, x.data(), x.ld(), p.data(), y.data(), y.ld(), &code);
      else lapack::sytrs<T>('L', n, k, x.data(), x.ld(), p.data(), y.data(), y.ld(), &code);
    });
  });
}

void eigh(const View& a, const View& values, const View& info, bool upper, bool vectors) {
  int n = rows_of(a);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = lapack::real_t<T>;
    for_batch(batch_count(a, 2), (vectors ? 9.0 : 2.0) * n * n * n, [&](int64_t i) {
      int code = 0;
      if (n) {
        ColMajor<T> x(a, i, Access::ReadWrite);
        Column<R> w(values, i, Access::Write);
        if constexpr (!lapack::is_complex<T>)
          if (!upper && is_dense<T>(n) && moderate(n, n, x.data(), x.ld(), true)) {
            item<int>(info, i) = eigh_tridiagonal(n, x, w.data(), vectors);
            return;
          }
        auto run = [&](T* work, int lwork, R* rwork, int lrwork, int* iwork, int liwork) {
          char job = vectors ? 'V' : 'N', uplo = upper ? 'U' : 'L';
          if constexpr (lapack::is_complex<T>)
            lapack::syevd<T>(job, uplo, n, x.data(), x.ld(), w.data(), work, lwork, rwork, lrwork, iwork, liwork,
                             &code);
          else lapack::syevd<T>(job, uplo, n, x.data(), x.ld(), w.data(), work, lwork, iwork, liwork, &code);
        };
        T query;
        R rquery = 1;
        int iquery;
        run(&query, -1, &rquery, -1, &iquery, -1);
        int size = work_size(query), rsize = work_size(rquery), isize = std::max(1, iquery);
        Scratch<T> work(size);
        Scratch<R> rwork(rsize);
        Scratch<int> iwork(isize);
        run(work.get(), size, rwork.get(), rsize, iwork.get(), isize);
      }
      item<int>(info, i) = code;
    });
  });
}

}  // namespace rl::cpu
