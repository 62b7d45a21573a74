// QR with exchanges of columns, on our own GEMM: each step takes the column that is longest without what the steps
// before took. Within a panel, the rest of the matrix is behind, but for its next row, which lengths are told by.
//
// Note [Column pivots from a sketch]
// To know the longest column at each step, the whole matrix must be read at each step. Large ones are looked at through
// a few random sums of their rows, which keep lengths and angles by and large: the columns that a sketch would take are
// one panel, inside which the exact lengths decide, and everything else is GEMM.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "cpu/gemm/microkernel_avx512.h"
#include "cpu/linalg/dense.h"
#include "cpu/linalg/vectors.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kWidth = 32;       // columns of a panel
constexpr int64_t kShare = 1 << 15;  // elements of the matrix that are a piece's share of a step

template <class T> struct Pivoted {
  int64_t m, n, ld;
  T *a, *tau;
  int* order;                           // the column of A that stands here, from 1
  Scratch<T> length, exact, reflector;  // of what is left of each column; when last computed; a reflection behind zeros
  Scratch<T> f, row;                    // (n, kWidth): the panel is A -= V F^T; the next row

  Pivoted(int64_t rows, int64_t cols, T* at, int64_t stride, T* taus, int* permutation)
      : m(rows),
        n(cols),
        ld(stride),
        a(at),
        tau(taus),
        order(permutation),
        length(n),
        exact(n),
        reflector(m),
        f(n * kWidth),
        row(n) {
    for (int64_t j = 0; j < n; ++j) order[j] = static_cast<int>(j) + 1;
    measure(0, n, 0, false);
  }
  // Lengths from row `from` on, of all columns or of those that are marked by a negative one.
  void measure(int64_t first, int64_t last, int64_t from, bool marked) {
    parallel_for(first, last, std::max<int64_t>(1, kShare / (m - from + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j)
        if (!marked || length[j] < T(0)) length[j] = exact[j] = std::sqrt(sum_of_squares(m - from, a + j * ld + from));
    });
  }
  void exchange(int64_t i, int64_t with, int64_t done) {
    std::swap_ranges(a + i * ld, a + i * ld + m, a + with * ld);
    for (int64_t q = 0; q < done; ++q) std::swap(f[q * n + i], f[q * n + with]);
    std::swap(order[i], order[with]);
    length[with] = length[i], exact[with] = exact[i];
  }
  // The columns from p on; returns how many were done: at most `most`, and fewer where cancellation has left a length
  // without digits.
  int64_t panel(int64_t p, int64_t most) {
    const T least = std::sqrt(std::numeric_limits<T>::epsilon() / 2);
    T t[kWidth], back[kWidth];
    bool lost = false;
    int64_t q = 0;
    for (; q < most && !lost; ++q) {
      const int64_t i = p + q, next = i + 1, rest = n - next;
      const int64_t longest = std::max_element(length.get() + i, length.get() + n) - length.get();
      if (longest != i) exchange(i, longest, q);
      T *v = a + i * ld, *column = f.get() + q * n;
      add_columns(m - i, q, a + p * ld + i, ld, f.get() + i, n, T(-1), v + i);
      tau[i] = reflect(m - i, v + i);
      if (rest == 0) return q + 1;
      const T beta = v[i];
      v[i] = T(1);
      dot_columns(m - i, q, a + p * ld + i, ld, v + i, t);
      for (int64_t r = 0; r <= q; ++r) back[r] = -a[(p + r) * ld + i];
      const int64_t low = i / Vec<T>::W * Vec<T>::W;  // whole cache lines, where columns begin on them
      std::fill(reflector.get() + low, reflector.get() + i, T(0));
      std::copy(v + i, v + m, reflector.get() + i);
      Scratch<int> failed((rest + 63) / 64);
      // Columns know nothing of each other: dot products, the next row and lengths in one go.
      const int64_t grain = std::max<int64_t>(64, kShare / (m - i) / 64 * 64);
      parallel_for(0, rest, grain, [&](int64_t begin, int64_t end) {
        const int64_t c = next + begin, columns = end - begin;
        dot_columns(m - low, columns, a + c * ld + low, ld, reflector.get() + low, column + c);
        add_columns(columns, q, f.get() + c, n, t, int64_t{1}, T(-1), column + c);
        scale_vector(columns, tau[i], column + c);
        int bad = 0;
        for (int64_t j = c; j < c + columns; ++j) row[j] = a[j * ld + i];
        add_columns(columns, q + 1, f.get() + c, n, back, int64_t{1}, T(1), row.get() + c);
        for (int64_t j = c; j < c + columns; ++j) {
          const T x = a[j * ld + i] = row[j];
          if (length[j] == T(0)) continue;
          const T part = std::fabs(x) / length[j], left = std::max(T(0), (1 + part) * (1 - part));
          const T since = length[j] / exact[j];
          if (left * since * since <= least) length[j] = T(-1), bad = 1;
          else length[j] *= std::sqrt(left);
        }
        failed[begin / 64] = bad;
      });
      for (int64_t b = 0; b < rest; b += grain) lost |= failed[b / 64] != 0;
      v[i] = beta;
    }
    return q;
  }
  void run() {
    const int64_t least = std::min(m, n);
    for (int64_t p = 0, done; p < least; p += done) {
      done = panel(p, std::min(kWidth, least - p));
      const int64_t first = p + done;
      if (first >= n || first >= m) continue;
      multiply(m - first, n - first, done, T(-1), a + p * ld + first, int64_t{1}, ld, f.get() + first, n, int64_t{1},
               T(1), a + first * (ld + 1), ld);
      measure(first, n, first, true);
    }
  }
};

constexpr int64_t kSketched = 4 * kWidth;  // columns from which on it is profitable
constexpr int64_t kSums = kWidth + 8;      // rows of a sketch

// Columns of `rows` elements, at a with stride ld, in another order, counted from 1.
template <class T> void reorder(int64_t rows, int64_t n, T* a, int64_t ld, const int* order) {
  Scratch<int64_t> moved(n);
  int64_t count = 0;
  for (int64_t j = 0; j < n; ++j)
    if (order[j] != j + 1) moved[count++] = j;
  Scratch<T> copies(rows * count);
  for (int64_t c = 0; c < count; ++c) std::copy_n(a + (order[moved[c]] - 1) * ld, rows, copies.get() + c * rows);
  for (int64_t c = 0; c < count; ++c) std::copy_n(copies.get() + c * rows, rows, a + moved[c] * ld);
}
void reorder(int64_t n, int* pivots, const int* order) {
  Scratch<int> copy(n);
  std::copy_n(pivots, n, copy.get());
  for (int64_t j = 0; j < n; ++j) pivots[j] = copy[order[j] - 1];
}

// See Note [Column pivots from a sketch].
template <class T> void sketched(int64_t m, int64_t n, T* a, int64_t ld, T* tau, int* order) {
  for (int64_t j = 0; j < n; ++j) order[j] = static_cast<int>(j) + 1;
  Scratch<T> signs(kSums * m), sketch(kSums * n), unused(kSums);
  uint64_t state = 0x9e3779b97f4a7c15u;  // the same sums for every matrix: one result for one matrix
  for (int64_t i = 0; i < kSums * m; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    signs[i] = static_cast<T>(static_cast<int64_t>(state) >> 40) / (1 << 23);
  }
  Scratch<int> chosen(n);
  // The columns from p on, and their first rows, in the order that was chosen.
  auto take = [&](int64_t p, int64_t count, int64_t rows) {
    reorder(rows, count, a + p * ld, ld, chosen.get());
    reorder(count, order + p, chosen.get());
  };
  int64_t p = 0;
  for (int64_t done; std::min(m, n) - p >= kSketched; p += done) {
    const int64_t rows = m - p, rest = n - p;
    T* corner = a + p * (ld + 1);
    multiply(kSums, rest, rows, T(1), signs.get(), int64_t{1}, kSums, corner, int64_t{1}, ld, T(0), sketch.get(),
             kSums);
    done = Pivoted<T>(kSums, rest, sketch.get(), kSums, unused.get(), chosen.get()).panel(0, kWidth);
    take(p, rest, m);
    Pivoted<T>(rows, done, corner, ld, tau + p, chosen.get()).run();
    take(p, done, p);  // the rows above follow
    reflect_columns(true, rows, rest - done, done, corner, ld, tau + p, corner + done * ld, ld);
  }
  Pivoted<T>(m - p, n - p, a + p * (ld + 1), ld, tau + p, chosen.get()).run();
  take(p, n - p, p);
}

// y = R x, and back = R^T y, for a triangular factor R, in blocks of columns.
template <class T> void triangular_products(int64_t n, const T* r, int64_t ld, const T* x, T* y, T* back) {
  constexpr int64_t W = Vec<T>::W;
  std::fill_n(y, n, T(0));
  for (int64_t j0 = 0; j0 < n; j0 += W) {
    const int64_t w = std::min(W, n - j0);
    add_columns(j0, w, r + j0 * ld, ld, x + j0, int64_t{1}, T(1), y);
    for (int64_t j = j0; j < j0 + w; ++j) add_scaled(j + 1 - j0, x[j], r + j * ld + j0, y + j0);
  }
  for (int64_t j0 = 0; j0 < n; j0 += W) {
    const int64_t w = std::min(W, n - j0);
    dot_columns(j0, w, r + j0 * ld, ld, y, back + j0);
    for (int64_t j = j0; j < j0 + w; ++j)
      for (int64_t i = j0; i <= j; ++i) back[j] += r[j * ld + i] * y[i];
  }
}
// The largest singular value of a triangular factor R, and the smallest, come from the directions that R^T R and its
// inverse turn a vector into. Estimates are too small of the one and too large of the other: after two iterations they
// may be far off where values lie close together, after eight they are not.
template <class T> bool is_conditioned(int64_t n, const T* r, int64_t ld, double rcond) {
  Scratch<T> x(n), y(n);
  auto start = [&] {
    for (int64_t i = 0; i < n; ++i) x[i] = T(1) + static_cast<T>(i * 7919 % 1009) / 1009;
    for (int64_t i = 0; i < n; i += 2) x[i] = -x[i];
  };
  auto normalize = [&] { scale_vector(n, T(1) / std::sqrt(sum_of_squares(n, x.get())), x.get()); };
  start();
  T largest = 0;
  for (int iteration = 0; iteration < 4; ++iteration) {
    normalize();
    triangular_products(n, r, ld, x.get(), y.get(), x.get());
    largest = std::max(largest, std::sqrt(sum_of_squares(n, y.get())));
  }
  const double least = rcond * static_cast<double>(largest);  // what the smallest must be
  start();
  for (int iteration = 1; iteration <= 8; ++iteration) {
    normalize();
    std::copy_n(x.get(), n, y.get());
    solve_rows(false, false, n, 1, r, ld, 1, y.get(), 1);  // R^T y = x
    const double smallest = 1 / std::sqrt(static_cast<double>(sum_of_squares(n, y.get())));
    if (!(smallest >= least && smallest > 0)) return false;
    const double margin = iteration < 3 ? 100 : iteration < 5 ? 5 : iteration < 8 ? 2 : 1.3;
    if (iteration >= 2 && smallest >= margin * least) return true;
    std::copy_n(y.get(), n, x.get());
    solve_rows(true, false, n, 1, r, 1, ld, x.get(), 1);  // R x = y
  }
  return false;
}

}  // namespace

template <class T> bool well_conditioned(int64_t n, const T* r, int64_t ld, double rcond) {
  return is_conditioned(n, r, ld, rcond);
}
template <class T> void pivoted_qr_columns(int64_t m, int64_t n, T* a, int64_t ld, T* tau, int* order) {
  std::min(m, n) < kSketched ? Pivoted<T>(m, n, a, ld, tau, order).run() : sketched(m, n, a, ld, tau, order);
}

template bool well_conditioned(int64_t, const float*, int64_t, double);
template bool well_conditioned(int64_t, const double*, int64_t, double);
template void pivoted_qr_columns(int64_t, int64_t, float*, int64_t, float*, int*);
template void pivoted_qr_columns(int64_t, int64_t, double*, int64_t, double*, int*);

}  // namespace rl::RL_ISA
