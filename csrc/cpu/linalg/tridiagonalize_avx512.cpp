// Symmetric matrices to tridiagonal form and others to bidiagonal form, by reflections from both sides, in panels: the
// part of a panel's reflections that the next one needs at once is a GEMV, and the rest a GEMM.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/parallel.h"
#include "cpu/gemm/microkernel_avx512.h"
#include "cpu/linalg/dense.h"
#include "cpu/linalg/vectors.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kWidth = 32;       // columns of a panel
constexpr int64_t kShare = 1 << 15;  // elements of the matrix that are a chunk's share of a GEMV
constexpr int64_t kMostShares = 16;
constexpr int64_t kUpdate = 96;  // columns of the rest that are one piece of a panel's update

// Columns c0 to c1 of the lower half of a symmetric matrix, times v, into y, and its mirror image in the upper half.
// Elements in y from the vector that has row c0 on are written. Eight columns share the loads of v and y through
// registers. Rows from n up to the next whole vector must be zero in all.
template <class T> void multiply_strip(int64_t n, int64_t c0, int64_t c1, const T* a, int64_t ld, const T* v, T* y) {
  using V = Vec<T>;
  constexpr int64_t W = V::W;
  auto some = [&](auto columns, int64_t c) {
    constexpr int N = decltype(columns)::value;
    typename V::Reg x[N], sums[N];
    const T* from[N];
#pragma GCC unroll 8
    for (int q = 0; q < N; ++q) x[q] = V::all(v[c + q]), sums[q] = V::zero(), from[q] = a + (c + q) * ld;
    int64_t i = c / W * W;
    for (; i <= c + N - 1 && i < n; i += W) {  // vectors that the diagonal passes through
      auto sum = V::load(y + i);
      const auto other = V::load(v + i);
#pragma GCC unroll 8
      for (int q = 0; q < N; ++q) {
        const auto below = static_cast<typename V::Mask>(~first_lanes<T>(c + q + 1 - i));
        const auto elements = V::load(from[q] + i, below);
        sum = V::fma(x[q], elements, sum);
        sums[q] = V::fma(other, elements, sums[q]);
      }
      V::store(y + i, sum);
    }
    for (; i < n; i += W) {
      auto sum = V::load(y + i);
      const auto other = V::load(v + i);
#pragma GCC unroll 8
      for (int q = 0; q < N; ++q) {
        const auto elements = V::load(from[q] + i);
        sum = V::fma(x[q], elements, sum);
        sums[q] = V::fma(other, elements, sums[q]);
      }
      V::store(y + i, sum);
    }
#pragma GCC unroll 8
    for (int q = 0; q < N; ++q) y[c + q] += V::sum(sums[q]) + from[q][c + q] * v[c + q];
  };
  int64_t c = c0;
  for (; c + 8 <= c1; c += 8) some(std::integral_constant<int, 8>{}, c);
  for (; c < c1; ++c) some(std::integral_constant<int, 1>{}, c);
}
// y = A v for the rows and columns from `first` on of a symmetric matrix. Strips of equal area each have sums of their
// own, which are added in order. `sums` has room for kMostShares columns.
template <class T>
void multiply_symmetric(int64_t n, int64_t first, const T* a, int64_t ld, const T* v, T* y, T* sums) {
  const int64_t m = n - first, strips = std::clamp<int64_t>(m * m / 2 / kShare, 1, kMostShares);
  auto bound = [&](int64_t s) {
    if (s == strips) return n;
    const double left = 1.0 - static_cast<double>(s) / static_cast<double>(strips);
    return first + static_cast<int64_t>(static_cast<double>(m) * (1.0 - std::sqrt(left))) / 8 * 8;
  };
  const int64_t from = first / Vec<T>::W * Vec<T>::W;
  parallel_for(0, strips, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      T* to = s == 0 ? y : sums + s * ld;
      const int64_t c0 = s == 0 ? from : bound(s) / Vec<T>::W * Vec<T>::W;
      std::fill(to + c0, to + ld, T(0));
      multiply_strip(n, bound(s), bound(s + 1), a, ld, v, to);
    }
  });
  for (int64_t s = 1; s < strips; ++s) {
    const int64_t c0 = bound(s);
    add_scaled(n - c0, T(1), sums + s * ld + c0, y + c0);
  }
}

template <class T> void tridiagonal(int64_t n, T* a, int64_t ld, T* d, T* e, T* tau) {
  Scratch<T> w(ld * kWidth), sums(ld * kMostShares);
  T t[kWidth];
  for (int64_t p = 0; p < n - 1; p += kWidth) {
    const int64_t count = std::min(kWidth, n - 1 - p);
    const T* panel = a + p * ld;  // its reflections, with their ones
    for (int64_t q = 0; q < count; ++q) {
      const int64_t i = p + q, next = i + 1, m = n - next;
      T *v = a + i * ld, *y = w.get() + q * ld;
      add_columns(n - i, q, panel + i, ld, w.get() + i, ld, T(-1), v + i);
      add_columns(n - i, q, w.get() + i, ld, panel + i, ld, T(-1), v + i);
      d[i] = v[i];
      tau[i] = reflect(m, v + next);
      e[i] = v[next];
      v[next] = T(1);
      multiply_symmetric(n, next, a, ld, v, y, sums.get());
      // The matrix is behind by the panel's reflections so far.
      dot_columns(m, q, w.get() + next, ld, v + next, t);
      add_columns(m, q, panel + next, ld, t, int64_t{1}, T(-1), y + next);
      dot_columns(m, q, panel + next, ld, v + next, t);
      add_columns(m, q, w.get() + next, ld, t, int64_t{1}, T(-1), y + next);
      scale_vector(m, tau[i], y + next);
      dot_columns(m, int64_t{1}, y + next, ld, v + next, t);
      add_scaled(m, T(-0.5) * tau[i] * t[0], v + next, y + next);
    }
    // The rest's lower half: A -= V W^T + W V^T
    const int64_t first = p + count, blocks = (n - first + kUpdate - 1) / kUpdate;
    parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t c = first + s * kUpdate, columns = std::min(kUpdate, n - c);
        T* to = a + c * (ld + 1);
        multiply(n - c, columns, count, T(-1), panel + c, int64_t{1}, ld, w.get() + c, ld, int64_t{1}, T(1), to, ld);
        multiply(n - c, columns, count, T(-1), w.get() + c, int64_t{1}, ld, panel + c, ld, int64_t{1}, T(1), to, ld);
      }
    });
  }
  d[n - 1] = a[(n - 1) * (ld + 1)];
}

// Strips of columns as they are shared out for GEMVs: the same ones in both directions, so that a
// thread finds its strip in its own cache.
struct Strips {
  int64_t first, columns, count;
  Strips(int64_t rows, int64_t from, int64_t n)
      : first(from), columns(n - from), count(std::clamp<int64_t>(rows * columns / kShare, 1, kMostShares)) {}
  int64_t bound(int64_t s) const { return s == count ? first + columns : first + columns * s / count / 8 * 8; }
  template <class F> void each(F f) const {
    parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) f(s, bound(s), bound(s + 1) - bound(s));
    });
  }
};

// m >= n. u (n, n) takes the reflections of rows, one a column, as those of columns stand in a: from row j + 1 on.
template <class T>
void bidiagonal(int64_t m, int64_t n, T* a, int64_t ld, T* d, T* e, T* tauq, T* taup, T* u, int64_t ldu) {
  constexpr int64_t W = Vec<T>::W;
  Scratch<T> ys(ldu * kWidth), xs(ld * kWidth), sums(ld * kMostShares), reflector(ld);
  T t[kWidth];
  for (int64_t p = 0; p < n; p += kWidth) {
    const int64_t count = std::min(kWidth, n - p);
    const T* panel = a + p * ld;
    const T* rows = u + p * ldu;
    for (int64_t q = 0; q < count; ++q) {
      const int64_t i = p + q, next = i + 1, k = n - next;
      T *v = a + i * ld, *y = ys.get() + q * ldu, *x = xs.get() + q * ld, *row = u + i * ldu;
      add_columns(m - i, q, panel + i, ld, ys.get() + i, ldu, T(-1), v + i);
      add_columns(m - i, q, xs.get() + i, ld, rows + i, ldu, T(-1), v + i);
      tauq[i] = reflect(m - i, v + i);
      d[i] = v[i];
      v[i] = T(1);
      taup[i] = T(0);
      if (k == 0) break;
      // From whole cache lines on, in which v has zeros before its own elements.
      const Strips strips(m - i, next, n);
      const int64_t low = i / W * W;
      std::fill(reflector.get() + low, reflector.get() + i, T(0));
      std::copy(v + i, v + m, reflector.get() + i);
      strips.each([&](int64_t, int64_t c, int64_t columns) {
        dot_columns(m - low, columns, a + c * ld + low, ld, reflector.get() + low, y + c);
      });
      dot_columns(m - i, q, panel + i, ld, v + i, t);
      add_columns(k, q, ys.get() + next, ldu, t, int64_t{1}, T(-1), y + next);
      dot_columns(m - i, q, xs.get() + i, ld, v + i, t);
      add_columns(k, q, rows + next, ldu, t, int64_t{1}, T(-1), y + next);
      scale_vector(k, tauq[i], y + next);
      // The row of the matrix, brought up to the panel's reflections.
      for (int64_t c = next; c < n; ++c) row[c] = a[c * ld + i];
      add_columns(k, q + 1, ys.get() + next, ldu, panel + i, ld, T(-1), row + next);
      add_columns(k, q, rows + next, ldu, xs.get() + i, ld, T(-1), row + next);
      taup[i] = reflect(k, row + next);
      e[i] = row[next];
      row[next] = T(1);
      const int64_t below = m - next, lower = next / W * W;
      strips.each([&](int64_t s, int64_t c, int64_t columns) {
        T* to = s == 0 ? x : sums.get() + s * ld;
        std::fill(to + lower, to + m, T(0));
        add_columns(m - lower, columns, a + c * ld + lower, ld, row + c, int64_t{1}, T(1), to + lower);
      });
      for (int64_t s = 1; s < strips.count; ++s) add_scaled(below, T(1), sums.get() + s * ld + next, x + next);
      dot_columns(k, q + 1, ys.get() + next, ldu, row + next, t);
      add_columns(below, q + 1, panel + next, ld, t, int64_t{1}, T(-1), x + next);
      dot_columns(k, q, rows + next, ldu, row + next, t);
      add_columns(below, q, xs.get() + next, ld, t, int64_t{1}, T(-1), x + next);
      scale_vector(below, taup[i], x + next);
    }
    const int64_t first = p + count;  // A -= V Y^T + X U^T
    if (first >= n) break;
    multiply(m - first, n - first, count, T(-1), panel + first, int64_t{1}, ld, ys.get() + first, ldu, int64_t{1}, T(1),
             a + first * (ld + 1), ld);
    multiply(m - first, n - first, count, T(-1), xs.get() + first, int64_t{1}, ld, rows + first, ldu, int64_t{1}, T(1),
             a + first * (ld + 1), ld);
  }
}

}  // namespace

template <class T> void tridiagonal_columns(int64_t n, T* a, int64_t ld, T* d, T* e, T* tau) {
  tridiagonal(n, a, ld, d, e, tau);
}
template <class T>
void bidiagonal_columns(int64_t m, int64_t n, T* a, int64_t ld, T* d, T* e, T* tauq, T* taup, T* u, int64_t ldu) {
  bidiagonal(m, n, a, ld, d, e, tauq, taup, u, ldu);
}

#define RL_INSTANTIATE(T)                                              \
  template void tridiagonal_columns(int64_t, T*, int64_t, T*, T*, T*); \
  template void bidiagonal_columns(int64_t, int64_t, T*, int64_t, T*, T*, T*, T*, T*, int64_t);
RL_INSTANTIATE(float)
RL_INSTANTIATE(double)
#undef RL_INSTANTIATE

}  // namespace rl::RL_ISA
