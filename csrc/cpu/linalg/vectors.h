// Vectors, one reflection, and panels of columns: what decompositions column by column are made of.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cpu/gemm/gemm.h"

namespace rl::RL_ISA {
namespace {

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
  return V::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
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
// c (m, n) = alpha * a (m, k) @ b (k, n) + beta * c, for c column by column.
template <class T> void multiply(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t ars, int64_t acs,
                                 const T* b, int64_t brs, int64_t bcs, T beta, T* c, int64_t ld) {
  if (m == 0 || n == 0 || k == 0) return;
  gemm(Gemm<T>{.m = n,
               .n = m,
               .k = k,
               .a = b,
               .ars = bcs,
               .acs = brs,
               .b = a,
               .brs = acs,
               .bcs = ars,
               .c = c,
               .crs = ld,
               .ccs = 1,
               .alpha = alpha,
               .beta = beta,
               .d = beta == T(0) ? nullptr : c,
               .drs = ld,
               .dcs = 1});
}

// out[j] = x^T p's column j, for k columns of n elements.
template <class T> void dot_columns(int64_t n, int64_t k, const T* p, int64_t ld, const T* x, T* out) {
  using V = Vec<T>;
  auto some = [&](auto columns, int64_t j) {
    constexpr int N = decltype(columns)::value;
    typename V::Reg sums[N];
#pragma GCC unroll 16
    for (int q = 0; q < N; ++q) sums[q] = V::zero();
    const T* from = p + j * ld;
    int64_t i = 0;
    for (; i + V::W <= n; i += V::W) {
      const auto y = V::load(x + i);
#pragma GCC unroll 16
      for (int q = 0; q < N; ++q) sums[q] = V::fma(y, V::load(from + q * ld + i), sums[q]);
    }
    if (i < n) {
      const auto mask = first_lanes<T>(n - i);
      const auto y = V::load(x + i, mask);
#pragma GCC unroll 16
      for (int q = 0; q < N; ++q) sums[q] = V::fma(y, V::load(from + q * ld + i, mask), sums[q]);
    }
    if constexpr (N == V::W) lane_sums(sums, out + j);
    else
#pragma GCC unroll 16
      for (int q = 0; q < N; ++q) out[j + q] = V::sum(sums[q]);
  };
  int64_t j = 0;
  for (; j + V::W <= k; j += V::W) some(std::integral_constant<int, V::W>{}, j);
  for (; j + 8 <= k; j += 8) some(std::integral_constant<int, 8>{}, j);
  for (; j + 2 <= k; j += 2) some(std::integral_constant<int, 2>{}, j);
  if (j < k) some(std::integral_constant<int, 1>{}, j);
}
// out[j + c * ldo] += x's column c ^T p's column j, for k columns of p and w of x, of n elements each: a tile of sums
// stays in registers.
template <class T>
void inner_grid(int64_t n, int64_t k, const T* p, int64_t ld, int64_t w, const T* x, int64_t ldx, T* out, int64_t ldo) {
  using V = Vec<T>;
  auto tile = [&](auto across, auto down, int64_t j, int64_t c) {
    constexpr int N = decltype(across)::value, M = decltype(down)::value;
    typename V::Reg sums[N][M];
#pragma GCC unroll 8
    for (int q = 0; q < N; ++q)
#pragma GCC unroll 3
      for (int r = 0; r < M; ++r) sums[q][r] = V::zero();
    const T *left = p + j * ld, *right = x + c * ldx;
    auto step = [&](int64_t i, auto load) __attribute__((always_inline)) {
      typename V::Reg y[M];
#pragma GCC unroll 3
      for (int r = 0; r < M; ++r) y[r] = load(right + r * ldx + i);
#pragma GCC unroll 8
      for (int q = 0; q < N; ++q) {
        const auto z = load(left + q * ld + i);
#pragma GCC unroll 3
        for (int r = 0; r < M; ++r) sums[q][r] = V::fma(z, y[r], sums[q][r]);
      }
    };
    int64_t i = 0;
    for (; i + V::W <= n; i += V::W) step(i, [&](const T* from) { return V::load(from); });
    if (i < n) step(i, [&](const T* from) { return V::load(from, first_lanes<T>(n - i)); });
#pragma GCC unroll 8
    for (int q = 0; q < N; ++q)
#pragma GCC unroll 3
      for (int r = 0; r < M; ++r) out[j + q + (c + r) * ldo] += V::sum(sums[q][r]);
  };
  constexpr std::integral_constant<int, 8> many;
  constexpr std::integral_constant<int, 3> few;
  constexpr std::integral_constant<int, 1> one;
  for (int64_t c = 0; c < w;) {
    const bool wide = c + 3 <= w;
    int64_t j = 0;
    for (; j + 8 <= k; j += 8) wide ? tile(many, few, j, c) : tile(many, one, j, c);
    for (; j < k; ++j) wide ? tile(one, few, j, c) : tile(one, one, j, c);
    c += wide ? 3 : 1;
  }
}
// y += scale * p c, for k columns of n elements; c has stride `step`.
template <class T>
void add_columns(int64_t n, int64_t k, const T* p, int64_t ld, const T* c, int64_t step, T scale, T* y) {
  using V = Vec<T>;
  auto some = [&](auto columns, int64_t j) {
    constexpr int N = decltype(columns)::value;
    typename V::Reg by[N];
#pragma GCC unroll 8
    for (int q = 0; q < N; ++q) by[q] = V::all(scale * c[(j + q) * step]);
    const T* from = p + j * ld;
    int64_t i = 0;
    for (; i + V::W <= n; i += V::W) {
      auto sum = V::load(y + i);
#pragma GCC unroll 8
      for (int q = 0; q < N; ++q) sum = V::fma(by[q], V::load(from + q * ld + i), sum);
      V::store(y + i, sum);
    }
    if (i < n) {
      const auto mask = first_lanes<T>(n - i);
      auto sum = V::load(y + i, mask);
#pragma GCC unroll 8
      for (int q = 0; q < N; ++q) sum = V::fma(by[q], V::load(from + q * ld + i, mask), sum);
      V::store(y + i, sum, mask);
    }
  };
  int64_t j = 0;
  for (; j + 8 <= k; j += 8) some(std::integral_constant<int, 8>{}, j);
  for (; j + 2 <= k; j += 2) some(std::integral_constant<int, 2>{}, j);
  if (j < k) some(std::integral_constant<int, 1>{}, j);
}
template <class T> void scale_vector(int64_t n, T by, T* x) {
  for (int64_t i = 0; i < n; i += Vec<T>::W) {
    const auto mask = first_lanes<T>(n - i);
    Vec<T>::store(x + i, Vec<T>::mul(Vec<T>::all(by), Vec<T>::load(x + i, mask)), mask);
  }
}

}  // namespace
}  // namespace rl::RL_ISA
