// What the files of pooling have in common.
#pragma once
#include <algorithm>
#include <type_traits>

#include "backend/pool.h"
#include "base/dtype.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

// See backend/pool.h.
void max_windows(const PoolWindows& w, const View& y, const View* indices, const View& x);
void average_windows(const PoolWindows& w, const View& y, const View& x);
void average_windows_grad(const PoolWindows& w, const View& dx, const View& dy);

// Where the elements of a position, one per channel, are neighbours: of floating types.
template <class T> void max_channels(const PoolWindows& w, T* y, int64_t* indices, const T* x);
template <class T> void average_channels(const PoolWindows& w, T* y, const T* x);
template <class T> void average_grad_channels(const PoolWindows& w, T* dx, const T* dy);

// What the sum of window (a, b, c) is divided by.
template <class T> compute_t<T> pool_divisor(const PoolWindows& w, int64_t a, int64_t b, int64_t c) {
  if (w.divisor != 0) return static_cast<compute_t<T>>(w.divisor);
  return static_cast<compute_t<T>>(w.share[0][a] * w.share[1][b] * w.share[2][c]);
}

// Elements of a window in the middle.
inline int64_t window_taps(const PoolWindows& w) {
  int64_t taps = 1;
  for (int d = 0; d < 3; ++d)
    if (w.out[d] > 0) taps *= std::max<int64_t>(1, w.end[d][w.out[d] / 2] - w.start[d][w.out[d] / 2]);
  return taps;
}

inline int64_t plane_grain(const PoolWindows& w) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, w.out_plane() * window_taps(w)));
}

// The types whose windows run in vectors.
template <class T> inline constexpr bool kInVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

}  // namespace rl::RL_ISA
