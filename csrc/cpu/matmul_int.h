// Products of integers and bools: register blocks of rows, vectors along the columns. Sums wrap around; those
// of bools are "any".
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cpu/gemm.h"
#include "cpu/isa.h"
#include "cpu/scratch.h"

namespace rl::RL_ISA {
namespace {

// The type whose arithmetic wraps without undefined behaviour.
template <class T> struct wrap {
  using type = std::make_unsigned_t<T>;
};
template <> struct wrap<bool> {
  using type = uint8_t;
};

// Unsigned and not promoted: arithmetic in it wraps.
template <class T> using wide_t = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T> inline constexpr bool is_integer = std::is_integral_v<T>;
template <class T> T times(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) return x && y;
  else if constexpr (is_integer<T>) return static_cast<T>(static_cast<wide_t<T>>(x) * static_cast<wide_t<T>>(y));
  else return x * y;
}
template <class T> T plus(T x, T y) {
  if constexpr (std::is_same_v<T, bool>) return x || y;
  else if constexpr (is_integer<T>) return static_cast<T>(static_cast<wide_t<T>>(x) + static_cast<wide_t<T>>(y));
  else return x + y;
}

// c (4 rows at most, n) += a (rows, k) @ b (k, n)
template <int R, class T, class U> [[gnu::always_inline]] inline void int_rows(int64_t n, int64_t k, const T* a,
                                                                               int64_t ars, int64_t acs, const T* b,
                                                                               int64_t ldb, U* sums) {
  typedef U Vector __attribute__((vector_size(32)));
  constexpr int kLanes = 32 / sizeof(U), kWide = 2 * kLanes;
  for (int64_t j0 = 0; j0 < n; j0 += kWide) {
    if (n - j0 >= kWide) {
      Vector acc[R][2] = {};
      for (int64_t p = 0; p < k; ++p) {
        Vector y[2];
        __builtin_memcpy(y, b + p * ldb + j0, sizeof y);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          U x = static_cast<U>(a[r * ars + p * acs]);
#pragma GCC unroll 2
          for (int h = 0; h < 2; ++h) {
            if constexpr (std::is_same_v<T, bool>) acc[r][h] |= y[h] & x;
            else acc[r][h] += y[h] * x;
          }
        }
      }
      for (int r = 0; r < R; ++r) __builtin_memcpy(sums + r * n + j0, acc[r], sizeof acc[r]);
    } else {
      for (int r = 0; r < R; ++r)
        for (int64_t j = j0; j < n; ++j) {
          U acc = 0;
          for (int64_t p = 0; p < k; ++p) {
            U x = static_cast<U>(a[r * ars + p * acs]), y = static_cast<U>(b[p * ldb + j]);
            acc = std::is_same_v<T, bool> ? static_cast<U>(acc | (x & y)) : plus(acc, times(x, y));
          }
          sums[r * n + j] = acc;
        }
    }
  }
}

// AVX-512 multiplies integers of 64 bits in one instruction.
#if defined(__AVX2__) && !defined(__AVX512F__)
#define RL_INT_WIDE [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]
#else
#define RL_INT_WIDE
#endif
template <class T, class U>
using IntRows = void (*)(int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t, U*);
template <int R, class T, class U> RL_INT_WIDE void int_rows_wide(int64_t n, int64_t k, const T* a, int64_t ars,
                                                                  int64_t acs, const T* b, int64_t ldb, U* sums) {
  int_rows<R>(n, k, a, ars, acs, b, ldb, sums);
}
template <int R, class T, class U>
void int_rows_plain(int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, const T* b, int64_t ldb, U* sums) {
  int_rows<R>(n, k, a, ars, acs, b, ldb, sums);
}

template <class T> void int_gemm(bool ta, bool tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b,
                                 int ldb, T beta, T* c, int ldc) {
  using U = typename wrap<T>::type;
  Scratch<T> packed;
  if (tb) {  // vectors run along the columns of b
    packed.reset(static_cast<int64_t>(k) * n);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t p = 0; p < k; ++p) packed[p * n + j] = b[j * ldb + p];
    b = packed.get();
    ldb = n;
  }
  int64_t ars = ta ? 1 : lda, acs = ta ? lda : 1;
  Scratch<U> sums(static_cast<int64_t>(4) * n);
  IntRows<T, U> four = int_rows_plain<4, T, U>;
  IntRows<T, U> one = int_rows_plain<1, T, U>;
  if (sizeof(T) == 8 && cpu::gemm_available()) four = int_rows_wide<4, T, U>, one = int_rows_wide<1, T, U>;
  for (int64_t i = 0; i < m; i += 4) {
    int rows = static_cast<int>(std::min<int64_t>(4, m - i));
    const T* ai = a + i * ars;
    if (rows == 4) four(n, k, ai, ars, acs, b, ldb, sums.get());
    else
      for (int r = 0; r < rows; ++r) one(n, k, ai + r * ars, ars, acs, b, ldb, sums.get() + int64_t{r} * n);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < n; ++j) {
        T& out = c[(i + r) * ldc + j];
        U sum = times(static_cast<U>(alpha), sums[r * n + j]);
        if constexpr (std::is_same_v<T, bool>) out = (sum != 0) || (beta && out);
        else out = static_cast<T>(beta == T(0) ? sum : plus(sum, times(static_cast<U>(beta), static_cast<U>(out))));
      }
  }
}

}  // namespace
}  // namespace rl::RL_ISA
