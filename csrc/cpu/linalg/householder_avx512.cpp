// Householder's reflections H = I - tau v v^T in blocks, on our own GEMM: a block of them is I - V T V^T with an
// upper triangular factor T. Matrices are column by column here, as LAPACK's are, and v's first number, 1, is not
// stored.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "cpu/gemm/microkernel_avx512.h"
#include "cpu/linalg/dense.h"
#include "cpu/linalg/vectors.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kFew = 16;  // columns that are reflected one by one
// Those whose reflections are one GEMM, of a matrix of so many columns.
constexpr int64_t block_of(int64_t n) { return n < 512 ? 64 : 128; }
constexpr int64_t kUnblocked = 4;  // columns for which blocks are not profitable
constexpr int64_t kSingle = 32;    // reflections for which blocks are not profitable

// Up to N columns of c, reflected: c -= tau v (v^T c)
template <int N, class T> void reflect_strip(int64_t n, const T* v, T tau, T* c, int64_t ld) {
  using V = Vec<T>;
  typename V::Reg sums[N];
#pragma GCC unroll 8
  for (int q = 0; q < N; ++q) sums[q] = V::zero();
  for (int64_t i = 1; i < n; i += V::W) {
    const auto mask = first_lanes<T>(n - i);
    const auto x = V::load(v + i, mask);
#pragma GCC unroll 8
    for (int q = 0; q < N; ++q) sums[q] = V::fma(x, V::load(c + q * ld + i, mask), sums[q]);
  }
  typename V::Reg by[N];
#pragma GCC unroll 8
  for (int q = 0; q < N; ++q) {
    const T w = tau * (c[q * ld] + V::sum(sums[q]));
    c[q * ld] -= w;
    by[q] = V::all(-w);
  }
  for (int64_t i = 1; i < n; i += V::W) {
    const auto mask = first_lanes<T>(n - i);
    const auto x = V::load(v + i, mask);
#pragma GCC unroll 8
    for (int q = 0; q < N; ++q) V::store(c + q * ld + i, V::fma(by[q], x, V::load(c + q * ld + i, mask)), mask);
  }
}

// The same for k columns.
template <class T> void reflect_each(int64_t n, const T* v, T tau, int64_t k, T* c, int64_t ld) {
  if (tau == T(0)) return;
  int64_t j = 0;
  for (; j + 4 <= k; j += 4) reflect_strip<4>(n, v, tau, c + j * ld, ld);
  for (; j < k; ++j) reflect_strip<1>(n, v, tau, c + j * ld, ld);
}

// k reflections of m elements as I - V T V^T, or those of them in a range [first, last).
template <class T> struct ReflectionBlock {
  int64_t m, k;
  Scratch<T> v, t;  // (m, k) with its ones and zeros, (k, k)

  // Those that stand below a's diagonal.
  ReflectionBlock(int64_t rows, int64_t count, const T* a, int64_t ld, const T* tau) : ReflectionBlock(rows, count) {
    take(0, k, a, ld);
    form_t(0, k, tau);
  }
  // Those that make a triangular factor of a, m >= k. `again`: they are wanted for other columns, too.
  ReflectionBlock(int64_t rows, int64_t count, T* a, int64_t ld, T* tau, bool again) : ReflectionBlock(rows, count) {
    factor(0, k, a, ld, tau, again);
  }
  // c (m, n) becomes Q c, or Q^T c.
  void apply(bool adjoint, int64_t n, T* c, int64_t ld) const { apply(0, k, adjoint, n, c, ld); }
  // c (k, k) becomes the first k rows of Q (c above zeros).
  void apply_top(T* c, int64_t ld) const {
    Scratch<T> w(k * k), tw(k * k);
    multiply(k, k, k, T(1), v.get(), m, int64_t{1}, c, int64_t{1}, ld, T(0), w.get(), k);
    multiply(k, k, k, T(1), t.get(), int64_t{1}, k, w.get(), int64_t{1}, k, T(0), tw.get(), k);
    multiply(k, k, k, T(-1), v.get(), int64_t{1}, m, tw.get(), int64_t{1}, k, T(1), c, ld);
  }

 private:
  ReflectionBlock(int64_t rows, int64_t count) : m(rows), k(count), v(rows * count), t(count * count) {
    std::fill_n(t.get(), k * k, T(0));
  }
  T* t_factor(int64_t i, int64_t j) const { return t.get() + j * k + i; }

  void factor(int64_t first, int64_t last, T* a, int64_t ld, T* tau, bool again) {
    const int64_t n = last - first;
    if (n <= kFew) {
      for (int64_t j = first; j < last; ++j) {
        T* x = a + j * (ld + 1);
        tau[j] = reflect(m - j, x);
        reflect_each(m - j, x, tau[j], last - j - 1, x + ld, ld);
      }
      if (!again) return;
      take(first, last, a, ld);
      return form_t(first, last, tau);
    }
    const int64_t middle = first + (n / 2 + kFew - 1) / kFew * kFew;
    factor(first, middle, a, ld, tau, true);
    apply(first, middle, true, last - middle, a + middle * ld + first, ld);
    factor(middle, last, a, ld, tau, again);
    if (again) join(first, middle, last);
  }
  void take(int64_t first, int64_t last, const T* a, int64_t ld) const {
    for (int64_t j = first; j < last; ++j) {
      T* to = v.get() + j * m;
      std::fill_n(to, j, T(0));
      to[j] = T(1);
      std::copy_n(a + j * ld + j + 1, m - j - 1, to + j + 1);
    }
  }
  // V's columns [p0, p1) times those [j0, j1), from row j0 on. T, and with it the right angles in Q, is as exact as
  // these sums are: they are taken by lanes, where a GEMM would add up long ones element by element, and part by part
  // of long columns, so that parts stay in the cache.
  void inner(int64_t p0, int64_t p1, int64_t j0, int64_t j1, T* out) const {
    constexpr int64_t kPart = 4096 / static_cast<int64_t>(sizeof(T));
    const int64_t n = p1 - p0;
    parallel_for(j0, j1, std::max<int64_t>(6, 131072 / (m * n) / 3 * 3), [&](int64_t begin, int64_t end) {
      T* to = out + (begin - j0) * n;
      std::fill_n(to, (end - begin) * n, T(0));
      for (int64_t i = j0; i < m; i += kPart)
        inner_grid(std::min(kPart, m - i), n, v.get() + p0 * m + i, m, end - begin, v.get() + begin * m + i, m, to, n);
    });
  }
  // T: column by column, or recursively.
  void form_t(int64_t first, int64_t last, const T* tau) const {
    const int64_t n = last - first;
    if (n > kFew) {
      const int64_t middle = first + n / 2;
      form_t(first, middle, tau);
      form_t(middle, last, tau);
      return join(first, middle, last);
    }
    T dots[kFew * kFew];
    inner(first, last, first, last, dots);
    for (int64_t j = 0; j < n; ++j) {
      T* to = t_factor(first, first + j);
      for (int64_t p = 0; p < j; ++p)
        add_scaled(p + 1, -tau[first + j] * dots[j * n + p], t_factor(first, first + p), to);
      to[j] = tau[first + j];
    }
  }
  // The corner of T between two halves: -T1 (V1^T V2) T2.
  void join(int64_t first, int64_t middle, int64_t last) const {
    const int64_t n1 = middle - first, n2 = last - middle;
    Scratch<T> dots(n1 * n2), half(n1 * n2);
    inner(first, middle, middle, last, dots.get());
    multiply(n1, n2, n1, T(-1), t_factor(first, first), int64_t{1}, k, dots.get(), int64_t{1}, n1, T(0), half.get(),
             n1);
    multiply(n1, n2, n2, T(1), half.get(), int64_t{1}, n1, t_factor(middle, middle), int64_t{1}, k, T(0),
             t_factor(first, middle), k);
  }
  void apply(int64_t first, int64_t last, bool adjoint, int64_t n, T* c, int64_t ld) const {
    const int64_t count = last - first, rows = m - first;
    const T *columns = v.get() + first * (m + 1), *corner = t_factor(first, first);
    Scratch<T> w(count * n), tw(count * n);
    multiply(count, n, rows, T(1), columns, m, int64_t{1}, c, int64_t{1}, ld, T(0), w.get(), count);
    multiply(count, n, count, T(1), corner, adjoint ? k : 1, adjoint ? 1 : k, w.get(), int64_t{1}, count, T(0),
             tw.get(), count);
    multiply(rows, n, count, T(-1), columns, int64_t{1}, m, tw.get(), int64_t{1}, count, T(1), c, ld);
  }
};

// Whether k reflections of m elements, for n columns, go one by one.
constexpr bool single(int64_t m, int64_t n, int64_t k) { return k <= kSingle && m <= 4 * kSingle && n <= 4 * kSingle; }
template <class T> void reflect_all(bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                                    const T* tau, T* c, int64_t ldc) {
  const int64_t most = n <= kUnblocked || single(m, n, k) ? 1 : block_of(k), blocks = (k + most - 1) / most;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t j = (adjoint ? b : blocks - 1 - b) * most;
    const T* corner = a + j * lda + j;
    if (most == 1) reflect_each(m - j, corner, tau[j], n, c + j, ldc);
    else ReflectionBlock<T>(m - j, std::min(most, k - j), corner, lda, tau + j).apply(adjoint, n, c + j, ldc);
  }
}
template <class T> void qr(int64_t m, int64_t n, int64_t k, T* a, int64_t ld, T* tau) {
  if (single(m, n, k)) {
    for (int64_t j = 0; j < k; ++j) {
      T* x = a + j * (ld + 1);
      tau[j] = reflect(m - j, x);
      reflect_each(m - j, x, tau[j], n - j - 1, x + ld, ld);
    }
    return;
  }
  const int64_t most = block_of(k);
  for (int64_t j = 0; j < k; j += most) {
    const int64_t count = std::min(most, k - j);
    T* corner = a + j * ld + j;
    const int64_t rest = n - j - count;
    const ReflectionBlock<T> block(m - j, count, corner, ld, tau + j, rest > kUnblocked);
    if (rest > kUnblocked) block.apply(true, rest, corner + count * ld, ld);
    else reflect_all(true, m - j, rest, count, corner, ld, tau + j, corner + count * ld, ld);
  }
}
template <class T> void expand(int64_t m, int64_t n, int64_t k, T* a, int64_t ld, const T* tau) {
  auto unit = [&](int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j) {
      std::fill_n(a + j * ld, m, T(0));
      a[j * ld + j] = T(1);
    }
  };
  unit(k, n);
  if (single(m, n, k)) {
    for (int64_t j = k - 1; j >= 0; --j) {
      T* x = a + j * (ld + 1);
      reflect_each(m - j, x, tau[j], n - j - 1, x + ld, ld);
      scale_vector(m - j - 1, -tau[j], x + 1);
      x[0] = T(1) - tau[j];
      std::fill_n(a + j * ld, j, T(0));
    }
    return;
  }
  const int64_t most = block_of(k);
  for (int64_t j = (k - 1) / most * most; k > 0 && j >= 0; j -= most) {
    const int64_t count = std::min(most, k - j);
    const ReflectionBlock<T> block(m - j, count, a + j * ld + j, ld, tau + j);
    unit(j, j + count);
    block.apply(false, n - j, a + j * ld + j, ld);
  }
}

template <class T> void find_signs(int64_t n, T* q, int64_t ld, T* signs) {
  for (int64_t j = 0; j < n; ++j) {
    T* column = q + j * (ld + 1);
    signs[j] = column[0] < T(0) ? T(1) : T(-1);
    column[0] -= signs[j];
    for (int64_t c = 1; c < n - j; ++c)
      add_scaled(n - j - 1, -column[c * ld] / column[0], column + 1, column + c * ld + 1);
  }
}

}  // namespace

template <class T> void reflect_top(int64_t m, int64_t k, const T* a, int64_t lda, const T* tau, T* c, int64_t ldc) {
  ReflectionBlock<T>(m, k, a, lda, tau).apply_top(c, ldc);
}
template <class T> void reflection_signs(int64_t n, T* q, int64_t ld, T* signs) { find_signs(n, q, ld, signs); }
template <class T> void qr_columns(int64_t m, int64_t n, int64_t k, T* a, int64_t ld, T* tau) {
  qr(m, n, k, a, ld, tau);
}
template <class T> void expand_columns(int64_t m, int64_t n, int64_t k, T* a, int64_t ld, const T* tau) {
  expand(m, n, k, a, ld, tau);
}
template <class T> void reflect_columns(bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                                        const T* tau, T* c, int64_t ldc) {
  reflect_all(adjoint, m, n, k, a, lda, tau, c, ldc);
}

#define RL_INSTANTIATE(T)                                                                \
  template void reflect_top(int64_t, int64_t, const T*, int64_t, const T*, T*, int64_t); \
  template void reflection_signs(int64_t, T*, int64_t, T*);                              \
  template void qr_columns(int64_t, int64_t, int64_t, T*, int64_t, T*);                  \
  template void expand_columns(int64_t, int64_t, int64_t, T*, int64_t, const T*);        \
  template void reflect_columns(bool, int64_t, int64_t, int64_t, const T*, int64_t, const T*, T*, int64_t);
RL_INSTANTIATE(float)
RL_INSTANTIATE(double)
#undef RL_INSTANTIATE

}  // namespace rl::RL_ISA
