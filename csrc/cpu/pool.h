// Pooling where the numbers of a place, one per channel, are neighbours: of floating types.
#pragma once
#include "backend/pool.h"
#include "base/dtype.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

template <class T> void max_channels(const PoolWindows& w, T* y, int64_t* places, const T* x);
template <class T> void average_channels(const PoolWindows& w, T* y, const T* x);
template <class T> void average_grad_channels(const PoolWindows& w, T* dx, const T* dy);

// What the sum of window (a, b, c) is divided by.
template <class T> compute_t<T> pool_divisor(const PoolWindows& w, int64_t a, int64_t b, int64_t c) {
  if (w.divisor != 0) return static_cast<compute_t<T>>(w.divisor);
  return static_cast<compute_t<T>>(w.share[0][a] * w.share[1][b] * w.share[2][c]);
}

}  // namespace rl::RL_ISA
