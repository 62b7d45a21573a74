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
#include "cpu/pool_taps.h"
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

// The place of the first maximum (NaN wins) of window (a, b, c), whose rows are at least a vector long.
template <class T> int64_t place_of_max(const PoolWindows& w, int64_t a, int64_t b, int64_t c, const T* x) {
  constexpr int L = kLanes<T>;
  using P = PlaceOf<T>;
  const int64_t H = w.in[1], W = w.in[2], from = w.start[2][c], to = w.end[2][c];
  const int64_t begin = (w.start[0][a] * H + w.start[1][b]) * W + from;
  Vec<P> lanes;
  for (int l = 0; l < L; ++l) lanes[l] = static_cast<P>(l);
  Vec<T> best = load_vec(x + begin);
  Vec<P> at = lanes + static_cast<P>(begin);
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; i += w.dilation[0])
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; j += w.dilation[1])
      for (int64_t k = from; k < to; k += L) {
        const int64_t place = (i * H + j) * W + std::min(k, to - L);  // the last vector overlaps the one before
        const Vec<T> v = load_vec(x + place);
        const auto better = ~(v <= best) & (best == best);
        best = better ? v : best;
        at = better ? lanes + static_cast<P>(place) : at;
      }
  int first = 0;
  for (int l = 1; l < L; ++l) {
    const bool nan = is_nan(best[l]), had = is_nan(best[first]), same = nan ? had : best[l] == best[first];
    if (same ? at[l] < at[first] : nan || (!had && best[l] > best[first])) first = l;
  }
  return at[first];
}

// Outputs [c0, c1) of row (a, b).
template <class T>
void max_places(const PoolWindows& w, int64_t a, int64_t b, int64_t c0, int64_t c1, T* y, int64_t* places, const T* x) {
  int64_t H = w.in[1], W = w.in[2];
  for (int64_t c = c0; c < c1; ++c) {
    if constexpr (kVectors<T>) {
      const bool narrow = w.dilation[2] != 1 || w.end[2][c] - w.start[2][c] < kLanes<T>;
      if (!narrow && w.in_plane() <= std::numeric_limits<int32_t>::max()) {
        const int64_t at = place_of_max(w, a, b, c, x);
        y[c] = x[at];
        if (places) places[c] = at;
        continue;
      }
    }
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
    if (places) places[c] = at;
  }
}

// `places` may be null.
template <class T, class Even>
void max_plane(const PoolWindows& w, const Even& even, Taps<T>& taps, T* y, int64_t* places, const T* x) {
  const EvenRun& run = even.columns;
  auto from = [&](int64_t c) { return places ? places + c : nullptr; };
  for (int64_t a = 0; a < w.out[0]; ++a)
    for (int64_t b = 0; b < w.out[1]; ++b, y += w.out[2], places = from(w.out[2])) {
      if constexpr (kVectors<T>) {
        const bool full = even.full(w, b);
        if (full || even.many(kLanes<T>)) {
          max_places(w, a, b, 0, run.first, y, places, x);
          if (full) {
            const int64_t begin = w.start[1][b] * w.in[2] + run.begin + run.first * even.step;
            even.loop(x + begin, x + w.in_plane(), w.in[2], begin, run.end - run.first, y + run.first, from(run.first));
          } else {
            taps.seek(a, b, x);
            taps.maxima(y + run.first, from(run.first));
          }
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
    Taps<float> taps(w, even.columns, even.step);
    for (int64_t p = first; p < last; ++p) {
      widen(x + p * in, from.get(), in);
      max_plane(w, even, taps, to.get(), places ? places + p * out : nullptr, from.get());
      narrow(to.get(), y + p * out, out);
    }
  });
}

void max(const PoolWindows& w, const View& y, const View* wanted, const View& x) {
  if (y.numel() == 0) return;
  int64_t* places = wanted ? wanted->as<int64_t>() : nullptr;
  bool done = visit_compute(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T> || std::is_same_v<T, bool>) {
      fail(ErrorKind::NotImplemented, "max_pool: there is no kernel for '", info(x.dtype).legacy, "'");
    } else {
      if constexpr (is_floating_v<T>)
        if (w.channels > 1) return max_channels(w, y.as<T>(), places, x.as<T>());
      if constexpr (is_half_v<T>) return max_as_floats(w, y.as<T>(), places, x.as<T>());
      EvenWindows<MaxRow<T>> even(w, [](auto... sizes) -> MaxRow<T> {
        if constexpr (kVectors<T>) return max_row_of<T>(sizes...);
        else return nullptr;
      });
      parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
        Taps<T> taps(w, even.columns, even.step);
        for (int64_t p = first; p < last; ++p)
          max_plane(w, even, taps, y.as<T>() + p * w.out_plane(), places ? places + p * w.out_plane() : nullptr,
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
      if constexpr (kVectors<T>) {
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

template <class T>
void average_plane(const PoolWindows& w, const EvenWindows<SumRow<T>>& even, Taps<T>& taps, T* to, const T* image) {
  for (int64_t a = 0; a < w.out[0]; ++a)
    for (int64_t b = 0; b < w.out[1]; ++b, to += w.out[2]) {
      int64_t c = 0;
      if constexpr (kVectors<T>) {
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
      Taps<C> taps(w, even.columns, even.step);
      if constexpr (is_half_v<T>) {
        Scratch<C> from(in), to(out);
        for (int64_t p = first; p < last; ++p) {
          widen(x.as<T>() + p * in, from.get(), in);
          average_plane(w, even, taps, to.get(), from.get());
          narrow(to.get(), y.as<T>() + p * out, out);
        }
      } else {
        for (int64_t p = first; p < last; ++p) average_plane(w, even, taps, y.as<T>() + p * out, x.as<T>() + p * in);
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

// Adds the share of each place of window (a, b, c) in dy.
template <class T> void spread_window(const PoolWindows& w, int64_t a, int64_t b, int64_t c, T dy, T* image) {
  const compute_t<T> each = static_cast<compute_t<T>>(dy) / pool_divisor<T>(w, a, b, c);
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; ++i)
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; ++j) {
      T* row = image + (i * w.in[1] + j) * w.in[2];
      for (int64_t k = w.start[2][c]; k < w.end[2][c]; ++k)
        row[k] = static_cast<T>(static_cast<compute_t<T>>(row[k]) + each);
    }
}
// The same for the windows of a run, which have one divisor: one of their places after the other. `each` is room for
// as many numbers.
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

void average_grad(const PoolWindows& w, const View& dx, const View& dy) {
  if (dx.numel() == 0) return;
  visit_average(dx.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_floating_v<T>)
      if (w.channels > 1) return average_grad_channels(w, dx.as<T>(), dy.as<T>());
    bool halves = kVectors<T> && w.in[0] == 1 && w.out[0] == 1 && w.in[1] == 2 * w.out[1] && w.in[2] == 2 * w.out[2] &&
                  covers_halves(w, 1) && covers_halves(w, 2);
    const WindowSize size = window_size(w, 2);
    const int64_t step = size.step;
    const EvenRun run = even_run(w, 2, size.size, step);
    const bool even = kVectors<T> && step > 0 && run.end > run.first;
    compute_t<T> quarter = halves ? compute_t<T>(1) / pool_divisor<T>(w, 0, 0, 0) : compute_t<T>(0);
    parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
      Scratch<T> each(run.end - run.first);
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
          for (int64_t b = 0; b < w.out[1]; ++b, from += w.out[2]) {
            int64_t c = 0;
            if constexpr (kVectors<T>) {
              for (; even && c < run.first; ++c) spread_window(w, a, b, c, from[c], image);
              if (even) spread_run(w, run, step, a, b, from, each.get(), image), c = run.end;
            }
            for (; c < w.out[2]; ++c) spread_window(w, a, b, c, from[c], image);
          }
      }
    });
  });
}

}  // namespace

extern const PoolKernels pool_kernels;
const PoolKernels pool_kernels = {max, average, average_grad};

}  // namespace rl::RL_ISA
