// Dot products: blocks of fixed length, summed in order.
#pragma once
#include <algorithm>

#include "cpu/gemm/driver.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int64_t kDotBlock = 32768;

// f(first, count) gives the sum over one block; acc is the type sums are kept in
template <class A, class F> A blockwise(int64_t n, F f) {
  if (n <= kDotBlock) return n ? f(int64_t{0}, n) : A(0);
  int64_t blocks = (n + kDotBlock - 1) / kDotBlock;
  Scratch<A> sums(blocks);
  parallel_for(0, blocks, 2, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) sums[i] = f(i * kDotBlock, std::min(kDotBlock, n - i * kDotBlock));
  });
  A total = sums[0];
  for (int64_t i = 1; i < blocks; ++i) total = plus(total, sums[i]);
  return total;
}

template <class T> T conj_if(T x, bool conjugate) {
  if constexpr (is_complex_v<T>) return conjugate ? std::conj(x) : x;
  else return (void)conjugate, x;
}

// A plain loop in the type of computation, for strides BLAS does not take and types it does not know.
template <class T> compute_t<T> plain_dot(const T* x, int64_t xs, const T* y, int64_t ys, int64_t n, bool conjugate) {
  using A = compute_t<T>;
  A acc[8] = {};
  int64_t i = 0;
  if (xs == 1 && ys == 1)
    for (; i + 8 <= n; i += 8)
      for (int j = 0; j < 8; ++j)
        acc[j] = plus(acc[j], times(conj_if(static_cast<A>(x[i + j]), conjugate), static_cast<A>(y[i + j])));
  for (; i < n; ++i)
    acc[0] = plus(acc[0], times(conj_if(static_cast<A>(x[i * xs]), conjugate), static_cast<A>(y[i * ys])));
  for (int j = 1; j < 8; ++j) acc[0] = plus(acc[0], acc[j]);
  return acc[0];
}

template <class T> void dot(const View& out, const View& a, const View& b, bool conjugate) {
  using A = compute_t<T>;
  int64_t n = a.numel(), xs = a.ndim ? a.strides[0] : 1, ys = b.ndim ? b.strides[0] : 1;
  const T *x = a.as<T>(), *y = b.as<T>();
  bool by_blas = blas::has<T> && !conjugate && xs >= 1 && ys >= 1 && xs <= INT_MAX && ys <= INT_MAX;
  A total = blockwise<A>(n, [&](int64_t first, int64_t count) -> A {
    if constexpr (blas::has<T>)
      if (by_blas)
        return blas::dot(static_cast<int>(count), x + first * xs, static_cast<int>(xs), y + first * ys,
                         static_cast<int>(ys));
    return plain_dot(x + first * xs, xs, y + first * ys, ys, count, conjugate);
  });
  *out.as<T>() = static_cast<T>(total);
}

}  // namespace
}  // namespace rl::RL_ISA
