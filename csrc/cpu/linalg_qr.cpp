// QR by Householder's reflections, and least squares.
#include "cpu/linalg.h"
#include "cpu/linalg_layout.h"

namespace rl::cpu {
namespace {

// f(work, lwork) is asked for its best size first.
template <class T, class F> void with_work(F f) {
  T query;
  f(&query, -1);
  int size = work_size(query);
  Scratch<T> work(size);
  f(work.get(), size);
}

// Least squares of A (m, n), m >= n, by A = Q R, on our own products. Gelsy's rank is full for certain where the
// condition of R, of which the product of norms is a bound, leaves its smallest singular value above rcond times the
// largest: columns in any order have no smaller ones. Returns whether y (m, k) has become the solution.
template <class T>
bool solve_by_qr(const View& a, int64_t index, ColMajor<T>& y, int64_t k, double rcond, bool ranked, int* code) {
  const int64_t m = rows_of(a), n = cols_of(a);
  if (m < n || !is_dense<T>(n)) return false;
  const auto size = static_cast<double>(n);
  if (ranked && m < 2 * n && rcond * size * size > 4) return false;  // a bound that square matrices seldom keep
  ColMajor<T> x(a, index, Access::Read, true);
  Scratch<T> tau(n);
  qr_columns(m, n, x.data(), x.ld(), tau.get());
  auto solve = [&](int64_t columns, T* b) {
    solve_rows(true, false, n, columns, x.data(), int64_t{1}, x.ld(), b, columns);
  };
  if (ranked) {
    Scratch<T> inverse(n * n);
    std::fill_n(inverse.get(), n * n, T(0));
    for (int64_t i = 0; i < n; ++i) inverse[i * (n + 1)] = T(1);
    solve(n, inverse.get());
    double ours = 0, other = 0;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i <= j; ++i) {
        const auto r = static_cast<double>(x.at(i, j)), s = static_cast<double>(inverse[i * n + j]);
        ours += r * r, other += s * s;
      }
    if (!(2 * rcond * std::sqrt(ours) * std::sqrt(other) < 1)) return false;
  }
  for (int64_t i = 0; i < n; ++i)
    if (x.at(i, i) == T(0)) {
      *code = static_cast<int>(i) + 1;
      return true;
    }
  reflect_columns(true, m, k, n, x.data(), x.ld(), tau.get(), y.data(), y.ld());
  if (k == 1) {
    solve(1, y.data());
    return true;
  }
  Scratch<T> right(n * k);
  move_matrix(n, k, y.data(), 1, y.ld(), right.get(), k, 1);
  solve(k, right.get());
  move_matrix(n, k, right.get(), k, 1, y.data(), 1, y.ld());
  return true;
}

}  // namespace

void geqrf(const View& a, const View& tau) {
  int m = rows_of(a), n = cols_of(a);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 2.0 * m * n * std::min(m, n), [&](int64_t i) {
      ColMajor<T> x(a, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Write);
      if constexpr (!lapack::is_complex<T>) {
        if (is_dense<T>(std::min(m, n))) return qr_columns(m, n, x.data(), x.ld(), t.data());
      }
      int code = 0;
      with_work<T>([&](T* work, int size) { lapack::geqrf<T>(m, n, x.data(), x.ld(), t.data(), work, size, &code); });
    });
  });
}

void orgqr(const View& a, const View& tau) {
  int m = rows_of(a), n = cols_of(a), k = static_cast<int>(tau.sizes[tau.ndim - 1]);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 2.0 * m * n * n, [&](int64_t i) {
      ColMajor<T> x(a, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Read);
      if constexpr (!lapack::is_complex<T>) {
        if (is_dense<T>(k)) return expand_columns(m, n, k, x.data(), x.ld(), t.data());
      }
      int code = 0;
      with_work<T>(
          [&](T* work, int size) { lapack::orgqr<T>(m, n, k, x.data(), x.ld(), t.data(), work, size, &code); });
    });
  });
}

void ormqr(const View& a, const View& tau, const View& c, bool left, bool adjoint) {
  int m = rows_of(c), n = cols_of(c), k = static_cast<int>(tau.sizes[tau.ndim - 1]);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(c, 2), 2.0 * m * n * k, [&](int64_t i) {
      if constexpr (!lapack::is_complex<T>) {
        if (left && is_dense<T>(std::min(k, n))) {
          ColMajor<T> x(a, i, Access::Read), y(c, i, Access::ReadWrite);
          Column<T> t(tau, i, Access::Read);
          return reflect_columns(adjoint, m, n, k, x.data(), x.ld(), t.data(), y.data(), y.ld());
        }
      }
      // The routine restores what it writes into a, but writes: work on a copy.
      ColMajor<T> x(a, i, Access::Read, true), y(c, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Read);
      int code = 0;
      char side = left ? 'L' : 'R', op = adjoint ? (lapack::is_complex<T> ? 'C' : 'T') : 'N';
      with_work<T>([&](T* work, int size) {
        lapack::ormqr<T>(side, op, m, n, k, x.data(), x.ld(), t.data(), y.data(), y.ld(), work, size, &code);
      });
    });
  });
}

void lstsq(const View& a, const View& b, const View* rank, const View* s, const View& info, double rcond,
           LstsqDriver driver) {
  int m = rows_of(a), n = cols_of(a), k = cols_of(b), least = std::min(m, n);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = lapack::real_t<T>;
    for_batch(batch_count(a, 2), 4.0 * m * n * least, [&](int64_t i) {
      ColMajor<T> y(b, i, Access::ReadWrite);
      int code = 0, found = 0;
      if constexpr (!lapack::is_complex<T>) {
        const bool ranked = driver == LstsqDriver::Gelsy;
        if ((ranked || driver == LstsqDriver::Gels) && solve_by_qr(a, i, y, k, rcond, ranked, &code)) {
          item<int>(info, i) = code;
          if (rank) item<int64_t>(*rank, i) = n;
          return;
        }
      }
      ColMajor<T> x(a, i, Access::Read, true);
      Scratch<R> values(least);
      R cut = static_cast<R>(rcond);
      if (driver == LstsqDriver::Gels) {
        with_work<T>(
            [&](T* w, int size) { lapack::gels<T>('N', m, n, k, x.data(), x.ld(), y.data(), y.ld(), w, size, &code); });
      } else if (driver == LstsqDriver::Gelsy) {
        Scratch<int> order(n);
        std::fill_n(order.get(), n, 0);
        Scratch<R> real(2 * static_cast<int64_t>(n));
        with_work<T>([&](T* w, int size) {
          if constexpr (lapack::is_complex<T>)
            lapack::gelsy<T>(m, n, k, x.data(), x.ld(), y.data(), y.ld(), order.get(), cut, &found, w, size, real.get(),
                             &code);
          else lapack::gelsy<T>(m, n, k, x.data(), x.ld(), y.data(), y.ld(), order.get(), cut, &found, w, size, &code);
        });
      } else if (driver == LstsqDriver::Gelss) {
        Scratch<R> real(5 * static_cast<int64_t>(least));
        with_work<T>([&](T* w, int size) {
          if constexpr (lapack::is_complex<T>)
            lapack::gelss<T>(m, n, k, x.data(), x.ld(), y.data(), y.ld(), values.get(), cut, &found, w, size,
                             real.get(), &code);
          else lapack::gelss<T>(m, n, k, x.data(), x.ld(), y.data(), y.ld(), values.get(), cut, &found, w, size, &code);
        });
      } else {
        T query;
        R rquery = 1;
        int iquery = 1;
        auto run = [&](T* w, int size, R* rwork, int* iwork) {
          if constexpr (lapack::is_complex<T>)
            lapack::gelsd<T>(m, n, k, x.data(), x.ld(), y.data(), y.ld(), values.get(), cut, &found, w, size, rwork,
                             iwork, &code);
          else
            lapack::gelsd<T>(m, n, k, x.data(), x.ld(), y.data(), y.ld(), values.get(), cut, &found, w, size, iwork,
                             &code);
        };
        run(&query, -1, &rquery, &iquery);
        int size = work_size(query);
        Scratch<T> w(size);
        Scratch<R> rwork(work_size(rquery));
        Scratch<int> iwork(std::max(1, iquery));
        run(w.get(), size, rwork.get(), iwork.get());
      }
      item<int>(info, i) = code;
      if (rank) item<int64_t>(*rank, i) = found;
      if (s && (driver == LstsqDriver::Gelsd || driver == LstsqDriver::Gelss)) {
        Column<R> out(*s, i, Access::Write);
        std::copy_n(values.get(), least, out.data());
      }
    });
  });
}

}  // namespace rl::cpu
