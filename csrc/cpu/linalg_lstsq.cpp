// Least squares.
#include <limits>

#include "cpu/linalg.h"
#include "cpu/linalg_layout.h"

namespace rl::cpu {
namespace {

// The upper triangle of x against the first n rows of y.
template <class T> void solve_upper(int64_t n, int64_t k, const T* x, int64_t ld, const ColMajor<T>& y) {
  if (k == 1) return solve_rows(true, false, n, 1, x, 1, ld, y.data(), 1);
  Scratch<T> right(checked_mul(n, k));
  move_matrix(n, k, y.data(), 1, y.ld(), right.get(), k, 1);
  solve_rows(true, false, n, k, x, 1, ld, right.get(), k);
  move_matrix(n, k, right.get(), k, 1, y.data(), 1, y.ld());
}

// Least squares of A (m, n), m >= n, by A = Q R. Gelsy's rank is full where the condition of R is below 1 / rcond:
// what it estimates of columns in another order is no worse. Returns whether y (m, k) has become the solution.
template <class T>
bool solve_by_qr(const View& a, int64_t index, const ColMajor<T>& y, int64_t k, double rcond, bool ranked, int* code) {
  const int64_t m = rows_of(a), n = cols_of(a);
  if (m < n || !is_dense<T>(n)) return false;
  // Conditions of many times n are common where A is square: little is to be hoped for if those are too large.
  if (ranked && m < 2 * n && rcond * static_cast<double>(n) > 0.2) return false;
  ColMajor<T> x(a, index, Access::Read, true);
  Scratch<T> tau(n);
  qr_columns(m, n, x.data(), x.ld(), tau.get());
  if (ranked) {
    // What estimates may be wrong by: after few turns by the square root of n, at the most, after many by little.
    auto certain = [&](int turns, double margin) {
      const Extremes<T> values = triangle_extremes(n, x.data(), x.ld(), turns);
      return static_cast<double>(values.smallest) >= margin * rcond * static_cast<double>(values.largest);
    };
    if (!certain(2, 1000) && !certain(8, 1.3)) return false;
  }
  for (int64_t i = 0; i < n; ++i)
    if (x.at(i, i) == T(0)) {
      *code = static_cast<int>(i) + 1;
      return true;
    }
  reflect_columns(true, m, k, n, x.data(), x.ld(), tau.get(), y.data(), y.ld());
  solve_upper(n, k, x.data(), x.ld(), y);
  return true;
}

// How many columns of the triangle have a condition below 1 / rcond, told from column to column as gelsy tells it.
template <class T> int64_t rank_of(int64_t n, const T* r, int64_t ld, T rcond) {
  Scratch<T> low(n), high(n);
  low[0] = high[0] = T(1);
  T smallest = std::fabs(r[0]), largest = smallest;
  if (!(smallest > T(0))) return 0;
  for (int64_t i = 1; i < n; ++i) {
    const T* column = r + i * ld;
    T less, more, s1, c1, s2, c2;
    const int size = static_cast<int>(i);
    lapack::laic1<T>(2, size, low.get(), smallest, column, column[i], &less, &s1, &c1);
    lapack::laic1<T>(1, size, high.get(), largest, column, column[i], &more, &s2, &c2);
    if (!(more * rcond <= less)) return i;
    for (int64_t j = 0; j < i; ++j) low[j] *= s1, high[j] *= s2;
    low[i] = c1, high[i] = c2;
    smallest = less, largest = more;
  }
  return n;
}

// The same for any shape and rank, as gelsy does it: by a QR with exchanges, whose first columns are well conditioned;
// what of R stands right of them is reflected away. Returns whether the numbers were such that it could.
template <class T>
bool solve_pivoted(const View& a, int64_t index, const ColMajor<T>& y, int64_t k, double rcond, int* found) {
  const int64_t m = rows_of(a), n = cols_of(a), least = std::min(m, n), ld = line_ld<T>(m);
  if (!is_dense<T>(least) || k == 0) return false;
  Scratch<T> x(checked_mul(ld, n)), tau(least);
  move_matrix(m, n, a.as<T>() + batch_offset(a, index, 2), a.strides[a.ndim - 2], a.strides[a.ndim - 1], x.get(), 1,
              ld);
  T largest = 0;
  bool finite = true;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      const T size = std::fabs(x[j * ld + i]);
      finite &= size <= std::numeric_limits<T>::max();
      largest = std::max(largest, size);
    }
  const T limit = sizeof(T) == 4 ? T(1e12) : T(1e120);
  if (!finite || !(largest < limit && largest > 1 / limit)) return false;  // gelsy scales them
  Scratch<int> order(n);
  pivoted_qr_columns(m, n, x.get(), ld, tau.get(), order.get());
  const int64_t rank = rank_of(least, x.get(), ld, static_cast<T>(rcond));
  *found = static_cast<int>(rank);
  reflect_columns(true, m, k, least, x.get(), ld, tau.get(), y.data(), y.ld());
  const int r = static_cast<int>(rank), cols = static_cast<int>(n), stride = static_cast<int>(ld);
  int failed = 0;
  if (rank < n && rank > 0)
    with_work<T>([&](T* w, int size) { lapack::tzrzf<T>(r, cols, x.get(), stride, tau.get(), w, size, &failed); });
  if (rank > 0) solve_upper(rank, k, x.get(), ld, y);
  for (int64_t j = 0; j < k; ++j) std::fill(&y.at(0, j) + rank, &y.at(0, j) + n, T(0));
  if (rank < n && rank > 0)
    with_work<T>([&](T* w, int size) {
      lapack::ormrz<T>('L', 'T', cols, static_cast<int>(k), r, cols - r, x.get(), stride, tau.get(), y.data(), y.ld(),
                       w, size, &failed);
    });
  Scratch<T> column(n);
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t i = 0; i < n; ++i) column[order[i] - 1] = y.at(i, j);
    std::copy_n(column.get(), n, &y.at(0, j));
  }
  return true;
}

}  // namespace

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
        found = n;
        if ((ranked || driver == LstsqDriver::Gels) &&
            (solve_by_qr(a, i, y, k, rcond, ranked, &code) || (ranked && solve_pivoted(a, i, y, k, rcond, &found)))) {
          item<int>(info, i) = code;
          if (rank) item<int64_t>(*rank, i) = found;
          return;
        }
        found = 0;
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
