// Pooling: windows over the last one, two or three dimensions of planes.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// Spatial sizes are (depth, height, width); missing leading dimensions have size 1. The windows are given by tables,
// one entry per output position and dimension, so that plain, adaptive and fractional pooling are the same work.
struct PoolWindows {
  int64_t planes;
  int64_t in[3], out[3];
  const int64_t* start[3];  // first input position, inside the input
  const int64_t* end[3];    // one past the last, inside the input
  const int64_t* share[3];  // averages: what this dimension contributes to the divisor
  int64_t dilation[3] = {1, 1, 1};
  double divisor = 0;  // averages: divides instead of the shares unless 0
  int64_t channels =
      1;  // elements of each position, next to each other (channels last); more than 1 for floating types

  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
};

// All tensors are contiguous: (planes, positions, channels). Real types for max; floats, and int64 for average.
struct PoolKernels {
  // The first maximum of each window (NaN wins) and its position in the plane (int64; null where nobody wants it).
  void (*max)(const PoolWindows& w, const View& y, const View* indices, const View& x);
  // y = the mean of each window, and its adjoint.
  void (*average)(const PoolWindows& w, const View& y, const View& x);
  void (*average_grad)(const PoolWindows& w, const View& dx, const View& dy);
};

}  // namespace rl
