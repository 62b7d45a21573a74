// Eigenvalues and eigenvectors of a tridiagonal matrix by divide and conquer, on our own GEMM. Cuppen: without one
// element beside the diagonal the matrix falls into two blocks; that element is a correction by one vector, whose
// eigenvalues are roots of a sum of fractions, each found for itself. LAPACK finds the roots, and sets aside what a
// correction does not move.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "cpu/gemm/microkernel_avx512.h"
#include "cpu/linalg/dense.h"
#include "cpu/linalg/lapack.h"
#include "cpu/linalg/vectors.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kLeaf = 32;  // elements whose eigenvectors are found by QR rotations

template <class F> void each(int64_t n, int64_t grain, F f) {
  parallel_for(0, n, std::max<int64_t>(1, grain), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) f(i);
  });
}

// The eigenvectors, in the order `indices` of rows, of diag(poles) + rho w w^T. Roots are kept as their distances from
// the poles, and w is replaced by the one that the roots found belong to exactly: then eigenvectors are at right angles
// however near their roots are (Gu and Eisenstat).
template <class T> int correct(int64_t k, const T* poles, T* w, T rho, const int* indices, T* roots, T* vectors) {
  using V = Vec<T>;
  const int size = static_cast<int>(k);
  Scratch<T> distances(k * k);
  Scratch<int> codes(k);
  each(k, 20000 / (20 * k), [&](int64_t j) {
    codes[j] = 0;
    lapack::laed4<T>(size, static_cast<int>(j) + 1, poles, w, distances.get() + j * k, rho, roots + j, &codes[j]);
  });
  for (int64_t j = 0; j < k; ++j)
    if (codes[j]) return codes[j];
  if (k <= 2) {  // of which vectors are told instead of distances
    for (int64_t j = 0; j < k; ++j)
      for (int64_t i = 0; i < k; ++i) vectors[j * k + i] = k == 1 ? T(1) : distances[j * k + indices[i] - 1];
    return 0;
  }
  const int64_t parts = (k + V::W - 1) / V::W;
  each(parts, 20000 / (10 * k), [&](int64_t part) {
    const int64_t i = part * V::W;
    const auto mask = first_lanes<T>(k - i);
    const auto pole = V::load(poles + i, mask);
    auto square = V::all(T(-1));
    for (int64_t j = 0; j < k; ++j) {
      const auto at = V::load(distances.get() + j * k + i, mask);
      auto factor = at / (pole - V::all(poles[j]));
      if (j >= i && j < i + V::W) {
        T lanes[V::W], own[V::W];
        V::store(lanes, factor), V::store(own, at);
        lanes[j - i] = own[j - i];
        factor = V::load(lanes);
      }
      square *= factor;
    }
    T lanes[V::W];
    V::store(lanes, square);
    for (int64_t q = 0; q < V::W && i + q < k; ++q) w[i + q] = std::copysign(std::sqrt(lanes[q]), w[i + q]);
  });
  each(k, 20000 / (5 * k), [&](int64_t j) {
    T *at = distances.get() + j * k, *to = vectors + j * k;
    for (int64_t i = 0; i < k; i += V::W) {
      const auto mask = first_lanes<T>(k - i);
      V::store(at + i, V::load(w + i, mask) / V::load(at + i, mask), mask);
    }
    const T by = T(1) / std::sqrt(sum_of_squares(k, at));
    for (int64_t i = 0; i < k; ++i) to[i] = at[indices[i] - 1] * by;
  });
  return 0;
}

// Joins the eigenvectors q of two neighbours of n1 and n - n1 elements whose corners lost |rho|; `sorted` tells the
// order of eigenvalues, from 1.
template <class T> int join(int64_t n, int64_t n1, T rho, T* d, T* q, int64_t ld, int* sorted) {
  const int64_t n2 = n - n1;
  const int size = static_cast<int>(n), half = static_cast<int>(n1), stride = static_cast<int>(ld);
  Scratch<T> z(n), poles(n), w(n), kept(n * n);
  Scratch<int> indx(n), indxc(n), indxp(n), kinds(std::max<int64_t>(n, 4));
  for (int64_t j = 0; j < n; ++j) z[j] = q[j * ld + (j < n1 ? n1 - 1 : n1)];
  int k = 0, code = 0;
  lapack::laed2<T>(&k, size, half, d, q, stride, sorted, &rho, z.get(), poles.get(), w.get(), kept.get(), indx.get(),
                   indxc.get(), indxp.get(), kinds.get(), &code);
  if (code) return code;
  if (k == 0) {
    for (int64_t i = 0; i < n; ++i) sorted[i] = static_cast<int>(i) + 1;
    return 0;
  }
  const int64_t count = k, upper = kinds[0] + kinds[1], lower = kinds[1] + kinds[2];
  Scratch<T> s(count * count);
  code = correct(count, poles.get(), w.get(), rho, indxc.get(), d, s.get());
  if (code) return code;
  auto multiply_into = [&](int64_t rows, int64_t inner, const T* a, const T* b, T* to) {
    if (inner) return multiply(rows, count, inner, T(1), a, int64_t{1}, rows, b, int64_t{1}, count, T(0), to, ld);
    for (int64_t j = 0; j < count; ++j) std::fill_n(to + j * ld, rows, T(0));
  };
  multiply_into(n2, lower, kept.get() + n1 * upper, s.get() + kinds[0], q + n1);
  multiply_into(n1, upper, kept.get(), s.get(), q);
  lapack::lamrg<T>(k, size - k, d, 1, -1, sorted);
  return 0;
}

template <class T> int divide(int64_t n, T* d, T* e, T* z, int64_t ldz) {
  T most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max({most, std::fabs(d[i]), i + 1 < n ? std::fabs(e[i]) : T(0)});
  if (most == T(0)) most = T(1);
  for (int64_t i = 0; i < n; ++i) d[i] /= most;
  for (int64_t i = 0; i + 1 < n; ++i) e[i] /= most;
  int levels = 0;
  while (n > kLeaf << levels) ++levels;
  const int64_t leaves = int64_t{1} << levels, ld = padded_ld<T>(n);
  auto bound = [&](int64_t leaf) {  // of two halves the first is never the longer one: LAPACK wants it so
    if (leaf == leaves) return n;
    int64_t at = 0, count = n;
    for (int64_t step = leaves / 2; step; step /= 2) {
      const int64_t half = count / 2;
      count = leaf & step ? (at += half, count - half) : half;
    }
    return at;
  };
  Scratch<T> q(ld * n);
  Scratch<int> sorted(n), codes(leaves);
  each(n, 65536 / n, [&](int64_t j) { std::fill_n(q.get() + j * ld, n, T(0)); });
  for (int64_t leaf = 1; leaf < leaves; ++leaf) {
    const int64_t cut = bound(leaf);
    const T lost = std::fabs(e[cut - 1]);
    d[cut - 1] -= lost, d[cut] -= lost;
  }
  each(leaves, 1, [&](int64_t leaf) {
    const int64_t at = bound(leaf), count = bound(leaf + 1) - at;
    T work[2 * kLeaf];
    codes[leaf] = 0;
    lapack::steqr<T>('I', static_cast<int>(count), d + at, e + at, q.get() + at * (ld + 1), static_cast<int>(ld), work,
                     &codes[leaf]);
    for (int64_t i = 0; i < count; ++i) sorted[at + i] = static_cast<int>(i) + 1;
  });
  for (int64_t step = 1;; step *= 2) {
    for (int64_t leaf = 0; leaf < leaves; ++leaf)
      if (codes[leaf]) return codes[leaf];
    if (step == leaves) break;
    each(leaves / (2 * step), 1, [&](int64_t pair) {
      const int64_t first = bound(2 * pair * step), cut = bound((2 * pair + 1) * step),
                    last = bound(2 * (pair + 1) * step);
      codes[pair] =
          join(last - first, cut - first, e[cut - 1], d + first, q.get() + first * (ld + 1), ld, sorted.get() + first);
    });
  }
  // Roots that are next to each other may be found in the wrong order, by the last digit.
  std::stable_sort(sorted.get(), sorted.get() + n, [&](int i, int j) { return d[i - 1] < d[j - 1]; });
  Scratch<T> values(n);
  for (int64_t j = 0; j < n; ++j) values[j] = d[sorted[j] - 1] * most;
  std::copy_n(values.get(), n, d);
  each(n, 65536 / n, [&](int64_t j) { std::copy_n(q.get() + (sorted[j] - 1) * ld, n, z + j * ldz); });
  return 0;
}

}  // namespace

template <class T> int divide_columns(int64_t n, T* d, T* e, T* z, int64_t ldz) { return divide(n, d, e, z, ldz); }

template int divide_columns(int64_t, float*, float*, float*, int64_t);
template int divide_columns(int64_t, double*, double*, double*, int64_t);

}  // namespace rl::RL_ISA
