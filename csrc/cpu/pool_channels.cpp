// Pooling of pictures and volumes with their channels last: neighbouring channels share the vectors.
#include <algorithm>

#include "backend/pool.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/pool.h"
#include "cpu/vec.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kChannels = 64;  // of one turn through a window
constexpr int kVectors = 4;        // of a turn in registers
template <class C> inline constexpr int64_t kSome = kVectors * kLanes<C>;

template <class T> using Place = std::conditional_t<sizeof(compute_t<T>) == 8, int64_t, int32_t>;

// n numbers in their computing type: in place, or copied into `room`.
template <class T>
[[gnu::always_inline]] inline const compute_t<T>* as_computed(const T* p, int64_t n, compute_t<T>* room) {
  if constexpr (std::is_same_v<T, compute_t<T>>) {
    return p;
  } else if constexpr (is_half_v<T>) {
    widen(p, room, n);
    return room;
  } else {
    for (int64_t i = 0; i < n; ++i) room[i] = static_cast<compute_t<T>>(p[i]);
    return room;
  }
}
template <class T> [[gnu::always_inline]] inline void write_back(const compute_t<T>* from, int64_t n, T* to) {
  if constexpr (is_half_v<T>) narrow(from, to, n);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

// V vectors of channels, in their computing type.
template <int V, class T> [[gnu::always_inline]] inline void load_channels(const T* p, Vec<compute_t<T>>* v) {
  using C = compute_t<T>;
  if constexpr (std::is_same_v<T, C>) {
#pragma GCC unroll 8
    for (int k = 0; k < V; ++k) v[k] = load_vec(p + k * kLanes<C>);
  } else {
    C room[V * kLanes<C>];
    widen(p, room, V * kLanes<C>);
#pragma GCC unroll 8
    for (int k = 0; k < V; ++k) v[k] = load_vec(room + k * kLanes<C>);
  }
}
template <int V, class T> [[gnu::always_inline]] inline void store_channels(T* p, const Vec<compute_t<T>>* v) {
  using C = compute_t<T>;
  C room[V * kLanes<C>];
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k) store_vec(room + k * kLanes<C>, v[k]);
  write_back(room, V * kLanes<C>, p);
}

// f(place) for the places of output (a, b, c), row by row; row() after each.
template <class F, class R>
[[gnu::always_inline]] inline void each_tap(const PoolWindows& w, int64_t a, int64_t b, int64_t c, F&& f, R&& row) {
  for (int64_t i = w.start[0][a]; i < w.end[0][a]; i += w.dilation[0])
    for (int64_t j = w.start[1][b]; j < w.end[1][b]; j += w.dilation[1]) {
      for (int64_t k = w.start[2][c]; k < w.end[2][c]; k += w.dilation[2]) f((i * w.in[1] + j) * w.in[2] + k);
      row();
    }
}

// body(sample, a, b): rows of outputs, shared by threads.
template <class F> void each_row(const PoolWindows& w, F&& body) {
  int64_t taps = 1;
  for (int d = 0; d < 3; ++d) taps *= std::max<int64_t>(1, w.end[d][w.out[d] / 2] - w.start[d][w.out[d] / 2]);
  const int64_t rows = w.out[0] * w.out[1], work = w.out[2] * w.channels * taps;
  parallel_for(0, w.planes * rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, work)),
               [&](int64_t first, int64_t last) {
                 for (int64_t r = first; r < last; ++r) body(r / rows, r % rows / w.out[1], r % w.out[1]);
               });
}

// The maxima of V vectors of channels from x on, at output (a, b, c).
template <int V, class T> [[gnu::always_inline]] inline void max_vectors(const PoolWindows& w, int64_t a, int64_t b,
                                                                         int64_t c, int64_t begin, const T* x, T* y,
                                                                         int64_t* places) {
  using C = compute_t<T>;
  using P = Place<T>;
  Vec<C> best[V], v[V];
  Vec<P> at[V];
  load_channels<V>(x + begin * w.channels, best);
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k) at[k] = Vec<P>{} + static_cast<P>(begin);
  each_tap(
      w, a, b, c,
      [&](int64_t place) __attribute__((always_inline)) {
        load_channels<V>(x + place * w.channels, v);
        const Vec<P> here = Vec<P>{} + static_cast<P>(place);
#pragma GCC unroll 8
        for (int k = 0; k < V; ++k) {
          // The first maximum; a NaN is larger than everything.
          const auto better = ~(v[k] <= best[k]) & (best[k] == best[k]);
          best[k] = better ? v[k] : best[k];
          at[k] = better ? here : at[k];
        }
      },
      [] {});
  store_channels<V>(y, best);
  if (!places) return;
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k)
    for (int j = 0; j < kLanes<C>; ++j) places[k * kLanes<C> + j] = at[k][j];
}
// The sums of few places.
template <int V, class T> [[gnu::always_inline]] inline void average_vectors(const PoolWindows& w, int64_t a, int64_t b,
                                                                             int64_t c, compute_t<T> by, const T* x,
                                                                             T* y) {
  using C = compute_t<T>;
  Vec<C> sum[V] = {}, v[V];
  each_tap(
      w, a, b, c,
      [&](int64_t place) __attribute__((always_inline)) {
        load_channels<V>(x + place * w.channels, v);
#pragma GCC unroll 8
        for (int k = 0; k < V; ++k) sum[k] += v[k];
      },
      [] {});
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k) sum[k] = sum[k] / by;
  store_channels<V>(y, sum);
}

}  // namespace

template <class T> void max_channels(const PoolWindows& w, T* y, int64_t* places, const T* x) {
  using C = compute_t<T>;
  using P = Place<T>;
  each_row(w, [&](int64_t p, int64_t a, int64_t b) {
    const T* from = x + p * w.in_plane() * w.channels;
    for (int64_t c = 0; c < w.out[2]; ++c) {
      const int64_t out = ((p * w.out[0] + a) * w.out[1] + b) * w.out[2] + c;
      const int64_t begin = (w.start[0][a] * w.in[1] + w.start[1][b]) * w.in[2] + w.start[2][c];
      int64_t c0 = 0;
      for (; c0 + kSome<C> <= w.channels; c0 += kSome<C>)
        max_vectors<kVectors>(w, a, b, c, begin, from + c0, y + out * w.channels + c0,
                              places ? places + out * w.channels + c0 : nullptr);
      for (; c0 < w.channels; c0 += kChannels) {
        const int64_t n = std::min(kChannels, w.channels - c0);
        alignas(64) C best[kChannels], room[kChannels];
        alignas(64) P at[kChannels];
        const C* head = as_computed(from + begin * w.channels + c0, n, room);
        for (int64_t j = 0; j < n; ++j) best[j] = head[j], at[j] = static_cast<P>(begin);
        each_tap(
            w, a, b, c,
            [&](int64_t place) {
              const C* v = as_computed(from + place * w.channels + c0, n, room);
              const P here = static_cast<P>(place);
#pragma GCC ivdep
              for (int64_t j = 0; j < n; ++j) {
                // The first maximum; a NaN is larger than everything.
                const bool better = !(v[j] <= best[j]) & (best[j] == best[j]);
                best[j] = better ? v[j] : best[j];
                at[j] = better ? here : at[j];
              }
            },
            [] {});
        write_back(best, n, y + out * w.channels + c0);
        for (int64_t j = 0; places && j < n; ++j) places[out * w.channels + c0 + j] = at[j];
      }
    }
  });
}

template <class T> void average_channels(const PoolWindows& w, T* y, const T* x) {
  using C = compute_t<T>;
  using Total = std::conditional_t<is_floating_v<C>, double, C>;
  each_row(w, [&](int64_t p, int64_t a, int64_t b) {
    const T* from = x + p * w.in_plane() * w.channels;
    for (int64_t c = 0; c < w.out[2]; ++c) {
      const int64_t out = ((p * w.out[0] + a) * w.out[1] + b) * w.out[2] + c;
      const C by = pool_divisor<T>(w, a, b, c);
      const bool many = (w.end[2][c] - w.start[2][c]) * (w.end[1][b] - w.start[1][b]) > 64;  // rows add up as doubles
      int64_t c0 = 0;
      for (; !many && c0 + kSome<C> <= w.channels; c0 += kSome<C>)
        average_vectors<kVectors>(w, a, b, c, by, from + c0, y + out * w.channels + c0);
      for (; c0 < w.channels; c0 += kChannels) {
        const int64_t n = std::min(kChannels, w.channels - c0);
        alignas(64) C sum[kChannels] = {}, room[kChannels];
        alignas(64) Total total[kChannels] = {};
        each_tap(
            w, a, b, c,
            [&](int64_t place) {
              const C* v = as_computed(from + place * w.channels + c0, n, room);
              for (int64_t j = 0; j < n; ++j) sum[j] += v[j];
            },
            [&] {
              if (many)
                for (int64_t j = 0; j < n; ++j) total[j] += static_cast<Total>(sum[j]), sum[j] = C(0);
            });
        if (many)
          for (int64_t j = 0; j < n; ++j) sum[j] = static_cast<C>(total[j] / static_cast<Total>(by));
        else
          for (int64_t j = 0; j < n; ++j) sum[j] = sum[j] / by;
        write_back(sum, n, y + out * w.channels + c0);
      }
    }
  });
}

template <class T> void average_grad_channels(const PoolWindows& w, T* dx, const T* dy) {
  using C = compute_t<T>;
  const int64_t parts = (w.channels + kChannels - 1) / kChannels;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, w.in_plane() * kChannels));
  parallel_for(0, w.planes * parts, grain, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t p = task / parts, c0 = task % parts * kChannels, n = std::min(kChannels, w.channels - c0);
      T* to = dx + p * w.in_plane() * w.channels + c0;
      for (int64_t place = 0; place < w.in_plane(); ++place)
        std::fill(to + place * w.channels, to + place * w.channels + n, T(0));
      const T* g = dy + p * w.out_plane() * w.channels + c0;
      for (int64_t a = 0; a < w.out[0]; ++a)
        for (int64_t b = 0; b < w.out[1]; ++b)
          for (int64_t c = 0; c < w.out[2]; ++c, g += w.channels) {
            alignas(64) C each[kChannels], room[kChannels];
            const C* v = as_computed(g, n, room);
            const C by = pool_divisor<T>(w, a, b, c);
            for (int64_t j = 0; j < n; ++j) each[j] = v[j] / by;
            each_tap(
                w, a, b, c,
                [&](int64_t place) {
                  T* row = to + place * w.channels;
#pragma GCC ivdep
                  for (int64_t j = 0; j < n; ++j) row[j] = static_cast<T>(static_cast<C>(row[j]) + each[j]);
                },
                [] {});
          }
    }
  });
}

#define RL_POOL_TYPES(T)                                                     \
  template void max_channels<T>(const PoolWindows&, T*, int64_t*, const T*); \
  template void average_channels<T>(const PoolWindows&, T*, const T*);       \
  template void average_grad_channels<T>(const PoolWindows&, T*, const T*);
RL_POOL_TYPES(float)
RL_POOL_TYPES(double)
RL_POOL_TYPES(float16)
RL_POOL_TYPES(bfloat16)
#undef RL_POOL_TYPES

}  // namespace rl::RL_ISA
