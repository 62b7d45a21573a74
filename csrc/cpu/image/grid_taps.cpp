// Values of images and volumes at the points of a grid, as sums over the taps of each dimension: four of a cubic
// weight, two of a linear one, or the nearest.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "cpu/features.h"
#include "cpu/image/grid_pixels.h"
#include "cpu/image/grid_tap_corners.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kPoints = kTapPoints;

template <class T> void fill(TapCorners<T>& at, const GridShape& s, const T* grid, int64_t n, bool derivatives) {
  fill_taps(at, s, grid, n);
  has_avx512() ? avx512::combine_taps(at, s, n, derivatives) : combine_taps(at, s, n, derivatives);
}
template <class T> void sum(const TapCorners<T>& at, const T* from, int64_t n, T* to) {
  has_avx512() ? avx512::sum_taps(at, from, n, to) : sum_taps(at, from, n, to);
}

template <class T> struct Sampler {
  const GridShape& s;
  const T *x, *grid;
  int64_t plane = s.depth * s.height * s.width, blocks = (s.points + kPoints - 1) / kPoints;

  // body(corners, image, first point, points) for blocks of points
  template <class F> void each(int64_t grain, bool derivatives, F&& body) const {
    parallel_for(0, s.batch * blocks, grain, [&](int64_t first, int64_t last) {
      TapCorners<T> at;
      for (int64_t i = first; i < last; ++i) {
        const int64_t n = i / blocks, q0 = i % blocks * kPoints, count = std::min(kPoints, s.points - q0);
        fill(at, s, grid + (n * s.points + q0) * s.dims, count, derivatives);
        body(at, n, q0, count);
      }
    });
  }
  int64_t grain() const { return std::max<int64_t>(1, 40000 / (kPoints * (s.channels + 4) * 8)); }

  void forward(T* out) const {
    each(grain(), false, [&](const TapCorners<T>& at, int64_t n, int64_t q0, int64_t count) {
      for (int64_t c = 0; c < s.channels; ++c)
        sum(at, x + (n * s.channels + c) * plane, count, out + (n * s.channels + c) * s.points + q0);
    });
  }
  void by_grid(T* dgrid, const T* dy) const {
    each(grain(), true, [&](const TapCorners<T>& at, int64_t n, int64_t q0, int64_t count) {
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
                   TapCorners<T> at;
                   for (int64_t i = first; i < last; ++i) {
                     const int64_t n = i / parts, c0 = i % parts * part, c1 = std::min(s.channels, c0 + part);
                     T* to = dx + (n * s.channels + c0) * plane;
                     std::fill(to, to + (c1 - c0) * plane, T(0));
                     for (int64_t q0 = 0; q0 < s.points; q0 += kPoints) {
                       const int64_t count = std::min(kPoints, s.points - q0);
                       fill(at, s, grid + (n * s.points + q0) * s.dims, count, false);
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
