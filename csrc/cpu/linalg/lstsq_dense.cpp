// Least squares by reflections: where A is well conditioned, a QR of it, or of its transpose, is all that is needed;
// else columns have to be exchanged, which costs more.
//
// Note [A and B side by side]
// Reflections that make a triangular factor of A are wanted of B, too: as further columns of A it has them at the price
// of a wider GEMM. Of A = Q R and C = Q^T B, min |R X - C| is the same problem, of n rows.
#include "cpu/linalg/column_major.h"
#include "cpu/linalg/lstsq.h"
#include "cpu/linalg/qr_tall.h"

namespace rl::cpu {
namespace {

// R X = C for an upper triangular factor R (n, n), or R^T X = C, for C (n, k) column by column.
template <class T> void solve_triangular(bool transposed, int64_t n, int64_t k, const T* r, int64_t ld, const T* c,
                                         int64_t ldc, T* x, int64_t ldx) {
  const int64_t rs = transposed ? ld : 1, cs = transposed ? 1 : ld;
  if (k == 1) {
    if (x != c) std::copy_n(c, n, x);
    return solve_rows(!transposed, false, n, 1, r, rs, cs, x, 1);
  }
  const int64_t padded = padded_ld<T>(k);
  Scratch<T> rows(checked_mul(n, padded));
  move_matrix(n, k, c, 1, ldc, rows.get(), padded, 1);
  solve_rows(!transposed, false, n, k, r, rs, cs, rows.get(), padded);
  move_matrix(n, k, rows.get(), padded, 1, x, 1, ldx);
}
// The number of the first zero on a diagonal, or 0.
template <class T> int first_zero(int64_t n, const T* r, int64_t ld) {
  for (int64_t i = 0; i < n; ++i)
    if (r[i * (ld + 1)] == T(0)) return static_cast<int>(i) + 1;
  return 0;
}
// How many columns of the triangular factor have a condition below 1 / rcond, told from column to column as gelsy tells
// it.
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

// Whether gelsy would find a matrix of full rank, told from the R of its plain QR. gelsy's estimates, too, are too
// large of the smallest singular value and too small of the largest: a condition below 1 / rcond is always full rank. A
// little beyond it the same estimates along R as it stands decide; of matrices so near the bound LAPACK's own answer
// changes with its rounding.
constexpr double kNear = 8;
template <class T> bool full_rank(int64_t n, const T* r, int64_t ld, double rcond) {
  if (well_conditioned(n, r, ld, rcond)) return true;
  return well_conditioned(n, r, ld, rcond / kNear) && rank_of(n, r, ld, static_cast<T>(rcond)) == n;
}

// Any shape and rank, as gelsy does it: by a QR with exchanges, whose first columns are well conditioned; what of R
// stands right of them is reflected away.
template <class T> bool solve_pivoted(LeastSquares<T>& p) {
  const int64_t m = p.m, n = p.n, k = p.k, least = std::min(m, n), ld = padded_ld<T>(m);
  if (!is_dense<T>(least)) return false;
  Scratch<T> x(checked_mul(ld, n)), tau(least);
  move_matrix(m, n, p.a, p.rs, p.cs, x.get(), 1, ld);
  if (!moderate(m, n, x.get(), ld)) return false;
  Scratch<int> order(n);
  pivoted_qr_columns(m, n, x.get(), ld, tau.get(), order.get());
  const int64_t rank = rank_of(least, x.get(), ld, static_cast<T>(p.rcond));
  p.rank = static_cast<int>(rank);
  reflect_columns(true, m, k, least, x.get(), ld, tau.get(), p.y, p.ldy);
  const int r = static_cast<int>(rank), cols = static_cast<int>(n), stride = static_cast<int>(ld);
  int failed = 0;
  if (rank < n && rank > 0)
    with_work<T>([&](T* w, int size) { lapack::tzrzf<T>(r, cols, x.get(), stride, tau.get(), w, size, &failed); });
  if (rank > 0) solve_triangular(false, rank, k, x.get(), ld, p.y, p.ldy, p.y, p.ldy);
  for (int64_t j = 0; j < k; ++j) std::fill(p.y + j * p.ldy + rank, p.y + j * p.ldy + n, T(0));
  if (rank < n && rank > 0)
    with_work<T>([&](T* w, int size) {
      lapack::ormrz<T>('L', 'T', cols, static_cast<int>(k), r, cols - r, x.get(), stride, tau.get(), p.y,
                       static_cast<int>(p.ldy), w, size, &failed);
    });
  Scratch<T> column(n);
  for (int64_t j = 0; j < k; ++j) {
    T* to = p.y + j * p.ldy;
    for (int64_t i = 0; i < n; ++i) column[order[i] - 1] = to[i];
    std::copy_n(column.get(), n, to);
  }
  return true;
}

// The problem R X = C of n rows, [R C] standing in x (n, n + k), as gelsy solves it.
template <class T> bool solve_reduced(LeastSquares<T>& p, T* x, int64_t ld) {
  const int64_t n = p.n, k = p.k;
  T* c = x + n * ld;
  for (int64_t j = 0; j < n; ++j) std::fill(x + j * ld + j + 1, x + j * ld + n, T(0));
  LeastSquares<T> small{n, n, k, x, 1, ld, c, ld, p.rcond, true};
  if (!solve_pivoted(small)) {
    if (!moderate(n, n, x, ld)) return false;
    Scratch<int> order(n);
    std::fill_n(order.get(), n, 0);
    const int size = static_cast<int>(n), stride = static_cast<int>(ld);
    with_work<T>([&](T* w, int count) {
      lapack::gelsy<T>(size, size, static_cast<int>(k), x, stride, c, stride, order.get(), static_cast<T>(p.rcond),
                       &small.rank, w, count, &small.code);
    });
  }
  p.rank = small.rank, p.code = small.code;
  move_matrix(n, k, c, 1, ld, p.y, 1, p.ldy);
  return true;
}
// The last step, from [R C] in x.
template <class T> bool finish(LeastSquares<T>& p, T* x, int64_t ld) {
  const int64_t n = p.n;
  const bool dense = is_dense<T>(n);
  if (p.ranked && (!dense || !full_rank(n, x, ld, p.rcond))) {
    // Where A is not much taller than R, gelsy's own columns are worth their price.
    return p.m < 2 * n ? solve_pivoted(p) : solve_reduced(p, x, ld);
  }
  p.rank = static_cast<int>(n);
  p.code = p.ranked ? 0 : first_zero(n, x, ld);
  if (p.code == 0) solve_triangular(false, n, p.k, x, ld, x + n * ld, ld, p.y, p.ldy);
  return true;
}

// See Note [A and B side by side].
template <class T> bool solve_tall(LeastSquares<T>& p) {
  const int64_t m = p.m, n = p.n, k = p.k, ld = padded_ld<T>(m);
  // Conditions of many times n are common where A is square: little is to be hoped for if those are too large.
  if (p.ranked && m < 2 * n && p.rcond * static_cast<double>(n) > 0.2) return solve_pivoted(p);
  Scratch<T> x(checked_mul(ld, n + k)), tau(n);
  T* right = x.get() + n * ld;
  move_matrix(m, n, p.a, p.rs, p.cs, x.get(), 1, ld);
  move_matrix(m, k, p.y, 1, p.ldy, right, 1, ld);
  qr_columns(m, n + k, n, x.get(), ld, tau.get());
  if (!p.ranked) move_matrix(m - n, k, right + n, 1, ld, p.y + n, 1, p.ldy);
  return finish(p, x.get(), ld);
}

// See Note [TSQR].
template <class T> bool solve_tall_blocks(LeastSquares<T>& p) {
  TallQr<T> qr(p.m, p.n, p.a, p.rs, p.cs);
  qr.reflect(p.y, p.k, p.ldy, !p.ranked);
  return finish(p, qr.r_factor(), qr.ld());
}

// The shortest solution of a wide system, from A^T = Q R: X = Q R^-T B.
template <class T> bool solve_underdetermined(LeastSquares<T>& p) {
  const int64_t m = p.m, n = p.n, k = p.k, ld = padded_ld<T>(n);
  Scratch<T> x(checked_mul(ld, m)), tau(m);
  move_matrix(n, m, p.a, p.cs, p.rs, x.get(), 1, ld);
  qr_columns(n, m, m, x.get(), ld, tau.get());
  if (p.ranked && !full_rank(m, x.get(), ld, p.rcond)) return solve_pivoted(p);
  p.rank = static_cast<int>(m);
  p.code = p.ranked ? 0 : first_zero(m, x.get(), ld);
  if (p.code) return true;
  solve_triangular(true, m, k, x.get(), ld, p.y, p.ldy, p.y, p.ldy);
  for (int64_t j = 0; j < k; ++j) std::fill(p.y + j * p.ldy + m, p.y + j * p.ldy + n, T(0));
  reflect_columns(false, n, k, m, x.get(), ld, tau.get(), p.y, p.ldy);
  return true;
}

constexpr int64_t kMuch = 16384;  // elements of a wide matrix from which on few rows are no obstacle

}  // namespace

template <class T> bool solve_least_squares(LeastSquares<T>& p) {
  const int64_t least = std::min(p.m, p.n);
  if (p.k == 0 || !gemm_available()) return false;
  if (p.m < p.n) return (is_dense<T>(least) || (p.n >= 16 * p.m && p.m * p.n >= kMuch)) && solve_underdetermined(p);
  if (TallQr<T>::fits(p.m, p.n)) return solve_tall_blocks(p);
  return is_dense<T>(least) && solve_tall(p);
}
template bool solve_least_squares(LeastSquares<float>&);
template bool solve_least_squares(LeastSquares<double>&);

}  // namespace rl::cpu
