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

}  // namespace

void geqrf(const View& a, const View& tau) {
  int m = rows_of(a), n = cols_of(a);
  if (!m || !n) return;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_batch(batch_count(a, 2), 2.0 * m * n * std::min(m, n), [&](int64_t i) {
      ColMajor<T> x(a, i, Access::ReadWrite);
      Column<T> t(tau, i, Access::Write);
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
      ColMajor<T> x(a, i, Access::Read, true), y(b, i, Access::ReadWrite);
      Scratch<R> values(least);
      int code = 0, found = 0;
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
