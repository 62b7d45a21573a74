// Pooling of images and volumes with their channels last: neighbouring channels share the vectors.
#include "cpu/pool/nhwc.h"

#include <algorithm>

#include "backend/pool.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {
namespace {

constexpr int kVectors = 4;  // of one pass in registers

template <class T> using Position = std::conditional_t<sizeof(compute_t<T>) == 8, int64_t, int32_t>;

// V vectors of channels, in their computing type.
template <int V, class T> [[gnu::always_inline]] inline void load_channels(const T* p, Vec<compute_t<T>>* v) {
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k) v[k] = load_vec(p + k * kLanes<compute_t<T>>);
}
template <int V, class T> [[gnu::always_inline]] inline void store_channels(T* p, const Vec<compute_t<T>>* v) {
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k) store_vec(p + k * kLanes<compute_t<T>>, v[k]);
}

// Whether a vector that begins with the channels of a position may be read at every position of window (a, b, c) of
// sample p: with few channels it goes on into the next positions, which are there except at the end of the memory.
template <class C> bool reads_beyond(const PoolWindows& w, int64_t p, int64_t a, int64_t b, int64_t c) {
  const int64_t last = ((w.end[0][a] - 1) * w.in[1] + w.end[1][b] - 1) * w.in[2] + w.end[2][c] - 1;
  return (p * w.in_plane() + last) * w.channels + kLanes<C> <= w.planes * w.in_plane() * w.channels;
}
// f(c0, vectors) for strips of channels in registers; the last of them lies back over the one before it. Channels fewer
// than a vector's lanes take one vector that goes `beyond` them, where it may. What is left begins where it says.
template <class T, class F>
[[gnu::always_inline]] inline int64_t each_strip(int64_t channels, bool beyond, const F& f) {
  constexpr int64_t L = kLanes<compute_t<T>>;
  int64_t c0 = 0;
  for (; c0 + kVectors * L <= channels; c0 += kVectors * L) f(c0, std::integral_constant<int, kVectors>{});
  if constexpr (kInVectors<T> || is_half_v<T>) {
    if (channels < L) {
      if (!beyond) return 0;
      f(0, std::integral_constant<int, 1>{});
      return channels;
    }
    for (; c0 + L <= channels; c0 += L) f(c0, std::integral_constant<int, 1>{});
    if (c0 < channels) f(channels - L, std::integral_constant<int, 1>{});
    return channels;
  }
  return c0;
}

// The maxima of V vectors of channels from x on, at output (a, b, c).
template <int V, class T> [[gnu::always_inline]] inline void max_vectors(const PoolWindows& w, int64_t a, int64_t b,
                                                                         int64_t c, int64_t begin, const T* x, T* y,
                                                                         int64_t* indices) {
  using C = compute_t<T>;
  using P = Position<T>;
  Vec<C> best[V], v[V];
  Vec<P> at[V];
  load_channels<V>(x + begin * w.channels, best);
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k) at[k] = Vec<P>{} + static_cast<P>(begin);
  each_tap(
      w, a, b, c,
      [&](int64_t position) __attribute__((always_inline)) {
        load_channels<V>(x + position * w.channels, v);
        const Vec<P> here = Vec<P>{} + static_cast<P>(position);
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
  if (!indices) return;
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k)
    for (int j = 0; j < kLanes<C>; ++j) indices[k * kLanes<C> + j] = at[k][j];
}
// The means of V vectors of channels; `many`: rows add up as doubles.
template <int V, class T> [[gnu::always_inline]] inline void average_vectors(const PoolWindows& w, int64_t a, int64_t b,
                                                                             int64_t c, compute_t<T> by, bool many,
                                                                             const T* x, T* y) {
  using C = compute_t<T>;
  constexpr int L = kLanes<C>;
  Vec<C> sum[V] = {}, v[V];
  alignas(64) double total[V * L] = {};
  each_tap(
      w, a, b, c,
      [&](int64_t position) __attribute__((always_inline)) {
        load_channels<V>(x + position * w.channels, v);
#pragma GCC unroll 8
        for (int k = 0; k < V; ++k) sum[k] += v[k];
      },
      [&] {
        if (!many) return;
        alignas(64) C row[V * L];
        for (int k = 0; k < V; ++k) store_vec(row + k * L, sum[k]), sum[k] = Vec<C>{};
        for (int j = 0; j < V * L; ++j) total[j] += static_cast<double>(row[j]);
      });
  if (many) {
    alignas(64) C means[V * L];
    for (int j = 0; j < V * L; ++j) means[j] = static_cast<C>(total[j] / static_cast<double>(by));
    for (int k = 0; k < V; ++k) sum[k] = load_vec(means + k * L);
  } else {
#pragma GCC unroll 8
    for (int k = 0; k < V; ++k) sum[k] = sum[k] / by;
  }
  store_channels<V>(y, sum);
}

}  // namespace

template <class T> void max_channels(const PoolWindows& w, T* y, int64_t* indices, const T* x) {
  using C = compute_t<T>;
  using P = Position<T>;
  each_row(w, [&](int64_t p, int64_t a, int64_t b) {
    const T* from = x + p * w.in_plane() * w.channels;
    for (int64_t c = 0; c < w.out[2]; ++c) {
      const int64_t out = ((p * w.out[0] + a) * w.out[1] + b) * w.out[2] + c;
      const int64_t begin = (w.start[0][a] * w.in[1] + w.start[1][b]) * w.in[2] + w.start[2][c];
      // What goes beyond its channels is written again by the next outputs of the row.
      const bool beyond = (w.out[2] - c) * w.channels >= kLanes<C> && reads_beyond<C>(w, p, a, b, c);
      int64_t c0 = each_strip<T>(w.channels, beyond, [&](int64_t at, auto vectors) __attribute__((always_inline)) {
        max_vectors<vectors.value>(w, a, b, c, begin, from + at, y + out * w.channels + at,
                                   indices ? indices + out * w.channels + at : nullptr);
      });
      for (; c0 < w.channels; c0 += kChannels) {
        const int64_t n = std::min(kChannels, w.channels - c0);
        alignas(64) C best[kChannels], buffer[kChannels];
        alignas(64) P at[kChannels];
        const C* head = as_computed(from + begin * w.channels + c0, n, buffer);
        for (int64_t j = 0; j < n; ++j) best[j] = head[j], at[j] = static_cast<P>(begin);
        each_tap(
            w, a, b, c,
            [&](int64_t position) {
              const C* v = as_computed(from + position * w.channels + c0, n, buffer);
              const P here = static_cast<P>(position);
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
        for (int64_t j = 0; indices && j < n; ++j) indices[out * w.channels + c0 + j] = at[j];
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
      const bool beyond = (w.out[2] - c) * w.channels >= kLanes<C> && reads_beyond<C>(w, p, a, b, c);
      int64_t c0 = each_strip<T>(w.channels, beyond, [&](int64_t at, auto vectors) __attribute__((always_inline)) {
        average_vectors<vectors.value>(w, a, b, c, by, many, from + at, y + out * w.channels + at);
      });
      for (; c0 < w.channels; c0 += kChannels) {
        const int64_t n = std::min(kChannels, w.channels - c0);
        alignas(64) C sum[kChannels] = {}, buffer[kChannels];
        alignas(64) Total total[kChannels] = {};
        each_tap(
            w, a, b, c,
            [&](int64_t position) {
              const C* v = as_computed(from + position * w.channels + c0, n, buffer);
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

#define RL_POOL_TYPES(T)                                                     \
  template void max_channels<T>(const PoolWindows&, T*, int64_t*, const T*); \
  template void average_channels<T>(const PoolWindows&, T*, const T*);
RL_POOL_TYPES(float)
RL_POOL_TYPES(double)
RL_POOL_TYPES(float16)
RL_POOL_TYPES(bfloat16)
#undef RL_POOL_TYPES

}  // namespace rl::RL_ISA
