// GEMMs of matrices so small that calling a library for each takes longer than the GEMM: rotations, joints, the
// blocks of a batch.
#pragma once
#include <cstdint>
#include <cstring>

#include "cpu/isa.h"
#include "cpu/simd/vector.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int64_t kTinySum = 16;     // the longest
inline constexpr int64_t kInnerSum = 4096;  // the longest of a single element

// A row of N elements: a vector, where the processor has such.
template <int N, class T> struct TinyRow {
  using Type = typename simd::Vec<T, sizeof(T) * N>::Reg;
  [[gnu::always_inline]] static void add(Type& sum, T x, const Type& row) { sum += x * row; }
};
template <class T> struct TinyRow<3, T> {
  struct Type {
    T at[3];
    T& operator[](int j) { return at[j]; }
  };
  [[gnu::always_inline]] static void add(Type& sum, T x, const Type& row) {
    sum.at[0] += x * row.at[0], sum.at[1] += x * row.at[1], sum.at[2] += x * row.at[2];
  }
};

// c (m, N) = alpha * a (m, k) @ b (k, N) + beta * d, d null for none, all strides free; k <= kTinySum.
template <int N, class T> void tiny_gemm(int64_t m, int64_t k, const T* a, int64_t ars, int64_t acs, const T* b,
                                         int64_t brs, int64_t bcs, T* c, int64_t crs, int64_t ccs, const T* d,
                                         int64_t drs, int64_t dcs, T alpha, T beta) {
  using Kind = TinyRow<N, T>;
  using Row = typename Kind::Type;
  Row rows[kTinySum];
  for (int64_t p = 0; p < k; ++p) {
    const T* from = b + p * brs;
    if (bcs == 1) std::memcpy(&rows[p], from, sizeof(Row));
    else
      for (int j = 0; j < N; ++j) rows[p][j] = from[j * bcs];
  }
  auto put = [&](int64_t i, const Row& sums) {
    Row scaled = {};
    Kind::add(scaled, alpha, sums);
    T* to = c + i * crs;
    if (d)
      for (int j = 0; j < N; ++j) to[j * ccs] = scaled[j] + beta * d[i * drs + j * dcs];
    else if (ccs == 1) std::memcpy(to, &scaled, sizeof(Row));
    else
      for (int j = 0; j < N; ++j) to[j * ccs] = scaled[j];
  };
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) {  // four sums at a time: one alone waits for itself
    Row s0 = {}, s1 = {}, s2 = {}, s3 = {};
    const T* x = a + i * ars;
    for (int64_t p = 0; p < k; ++p, x += acs) {
      Kind::add(s0, x[0], rows[p]), Kind::add(s1, x[ars], rows[p]);
      Kind::add(s2, x[2 * ars], rows[p]), Kind::add(s3, x[3 * ars], rows[p]);
    }
    put(i, s0), put(i + 1, s1), put(i + 2, s2), put(i + 3, s3);
  }
  for (; i < m; ++i) {
    Row sum = {};
    for (int64_t p = 0; p < k; ++p) Kind::add(sum, a[i * ars + p * acs], rows[p]);
    put(i, sum);
  }
}

}  // namespace
}  // namespace rl::RL_ISA
