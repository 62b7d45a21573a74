// Elimination of a few columns with exchanges of rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kPanel = 16;  // columns that are eliminated side by side, in memory of their own

// Up to kPanel columns of a, side by side and each contiguous, so that a step is vectors of rows; as many rows as whole
// vectors have, the last of them zero.
template <class T> struct LuPanel {
  using V = Vec<T>;
  static constexpr int64_t W = V::W;
  int64_t m, n, height;
  Scratch<T> columns;

  LuPanel(int64_t rows, int64_t cols) : m(rows), n(cols), height((rows + W - 1) / W * W), columns(kPanel * height) {}
  T* column(int64_t j) const { return columns.get() + j * height; }

  // `in`: from a; else back.
  void transpose(T* a, int64_t ld, bool in) const {
    for (int64_t c = 0; c < n; c += W) {
      const auto mask = first_lanes<T>(n - c);
      for (int64_t i = 0; i < m; i += W) {
        typename V::Reg r[W];
        if (in) {
          for (int64_t q = 0; q < W; ++q) r[q] = i + q < m ? V::load(a + (i + q) * ld + c, mask) : V::zero();
          RL_ISA::transpose(r);
          for (int64_t q = 0; q < W; ++q) V::store(column(c + q) + i, r[q]);
        } else {
          for (int64_t q = 0; q < W; ++q) r[q] = V::load(column(c + q) + i);
          RL_ISA::transpose(r);
          for (int64_t q = 0; q < W && i + q < m; ++q) V::store(a + (i + q) * ld + c, r[q], mask);
        }
      }
    }
  }
  // The lanes of the vector at i that stand for rows from `first` on.
  static typename V::Mask from(int64_t first, int64_t i) {
    return static_cast<typename V::Mask>(~first_lanes<T>(first - i));
  }
  // The row, from `first` on, of the element of column j that is first among the largest; `first` where all are NaN.
  int64_t largest(int64_t j, int64_t first) const {
    const T* x = column(j);
    auto most = V::all(T(-1));
    const int64_t start = first / W * W;
    for (int64_t i = start; i < m; i += W) {
      const auto y = V::max(V::abs(V::load(x + i)), most);
      if (i >= first) most = y;
      else most = V::select(from(first, i), y, most);
    }
    T lanes[W];
    V::store(lanes, most);
    const auto top = V::all(*std::max_element(lanes, lanes + W));
    for (int64_t i = start; i < m; i += W) {
      const unsigned hits = static_cast<unsigned>(V::equal(V::abs(V::load(x + i)), top) & from(first, i));
      if (hits) return i + __builtin_ctz(hits) < m ? i + __builtin_ctz(hits) : first;
    }
    return first;
  }

  // Columns j + 1 to n, up to N of them from c on: what is below row j loses its part of row j.
  template <int N> void take_off(int64_t j, int64_t c) const {
    typename V::Reg by[N];
#pragma GCC unroll 4
    for (int q = 0; q < N; ++q) by[q] = V::all(-column(c + q)[j]);
    const int64_t first = j + 1;
    int64_t i = first / W * W;
    if (i < first) {
      const auto mask = from(first, i);
      for (int q = 0; q < N; ++q) {
        T* to = column(c + q) + i;
        V::store(to, V::fma(by[q], V::load(column(j) + i, mask), V::load(to, mask)), mask);
      }
      i += W;
    }
    for (; i < m; i += W) {
      const auto x = V::load(column(j) + i);
#pragma GCC unroll 4
      for (int q = 0; q < N; ++q) {
        T* to = column(c + q) + i;
        V::store(to, V::fma(by[q], x, V::load(to)));
      }
    }
  }
  int run(int* pivots) const {
    int info = 0;
    for (int64_t j = 0; j < std::min(m, n); ++j) {
      const int64_t best = largest(j, j);
      pivots[j] = static_cast<int>(best) + 1;
      if (best != j)
        for (int64_t c = 0; c < n; ++c) std::swap(column(c)[j], column(c)[best]);
      const T pivot = column(j)[j];
      if (pivot == T(0)) {
        if (!info) info = static_cast<int>(j) + 1;
        continue;
      }
      const bool divides = std::fabs(pivot) < std::numeric_limits<T>::min();  // by values that have no reciprocal
      const auto by = V::all(divides ? pivot : T(1) / pivot);
      for (int64_t i = (j + 1) / W * W; i < m; i += W) {
        const auto mask = from(j + 1, i);
        const auto x = V::load(column(j) + i, mask);
        V::store(column(j) + i, divides ? x / by : x * by, mask);
      }
      int64_t c = j + 1;
      for (; c + 4 <= n; c += 4) take_off<4>(j, c);
      for (; c < n; ++c) take_off<1>(j, c);
    }
    return info;
  }
};
template <class T> int lu_panel(int64_t m, int64_t n, T* a, int64_t ld, int* pivots) {
  const LuPanel<T> panel(m, n);
  panel.transpose(a, ld, true);
  const int info = panel.run(pivots);
  panel.transpose(a, ld, false);
  return info;
}

}  // namespace
}  // namespace rl::RL_ISA
