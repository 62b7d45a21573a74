// Coordinates of a grid in pixels, and the general way of sampling at them.
#pragma once
#include "backend/resample.h"
#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA {

// As ResampleKernels, for volumes and cubic weights (grid_taps.cpp).
void taps_sample(const GridShape& s, const View& out, const View& x, const View& grid);
void taps_sample_grad(const GridShape& s, const View* dx, const View* dgrid, const View& dy, const View& x,
                      const View& grid);

namespace {

// A coordinate in pixels, and its derivative by the grid's number.
template <class T> struct Pixel {
  T at, slope;
};
// In pictures the product is not rounded on its own, in volumes it is, both as in PyTorch: grids often point at the
// middles of pixels, where the slope changes, and the last bit decides on which side they are.
template <int kPadding, bool kAlign, bool kVolume = false, class T> RL_INLINE Pixel<T> to_pixel(T g, int64_t size) {
  T n = static_cast<T>(size);
  T at = kAlign ? (g + 1) / 2 * (n - 1) : kVolume ? ((g + 1) * n - 1) / 2 : fma(g + 1, n, T(-1)) / 2;
  T slope = kAlign ? (n - 1) / 2 : n / 2;
  if constexpr (kPadding == 2) {
    T low = kAlign ? T(0) : T(-0.5), span = kAlign ? n - 1 : n;
    T from = at - low, away = abs_(from), flips = floor_(away / span), rest = away - flips * span;
    bool even = floor_(flips / 2) * 2 == flips;
    at = span == 0 ? T(0) : (even ? rest : span - rest) + low;
    slope = span == 0 ? T(0) : ((from < 0) == even ? -slope : slope);
  }
  if constexpr (kPadding != 0) {
    slope = at <= 0 || at >= n - 1 ? T(0) : slope;
    at = at > 0 ? at : T(0);  // a NaN becomes 0
    at = at < n - 1 ? at : n - 1;
  }
  return {at, slope};
}

}  // namespace
}  // namespace rl::RL_ISA
