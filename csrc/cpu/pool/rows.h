// Windows of fixed size and step along the rows of planes: many outputs of a row at once, in SIMD loops.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backend/pool.h"
#include "cpu/isa.h"
#include "cpu/simd/math.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

// Outputs [first, end) whose windows have the full size, begin with stride `step`, and the position of output 0's
// window.
struct EvenRun {
  int64_t first = 0, end = 0, begin = 0;
};
inline EvenRun even_run(const PoolWindows& w, int d, int64_t size, int64_t step) {
  EvenRun run;
  auto full = [&](int64_t c) { return w.end[d][c] - w.start[d][c] == size; };
  while (run.first < w.out[d] && !full(run.first)) ++run.first;
  if (run.first == w.out[d]) return run;
  run.begin = w.start[d][run.first] - run.first * step;
  run.end = run.first;
  while (run.end < w.out[d] && full(run.end) && w.start[d][run.end] == run.begin + run.end * step) ++run.end;
  return run;
}

// The longest window along a dimension, and the distance of the first two of that size.
struct WindowSize {
  int64_t size = 0, step = 1;
};
inline WindowSize window_size(const PoolWindows& w, int d) {
  WindowSize s;
  for (int64_t c = 0; c < w.out[d]; ++c) s.size = std::max(s.size, w.end[d][c] - w.start[d][c]);
  for (int64_t c = 0; c + 1 < w.out[d]; ++c)
    if (w.end[d][c] - w.start[d][c] == s.size && w.end[d][c + 1] - w.start[d][c + 1] == s.size) {
      s.step = w.start[d][c + 1] - w.start[d][c];
      break;
    }
  return s;
}

template <class T> using IndexOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// The elements first, first + 2, ... of two neighbouring vectors.
template <int first, class T> RL_INLINE Vec<T> every_second(const Vec<T>& a, const Vec<T>& b) {
  return simd::permute<[](int lane) { return 2 * lane + first; }>(a, b);
}

// One window after the other: c in [c, n). See max_row.
template <int KH, int KW, int S, class T>
void max_row_rest(const T* x, int64_t width, int64_t base, int64_t c, int64_t n, T* y, int64_t* at) {
  for (; c < n; ++c) {
    T best = x[c * S];
    int64_t position = 0;
    for (int i = 0; i < KH; ++i)
      for (int k = 0; k < KW; ++k) {
        T v = x[i * width + c * S + k];
        if (!(v <= best) && best == best) best = v, position = i * width + k;
      }
    y[c] = best;
    if (at) at[c] = base + c * S + position;
  }
}
// y[c] and at[c] = the first maximum (NaN wins) of KH rows, KW columns at x + c * S, `width` between rows; positions
// are counted from `base` at x, and not wanted where `at` is null. Nothing is read from `end` on.
template <int KH, int KW, int S, class T>
void max_row(const T* x, const T* end, int64_t width, int64_t base, int64_t n, T* y, int64_t* at) {
  constexpr int L = kLanes<T>;
  static_assert(S <= 2);
  int64_t offsets[KH * KW];
  for (int q = 0; q < KH * KW; ++q) offsets[q] = q / KW * width + q % KW;
  // A vector reads up to here beyond its last window's first element.
  bool whole = n >= L && x + (KH - 1) * width + (n - 1) * S + KW + (S == 2 && KW == 3 ? 1 : 0) <= end;
  int64_t c = 0, last = whole ? n : n - 1;
  while (c + L <= last) {
    Vec<T> best{};
    Vec<IndexOf<T>> position{};
#pragma GCC unroll 3
    for (int i = 0; i < KH; ++i) {
      const T* row = x + i * width + c * S;
      Vec<T> taps[3];
      if constexpr (S == 1) {
#pragma GCC unroll 3
        for (int k = 0; k < KW; ++k) taps[k] = load_vec(row + k);
      } else {
        Vec<T> a = load_vec(row), b = load_vec(row + L);
        taps[0] = every_second<0, T>(a, b);
        taps[1] = every_second<1, T>(a, b);
        if constexpr (KW == 3) taps[2] = every_second<0, T>(load_vec(row + 2), load_vec(row + 2 + L));
      }
#pragma GCC unroll 3
      for (int k = 0; k < KW; ++k) {
        if (i + k == 0) {
          best = taps[0];
          continue;
        }
        auto better = ~(taps[k] <= best) & (best == best);
        best = better ? taps[k] : best;
        position = better ? Vec<IndexOf<T>>{} + static_cast<IndexOf<T>>(i * KW + k) : position;
      }
    }
    store_vec(y + c, best);
    if (at)
      for (int j = 0; j < L; ++j) at[c + j] = base + (c + j) * S + offsets[position[j]];
    if (c + L < last && c + 2 * L > last && whole) c = last - L;  // the last vector overlaps the one before
    else c += L;
  }
  max_row_rest<KH, KW, S>(x, width, base, c, n, y, at);
}
template <int KH, int KW, int S, class T>
void sum_row(const T* __restrict x, int64_t width, int64_t n, T by, T* __restrict y) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) {
    T sum = 0;
#pragma GCC unroll 3
    for (int i = 0; i < KH; ++i)
#pragma GCC unroll 3
      for (int k = 0; k < KW; ++k) sum += x[i * width + c * S + k];
    y[c] = sum / by;
  }
}

template <class T> using MaxRow = void (*)(const T*, const T*, int64_t, int64_t, int64_t, T*, int64_t*);
template <class T> using SumRow = void (*)(const T*, int64_t, int64_t, T, T*);
// Which loop handles windows of this height, width and step along the width; null for none.
template <class T> MaxRow<T> max_row_of(int64_t kh, int64_t kw, int64_t step) {
  if (kh == 2 && kw == 2 && step == 2) return max_row<2, 2, 2, T>;
  if (kh == 3 && kw == 3 && step == 2) return max_row<3, 3, 2, T>;
  if (kh == 3 && kw == 3 && step == 1) return max_row<3, 3, 1, T>;
  if (kh == 2 && kw == 2 && step == 1) return max_row<2, 2, 1, T>;
  if (kh == 1 && kw == 2 && step == 2) return max_row<1, 2, 2, T>;
  if (kh == 1 && kw == 3 && step == 2) return max_row<1, 3, 2, T>;
  if (kh == 1 && kw == 3 && step == 1) return max_row<1, 3, 1, T>;
  return nullptr;
}
template <class T> SumRow<T> sum_row_of(int64_t kh, int64_t kw, int64_t step) {
  if (kh == 2 && kw == 2 && step == 2) return sum_row<2, 2, 2, T>;
  if (kh == 3 && kw == 3 && step == 2) return sum_row<3, 3, 2, T>;
  if (kh == 3 && kw == 3 && step == 1) return sum_row<3, 3, 1, T>;
  if (kh == 1 && kw == 2 && step == 2) return sum_row<1, 2, 2, T>;
  if (kh == 1 && kw == 3 && step == 1) return sum_row<1, 3, 1, T>;
  return nullptr;
}

// The columns whose windows are evenly spaced, and the loop for them, if there is one: for planes of depth 1.
template <class Loop> struct EvenWindows {
  Loop loop = nullptr;
  int64_t height = 0, step = 1;
  EvenRun columns;
  template <class Find> EvenWindows(const PoolWindows& w, Find find) {
    const WindowSize rows = window_size(w, 1), row = window_size(w, 2);
    columns = even_run(w, 2, row.size, row.step);
    height = rows.size, step = row.step;
    if (w.in[0] == 1 && w.out[0] == 1 && w.dilation[1] == 1 && w.dilation[2] == 1)
      loop = find(rows.size, row.size, row.step);
  }
  // Whether `loop` handles output row b: its windows have the full height.
  bool full(const PoolWindows& w, int64_t b) const { return loop && w.end[1][b] - w.start[1][b] == height; }
  // Whether there are vectors of outputs that lie near each other.
  bool many(int64_t lanes) const { return step > 0 && step <= 8 && columns.end - columns.first >= lanes; }
};

}  // namespace
}  // namespace rl::RL_ISA
