// Maxima of windows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "cpu/loops/scratch.h"
#include "cpu/pool/pool.h"
#include "cpu/pool/rows.h"
#include "cpu/pool/taps.h"

namespace rl::RL_ISA {
namespace {

template <class T> bool is_nan(T v) {
  if constexpr (is_floating_v<T>) return std::isnan(static_cast<compute_t<T>>(v));
  else return false;
}

// The position of the first maximum (NaN wins) of window (a, b, c), whose rows are at least a vector long.
template <class T> int64_t index_of_max(const PoolWindows& w, int64_t a, int64_t b, int64_t c, const T* x) {
  constexpr int L = kLanes<T>;
  using P = IndexOf<T>;
  const int64_t H = w.in[1], W = w.in[2], from = w.start[2][c], to = w.end[2][c];
  const int64_t begin = (w.start[0][a] * H + w.start[1][b]) * W + from;
  Vec<P> lanes;
  for (int l = 0; l < L; ++l) lanes[l] = static_cast<P>(l);
  Vec<T> best = load_vec(x + begin);
  Vec<P> at = lanes + static_cast<P>(begin);
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; i += w.dilation[0])
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; j += w.dilation[1])
      for (int64_t k = from; k < to; k += L) {
        const int64_t position = (i * H + j) * W + std::min(k, to - L);  // the last vector overlaps the one before
        const Vec<T> v = load_vec(x + position);
        const auto better = ~(v <= best) & (best == best);
        best = better ? v : best;
        at = better ? lanes + static_cast<P>(position) : at;
      }
  int first = 0;
  for (int l = 1; l < L; ++l) {
    const bool nan = is_nan(best[l]), had = is_nan(best[first]), same = nan ? had : best[l] == best[first];
    if (same ? at[l] < at[first] : nan || (!had && best[l] > best[first])) first = l;
  }
  return at[first];
}

// Outputs [c0, c1) of row (a, b).
template <class T> void max_indices(const PoolWindows& w, int64_t a, int64_t b, int64_t c0, int64_t c1, T* y,
                                    int64_t* indices, const T* x) {
  int64_t H = w.in[1], W = w.in[2];
  for (int64_t c = c0; c < c1; ++c) {
    if constexpr (kInVectors<T>) {
      const bool narrow = w.dilation[2] != 1 || w.end[2][c] - w.start[2][c] < kLanes<T>;
      if (!narrow && w.in_plane() <= std::numeric_limits<int32_t>::max()) {
        const int64_t at = index_of_max(w, a, b, c, x);
        y[c] = x[at];
        if (indices) indices[c] = at;
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
    if (indices) indices[c] = at;
  }
}

// `positions` may be null.
template <class T, class Even>
void max_plane(const PoolWindows& w, const Even& even, Taps<T>& taps, T* y, int64_t* indices, const T* x) {
  const EvenRun& run = even.columns;
  auto from = [&](int64_t c) { return indices ? indices + c : nullptr; };
  const int64_t row_work = w.out[2] * window_taps(w);
  AsksSeldom asks;
  for (int64_t a = 0; a < w.out[0]; ++a)
    for (int64_t b = 0; b < w.out[1]; ++b, y += w.out[2], indices = from(w.out[2])) {
      asks(row_work);
      if constexpr (kInVectors<T>) {
        const bool full = even.full(w, b);
        if (full || even.many(kLanes<T>)) {
          max_indices(w, a, b, 0, run.first, y, indices, x);
          if (full) {
            const int64_t begin = w.start[1][b] * w.in[2] + run.begin + run.first * even.step;
            even.loop(x + begin, x + w.in_plane(), w.in[2], begin, run.end - run.first, y + run.first, from(run.first));
          } else {
            taps.seek(a, b, x);
            taps.maxima(y + run.first, from(run.first));
          }
          max_indices(w, a, b, run.end, w.out[2], y, indices, x);
          continue;
        }
      }
      max_indices(w, a, b, 0, w.out[2], y, indices, x);
    }
}

// Of reduced-precision types, each plane as floats.
template <class T> void max_as_floats(const PoolWindows& w, T* y, int64_t* indices, const T* x) {
  EvenWindows<MaxRow<float>> even(w, [](auto... sizes) { return max_row_of<float>(sizes...); });
  const int64_t in = w.in_plane(), out = w.out_plane();
  parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
    Scratch<float> from(in), to(out);
    Taps<float> taps(w, even.columns, even.step);
    for (int64_t p = first; p < last; ++p) {
      widen(x + p * in, from.get(), in);
      max_plane(w, even, taps, to.get(), indices ? indices + p * out : nullptr, from.get());
      narrow(to.get(), y + p * out, out);
    }
  });
}

}  // namespace

void max_windows(const PoolWindows& w, const View& y, const View* wanted, const View& x) {
  if (y.numel() == 0) return;
  int64_t* indices = wanted ? wanted->as<int64_t>() : nullptr;
  bool done = visit_compute(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_v<T> || std::is_same_v<T, bool>) {
      fail(ErrorKind::NotImplemented, "max_pool: there is no kernel for '", info(x.dtype).legacy, "'");
    } else {
      if constexpr (is_floating_v<T>)
        if (w.channels > 1) return max_channels(w, y.as<T>(), indices, x.as<T>());
      if constexpr (is_half_v<T>) return max_as_floats(w, y.as<T>(), indices, x.as<T>());
      EvenWindows<MaxRow<T>> even(w, [](auto... sizes) -> MaxRow<T> {
        if constexpr (kInVectors<T>) return max_row_of<T>(sizes...);
        else return nullptr;
      });
      parallel_for(0, w.planes, plane_grain(w), [&](int64_t first, int64_t last) {
        Taps<T> taps(w, even.columns, even.step);
        for (int64_t p = first; p < last; ++p)
          max_plane(w, even, taps, y.as<T>() + p * w.out_plane(), indices ? indices + p * w.out_plane() : nullptr,
                    x.as<T>() + p * w.in_plane());
      });
    }
  });
  CHECK(done, NotImplemented, "max_pool: there is no kernel for '", info(x.dtype).legacy, "'");
}

}  // namespace rl::RL_ISA
