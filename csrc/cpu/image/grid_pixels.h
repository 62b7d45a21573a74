// Coordinates of a grid in pixels, and the general sampling algorithm at them.
#pragma once
#include "backend/resample.h"
#include "cpu/isa.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA {

// As ResampleKernels, for volumes and cubic weights (grid_taps.cpp).
void taps_sample(const GridShape& s, const View& out, const View& x, const View& grid);
void taps_sample_grad(const GridShape& s, const View* dx, const View* dgrid, const View& dy, const View& x,
                      const View& grid);

namespace {

// A coordinate in pixels, and its derivative wrt the grid's coordinate.
template <class T> struct Pixel {
  T at, derivative;
};
// In images the product is not rounded on its own, in volumes it is, both as in PyTorch: grids often point at the
// middles of pixels, where the derivative changes, and the last bit decides on which side they are.
template <int kPadding, bool kAlign, bool kVolume = false, class T> RL_INLINE Pixel<T> to_pixel(T g, int64_t size) {
  T n = static_cast<T>(size);
  T at = kAlign ? (g + 1) / 2 * (n - 1) : kVolume ? ((g + 1) * n - 1) / 2 : fma(g + 1, n, T(-1)) / 2;
  T derivative = kAlign ? (n - 1) / 2 : n / 2;
  if constexpr (kPadding == 2) {
    T low = kAlign ? T(0) : T(-0.5), span = kAlign ? n - 1 : n;
    T from = at - low, away = abs_(from), flips = floor_(away / span), rest = away - flips * span;
    bool even = floor_(flips / 2) * 2 == flips;
    at = span == 0 ? T(0) : (even ? rest : span - rest) + low;
    derivative = span == 0 ? T(0) : ((from < 0) == even ? -derivative : derivative);
  }
  if constexpr (kPadding != 0) {
    derivative = at <= 0 || at >= n - 1 ? T(0) : derivative;
    at = at > 0 ? at : T(0);  // a NaN becomes 0
    at = at < n - 1 ? at : n - 1;
  }
  return {at, derivative};
}

}  // namespace
}  // namespace rl::RL_ISA
