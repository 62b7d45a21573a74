// With an RL_OVERLAY, which gathers.
#include "cpu/image/grid_tap_corners.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/image/grid_pixels.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA {
namespace {

template <class T> RL_INLINE void combine(TapCorners<T>& at, const GridShape& s, int64_t n, bool derivatives) {
  for (int k = 0; k < at.count; ++k) {
    const int kx = k % at.axes[0].count, ky = k / at.axes[0].count % at.axes[1].count,
              kz = k / at.axes[0].count / at.axes[1].count;
    const AxisTaps<T>&x = at.axes[0], &y = at.axes[1], &z = at.axes[2];
    const auto width = static_cast<int32_t>(s.width), area = static_cast<int32_t>(s.width * s.height);
    for (int64_t q = 0; q < n; ++q)
      at.offset[k][q] = x.offset[kx][q] + y.offset[ky][q] * width + (s.dims == 3 ? z.offset[kz][q] * area : 0);
    for (int64_t q = 0; q < n; ++q)
      at.weight[k][q] = x.weight[kx][q] * y.weight[ky][q] * (s.dims == 3 ? z.weight[kz][q] : T(1));
    if (!derivatives) continue;
    for (int64_t q = 0; q < n; ++q) {
      const T wz = s.dims == 3 ? z.weight[kz][q] : T(1);
      at.derivative[0][k][q] = x.derivative[kx][q] * y.weight[ky][q] * wz;
      at.derivative[1][k][q] = x.weight[kx][q] * y.derivative[ky][q] * wz;
      if (s.dims == 3) at.derivative[2][k][q] = x.weight[kx][q] * y.weight[ky][q] * z.derivative[kz][q];
    }
  }
}
template <class T> RL_INLINE void sum(const TapCorners<T>& at, const T* __restrict from, int64_t n, T* __restrict to) {
  std::fill(to, to + n, T(0));
  for (int k = 0; k < at.count; ++k) {
    const T* __restrict weight = at.weight[k];
    const int32_t* __restrict offset = at.offset[k];
#pragma GCC ivdep
    for (int64_t q = 0; q < n; ++q) to[q] += weight[q] * from[offset[q]];
  }
}

#ifndef RL_OVERLAY
template <int kPadding, bool kAlign, class T>
RL_INLINE void fill_axis(AxisTaps<T>& taps, const GridShape& s, const T* grid, int d, int64_t n, int64_t size) {
  const T most = static_cast<T>(size - 1);
  auto put = [&](int k, int64_t q, T at, T w, T by) __attribute__((always_inline)) {
    const bool inside = at >= 0 && at <= most;
    taps.offset[k][q] = static_cast<int32_t>(inside ? at : T(0));
    // A weight that is no number stays so, as it does elsewhere, if it is cubic.
    taps.weight[k][q] = inside ? w : s.cubic ? w * 0 : T(0), taps.derivative[k][q] = inside ? by : T(0);
  };
  if (s.cubic) {
    constexpr T a = T(-0.75);  // Keys' weights
    auto near = [](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    auto far = [](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    auto near_derivative = [](T x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
    auto far_derivative = [](T x) { return (3 * a * x - 10 * a) * x + 8 * a; };
    const T low = kAlign ? T(0) : T(-0.5), span = kAlign ? most : most + 1;
    auto kept = [&](T at) __attribute__((always_inline)) {
      if constexpr (kPadding == 0) return at;
      if constexpr (kPadding == 2) {
        const T away = abs_(at - low), flips = floor_(away / span), rest = away - flips * span;
        at = span == 0 ? T(0) : (floor_(flips / 2) * 2 == flips ? rest : span - rest) + low;
      }
      at = at > 0 ? at : T(0);
      return at < most ? at : most;
    };
    taps.count = 4;
    for (int64_t q = 0; q < n; ++q) {
      const auto [at, by] = to_pixel<0, kAlign>(grid[q * s.dims + d], size);
      const T whole = floor_(at), t = at - whole;
      put(0, q, kept(whole - 1), far(t + 1), by * far_derivative(t + 1));
      put(1, q, kept(whole), near(t), by * near_derivative(t));
      put(2, q, kept(whole + 1), near(1 - t), -by * near_derivative(1 - t));
      put(3, q, kept(whole + 2), far(2 - t), -by * far_derivative(2 - t));
    }
  } else if (s.nearest) {
    taps.count = 1;
    for (int64_t q = 0; q < n; ++q)
      put(0, q, std::nearbyint(to_pixel<kPadding, kAlign, true>(grid[q * s.dims + d], size).at), T(1), T(0));
  } else {
    taps.count = 2;
    for (int64_t q = 0; q < n; ++q) {
      const auto [at, by] = to_pixel<kPadding, kAlign, true>(grid[q * s.dims + d], size);
      const T whole = floor_(at);
      put(0, q, whole, whole + 1 - at, -by), put(1, q, whole + 1, at - whole, by);
    }
  }
}
template <class T> RL_INLINE void fill(TapCorners<T>& at, const GridShape& s, const T* grid, int64_t n) {
  const int64_t sizes[3] = {s.width, s.height, s.depth};
  at.count = 1;
  for (int d = 0; d < s.dims; ++d) {
    auto run = [&](auto padding) {
      constexpr int kPadding = decltype(padding)::value;
      if (s.align_corners) fill_axis<kPadding, true>(at.axes[d], s, grid, d, n, sizes[d]);
      else fill_axis<kPadding, false>(at.axes[d], s, grid, d, n, sizes[d]);
    };
    if (s.padding == 0) run(std::integral_constant<int, 0>{});
    else if (s.padding == 1) run(std::integral_constant<int, 1>{});
    else run(std::integral_constant<int, 2>{});
    at.count *= at.axes[d].count;
  }
}
#endif

}  // namespace

#ifndef RL_OVERLAY
[[gnu::flatten]] void fill_taps(TapCorners<float>& at, const GridShape& s, const float* grid, int64_t n) {
  fill(at, s, grid, n);
}
[[gnu::flatten]] void fill_taps(TapCorners<double>& at, const GridShape& s, const double* grid, int64_t n) {
  fill(at, s, grid, n);
}
#endif
[[gnu::flatten]] void combine_taps(TapCorners<float>& at, const GridShape& s, int64_t n, bool derivatives) {
  combine(at, s, n, derivatives);
}
[[gnu::flatten]] void combine_taps(TapCorners<double>& at, const GridShape& s, int64_t n, bool derivatives) {
  combine(at, s, n, derivatives);
}
[[gnu::flatten]] void sum_taps(const TapCorners<float>& at, const float* from, int64_t n, float* to) {
  sum(at, from, n, to);
}
[[gnu::flatten]] void sum_taps(const TapCorners<double>& at, const double* from, int64_t n, double* to) {
  sum(at, from, n, to);
}

}  // namespace rl::RL_ISA
