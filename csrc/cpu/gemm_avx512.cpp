#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/parallel.h"
#include "cpu/gemm.h"
#include "cpu/instructions.h"
#include "cpu/scratch.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "cpu/gemm_avx512.h"

namespace rl::cpu {
namespace {

// Puts beta * d into a tile of c. Returns whether the product is then added to it.
template <class T> bool prepare(const Gemm<T>& g, int64_t i, int64_t rows, int64_t j, int64_t cols) {
  if (!g.d || g.beta == T(0)) return false;
  if (g.d == g.c && g.beta == T(1)) return true;
  for (int64_t r = i; r < i + rows; ++r) {
    T* c = g.c + r * g.crs + j * g.ccs;
    const T* d = g.d + r * g.drs + j * g.dcs;
    if (g.ccs != 1)
      for (int64_t q = 0; q < cols; ++q) c[q * g.ccs] = g.beta * d[q * g.dcs];
    else if (g.dcs == 1 && g.beta == T(1)) std::memcpy(c, d, static_cast<size_t>(cols) * sizeof(T));
    else if (g.dcs == 1)
      for (int64_t q = 0; q < cols; ++q) c[q] = g.beta * d[q];
    else
      for (int64_t q = 0; q < cols; ++q) c[q] = g.beta * d[q * g.dcs];
  }
  return true;
}

// Few rows against a b stored along the sum, as in the layers of a network on a small batch: inner products
// read b once, where packing it would take longer than the product.
template <class T> void thin(const Gemm<T>& g) {
  int64_t grain = std::max<int64_t>(4, 65536 / std::max<int64_t>(g.k * std::max<int64_t>(1, g.m / 4), 1) / 4 * 4);
  parallel_for(0, g.n, grain, [&](int64_t first, int64_t last) {
    bool add = prepare(g, 0, g.m, first, last - first);
    for (int64_t j = first; j < last; j += 4)
      for (int64_t i = 0; i < g.m; i += 6) {
        const T *a = g.a + i * g.ars, *b = g.b + j * g.bcs;
        T* c = g.c + i * g.crs + j * g.ccs;
        auto run = [&](auto r, auto s) { dots<r(), s()>(g.k, a, g.ars, b, g.bcs, c, g.crs, g.ccs, g.alpha, add); };
        auto rows = [&](auto s) {
          switch (std::min<int64_t>(6, g.m - i)) {
            case 1: return run(std::integral_constant<int, 1>{}, s);
            case 2: return run(std::integral_constant<int, 2>{}, s);
            case 3: return run(std::integral_constant<int, 3>{}, s);
            case 4: return run(std::integral_constant<int, 4>{}, s);
            case 5: return run(std::integral_constant<int, 5>{}, s);
            default: return run(std::integral_constant<int, 6>{}, s);
          }
        };
        switch (std::min<int64_t>(4, last - j)) {
          case 1: rows(std::integral_constant<int, 1>{}); break;
          case 2: rows(std::integral_constant<int, 2>{}); break;
          case 3: rows(std::integral_constant<int, 3>{}); break;
          default: rows(std::integral_constant<int, 4>{});
        }
      }
  });
}

// The same for a few more rows: they are packed side by side as vectors, and the rows of b, read in place, are
// multiplied into them. c has unit stride along one of its dimensions.
template <class T> void narrow(const Gemm<T>& g) {
  constexpr int W = Vec<T>::W;
  const int64_t panels = (g.m + 2 * W - 1) / (2 * W);
  auto width = [&](int64_t panel) { return g.m - panel * 2 * W > W ? 2 * W : W; };
  Scratch<T> packed(checked_mul(g.k, panels * 2 * W));
  for (int64_t i = 0; i < panels; ++i)
    pack_panel(g.a + i * 2 * W * g.ars, g.ars, g.acs, g.k, std::min<int64_t>(2 * W, g.m - i * 2 * W), width(i),
               width(i), packed.get() + i * 2 * W * g.k);
  int64_t tiles = (g.n + kBlockRows - 1) / kBlockRows;
  int64_t grain = std::max<int64_t>(1, 400000 / std::max<int64_t>(1, g.k * kBlockRows * g.m));
  parallel_for(0, tiles, grain, [&](int64_t first, int64_t last) {
    alignas(64) T tile[kBlockRows * 2 * W];
    for (int64_t t = first; t < last; ++t) {
      int64_t j = t * kBlockRows;
      int rows = static_cast<int>(std::min<int64_t>(kBlockRows, g.n - j));
      bool add = prepare(g, 0, g.m, j, rows);
      for (int64_t i = 0; i < panels; ++i) {
        int64_t row = i * 2 * W;
        (width(i) > W ? RowBlocks<T, 2>::kAll : RowBlocks<T, 1>::kAll)[rows](g.k, g.b + j * g.bcs, g.bcs,
                                                                             packed.get() + row * g.k, tile);
        put_tile(tile, rows, static_cast<int>(width(i)), static_cast<int>(std::min<int64_t>(width(i), g.m - row)),
                 g.c + row * g.crs + j * g.ccs, g.ccs, g.crs, g.alpha, add);
      }
    }
  });
}

constexpr int64_t kSum = 256;                        // length of the packed slices of the sum
constexpr int64_t kTileRows = 240, kTileCols = 512;  // what fits the second cache, packed
constexpr int64_t kPackedBytes = int64_t{8} << 20;   // of all slices packed at once
constexpr double kLarge = 1e8;                       // products from which on packing is shared

struct Tile {
  int64_t rows, cols;
};
// Cuts the result into at least `wanted` tiles of about equal sizes. An element's sum is the same in any tile, so the
// cut may depend on the number of threads.
Tile choose_tile(int64_t m, int64_t n, int64_t wanted, Tile most, int64_t panel, bool by_columns) {
  auto even = [](int64_t total, int64_t tiles, int64_t step) {
    return ((total + tiles - 1) / tiles + step - 1) / step * step;
  };
  int64_t tm = (m + most.rows - 1) / most.rows, tn = (n + most.cols - 1) / most.cols;
  while (tm * tn < wanted) {
    const int64_t rows = m / tm, cols = n / tn;
    if (cols >= 2 * panel && (by_columns || cols >= 2 * rows || rows < 2 * kBlockRows)) ++tn;
    else if (rows >= 2 * kBlockRows) ++tm;
    else break;
  }
  return {even(m, tm, kBlockRows), even(n, tn, panel)};
}

// The product block by block: rows of a against panels of two vectors' width of b, a slice of the sum at a time.
template <class T> struct Blocked {
  static constexpr int64_t kPanel = 2 * Vec<T>::W;
  const Gemm<T>& g;
  bool packs_a, packs_b;
  const T* bias = nullptr;  // one row that is added to all

  explicit Blocked(const Gemm<T>& gemm) : g(gemm) {
    packs_a = g.acs != 1;
    if (g.d && g.drs == 0 && g.dcs == 1 && g.alpha == T(1) && g.beta == T(1)) bias = g.d;
    // Rows of b are read in place when there are too few rows of a to pay for packing it.
    packs_b = g.bcs != 1 || !(g.m <= 96 || g.k * g.n * static_cast<int64_t>(sizeof(T)) <= 65536);
  }

  void pack_a(int64_t i, int64_t rows, int64_t p, int64_t len, T* to) const {
    pack_panel(g.a + i * g.ars + p * g.acs, g.ars, g.acs, len, rows, rows, rows, to);
  }
  void pack_b(int64_t j, int64_t p, int64_t len, T* to) const {
    pack_panel(g.b + p * g.brs + j * g.bcs, g.bcs, g.brs, len, std::min(kPanel, g.n - j), kPanel, kPanel, to);
  }
  // Rows [i0, i1) by the panel of columns at j. `a` and `b` are packed, or null.
  void multiply(int64_t i0, int64_t i1, int64_t j, int64_t p, int64_t len, const T* a, const T* b, bool add) const {
    const auto m0 = first_lanes<T>(g.n - j), m1 = first_lanes<T>(g.n - j - Vec<T>::W);
    const bool masked = !b && j + kPanel > g.n;
    const int64_t ldb = b ? kPanel : g.brs;
    const T* start = p == 0 && bias ? bias + j : nullptr;
    if (!b) b = g.b + p * g.brs + j;
    const BlockFn<T>* blocks = a ? (masked ? Blocks<T, true, false>::kAll : Blocks<T, false, false>::kAll)
                                 : (masked ? Blocks<T, true, true>::kAll : Blocks<T, false, true>::kAll);
    for (int64_t i = i0; i < i1; i += kBlockRows) {
      const int64_t rows = std::min<int64_t>(kBlockRows, i1 - i);
      blocks[rows](len, a ? a + (i - i0) * len : g.a + i * g.ars + p, g.ars, b, ldb, g.c + i * g.crs + j, g.crs,
                   g.alpha, add, start, m0, m1);
    }
  }

  // Each tile packs what it reads for itself: no thread waits for, or reads from the cache of, another.
  void run_apart() const {
    const double macs = 1.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
    const auto wanted = static_cast<int64_t>(std::min(macs / 4e5, num_threads() * std::clamp(macs / 2e7, 1.0, 4.0)));
    const Tile tile = choose_tile(g.m, g.n, wanted, {2 * kTileRows, kTileCols}, kPanel, !packs_a);
    const int64_t tiles_m = (g.m + tile.rows - 1) / tile.rows, tiles_n = (g.n + tile.cols - 1) / tile.cols;
    parallel_for(0, tiles_m * tiles_n, 1, [&](int64_t first, int64_t last) {
      Scratch<T> packed(kSum * ((packs_a ? tile.rows : 0) + kPanel));
      T *panel = packed.get(), *rows = panel + kSum * kPanel;
      for (int64_t t = first; t < last; ++t) {
        const int64_t i0 = t % tiles_m * tile.rows, j0 = t / tiles_m * tile.cols;
        const int64_t i1 = std::min(g.m, i0 + tile.rows), j1 = std::min(g.n, j0 + tile.cols);
        bool add = !bias && prepare(g, i0, i1 - i0, j0, j1 - j0);
        for (int64_t p = 0; p < g.k; p += kSum, add = true) {
          const int64_t len = std::min(kSum, g.k - p);
          for (int64_t i = i0; packs_a && i < i1; i += kBlockRows)
            pack_a(i, std::min<int64_t>(kBlockRows, i1 - i), p, len, rows + (i - i0) * len);
          for (int64_t j = j0; j < j1; j += kPanel) {
            if (packs_b) pack_b(j, p, len, panel);
            multiply(i0, i1, j, p, len, packs_a ? rows : nullptr, packs_b ? panel : nullptr, add);
          }
        }
      }
    });
  }

  // All is packed once, by all threads, before the tiles begin.
  void run_shared() const {
    const int64_t panels_a = packs_a ? (g.m + kBlockRows - 1) / kBlockRows : 0;
    const int64_t panels_b = packs_b ? (g.n + kPanel - 1) / kPanel : 0, panels = panels_a + panels_b;
    const int64_t rows_a = packs_a ? g.m : 0, slice_size = kSum * std::max<int64_t>(1, rows_a + panels_b * kPanel);
    const int64_t slices = (g.k + kSum - 1) / kSum;
    const int64_t at_once = std::clamp<int64_t>(kPackedBytes / static_cast<int64_t>(sizeof(T)) / slice_size, 1, slices);
    Scratch<T> packed(checked_mul(at_once, slice_size));
    const Tile tile = choose_tile(g.m, g.n, 4 * num_threads(), {kTileRows, kTileCols}, kPanel, false);
    const int64_t tiles_m = (g.m + tile.rows - 1) / tile.rows, tiles_n = (g.n + tile.cols - 1) / tile.cols;
    for (int64_t s0 = 0; s0 < slices; s0 += at_once) {
      const int64_t group = std::min(at_once, slices - s0);
      parallel_for(0, group * panels, 8, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t) {
          int64_t s = t / panels, index = t % panels, p = (s0 + s) * kSum, len = std::min(kSum, g.k - p);
          T* slice = packed.get() + s * slice_size;
          if (index < panels_a) {
            int64_t i = index * kBlockRows;
            pack_a(i, std::min<int64_t>(kBlockRows, g.m - i), p, len, slice + i * len);
          } else {
            int64_t j = (index - panels_a) * kPanel;
            pack_b(j, p, len, slice + rows_a * kSum + j * len);
          }
        }
      });
      parallel_for(0, tiles_m * tiles_n, 1, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t) {
          const int64_t i0 = t % tiles_m * tile.rows, j0 = t / tiles_m * tile.cols;
          const int64_t i1 = std::min(g.m, i0 + tile.rows), j1 = std::min(g.n, j0 + tile.cols);
          bool add = s0 > 0 || (!bias && prepare(g, i0, i1 - i0, j0, j1 - j0));
          for (int64_t s = 0; s < group; ++s, add = true) {
            const int64_t p = (s0 + s) * kSum, len = std::min(kSum, g.k - p);
            const T* slice = packed.get() + s * slice_size;
            for (int64_t j = j0; j < j1; j += kPanel)
              multiply(i0, i1, j, p, len, packs_a ? slice + i0 * len : nullptr,
                       packs_b ? slice + rows_a * kSum + j * len : nullptr, add);
          }
        }
      });
    }
  }
};

template <class T> void blocked(const Gemm<T>& g) {
  const bool large =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) >= kLarge && g.m >= kTileRows;
  large ? Blocked<T>(g).run_shared() : Blocked<T>(g).run_apart();
}

constexpr int64_t kThin = 24, kNarrow = 64;

template <class T> void run(const Gemm<T>& g) {
  bool few_rows = g.m <= kNarrow && g.brs == 1 && g.bcs != 1, few_cols = g.n <= kThin && g.acs == 1 && g.ars != 1;
  if (g.k < 32 || !(few_rows || few_cols)) return blocked(g);
  Gemm<T> t = g;
  if (!few_rows) {  // c^T = b^T @ a^T
    t = {g.n, g.m, g.k, g.b, g.bcs, g.brs, g.a, g.acs, g.ars, g.c, g.ccs, g.crs, g.alpha, g.beta, g.d, g.dcs, g.drs};
  }
  Scratch<T> rows;
  if (t.acs != 1) {
    rows.reset(t.m * t.k);
    for (int64_t i = 0; i < t.m; ++i)
      for (int64_t p = 0; p < t.k; ++p) rows[i * t.k + p] = t.a[i * t.ars + p * t.acs];
    t.a = rows.get(), t.ars = t.k, t.acs = 1;
  }
  t.m <= kThin ? thin(t) : narrow(t);
}

}  // namespace

bool gemm_available() { return has_avx512(); }
void gemm(const Gemm<float>& g) { run(g); }
void gemm(const Gemm<double>& g) { run(g); }

}  // namespace rl::cpu
#pragma GCC pop_options
#else
namespace rl::cpu {
bool gemm_available() { return false; }
void gemm(const Gemm<float>&) {}
void gemm(const Gemm<double>&) {}
}  // namespace rl::cpu
#endif
