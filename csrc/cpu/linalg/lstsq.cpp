// Least squares.
#include "cpu/linalg/lstsq.h"

#include "cpu/linalg/column_major.h"
#include "cpu/linalg/linalg.h"

namespace rl::cpu {

namespace {

// One system, in LAPACK's terms: x (m, n) is overwritten, y (max(m, n), k) becomes the solution.
template <class T> struct Lapack {
  using R = lapack::real_t<T>;
  static constexpr bool kComplex = lapack::is_complex<T>;
  int m, n, k;
  T* x;
  int ldx;
  T* y;
  int ldy;
  R cut;  // singular values below cut times the largest count as 0
  R* values;
  int rank = 0, code = 0;

  void gels() {
    with_work<T>([&](T* w, int size) { lapack::gels<T>('N', m, n, k, x, ldx, y, ldy, w, size, &code); });
  }
  void gelsy() {
    Scratch<int> order(n);
    std::fill_n(order.get(), n, 0);
    Scratch<R> real(2 * static_cast<int64_t>(n));
    with_work<T>([&](T* w, int size) {
      if constexpr (kComplex)
        lapack::gelsy<T>(m, n, k, x, ldx, y, ldy, order.get(), cut, &rank, w, size, real.get(), &code);
      else lapack::gelsy<T>(m, n, k, x, ldx, y, ldy, order.get(), cut, &rank, w, size, &code);
    });
  }
  void gelss() {
    Scratch<R> real(5 * static_cast<int64_t>(std::min(m, n)));
    with_work<T>([&](T* w, int size) {
      if constexpr (kComplex) lapack::gelss<T>(m, n, k, x, ldx, y, ldy, values, cut, &rank, w, size, real.get(), &code);
      else lapack::gelss<T>(m, n, k, x, ldx, y, ldy, values, cut, &rank, w, size, &code);
    });
  }
  void gelsd() {
    auto run = [&](T* w, int size, R* rwork, int* iwork) {
      if constexpr (kComplex)
        lapack::gelsd<T>(m, n, k, x, ldx, y, ldy, values, cut, &rank, w, size, rwork, iwork, &code);
      else lapack::gelsd<T>(m, n, k, x, ldx, y, ldy, values, cut, &rank, w, size, iwork, &code);
    };
    T query;
    R rquery = 1;
    int iquery = 1;
    run(&query, -1, &rquery, &iquery);
    const int size = work_size(query);
    Scratch<T> w(size);
    Scratch<R> rwork(work_size(rquery));
    Scratch<int> iwork(std::max(1, iquery));
    run(w.get(), size, rwork.get(), iwork.get());
  }
  void solve(LstsqDriver driver) {
    switch (driver) {
      case LstsqDriver::Gels: return gels();
      case LstsqDriver::Gelsy: return gelsy();
      case LstsqDriver::Gelss: return gelss();
      case LstsqDriver::Gelsd: return gelsd();
    }
  }
};

// Real systems by our own QR, where no singular values are asked for; false if it leaves the system to LAPACK.
template <class T>
bool solve_by_qr(const View& a, int64_t i, ColMajor<T>& y, int k, double rcond, bool ranked, int* code, int* rank) {
  LeastSquares<T> p{.m = rows_of(a),
                    .n = cols_of(a),
                    .k = k,
                    .a = a.as<T>() + batch_offset(a, i, 2),
                    .rs = a.strides[a.ndim - 2],
                    .cs = a.strides[a.ndim - 1],
                    .y = y.data(),
                    .ldy = y.ld(),
                    .rcond = rcond,
                    .ranked = ranked};
  if (!solve_least_squares(p)) return false;
  *code = p.code;
  *rank = p.rank;
  return true;
}

}  // namespace

void lstsq(const View& a, const View& b, const View* rank, const View* s, const View& info, double rcond,
           LstsqDriver driver) {
  const int m = rows_of(a), n = cols_of(a), k = cols_of(b), least = std::min(m, n);
  const bool by_svd = driver == LstsqDriver::Gelsd || driver == LstsqDriver::Gelss;
  visit_lapack(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = lapack::real_t<T>;
    for_batch(batch_count(a, 2), 4.0 * m * n * least, [&](int64_t i) {
      ColMajor<T> y(b, i, Access::ReadWrite);
      auto done = [&](int code, int found) {
        item<int>(info, i) = code;
        if (rank) item<int64_t>(*rank, i) = found;
      };
      if constexpr (!lapack::is_complex<T>) {
        int code = 0, found = 0;
        if (!by_svd && solve_by_qr(a, i, y, k, rcond, driver == LstsqDriver::Gelsy, &code, &found))
          return done(code, found);
      }
      if (by_svd && (outlier<T>(a, i) != Outlier::None || outlier<T>(b, i) != Outlier::None)) {
        item<int>(info, i) = 1;
        return;
      }
      ColMajor<T> x(a, i, Access::Read, true);
      Scratch<R> values(least);
      Lapack<T> system{.m = m,
                       .n = n,
                       .k = k,
                       .x = x.data(),
                       .ldx = x.ld(),
                       .y = y.data(),
                       .ldy = y.ld(),
                       .cut = static_cast<R>(rcond),
                       .values = values.get()};
      system.solve(driver);
      done(system.code, system.rank);
      if (s && by_svd) {
        Column<R> out(*s, i, Access::Write);
        std::copy_n(values.get(), least, out.data());
      }
    });
  });
}

}  // namespace rl::cpu
