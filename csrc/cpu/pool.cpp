#include "backend/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {
namespace {

int64_t plane_grain(const PoolWindows& w) {
  int64_t taps = 1;
  for (int d = 0; d < 3; ++d)
    if (w.out[d] > 0) taps *= std::max<int64_t>(1, w.end[d][w.out[d] / 2] - w.start[d][w.out[d] / 2]);
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, w.out_plane() * taps));
}

template <class T> bool is_nan(T v) {
  if constexpr (is_floating_v<T>) return std::isnan(static_cast<compute_t<T>>(v));
  else return false;
}

template <class T> void max_plane(const PoolWindows& w, T* y, int64_t* places, const T* x) {
  int64_t H = w.in[1], W = w.in[2];
  for (int64_t a = 0; a < w.out[0]; ++a)
    for (int64_t b = 0; b < w.out[1]; ++b)
      for (int64_t c = 0; c < w.out[2]; ++c) {
        int64_t at = (w.start[0][a] * H + w.start[1][b]) * W + w.start[2][c];
        compute_t<T> best = x[at];
        bool found_nan = is_nan(x[at]);
        for (int64_t i = w.start[0][a]; i < w.end[0][a] && !found_nan; i += w.dilation[0])
          for (int64_t j = w.start[1][b]; j < w.end[1][b] && !found_nan; j += w.dilation[1]) {
            const T* row = x + (i * H + j) * W;
            for (int64_t k = w.start[2][c]; k < w.end[2][c]; k += w.dilation[2]) {
              compute_t<T> v = row[k];
              if (v > best || is_nan(v)) {
                best = v, at = (i * H + j) * W + k;
                if (is_nan(v)) {
                  found_nan = true;
                  break;
                }
              }
            }
          }
        *y++ = static_cast<T>(best);
        *places++ = at;
      }
}

void max(const PoolWindows& w, const View& y, const View& places, const View& x) {
  if (y.numel() == 0) return;
  bool done = visit_compute(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T> || std::is_same_v<T, bool>) {
      fail(ErrorKind::NotImplemented, "max_pool: there is no kernel for '", info(x.dtype).legacy, "'");
    } else {
      parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p)
          max_plane(w, y.as<T>() + p * w.out_plane(), places.as<int64_t>() + p * w.out_plane(),
                    x.as<T>() + p * w.in_plane());
      });
    }
  });
  CHECK(done, NotImplemented, "max_pool: there is no kernel for '", info(x.dtype).legacy, "'");
}

template <class T> compute_t<T> divisor(const PoolWindows& w, int64_t a, int64_t b, int64_t c) {
  if (w.divisor != 0) return static_cast<compute_t<T>>(w.divisor);
  return static_cast<compute_t<T>>(w.share[0][a] * w.share[1][b] * w.share[2][c]);
}

// f(type_tag<T>{}) for floats and int64
template <class F> void visit_average(DType t, F&& f) {
  switch (t) {
    case DType::Float32: return f(type_tag<float>{});
    case DType::Float64: return f(type_tag<double>{});
    case DType::Float16: return f(type_tag<float16>{});
    case DType::BFloat16: return f(type_tag<bfloat16>{});
    case DType::Int64: return f(type_tag<int64_t>{});
    default: fail(ErrorKind::NotImplemented, "avg_pool: there is no kernel for '", info(t).legacy, "'");
  }
}

void average(const PoolWindows& w, const View& y, const View& x) {
  if (y.numel() == 0) return;
  visit_average(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        const T* image = x.as<T>() + p * w.in_plane();
        T* to = y.as<T>() + p * w.out_plane();
        for (int64_t a = 0; a < w.out[0]; ++a)
          for (int64_t b = 0; b < w.out[1]; ++b)
            for (int64_t c = 0; c < w.out[2]; ++c) {
              compute_t<T> sum = 0;
              for (int64_t i = w.start[0][a]; i < w.end[0][a]; ++i)
                for (int64_t j = w.start[1][b]; j < w.end[1][b]; ++j) {
                  const T* row = image + (i * w.in[1] + j) * w.in[2];
                  for (int64_t k = w.start[2][c]; k < w.end[2][c]; ++k) sum += static_cast<compute_t<T>>(row[k]);
                }
              *to++ = static_cast<T>(sum / divisor<T>(w, a, b, c));
            }
      }
    });
  });
}

void average_grad(const PoolWindows& w, const View& dx, const View& dy) {
  if (dx.numel() == 0) return;
  visit_average(dx.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        T* image = dx.as<T>() + p * w.in_plane();
        const T* from = dy.as<T>() + p * w.out_plane();
        std::fill(image, image + w.in_plane(), T(0));
        for (int64_t a = 0; a < w.out[0]; ++a)
          for (int64_t b = 0; b < w.out[1]; ++b)
            for (int64_t c = 0; c < w.out[2]; ++c) {
              compute_t<T> each = static_cast<compute_t<T>>(*from++) / divisor<T>(w, a, b, c);
              for (int64_t i = w.start[0][a]; i < w.end[0][a]; ++i)
                for (int64_t j = w.start[1][b]; j < w.end[1][b]; ++j) {
                  T* row = image + (i * w.in[1] + j) * w.in[2];
                  for (int64_t k = w.start[2][c]; k < w.end[2][c]; ++k)
                    row[k] = static_cast<T>(static_cast<compute_t<T>>(row[k]) + each);
                }
            }
      }
    });
  });
}

}  // namespace

extern const PoolKernels pool_kernels;
const PoolKernels pool_kernels = {max, average, average_grad};

}  // namespace rl::RL_ISA
