#include "backend/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/reduce.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/norm_sums.h"
#include "cpu/pool.h"
#include "cpu/pool_rows.h"
#include "cpu/scratch.h"

namespace rl::RL_ISA {

extern const ReduceKernels reduce_kernels;

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

template <class T> inline constexpr bool kVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Outputs [c0, c1) of row (a, b).
template <class T>
void max_places(const PoolWindows& w, int64_t a, int64_t b, int64_t c0, int64_t c1, T* y, int64_t* places, const T* x) {
  int64_t H = w.in[1], W = w.in[2];
  for (int64_t c = c0; c < c1; ++c) {
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
    y[c] = static_cast<T>(best);
    places[c] = at;
  }
}

// `even` says for which rows and columns there is a SIMD loop.
template <class T, class Even>
void max_plane(const PoolWindows& w, const Even& even, T* y, int64_t* places, const T* x) {
  for (int64_t a = 0; a < w.out[0]; ++a)
    for (int64_t b = 0; b < w.out[1]; ++b, y += w.out[2], places += w.out[2]) {
      if constexpr (kVectors<T>) {
        if (even.loop && even.full(w, b)) {
          const EvenRun& run = even.columns;
          int64_t begin = w.start[1][b] * w.in[2] + run.begin + run.first * even.step;
          max_places(w, a, b, 0, run.first, y, places, x);
          even.loop(x + begin, x + w.in_plane(), w.in[2], begin, run.end - run.first, y + run.first,
                    places + run.first);
          max_places(w, a, b, run.end, w.out[2], y, places, x);
          continue;
        }
      }
      max_places(w, a, b, 0, w.out[2], y, places, x);
    }
}

// Of half types, each plane as floats.
template <class T> void max_as_floats(const PoolWindows& w, T* y, int64_t* places, const T* x) {
  EvenWindows<MaxRow<float>> even(w, [](auto... sizes) { return max_row_of<float>(sizes...); });
  const int64_t in = w.in_plane(), out = w.out_plane();
  parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
    Scratch<float> from(in), to(out);
    for (int64_t p = first; p < last; ++p) {
      widen(x + p * in, from.get(), in);
      max_plane(w, even, to.get(), places + p * out, from.get());
      narrow(to.get(), y + p * out, out);
    }
  });
}

void max(const PoolWindows& w, const View& y, const View& places, const View& x) {
  if (y.numel() == 0) return;
  bool done = visit_compute(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T> || std::is_same_v<T, bool>) {
      fail(ErrorKind::NotImplemented, "max_pool: there is no kernel for '", info(x.dtype).legacy, "'");
    } else {
      if constexpr (is_floating_v<T>)
        if (w.channels > 1) return max_channels(w, y.as<T>(), places.as<int64_t>(), x.as<T>());
      if constexpr (is_half_v<T>) return max_as_floats(w, y.as<T>(), places.as<int64_t>(), x.as<T>());
      EvenWindows<MaxRow<T>> even(w, [](auto... sizes) -> MaxRow<T> {
        if constexpr (kVectors<T>) return max_row_of<T>(sizes...);
        else return nullptr;
      });
      parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p)
          max_plane(w, even, y.as<T>() + p * w.out_plane(), places.as<int64_t>() + p * w.out_plane(),
                    x.as<T>() + p * w.in_plane());
      });
    }
  });
  CHECK(done, NotImplemented, "max_pool: there is no kernel for '", info(x.dtype).legacy, "'");
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

// The mean of a window; of whole rows by several sums side by side.
template <class T> T mean_of(const PoolWindows& w, int64_t a, int64_t b, int64_t c, const T* image) {
  compute_t<T> sum = 0;
  int64_t W = w.in[2], from = w.start[2][c], to = w.end[2][c];
  if constexpr (kVectors<T>) {
    if (to - from == W && W * (w.end[1][b] - w.start[1][b]) >= 16) {
      double total = 0;
      for (int64_t i = w.start[0][a]; i < w.end[0][a]; ++i) {
        const T* rows = image + (i * w.in[1] + w.start[1][b]) * W;
        total += sum_of<T>(W * (w.end[1][b] - w.start[1][b]), [&](int64_t k) { return rows[k]; });
      }
      return static_cast<T>(total / static_cast<double>(pool_divisor<T>(w, a, b, c)));
    }
  }
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; ++i)
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; ++j) {
      const T* row = image + (i * w.in[1] + j) * W;
      for (int64_t k = from; k < to; ++k) sum += static_cast<compute_t<T>>(row[k]);
    }
  return static_cast<T>(sum / pool_divisor<T>(w, a, b, c));
}

// Whether the one window is the whole plane.
bool covers_plane(const PoolWindows& w) {
  if (w.divisor != 0 || w.out_plane() != 1) return false;
  for (int d = 0; d < 3; ++d)
    if (w.start[d][0] != 0 || w.end[d][0] != w.in[d] || w.share[d][0] != w.in[d]) return false;
  return true;
}

template <class T> void average_plane(const PoolWindows& w, const EvenWindows<SumRow<T>>& even, T* to, const T* image) {
  for (int64_t a = 0; a < w.out[0]; ++a)
    for (int64_t b = 0; b < w.out[1]; ++b, to += w.out[2]) {
      int64_t c = 0;
      if constexpr (kVectors<T>) {
        const EvenRun& run = even.columns;
        if (even.loop && even.full(w, b) && run.end > run.first) {
          for (; c < run.first; ++c) to[c] = mean_of(w, a, b, c, image);
          even.loop(image + w.start[1][b] * w.in[2] + run.begin + c * even.step, w.in[2], run.end - c,
                    pool_divisor<T>(w, a, b, c), to + c);
          c = run.end;
        }
      }
      for (; c < w.out[2]; ++c) to[c] = mean_of(w, a, b, c, image);
    }
}

void average(const PoolWindows& w, const View& y, const View& x) {
  if (y.numel() == 0) return;
  if (w.channels == 1 && is_float(x.dtype) && covers_plane(w)) {  // a mean of rows
    const int64_t out[] = {w.planes, 1}, in[] = {w.planes, w.in_plane()}, apart[] = {1, 1};
    const int64_t rows[] = {w.in_plane(), 1};
    return reduce_kernels.reduce(Reduce::Mean, View{y.data, out, apart, 2, y.dtype}, View{x.data, in, rows, 2, x.dtype},
                                 0);
  }
  visit_average(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<is_half_v<T>, float, T>;  // half types: each plane as floats
    if constexpr (is_floating_v<T>)
      if (w.channels > 1) return average_channels(w, y.as<T>(), x.as<T>());
    EvenWindows<SumRow<C>> even(w, [](auto... sizes) -> SumRow<C> {
      if constexpr (kVectors<C>) return sum_row_of<C>(sizes...);
      else return nullptr;
    });
    const int64_t in = w.in_plane(), out = w.out_plane();
    parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
      if constexpr (is_half_v<T>) {
        Scratch<C> from(in), to(out);
        for (int64_t p = first; p < last; ++p) {
          widen(x.as<T>() + p * in, from.get(), in);
          average_plane(w, even, to.get(), from.get());
          narrow(to.get(), y.as<T>() + p * out, out);
        }
      } else {
        for (int64_t p = first; p < last; ++p) average_plane(w, even, y.as<T>() + p * out, x.as<T>() + p * in);
      }
    });
  });
}

// Whether output c has places 2 c and 2 c + 1.
bool covers_halves(const PoolWindows& w, int d) {
  for (int64_t c = 0; c < w.out[d]; ++c)
    if (w.start[d][c] != 2 * c || w.end[d][c] != 2 * c + 2 || w.share[d][c] != w.share[d][0]) return false;
  return true;
}

void average_grad(const PoolWindows& w, const View& dx, const View& dy) {
  if (dx.numel() == 0) return;
  visit_average(dx.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_floating_v<T>)
      if (w.channels > 1) return average_grad_channels(w, dx.as<T>(), dy.as<T>());
    bool halves = kVectors<T> && w.in[0] == 1 && w.out[0] == 1 && w.in[1] == 2 * w.out[1] && w.in[2] == 2 * w.out[2] &&
                  covers_halves(w, 1) && covers_halves(w, 2);
    compute_t<T> quarter = halves ? compute_t<T>(1) / pool_divisor<T>(w, 0, 0, 0) : compute_t<T>(0);
    parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        T* image = dx.as<T>() + p * w.in_plane();
        const T* from = dy.as<T>() + p * w.out_plane();
        if (halves) {  // each place belongs to one window
          for (int64_t b = 0; b < w.out[1]; ++b)
            for (int64_t i = 0; i < 2; ++i) {
              T* __restrict row = image + (2 * b + i) * w.in[2];
              const T* __restrict g = from + b * w.out[2];
#pragma GCC ivdep
              for (int64_t c = 0; c < w.out[2]; ++c) row[2 * c] = row[2 * c + 1] = static_cast<T>(g[c] * quarter);
            }
          continue;
        }
        std::fill(image, image + w.in_plane(), T(0));
        for (int64_t a = 0; a < w.out[0]; ++a)
          for (int64_t b = 0; b < w.out[1]; ++b)
            for (int64_t c = 0; c < w.out[2]; ++c) {
              compute_t<T> each = static_cast<compute_t<T>>(*from++) / pool_divisor<T>(w, a, b, c);
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
