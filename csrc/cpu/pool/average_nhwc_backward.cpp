// The gradient of means of windows with their channels last.
#include <algorithm>

#include "backend/pool.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/pool/nhwc.h"

namespace rl::RL_ISA {
namespace {

// Whether each position belongs to one window at most; w is transposed, as below.
bool are_disjoint(const PoolWindows& w) {
  for (int d = 0; d < 3; ++d)
    for (int64_t i = 0; i < w.out[d]; ++i)
      if (w.end[d][i] - w.start[d][i] > 1) return false;
  return true;
}
// Then a position is a copy of its window's share, or 0.
template <class T> void copy_shares(const PoolWindows& w, T* dx, const T* shares) {
  constexpr int64_t L = kLanes<T>;
  const int64_t n = w.channels, line = w.out[2] * n;
  each_row(w, [&](int64_t p, int64_t a, int64_t b) {
    T* row = dx + ((p * w.out[0] + a) * w.out[1] + b) * line;
    if (w.start[0][a] == w.end[0][a] || w.start[1][b] == w.end[1][b]) return std::fill_n(row, line, T(0)), void();
    const int64_t first = ((p * w.in[0] + w.start[0][a]) * w.in[1] + w.start[1][b]) * w.in[2];
    const T* const end = shares + w.planes * w.in_plane() * n;
    for (int64_t c = 0; c < w.out[2]; ++c) {
      T* to = row + c * n;
      const T* from = shares + (first + w.start[2][c]) * n;
      if (w.start[2][c] == w.end[2][c]) {
        std::fill_n(to, n, T(0));
      } else if (n >= L) {
        int64_t j = 0;
        for (; j + L <= n; j += L) store_vec(to + j, load_vec(from + j));
        if (j < n) store_vec(to + n - L, load_vec(from + n - L));
      } else if (from + L <= end && to + L <= row + line) {  // the next position writes over what is too much
        store_vec(to, load_vec(from));
      } else {
        std::copy_n(from, n, to);
      }
    }
  });
}
// The gradient as sums too, which write each position once: its windows are those that the position gave to. False
// where adding to the positions of each window is quicker.
template <class T> bool average_grad_gathered(const PoolWindows& w, T* dx, const T* dy) {
  PoolWindows transposed = w;
  Scratch<int64_t> tables[3];
  for (int d = 0; d < 3; ++d) {
    const int64_t in = w.in[d];
    tables[d].reset(3 * in);
    int64_t *start = tables[d].get(), *end = start + in, *share = end + in;
    for (int64_t i = 0, first = 0, last = 0; i < in; ++i) {
      while (first < w.out[d] && w.end[d][first] <= i) ++first;
      while (last < w.out[d] && w.start[d][last] <= i) ++last;
      start[i] = first, end[i] = last, share[i] = 1;
    }
    transposed.in[d] = w.out[d], transposed.out[d] = in;
    transposed.start[d] = start, transposed.end[d] = end, transposed.share[d] = share;
  }
  transposed.divisor = 1;
  const bool disjoint = are_disjoint(transposed);
  if (!disjoint && w.channels >= 16) return false;  // enough of them to add to
  Scratch<T> shares(w.planes * w.out_plane() * w.channels);
  each_row(w, [&](int64_t p, int64_t a, int64_t b) {
    const int64_t row = ((p * w.out[0] + a) * w.out[1] + b) * w.out[2] * w.channels;
    for (int64_t c = 0, i = row; c < w.out[2]; ++c) {
      const T by = pool_divisor<T>(w, a, b, c);
      for (const int64_t end = i + w.channels; i < end; ++i) shares[i] = dy[i] / by;
    }
  });
  if (disjoint) copy_shares<T>(transposed, dx, shares.get());
  else average_channels<T>(transposed, dx, shares.get());
  return true;
}

}  // namespace

template <class T> void average_grad_channels(const PoolWindows& w, T* dx, const T* dy) {
  using C = compute_t<T>;
  if constexpr (kInVectors<T>)
    if (w.dilation[0] == 1 && w.dilation[1] == 1 && w.dilation[2] == 1 && average_grad_gathered(w, dx, dy)) return;
  const int64_t parts = (w.channels + kChannels - 1) / kChannels;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, w.in_plane() * kChannels));
  parallel_for(0, w.planes * parts, grain, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t p = task / parts, c0 = task % parts * kChannels, n = std::min(kChannels, w.channels - c0);
      T* to = dx + p * w.in_plane() * w.channels + c0;
      if (n == w.channels) std::fill_n(to, w.in_plane() * n, T(0));
      else
        for (int64_t position = 0; position < w.in_plane(); ++position)
          std::fill_n(to + position * w.channels, n, T(0));
      const T* g = dy + p * w.out_plane() * w.channels + c0;
      for (int64_t a = 0; a < w.out[0]; ++a)
        for (int64_t b = 0; b < w.out[1]; ++b)
          for (int64_t c = 0; c < w.out[2]; ++c, g += w.channels) {
            alignas(64) C each[kChannels], buffer[kChannels];
            const C* v = as_computed(g, n, buffer);
            const C by = pool_divisor<T>(w, a, b, c);
            for (int64_t j = 0; j < n; ++j) each[j] = v[j] / by;
            each_tap(
                w, a, b, c,
                [&](int64_t position) {
                  T* row = to + position * w.channels;
#pragma GCC ivdep
                  for (int64_t j = 0; j < n; ++j) row[j] = static_cast<T>(static_cast<C>(row[j]) + each[j]);
                },
                [] {});
          }
    }
  });
}

template void average_grad_channels<float>(const PoolWindows&, float*, const float*);
template void average_grad_channels<double>(const PoolWindows&, double*, const double*);
template void average_grad_channels<float16>(const PoolWindows&, float16*, const float16*);
template void average_grad_channels<bfloat16>(const PoolWindows&, bfloat16*, const bfloat16*);

}  // namespace rl::RL_ISA
