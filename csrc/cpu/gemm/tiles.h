// What the GEMMs of gemm.h have in common: how the result is cut into tiles, and the epilogue (beta * d).
#pragma once
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "cpu/gemm/gemm.h"

namespace rl::cpu {
namespace {

// Puts beta * d into a tile of c. Returns whether the GEMM is then added to it.
template <class T, class S> bool prepare(const Gemm<T, S>& g, int64_t i, int64_t rows, int64_t j, int64_t cols) {
  if (!g.d || g.beta == T(0)) return false;
  if (g.d == g.c && g.beta == T(1)) return true;
  for (int64_t r = i; r < i + rows; ++r) {
    T* c = g.c + r * g.crs + j * g.ccs;
    const T* d = g.d + r * g.drs + j * g.dcs;
    if (g.ccs != 1)
      for (int64_t q = 0; q < cols; ++q) c[q * g.ccs] = g.beta * d[q * g.dcs];
    else if (g.dcs == 0) std::fill_n(c, cols, g.beta * *d);
    else if (g.dcs == 1 && g.beta == T(1)) std::memcpy(c, d, static_cast<size_t>(cols) * sizeof(T));
    else if (g.dcs == 1)
      for (int64_t q = 0; q < cols; ++q) c[q] = g.beta * d[q];
    else
      for (int64_t q = 0; q < cols; ++q) c[q] = g.beta * d[q * g.dcs];
  }
  return true;
}

inline constexpr int64_t kOwnRows = 192;  // rows of a thread from which on it packs all of b for itself

// How the result is cut into tiles. An element's sum is the same in any tile, so the cut may depend on the number of
// threads. Threads own whole rows where there are enough of them: what precedes and follows a GEMM mostly goes row
// by row too, and then finds its data in the same core's cache.
struct Tiles {
  int64_t rows, cols, down, across;

  // Blocks have `block` rows and `panel` columns; a tile has at most most_rows rows, and at least least_cols columns if
  // there are as many.
  Tiles(int64_t m, int64_t n, int64_t most_rows, int64_t block, int64_t panel, int64_t least_cols, double macs,
        int64_t own_rows = kOwnRows) {
    const int64_t threads = macs < 8e5 ? 1 : num_threads();
    int64_t by_rows = threads;  // threads along the rows; the others stand side by side
    while (by_rows > 1 && (threads % by_rows || m / by_rows < own_rows)) --by_rows;
    down = by_rows * ((m + by_rows * most_rows - 1) / (by_rows * most_rows));
    const int64_t side = threads / by_rows;
    // More tiles than threads, so that who ends early can help; but not where a narrower tile would pack a once more.
    const auto wanted = static_cast<int64_t>(std::min(macs / 4e5, threads * std::clamp(macs / 2e7, 1.0, 4.0)));
    across = side;
    while (across * down + side * down <= wanted && n / (across + side) >= least_cols) across += side;
    across = std::min(across, (n + panel - 1) / panel);
    auto even = [](int64_t total, int64_t tiles, int64_t step) {
      return ((total + tiles - 1) / tiles + step - 1) / step * step;
    };
    rows = even(m, down, block), cols = even(n, across, panel);
    if (across < side) {  // too few columns for the threads
      const int64_t more = std::clamp<int64_t>(wanted / across, 1, std::max<int64_t>(1, m / (2 * block)));
      rows = std::min(rows, even(m, more, block));
    }
    down = (m + rows - 1) / rows, across = (n + cols - 1) / cols;
  }
};

}  // namespace
}  // namespace rl::cpu
