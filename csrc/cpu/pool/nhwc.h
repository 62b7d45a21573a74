// What the files of pooling with channels last have in common.
#pragma once
#include <algorithm>

#include "base/parallel.h"
#include "cpu/pool/pool.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int64_t kChannels = 64;  // of one pass through a window

// n elements in their computing type: in place, or copied into `buffer`.
template <class T>
[[gnu::always_inline]] inline const compute_t<T>* as_computed(const T* p, int64_t n, compute_t<T>* buffer) {
  if constexpr (std::is_same_v<T, compute_t<T>>) {
    return p;
  } else if constexpr (is_half_v<T>) {
    widen(p, buffer, n);
    return buffer;
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<compute_t<T>>(p[i]);
    return buffer;
  }
}
template <class T> [[gnu::always_inline]] inline void write_back(const compute_t<T>* from, int64_t n, T* to) {
  if constexpr (is_half_v<T>) narrow(from, to, n);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

// f(position) for the positions of output (a, b, c), row by row; row() after each.
template <class F, class R>
[[gnu::always_inline]] inline void each_tap(const PoolWindows& w, int64_t a, int64_t b, int64_t c, F&& f, R&& row) {
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; i += w.dilation[0])
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; j += w.dilation[1]) {
      for (int64_t k = w.start[2][c]; k < w.end[2][c]; k += w.dilation[2]) f((i * w.in[1] + j) * w.in[2] + k);
      row();
    }
}

// body(sample, a, b): rows of outputs, shared by threads.
template <class F> void each_row(const PoolWindows& w, F&& body) {
  int64_t taps = 1;
  for (int d = 0; d < 3; ++d) taps *= std::max<int64_t>(1, w.end[d][w.out[d] / 2] - w.start[d][w.out[d] / 2]);
  const int64_t rows = w.out[0] * w.out[1], work = w.out[2] * w.channels * taps;
  parallel_for(0, w.planes * rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, work)),
               [&](int64_t first, int64_t last) {
                 for (int64_t r = first; r < last; ++r) body(r / rows, r % rows / w.out[1], r % w.out[1]);
               });
}

}  // namespace
}  // namespace rl::RL_ISA
