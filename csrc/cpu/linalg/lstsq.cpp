// Least squares.
#include "cpu/linalg/lstsq.h"

#include "cpu/linalg/column_major.h"
#include "cpu/linalg/linalg.h"

namespace rl::cpu {

void lstsq(const View& a, const View& b, const View* rank, const View* s, const View& info, double rcond,
           LstsqDriver driver) {
  int m = rows_of(a), n = cols_of(a), k = cols_of(b), least = std::min(m, n);
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = lapack::real_t<T>;
    for_batch(batch_count(a, 2), 4.0 * m * n * least, [&](int64_t i) {
      ColMajor<T> y(b, i, Access::ReadWrite);
      int code = 0, found = 0;
      if constexpr (!lapack::is_complex<T>)
        if (driver == LstsqDriver::Gelsy || driver == LstsqDriver::Gels) {
          const T* at = a.as<T>() + batch_offset(a, i, 2);
          LeastSquares<T> p{m,
                            n,
                            k,
                            at,
                            a.strides[a.ndim - 2],
                            a.strides[a.ndim - 1],
                            y.data(),
                            y.ld(),
                            rcond,
                            driver == LstsqDriver::Gelsy};
          if (solve_least_squares(p)) {
            item<int>(info, i) = p.code;
            if (rank) item<int64_t>(*rank, i) = p.rank;
            return;
          }
        }
      const bool singular_values = driver == LstsqDriver::Gelsd || driver == LstsqDriver::Gelss;
      if (singular_values && (outlier<T>(a, i) != Outlier::None || outlier<T>(b, i) != Outlier::None)) {
        item<int>(info, i) = 1;
        return;
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
      if (s && singular_values) {
        Column<R> out(*s, i, Access::Write);
        std::copy_n(values.get(), least, out.data());
      }
    });
  });
}

}  // namespace rl::cpu
