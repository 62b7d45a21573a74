// Values of images at given points, and sums of rows of a table.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

// Images x are (batch, channels, height, width), the grid (batch, points, 2) with coordinates x, y in [-1, 1];
// volumes (batch, channels, depth, height, width), the grid (batch, points, 3) with x, y, z.
struct GridShape {
  int64_t batch, channels, height, width, points;
  bool nearest;        // else bilinear
  int padding;         // outside: 0 zeros, 1 the border, 2 reflection
  bool align_corners;  // -1 and 1 are the corner pixels' centres, else their outer edges
  bool cubic = false;  // images only
  int dims = 2;
  int64_t depth = 1;
};

// One dimension resized: (outer, n_in, inner) and (outer, n_out, inner). Result j is the sum over k < taps of
// weights[j * taps + k] times the element sources[j * taps + k], which is inside.
struct ResizeTable {
  int64_t outer, n_in, n_out, inner;
  int taps;
  const int64_t* sources;
  const double* weights;
};

// All contiguous, floats or doubles.
struct ResampleKernels {
  // out (batch, channels, points)
  void (*grid_sample)(const GridShape& s, const View& out, const View& x, const View& grid);
  // dx and dgrid from dy (as out); each may be null
  void (*grid_sample_grad)(const GridShape& s, const View* dx, const View* dgrid, const View& dy, const View& x,
                           const View& grid);
  // out (bags, width): row b is the sum of the table's rows at indices[starts[b] .. starts[b + 1]), each times its
  // factor (of indices' length, may be null). starts has one entry more than there are bags and is checked here, as the
  // indices (RuntimeError) are.
  void (*bag_sum)(const View& out, const View& table, const View& indices, const View& starts, const View* factors);
  // Its gradient: factor[i] * dy[bag of i] is added to dw at indices[i]; indices and starts have been checked.
  void (*bag_put)(const View& dw, const View& dy, const View& indices, const View& starts, const View* factors);
  // Reduced-precision types too, and bytes, whose weights are rounded to 15 bits. dx is overwritten.
  void (*resize)(const ResizeTable& s, const View& out, const View& in);
  void (*resize_grad)(const ResizeTable& s, const View& dx, const View& dy);
};

}  // namespace rl
