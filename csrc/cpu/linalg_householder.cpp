// Householder's reflections H = I - tau v v^T in blocks, on our own products: a block of them is I - V T V^T with an
// upper triangle T. Matrices are column by column here, as LAPACK's are, and v's first number, 1, is not stored.
#include <algorithm>
#include <cmath>

#include "cpu/linalg_dense.h"
#include "cpu/scratch.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "cpu/gemm_avx512.h"

namespace rl::cpu {
namespace {

constexpr int64_t kFew = 16;  // columns that are reflected one by one
// Those whose reflections are one product, of a matrix of so many columns.
constexpr int64_t block_of(int64_t n) { return n < 512 ? 64 : 128; }

template <class T> T sum_of(typename Vec<T>::Reg x) {
  constexpr int W = Vec<T>::W;
  T lane[W];
  Vec<T>::store(lane, x);
  for (int half = W / 2; half; half /= 2)
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  return lane[0];
}
// y += by x
template <class T> void add_scaled(int64_t n, T by, const T* x, T* y) {
  using V = Vec<T>;
  const auto all = V::all(by);
  for (int64_t i = 0; i < n; i += V::W) {
    const auto mask = first_lanes<T>(n - i);
    V::store(y + i, V::fma(all, V::load(x + i, mask), V::load(y + i, mask)), mask);
  }
}
template <class T> T sum_of_squares(int64_t n, const T* x) {
  using V = Vec<T>;
  typename V::Reg sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
  int64_t i = 0;
  for (; i + 4 * V::W <= n; i += 4 * V::W)
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const auto y = V::load(x + i + q * V::W);
      sums[q] = V::fma(y, y, sums[q]);
    }
  for (; i < n; i += V::W) {
    const auto y = V::load(x + i, first_lanes<T>(n - i));
    sums[0] = V::fma(y, y, sums[0]);
  }
  return sum_of<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Makes of x its reflection (beta, 0, ...): beta stands in x[0] and v behind it. Returns tau, 0 where there is nothing
// to reflect.
template <class T> T reflect(int64_t n, T* x) {
  constexpr T kLeast = sizeof(T) == 4 ? T(1e-30) : T(1e-280), kMost = sizeof(T) == 4 ? T(1e37) : T(1e300);
  T sum = sum_of_squares(n - 1, x + 1);
  int power = 0;
  if (!(sum >= kLeast && sum + x[0] * x[0] <= kMost)) {  // squares that a T does not hold: in units of the largest
    T most = 0;
    for (int64_t i = 1; i < n; ++i) most = most < std::fabs(x[i]) || x[i] != x[i] ? std::fabs(x[i]) : most;
    if (most == T(0)) return T(0);
    most = std::max(most, std::fabs(x[0]));
    power = std::isfinite(most) ? std::ilogb(most) : 0;
    for (int64_t i = 0; i < n; ++i) x[i] = std::ldexp(x[i], -power);
    sum = sum_of_squares(n - 1, x + 1);
  }
  const T alpha = x[0], beta = std::copysign(std::sqrt(sum + alpha * alpha), -alpha), by = alpha - beta;
  const auto divisor = Vec<T>::all(by);
  for (int64_t i = 1; i < n; i += Vec<T>::W) {
    const auto mask = first_lanes<T>(n - i);
    Vec<T>::store(x + i, Vec<T>::load(x + i, mask) / divisor, mask);
  }
  x[0] = std::ldexp(beta, power);
  return (beta - alpha) / beta;
}
// Up to N columns of c, reflected: c -= tau v (v^T c)
template <int N, class T> void reflect_columns(int64_t n, const T* v, T tau, T* c, int64_t ld) {
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
    const T w = tau * (c[q * ld] + sum_of<T>(sums[q]));
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

// c (m, n) = alpha * a (m, k) @ b (k, n) + beta * c, for c column by column.
template <class T> void product(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t ars, int64_t acs,
                                const T* b, int64_t brs, int64_t bcs, T beta, T* c, int64_t ld) {
  if (m == 0 || n == 0 || k == 0) return;
  gemm(Gemm<T>{n, m, k, b, bcs, brs, a, acs, ars, c, ld, 1, alpha, beta, beta == T(0) ? nullptr : c, ld, 1});
}

// k reflections of m numbers as I - V T V^T.
template <class T> struct ReflectionBlock {
  int64_t m, k;
  Scratch<T> v, t;  // (m, k) with its ones and zeros, (k, k)

  ReflectionBlock(int64_t rows, int64_t count, const T* a, int64_t ld, const T* tau)
      : m(rows), k(count), v(rows * count), t(count * count) {
    for (int64_t j = 0; j < k; ++j) {
      T* to = v.get() + j * m;
      std::fill_n(to, j, T(0));
      to[j] = T(1);
      std::copy_n(a + j * ld + j + 1, m - j - 1, to + j + 1);
    }
    Scratch<T> inner(k * k);  // V^T V
    product(k, k, m, T(1), v.get(), m, int64_t{1}, v.get(), int64_t{1}, m, T(0), inner.get(), k);
    std::fill_n(t.get(), k * k, T(0));
    fill_triangle(0, k, tau, inner.get());
  }
  // T of the reflections [first, last): column by column, or in halves, of which the corner is -T1 (V1^T V2) T2.
  void fill_triangle(int64_t first, int64_t last, const T* tau, const T* inner) const {
    const int64_t n = last - first, n1 = n / 2;
    auto at = [&](T* matrix, int64_t i, int64_t j) { return matrix + j * k + i; };
    if (n <= kFew) {
      for (int64_t j = first; j < last; ++j) {
        T* to = at(t.get(), first, j);
        for (int64_t p = first; p < j; ++p)
          add_scaled(p + 1 - first, -tau[j] * inner[j * k + p], at(t.get(), first, p), to);
        to[j - first] = tau[j];
      }
      return;
    }
    const int64_t middle = first + n1;
    fill_triangle(first, middle, tau, inner);
    fill_triangle(middle, last, tau, inner);
    Scratch<T> half(n1 * (n - n1));
    product(n1, n - n1, n1, T(-1), at(t.get(), first, first), int64_t{1}, k, inner + middle * k + first, int64_t{1}, k,
            T(0), half.get(), n1);
    product(n1, n - n1, n - n1, T(1), half.get(), int64_t{1}, n1, at(t.get(), middle, middle), int64_t{1}, k, T(0),
            at(t.get(), first, middle), k);
  }
  // c (m, n) becomes Q c, or Q^T c.
  void apply(bool adjoint, int64_t n, T* c, int64_t ld) const {
    Scratch<T> w(k * n), tw(k * n);
    product(k, n, m, T(1), v.get(), m, int64_t{1}, c, int64_t{1}, ld, T(0), w.get(), k);
    product(k, n, k, T(1), t.get(), adjoint ? k : 1, adjoint ? 1 : k, w.get(), int64_t{1}, k, T(0), tw.get(), k);
    product(m, n, k, T(-1), v.get(), int64_t{1}, m, tw.get(), int64_t{1}, k, T(1), c, ld);
  }
};

// m >= n
template <class T> void factor(int64_t m, int64_t n, T* a, int64_t ld, T* tau) {
  if (n > kFew) {
    const int64_t n1 = (n / 2 + kFew - 1) / kFew * kFew;
    T* right = a + n1 * ld;
    factor(m, n1, a, ld, tau);
    ReflectionBlock<T>(m, n1, a, ld, tau).apply(true, n - n1, right, ld);
    return factor(m - n1, n - n1, right + n1, ld, tau + n1);
  }
  for (int64_t j = 0; j < n; ++j) {
    T* x = a + j * ld + j;
    tau[j] = reflect(m - j, x);
    if (tau[j] == T(0)) continue;
    int64_t c = 1;
    for (; c + 4 <= n - j; c += 4) reflect_columns<4>(m - j, x, tau[j], x + c * ld, ld);
    for (; c < n - j; ++c) reflect_columns<1>(m - j, x, tau[j], x + c * ld, ld);
  }
}

template <class T> void qr(int64_t m, int64_t n, T* a, int64_t ld, T* tau) {
  const int64_t k = std::min(m, n), most = block_of(k);
  for (int64_t j = 0; j < k; j += most) {
    const int64_t count = std::min(most, k - j);
    T* corner = a + j * ld + j;
    factor(m - j, count, corner, ld, tau + j);
    if (j + count < n)
      ReflectionBlock<T>(m - j, count, corner, ld, tau + j).apply(true, n - j - count, corner + count * ld, ld);
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
  const int64_t most = block_of(k);
  for (int64_t j = (k - 1) / most * most; k > 0 && j >= 0; j -= most) {
    const int64_t count = std::min(most, k - j);
    const ReflectionBlock<T> block(m - j, count, a + j * ld + j, ld, tau + j);
    unit(j, j + count);
    block.apply(false, n - j, a + j * ld + j, ld);
  }
}
template <class T> void reflect_all(bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                                    const T* tau, T* c, int64_t ldc) {
  const int64_t most = block_of(k), blocks = (k + most - 1) / most;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t j = (adjoint ? b : blocks - 1 - b) * most;
    const ReflectionBlock<T> block(m - j, std::min(most, k - j), a + j * lda + j, lda, tau + j);
    block.apply(adjoint, n, c + j, ldc);
  }
}

}  // namespace

void qr_columns(int64_t m, int64_t n, float* a, int64_t ld, float* tau) { qr(m, n, a, ld, tau); }
void qr_columns(int64_t m, int64_t n, double* a, int64_t ld, double* tau) { qr(m, n, a, ld, tau); }
void expand_columns(int64_t m, int64_t n, int64_t k, float* a, int64_t ld, const float* tau) {
  expand(m, n, k, a, ld, tau);
}
void expand_columns(int64_t m, int64_t n, int64_t k, double* a, int64_t ld, const double* tau) {
  expand(m, n, k, a, ld, tau);
}
void reflect_columns(bool adjoint, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* tau,
                     float* c, int64_t ldc) {
  reflect_all(adjoint, m, n, k, a, lda, tau, c, ldc);
}
void reflect_columns(bool adjoint, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* tau,
                     double* c, int64_t ldc) {
  reflect_all(adjoint, m, n, k, a, lda, tau, c, ldc);
}

}  // namespace rl::cpu
#pragma GCC pop_options
#else
namespace rl::cpu {
void qr_columns(int64_t, int64_t, float*, int64_t, float*) {}
void qr_columns(int64_t, int64_t, double*, int64_t, double*) {}
void expand_columns(int64_t, int64_t, int64_t, float*, int64_t, const float*) {}
void expand_columns(int64_t, int64_t, int64_t, double*, int64_t, const double*) {}
void reflect_columns(bool, int64_t, int64_t, int64_t, const float*, int64_t, const float*, float*, int64_t) {}
void reflect_columns(bool, int64_t, int64_t, int64_t, const double*, int64_t, const double*, double*, int64_t) {}
}  // namespace rl::cpu
#endif
