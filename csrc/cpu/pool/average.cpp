// Means of windows, and their adjoint.
#include <algorithm>
#include <cstring>

#include "backend/reduce.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/loops/scratch.h"
#include "cpu/pool/pool.h"
#include "cpu/pool/rows.h"
#include "cpu/pool/taps.h"
#include "cpu/reduce/pairwise_sum.h"

namespace rl::RL_ISA {

extern const ReduceKernels reduce_kernels;

namespace {

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
  if constexpr (kInVectors<T>) {
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
      if constexpr (kInVectors<T>) {
        if (to - from >= 2 * kLanes<T>) {
          Vec<T> lanes{};
          int64_t k = from;
          for (; k + kLanes<T> <= to; k += kLanes<T>) lanes += load_vec(row + k);
          for (; k < to; ++k) sum += row[k];
          for (int l = 0; l < kLanes<T>; ++l) sum += lanes[l];
          continue;
        }
      }
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

// Whether each window is its one position, as where adaptive pooling finds the size that it should give.
bool is_copy(const PoolWindows& w) {
  if (w.divisor != 0 && w.divisor != 1) return false;
  for (int d = 0; d < 3; ++d) {
    if (w.in[d] != w.out[d]) return false;
    for (int64_t c = 0; c < w.out[d]; ++c)
      if (w.start[d][c] != c || w.end[d][c] != c + 1 || w.share[d][c] != 1) return false;
  }
  return true;
}
void copy_all(const View& to, const View& from) {
  const int64_t size = to.numel() * static_cast<int64_t>(info(to.dtype).size);
  parallel_for(0, size, 1 << 17, [&](int64_t first, int64_t last) {
    std::memcpy(static_cast<char*>(to.data) + first, static_cast<const char*>(from.data) + first,
                static_cast<size_t>(last - first));
  });
}

// A row of windows of uneven sizes: what lies above each other is summed first, in vectors, into `sums`.
template <class T>
void average_uneven(const PoolWindows& w, int64_t a, int64_t b, const T* image, T* __restrict sums, T* to) {
  const int64_t first = w.start[2][0], n = w.end[2][w.out[2] - 1] - first;
  bool begun = false;
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; ++i)
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; ++j, begun = true) {
      const T* __restrict row = image + (i * w.in[1] + j) * w.in[2] + first;
      if (begun)
        for (int64_t k = 0; k < n; ++k) sums[k] += row[k];
      else
        for (int64_t k = 0; k < n; ++k) sums[k] = row[k];
    }
  for (int64_t c = 0; c < w.out[2]; ++c) {
    T sum = sums[w.start[2][c] - first];
    for (int64_t k = w.start[2][c] + 1; k < w.end[2][c]; ++k) sum += sums[k - first];
    to[c] = sum / pool_divisor<T>(w, a, b, c);
  }
}
// Whether that is profitable: windows are narrow and many, and none is empty; they move on from left to right.
bool sums_columns(const PoolWindows& w, int64_t lanes) {
  if (w.out[2] < 4 || w.dilation[2] != 1) return false;
  for (int64_t c = 0; c < w.out[2]; ++c)
    if (w.end[2][c] - w.start[2][c] >= 2 * lanes) return false;
  for (int d = 0; d < 3; ++d)
    for (int64_t c = 0; c < w.out[d]; ++c)
      if (w.end[d][c] <= w.start[d][c] ||
          (c > 0 && (w.start[d][c] < w.start[d][c - 1] || w.end[d][c] < w.end[d][c - 1])))
        return false;
  return true;
}

template <class T> void average_plane(const PoolWindows& w, const EvenWindows<SumRow<T>>& even, Taps<T>& taps, T* sums,
                                      T* to, const T* image) {
  for (int64_t a = 0; a < w.out[0]; ++a)
    for (int64_t b = 0; b < w.out[1]; ++b, to += w.out[2]) {
      int64_t c = 0;
      if constexpr (kInVectors<T>) {
        const EvenRun& run = even.columns;
        const bool full = even.full(w, b) && run.end > run.first;
        if (full || even.many(kLanes<T>)) {
          for (; c < run.first; ++c) to[c] = mean_of(w, a, b, c, image);
          const T by = pool_divisor<T>(w, a, b, c);
          if (full) {
            even.loop(image + w.start[1][b] * w.in[2] + run.begin + c * even.step, w.in[2], run.end - c, by, to + c);
          } else {
            taps.seek(a, b, image);
            taps.sums(by, to + c);
          }
          c = run.end;
        } else if (sums) {
          average_uneven(w, a, b, image, sums, to);
          continue;
        }
      }
      for (; c < w.out[2]; ++c) to[c] = mean_of(w, a, b, c, image);
    }
}

}  // namespace

void average_windows(const PoolWindows& w, const View& y, const View& x) {
  if (y.numel() == 0) return;
  if (is_copy(w)) return copy_all(y, x);
  if (is_float(x.dtype) && covers_plane(w)) {  // a mean of rows, or of columns
    const int64_t C = w.channels;
    const int64_t out[] = {w.planes, 1, C}, out_strides[] = {C, C, 1};
    const int64_t in[] = {w.planes, w.in_plane(), C}, in_strides[] = {w.in_plane() * C, C, 1};
    const int n = C > 1 ? 3 : 2;
    return reduce_kernels.reduce(Reduce::Mean, View{y.data, out, out_strides, n, y.dtype},
                                 View{x.data, in, in_strides, n, x.dtype}, 0);
  }
  visit_average(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<is_half_v<T>, float, T>;  // reduced-precision types: each plane as floats
    if constexpr (is_floating_v<T>)
      if (w.channels > 1) return average_channels(w, y.as<T>(), x.as<T>());
    EvenWindows<SumRow<C>> even(w, [](auto... sizes) -> SumRow<C> {
      if constexpr (kInVectors<C>) return sum_row_of<C>(sizes...);
      else return nullptr;
    });
    const int64_t in = w.in_plane(), out = w.out_plane();
    const bool columns = kInVectors<C> && sums_columns(w, kLanes<C>);
    parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
      Taps<C> taps(w, even.columns, even.step);
      Scratch<C> memory(w.in[2]);
      C* sums = columns ? memory.get() : nullptr;
      if constexpr (is_half_v<T>) {
        Scratch<C> from(in), to(out);
        for (int64_t p = first; p < last; ++p) {
          widen(x.as<T>() + p * in, from.get(), in);
          average_plane(w, even, taps, sums, to.get(), from.get());
          narrow(to.get(), y.as<T>() + p * out, out);
        }
      } else {
        for (int64_t p = first; p < last; ++p)
          average_plane(w, even, taps, sums, y.as<T>() + p * out, x.as<T>() + p * in);
      }
    });
  });
}

namespace {

// Whether output c has positions 2 c and 2 c + 1.
bool pools_pairs(const PoolWindows& w, int d) {
  for (int64_t c = 0; c < w.out[d]; ++c)
    if (w.start[d][c] != 2 * c || w.end[d][c] != 2 * c + 2 || w.share[d][c] != w.share[d][0]) return false;
  return true;
}

// Adds the share of each position of window (a, b, c) in dy.
template <class T> void spread_window(const PoolWindows& w, int64_t a, int64_t b, int64_t c, T dy, T* image) {
  const compute_t<T> each = static_cast<compute_t<T>>(dy) / pool_divisor<T>(w, a, b, c);
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; ++i)
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; ++j) {
      T* row = image + (i * w.in[1] + j) * w.in[2];
      for (int64_t k = w.start[2][c]; k < w.end[2][c]; ++k)
        row[k] = static_cast<T>(static_cast<compute_t<T>>(row[k]) + each);
    }
}
// The same for the windows of a run, which have one divisor: one of their positions after the other. `each` is room for
// as many elements.
template <class T> void spread_run(const PoolWindows& w, const EvenRun& run, int64_t step, int64_t a, int64_t b,
                                   const T* dy, T* __restrict each, T* image) {
  const int64_t n = run.end - run.first, size = w.end[2][run.first] - w.start[2][run.first];
  const T by = pool_divisor<T>(w, a, b, run.first);
  for (int64_t c = 0; c < n; ++c) each[c] = dy[run.first + c] / by;
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; ++i)
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; ++j) {
      T* __restrict row = image + (i * w.in[1] + j) * w.in[2] + run.begin + run.first * step;
      if (step > 8 || n < 8) {  // each window by itself
        for (int64_t c = 0; c < n; ++c)
#pragma GCC ivdep
          for (int64_t k = 0; k < size; ++k) row[c * step + k] += each[c];
        continue;
      }
      for (int64_t k = 0; k < size; ++k) {
        T* __restrict to = row + k;
        if (step == 1)
          for (int64_t c = 0; c < n; ++c) to[c] += each[c];
        else
#pragma GCC ivdep
          for (int64_t c = 0; c < n; ++c) to[c * step] += each[c];
      }
    }
}

}  // namespace

void average_windows_grad(const PoolWindows& w, const View& dx, const View& dy) {
  if (dx.numel() == 0) return;
  if (is_copy(w)) return copy_all(dx, dy);
  visit_average(dx.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_floating_v<T>)
      if (w.channels > 1) return average_grad_channels(w, dx.as<T>(), dy.as<T>());
    bool pairs = kInVectors<T> && w.in[0] == 1 && w.out[0] == 1 && w.in[1] == 2 * w.out[1] && w.in[2] == 2 * w.out[2] &&
                 pools_pairs(w, 1) && pools_pairs(w, 2);
    const bool plane = covers_plane(w);
    const WindowSize size = window_size(w, 2);
    const int64_t step = size.step;
    const EvenRun run = even_run(w, 2, size.size, step);
    const bool even = kInVectors<T> && step > 0 && run.end > run.first;
    compute_t<T> quarter = pairs ? compute_t<T>(1) / pool_divisor<T>(w, 0, 0, 0) : compute_t<T>(0);
    parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
      Scratch<T> each(run.end - run.first);
      for (int64_t p = first; p < last; ++p) {
        T* image = dx.as<T>() + p * w.in_plane();
        const T* from = dy.as<T>() + p * w.out_plane();
        if (plane) {
          const auto each = static_cast<compute_t<T>>(*from) / pool_divisor<T>(w, 0, 0, 0);
          std::fill(image, image + w.in_plane(), static_cast<T>(each));
          continue;
        }
        if (pairs) {  // each position belongs to one window
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
          for (int64_t b = 0; b < w.out[1]; ++b, from += w.out[2]) {
            int64_t c = 0;
            if constexpr (kInVectors<T>) {
              for (; even && c < run.first; ++c) spread_window(w, a, b, c, from[c], image);
              if (even) spread_run(w, run, step, a, b, from, each.get(), image), c = run.end;
            }
            for (; c < w.out[2]; ++c) spread_window(w, a, b, c, from[c], image);
          }
      }
    });
  });
}

extern const PoolKernels pool_kernels;
const PoolKernels pool_kernels = {max_windows, average_windows, average_windows_grad};

}  // namespace rl::RL_ISA
