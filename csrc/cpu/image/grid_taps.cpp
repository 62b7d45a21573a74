// Values of images and volumes at the points of a grid, as sums over the taps of each dimension: four of a cubic
// weight, two of a linear one, or the nearest.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "cpu/image/grid_pixels.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kPoints = 128;
constexpr int kMost = 4, kCorners = 16;

// Of each of some points: the offsets of its taps along one dimension, their weights (0 outside), and the weights'
// derivatives wrt the grid's coordinate.
template <class T> struct AxisTaps {
  int count = 0;
  alignas(64) int32_t offset[kMost][kPoints];
  alignas(64) T weight[kMost][kPoints], derivative[kMost][kPoints];

  template <int kPadding, bool kAlign>
  RL_INLINE void fill(const GridShape& s, const T* grid, int d, int64_t n, int64_t size) {
    const T most = static_cast<T>(size - 1);
    auto put = [&](int k, int64_t q, T at, T w, T by) __attribute__((always_inline)) {
      const bool inside = at >= 0 && at <= most;
      offset[k][q] = static_cast<int32_t>(inside ? at : T(0));
      // A weight that is no number stays so, as it does elsewhere, if it is cubic.
      weight[k][q] = inside ? w : s.cubic ? w * 0 : T(0), derivative[k][q] = inside ? by : T(0);
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
      count = 4;
      for (int64_t q = 0; q < n; ++q) {
        const auto [at, by] = to_pixel<0, kAlign>(grid[q * s.dims + d], size);
        const T whole = floor_(at), t = at - whole;
        put(0, q, kept(whole - 1), far(t + 1), by * far_derivative(t + 1));
        put(1, q, kept(whole), near(t), by * near_derivative(t));
        put(2, q, kept(whole + 1), near(1 - t), -by * near_derivative(1 - t));
        put(3, q, kept(whole + 2), far(2 - t), -by * far_derivative(2 - t));
      }
    } else if (s.nearest) {
      count = 1;
      for (int64_t q = 0; q < n; ++q)
        put(0, q, std::nearbyint(to_pixel<kPadding, kAlign, true>(grid[q * s.dims + d], size).at), T(1), T(0));
    } else {
      count = 2;
      for (int64_t q = 0; q < n; ++q) {
        const auto [at, by] = to_pixel<kPadding, kAlign, true>(grid[q * s.dims + d], size);
        const T whole = floor_(at);
        put(0, q, whole, whole + 1 - at, -by), put(1, q, whole + 1, at - whole, by);
      }
    }
  }
};

// The taps of all dimensions together.
template <class T> struct Corners {
  AxisTaps<T> axes[3];  // x, y, z
  int count = 0;
  alignas(64) int32_t offset[kCorners][kPoints];
  alignas(64) T weight[kCorners][kPoints], derivative[3][kCorners][kPoints];

  void fill(const GridShape& s, const T* grid, int64_t n, bool derivatives) {
    if (has_avx512()) fill_avx512(s, grid, n, derivatives);
    else fill_plain(s, grid, n, derivatives);
  }
  RL_AVX512 [[gnu::flatten]] void fill_avx512(const GridShape& s, const T* grid, int64_t n, bool derivatives) {
    fill_here(s, grid, n, derivatives);
  }
  [[gnu::flatten]] void fill_plain(const GridShape& s, const T* grid, int64_t n, bool derivatives) {
    fill_here(s, grid, n, derivatives);
  }
  RL_INLINE void fill_here(const GridShape& s, const T* grid, int64_t n, bool derivatives) {
    const int64_t sizes[3] = {s.width, s.height, s.depth};
    count = 1;
    for (int d = 0; d < s.dims; ++d) {
      auto run = [&](auto padding) {
        constexpr int kPadding = decltype(padding)::value;
        if (s.align_corners) axes[d].template fill<kPadding, true>(s, grid, d, n, sizes[d]);
        else axes[d].template fill<kPadding, false>(s, grid, d, n, sizes[d]);
      };
      if (s.padding == 0) run(std::integral_constant<int, 0>{});
      else if (s.padding == 1) run(std::integral_constant<int, 1>{});
      else run(std::integral_constant<int, 2>{});
      count *= axes[d].count;
    }
    for (int k = 0; k < count; ++k) {
      const int kx = k % axes[0].count, ky = k / axes[0].count % axes[1].count, kz = k / axes[0].count / axes[1].count;
      const AxisTaps<T>&x = axes[0], &y = axes[1], &z = axes[2];
      const auto width = static_cast<int32_t>(s.width), area = static_cast<int32_t>(s.width * s.height);
      for (int64_t q = 0; q < n; ++q)
        offset[k][q] = x.offset[kx][q] + y.offset[ky][q] * width + (s.dims == 3 ? z.offset[kz][q] * area : 0);
      for (int64_t q = 0; q < n; ++q)
        weight[k][q] = x.weight[kx][q] * y.weight[ky][q] * (s.dims == 3 ? z.weight[kz][q] : T(1));
      if (!derivatives) continue;
      for (int64_t q = 0; q < n; ++q) {
        const T wz = s.dims == 3 ? z.weight[kz][q] : T(1);
        derivative[0][k][q] = x.derivative[kx][q] * y.weight[ky][q] * wz;
        derivative[1][k][q] = x.weight[kx][q] * y.derivative[ky][q] * wz;
        if (s.dims == 3) derivative[2][k][q] = x.weight[kx][q] * y.weight[ky][q] * z.derivative[kz][q];
      }
    }
  }
};

// to[q] = the sum over k of weights[k][q] from[offset[k][q]]
template <class T>
RL_INLINE void sum_taps_here(const Corners<T>& at, const T* __restrict from, int64_t n, T* __restrict to) {
  std::fill(to, to + n, T(0));
  for (int k = 0; k < at.count; ++k) {
    const T* __restrict weight = at.weight[k];
    const int32_t* __restrict offset = at.offset[k];
#pragma GCC ivdep
    for (int64_t q = 0; q < n; ++q) to[q] += weight[q] * from[offset[q]];
  }
}
template <class T>
RL_AVX512 [[gnu::flatten]] void sum_taps_avx512(const Corners<T>& at, const T* from, int64_t n, T* to) {
  sum_taps_here(at, from, n, to);
}
template <class T> void sum_taps(const Corners<T>& at, const T* from, int64_t n, T* to) {
  if (has_avx512()) sum_taps_avx512(at, from, n, to);
  else sum_taps_here(at, from, n, to);
}

template <class T> struct Sampler {
  const GridShape& s;
  const T *x, *grid;
  int64_t plane = s.depth * s.height * s.width, blocks = (s.points + kPoints - 1) / kPoints;

  // body(corners, image, first point, points) for blocks of points
  template <class F> void each(int64_t grain, bool derivatives, F&& body) const {
    parallel_for(0, s.batch * blocks, grain, [&](int64_t first, int64_t last) {
      Corners<T> at;
      for (int64_t i = first; i < last; ++i) {
        const int64_t n = i / blocks, q0 = i % blocks * kPoints, count = std::min(kPoints, s.points - q0);
        at.fill(s, grid + (n * s.points + q0) * s.dims, count, derivatives);
        body(at, n, q0, count);
      }
    });
  }
  int64_t grain() const { return std::max<int64_t>(1, 40000 / (kPoints * (s.channels + 4) * 8)); }

  void forward(T* out) const {
    each(grain(), false, [&](const Corners<T>& at, int64_t n, int64_t q0, int64_t count) {
      for (int64_t c = 0; c < s.channels; ++c)
        sum_taps(at, x + (n * s.channels + c) * plane, count, out + (n * s.channels + c) * s.points + q0);
    });
  }
  void by_grid(T* dgrid, const T* dy) const {
    each(grain(), true, [&](const Corners<T>& at, int64_t n, int64_t q0, int64_t count) {
      T sums[3][kPoints] = {};
      for (int64_t c = 0; c < s.channels; ++c) {
        const T *from = x + (n * s.channels + c) * plane, *side = dy + (n * s.channels + c) * s.points + q0;
        for (int k = 0; k < at.count; ++k)
          for (int d = 0; d < s.dims; ++d)
            for (int64_t q = 0; q < count; ++q)
              sums[d][q] += at.derivative[d][k][q] * (from[at.offset[k][q]] * side[q]);
      }
      T* to = dgrid + (n * s.points + q0) * s.dims;
      for (int64_t q = 0; q < count; ++q)
        for (int d = 0; d < s.dims; ++d) to[q * s.dims + d] = sums[d][q];
    });
  }
  // A thread adds to whole planes of its own.
  void by_input(T* dx, const T* dy) const {
    const int64_t part = std::max<int64_t>(1, (s.channels + 3) / 4), parts = (s.channels + part - 1) / part;
    parallel_for(0, s.batch * parts, std::max<int64_t>(1, 40000 / (s.points * part * 16 + 1)),
                 [&](int64_t first, int64_t last) {
                   Corners<T> at;
                   for (int64_t i = first; i < last; ++i) {
                     const int64_t n = i / parts, c0 = i % parts * part, c1 = std::min(s.channels, c0 + part);
                     T* to = dx + (n * s.channels + c0) * plane;
                     std::fill(to, to + (c1 - c0) * plane, T(0));
                     for (int64_t q0 = 0; q0 < s.points; q0 += kPoints) {
                       const int64_t count = std::min(kPoints, s.points - q0);
                       at.fill(s, grid + (n * s.points + q0) * s.dims, count, false);
                       for (int64_t c = c0; c < c1; ++c) {
                         const T* side = dy + (n * s.channels + c) * s.points + q0;
                         T* image = to + (c - c0) * plane;
                         for (int k = 0; k < at.count; ++k)
                           for (int64_t q = 0; q < count; ++q) image[at.offset[k][q]] += at.weight[k][q] * side[q];
                       }
                     }
                   }
                 });
  }
};

template <class F> void with_type(DType t, F&& f) {
  if (t == DType::Float64) f(double{});
  else f(float{});
}

}  // namespace

void taps_sample(const GridShape& s, const View& out, const View& x, const View& grid) {
  with_type(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    Sampler<T>{s, x.as<T>(), grid.as<T>()}.forward(out.as<T>());
  });
}
void taps_sample_grad(const GridShape& s, const View* dx, const View* dgrid, const View& dy, const View& x,
                      const View& grid) {
  with_type(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    Sampler<T> sampler{s, x.as<T>(), grid.as<T>()};
    if (dx) sampler.by_input(dx->as<T>(), dy.as<T>());
    if (dgrid) sampler.by_grid(dgrid->as<T>(), dy.as<T>());
  });
}

}  // namespace rl::RL_ISA
