#include <algorithm>
#include <atomic>
#include <type_traits>

#include "base/interrupt.h"
#include "cpu/gemm/microkernel_avx512.h"
#include "cpu/gemm/tiles.h"
#include "cpu/gemm/transposed.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int kDotRows = 6, kDotCols = 4;  // sums that registers hold
template <class T>
using DotsFn = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, int64_t, T, bool);
// Dot products of `rows` rows of a with 0 to kDotCols rows of b.
template <class T, bool kAhead> const DotsFn<T>* dots_of(int64_t rows) {
  auto table = [](auto r) -> const DotsFn<T>* {
    constexpr int R = decltype(r)::value;
    static constexpr DotsFn<T> kAll[] = {nullptr, &dots<R, 1, kAhead, T>, &dots<R, 2, kAhead, T>,
                                         &dots<R, 3, kAhead, T>, &dots<R, 4, kAhead, T>};
    return kAll;
  };
  switch (rows) {
    case 1: return table(std::integral_constant<int, 1>{});
    case 2: return table(std::integral_constant<int, 2>{});
    case 3: return table(std::integral_constant<int, 3>{});
    case 4: return table(std::integral_constant<int, 4>{});
    case 5: return table(std::integral_constant<int, 5>{});
    default: return table(std::integral_constant<int, 6>{});
  }
}

// Few rows against a b stored along the sum, as in the layers of a network on a small batch: dot products
// read b once, where packing it would take longer than the GEMM.
template <class T> void thin(const Gemm<T>& g) {
  const int64_t passes = (g.m + kDotRows - 1) / kDotRows, rows = (g.m + passes - 1) / passes;
  const int64_t work = g.k * std::max<int64_t>(1, g.m / 4);
  const int64_t grain = std::max<int64_t>(kDotCols, 65536 / std::max<int64_t>(work, 1) / kDotCols * kDotCols);
  parallel_for(0, g.n, grain, [&](int64_t first, int64_t last) {
    const bool add = prepare(g, 0, g.m, first, last - first);
    for (int64_t j = first; j < last; j += kDotCols)
      for (int64_t i = 0; i < g.m; i += rows) {
        const int64_t some = std::min(rows, g.m - i);
        const bool ahead = i == 0 && j + 2 * kDotCols <= g.n;
        const DotsFn<T>* all = ahead ? dots_of<T, true>(some) : dots_of<T, false>(some);
        all[std::min<int64_t>(kDotCols, last - j)](g.k, g.a + i * g.ars, g.ars, g.b + j * g.bcs, g.bcs,
                                                   g.c + i * g.crs + j * g.ccs, g.crs, g.ccs, g.alpha, add);
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

constexpr int64_t kMostRows = 2048;                         // of a tile
constexpr int64_t kKept = 1 << 20;                          // bytes of b that a thread packs once
constexpr int64_t kRounds = 8;                              // in which a thread's part of the rows is handed out
constexpr double kRoundMacs = 2e6;                          // of a round at least
constexpr double kLargeResult = 1 << 18;                    // elements
constexpr int64_t kPacksFrom = 384, kPacksColliding = 192;  // columns from which on packing a is profitable
constexpr int64_t kOverFrom = 64, kOverUpTo = 256;          // steps of the sum, and columns, see take_over()

// The GEMM block by block: rows of a against panels of two vectors' width of b, a slice of the sum at a time. A
// block's rows stay in the first cache while they meet a group of panels, which stream from the second. The longer the
// slice, the less often sums go to c and come back. Each tile packs what it reads for itself: no thread waits for, or
// reads from the cache of, another.
template <class T> struct Blocked {
  static constexpr int W = Vec<T>::W;
  static constexpr int64_t kPanel = 2 * W, kGroup = 8 * kPanel;  // columns
  Gemm<T> g;                                                     // without the columns that stand over
  bool packs_a, packs_b;
  const T* bias = nullptr;  // one row that is added to all
  bool by_rows = false;     // one number for each row is added
  int64_t over = 0;         // columns
  Scratch<T> standing;      // (over, k): those of b

  explicit Blocked(const Gemm<T>& gemm) : g(gemm) {
    take_over();
    const bool collide = g.ars * static_cast<int64_t>(sizeof(T)) % 1024 == 0;  // rows, in the first cache
    packs_a = g.acs != 1 || (g.n >= (collide ? kPacksColliding : kPacksFrom) && g.m > kBlockRows);
    if (g.d && g.drs == 0 && g.dcs == 1 && g.alpha == T(1) && g.beta == T(1)) bias = g.d;
    by_rows = g.d && g.dcs == 0 && g.drs != 0 && g.beta != T(0);
    // Rows of b are read in place when there are too few rows of a for packing to be profitable.
    packs_b = g.bcs != 1 || !(g.m <= 96 || g.k * g.n * static_cast<int64_t>(sizeof(T)) <= 65536);
  }

  // A vector for a few columns, as for the pixels of 7x7 planes, would be mostly idle: they are dot products with
  // the rows of a, which a block has just read.
  void take_over() {
    const int64_t columns = g.n % W;
    if (columns == 0 || columns > kDotCols || g.n < kPanel || g.n > kOverUpTo || g.k < kOverFrom) return;
    if (g.acs != 1 || g.m < kBlockRows) return;
    over = columns, g.n -= over;
    standing.reset(over * g.k);
    parallel_for(0, g.k, 4096, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p)
        for (int64_t q = 0; q < over; ++q) standing[q * g.k + p] = g.b[p * g.brs + (g.n + q) * g.bcs];
    });
  }
  // The epilogue's addend goes into a block just before its GEMM, while it is in the cache. Returns whether that is
  // added to.
  bool begin_rows(int64_t i, int64_t rows, int64_t j, int64_t cols, int64_t p, bool add) const {
    if (!by_rows || p != 0) return add;
    for (int64_t r = i; r < i + rows; ++r) std::fill_n(g.c + r * g.crs + j, cols, g.beta * g.d[r * g.drs]);
    return true;
  }
  void multiply_over(int64_t i, int64_t rows, int64_t p, int64_t len, bool add) const {
    add = begin_rows(i, rows, g.n, over, p, add);
    for (int64_t r = 0; r < rows; r += kDotRows) {
      const int64_t some = std::min<int64_t>(kDotRows, rows - r);
      T* c = g.c + (i + r) * g.crs + g.n;
      dots_of<T, false>(some)[over](len, g.a + (i + r) * g.ars + p, g.ars, standing.get() + p, g.k, c, g.crs, 1,
                                    g.alpha, add);
      if (p != 0 || !bias) continue;
      for (int64_t q = 0; q < some; ++q)
        for (int64_t j = 0; j < over; ++j) c[q * g.crs + j] += bias[g.n + j];
    }
  }
  // What the GEMM of a tile accumulates into. The columns that stand over go with the last tile.
  bool begin_tile(int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
    return !bias && !by_rows && prepare(g, i0, i1 - i0, j0, j1 - j0 + (j1 == g.n ? over : 0));
  }

  void pack_a(int64_t i0, int64_t i1, int64_t p, int64_t len, T* to) const {
    const T* from = g.a + p * g.acs;
    if (g.ars == 1) return pack_columns<kBlockRows>(from + i0, g.acs, len, i1 - i0, to);
    for (int64_t i = i0; i < i1; i += kBlockRows) {
      const int64_t rows = std::min<int64_t>(kBlockRows, i1 - i);
      pack_panel(from + i * g.ars, g.ars, g.acs, len, rows, rows, rows, to + (i - i0) * len);
    }
  }
  static int64_t panel_width(int64_t cols) { return cols > W ? kPanel : W; }
  // The columns [j0, j1), panel after panel; without the whole panels that the first rows' blocks leave behind while
  // they read them.
  bool leaves(int64_t i0, int64_t i1) const { return g.bcs == 1 && i1 - i0 >= kBlockRows; }
  void pack_b(int64_t j0, int64_t j1, int64_t p, int64_t len, T* to, bool left) const {
    const T* from = g.b + p * g.brs;
    int64_t j = j0;
    if (g.bcs == 1) {
      j += (j1 - j0) / kPanel * kPanel;
      if (!left) pack_columns<kPanel>(from + j0, g.brs, len, j - j0, to);
    }
    for (; j < j1; j += kPanel) {
      const int64_t cols = std::min(kPanel, j1 - j), width = panel_width(cols);
      pack_panel(from + j * g.bcs, g.bcs, g.brs, len, cols, width, width, to + (j - j0) * len);
    }
  }
  // Rows of a block at i by the panel of columns at j. `a` and `b` are packed, or null.
  void multiply(int64_t i, int64_t rows, int64_t j, int64_t width, int64_t p, int64_t len, const T* a, const T* b,
                bool add) const {
    const auto last = first_lanes<T>(g.n - j - (width - W));
    const bool masked = !b && j + width > g.n;
    add = begin_rows(i, rows, j, std::min(width, g.n - j), p, add);
    const BlockFn<T>* blocks = width > W ? blocks_of<T, 2>(masked, !a) : blocks_of<T, 1>(masked, !a);
    blocks[rows](len, a ? a : g.a + i * g.ars + p, a ? rows : g.ars, b ? b : g.b + p * g.brs + j, b ? width : g.brs,
                 g.c + i * g.crs + j, g.crs, g.alpha, add, p == 0 && bias ? bias + j : nullptr, last);
  }

  // The same for kBlockRows rows and a whole panel of b in place, which is left in `kept`.
  void multiply_and_keep(int64_t i, int64_t j, int64_t p, int64_t len, const T* a, T* kept, bool add) const {
    constexpr auto kAll = static_cast<typename Vec<T>::Mask>(~0u);
    const T *from = g.b + p * g.brs + j, *start = p == 0 && bias ? bias + j : nullptr;
    T* to = g.c + i * g.crs + j;
    add = begin_rows(i, kBlockRows, j, kPanel, p, add);
    keeping_block_of<T>(!a)(len, a ? a : g.a + i * g.ars + p, a ? kBlockRows : g.ars, from, g.brs, to, g.crs, g.alpha,
                            add, start, kAll, kept);
  }

  void run() const {
    const double macs = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
    // Sums of sums are more exact than one long sum; but where c is large, writing it out and reading it back is slow
    // too.
    const int64_t most = (macs >= kLargeResult * static_cast<double>(g.k) ? 2048 : 1024) / sizeof(T);
    const int64_t slices = std::max<int64_t>(1, (g.k + most - 1) / most), slice = (g.k + slices - 1) / slices;
    const int64_t padded = (g.n + kPanel - 1) / kPanel * kPanel, bytes = padded * g.k * static_cast<int64_t>(sizeof(T));
    const bool kept = bytes <= kKept;
    // Packing a small b once more costs a thread little, and next to nothing where its first rows do it.
    const int64_t own_rows = kept && g.bcs == 1 ? kOwnRows / 4 : bytes <= kKept / 2 ? kOwnRows / 2 : kOwnRows;
    const Tiles tile(g.m, g.n, kMostRows, kBlockRows, kPanel, (packs_a ? 32 : 4) * kPanel, macs, own_rows);
    if (tile.across == 1 && tile.down > 1 && kept) return run_by_rows(tile, slice, padded, macs);
    parallel_for(0, tile.down * tile.across, 1, [&](int64_t first, int64_t last) {
      Scratch<T> packed(slice * ((packs_a ? tile.rows : 0) + kGroup));
      T *panels = packed.get(), *blocks = panels + slice * kGroup;
      for (int64_t t = first; t < last; ++t) {
        const int64_t i0 = t / tile.across * tile.rows, j0 = t % tile.across * tile.cols;
        const int64_t i1 = std::min(g.m, i0 + tile.rows), j1 = std::min(g.n, j0 + tile.cols);
        bool add = begin_tile(i0, i1, j0, j1);
        for (int64_t p = 0; p < g.k; p += slice, add = true) {
          const int64_t len = std::min(slice, g.k - p);
          if (packs_a) pack_a(i0, i1, p, len, blocks);
          for (int64_t group = j0; group < j1; group += kGroup) {
            const int64_t end = std::min(j1, group + kGroup);
            const bool left = packs_b && leaves(i0, i1);
            if (packs_b) pack_b(group, end, p, len, panels, left);
            meet(i0, i1, group, end, p, len, packs_a ? blocks : nullptr, packs_b ? panels : nullptr, left, add);
          }
        }
      }
    });
  }
  // Blocks of rows [i0, i1) by panels of columns [j0, j1). `left`: the first of them leave whole panels behind.
  void meet(int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t p, int64_t len, const T* blocks, T* panels,
            bool left, bool add) const {
    for (int64_t i = i0; i < i1; i += kBlockRows) {
      if ((i - i0) % (32 * kBlockRows) == 31 * kBlockRows && loop_stopped()) return;
      const T* a = blocks ? blocks + (i - i0) * len : nullptr;
      for (int64_t j = j0; j < j1; j += kPanel) {
        T* b = panels ? panels + (j - j0) * len : nullptr;
        if (left && i == i0 && j1 - j >= kPanel) multiply_and_keep(i, j, p, len, a, b, add);
        else multiply(i, std::min<int64_t>(kBlockRows, i1 - i), j, panel_width(j1 - j), p, len, a, b, add);
      }
      if (over && j1 == g.n) multiply_over(i, std::min<int64_t>(kBlockRows, i1 - i), p, len, add);
    }
  }
  // Each thread packs all of b, then takes a few rows at a time, of its own part first: where cores differ in speed,
  // the faster one does more.
  void run_by_rows(const Tiles& tile, int64_t slice, int64_t padded, double macs) const {
    const int64_t parts = tile.down;
    const auto least = static_cast<int64_t>(kRoundMacs * static_cast<double>(g.m) / macs) + 1;
    const int64_t height = (std::max(least, tile.rows / kRounds) + kBlockRows - 1) / kBlockRows * kBlockRows;
    struct alignas(64) Next {
      std::atomic<int64_t> row;
    };
    Scratch<Next> next(parts);
    for (int64_t i = 0; i < parts; ++i) next[i].row.store(i * tile.rows, std::memory_order_relaxed);
    parallel_for(0, parts, 1, [&](int64_t own, int64_t) {
      Scratch<T> packed;
      bool first = true;  // of the rows: b is packed
      for (int64_t q = 0; q < parts; ++q) {
        const int64_t part = (own + q) % parts, end = std::min(g.m, (part + 1) * tile.rows);
        while (!loop_stopped()) {
          const int64_t i0 = next[part].row.fetch_add(height, std::memory_order_relaxed),
                        i1 = std::min(end, i0 + height);
          if (i0 >= end) break;
          if (first) packed.reset((packs_b ? g.k * padded : 0) + (packs_a ? slice * height : 0));
          const bool left = first && packs_b && leaves(i0, i1);
          T* blocks = packed.get() + (packs_b ? g.k * padded : 0);
          bool add = begin_tile(i0, i1, 0, g.n);
          for (int64_t p = 0; p < g.k; p += slice, add = true) {
            const int64_t len = std::min(slice, g.k - p);
            if (packs_a) pack_a(i0, i1, p, len, blocks);
            for (int64_t group = 0; group < g.n; group += kGroup) {
              const int64_t end = std::min(g.n, group + kGroup);
              T* panels = packs_b ? packed.get() + p * padded + group * len : nullptr;
              if (first && packs_b) pack_b(group, end, p, len, panels, left);
              meet(i0, i1, group, end, p, len, packs_a ? blocks : nullptr, panels, left, add);
            }
          }
          first = false;
        }
      }
    });
  }
};

// GEMMs that the first cache holds: nothing is cut, and only a b that stands along the sum is packed. A batch of
// them takes no memory from the heap.
constexpr double kSmallMacs = 3e5;
template <class T> bool is_small(const Gemm<T>& g) {
  return g.m > 4 && g.n > 4 && g.k <= 1024 / static_cast<int64_t>(sizeof(T)) && (g.acs == 1 || g.ars == 1) &&
         static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) < kSmallMacs;
}
template <class T> void small(const Gemm<T>& g) {
  constexpr int64_t W = Vec<T>::W, kPanel = 2 * W;
  alignas(64) T panel[1024 / sizeof(T) * kPanel];
  const bool add = prepare(g, 0, g.m, 0, g.n), along = g.acs == 1, packs = g.bcs != 1;
  for (int64_t j = 0; j < g.n; j += kPanel) {
    const int64_t cols = std::min(kPanel, g.n - j), width = cols > W ? kPanel : W;
    if (packs) pack_panel(g.b + j * g.bcs, g.bcs, g.brs, g.k, cols, width, width, panel);
    const auto last = first_lanes<T>(cols - (width - W));
    const bool masked = !packs && cols < width;
    const BlockFn<T>* blocks = width > W ? blocks_of<T, 2>(masked, along) : blocks_of<T, 1>(masked, along);
    for (int64_t i = 0; i < g.m; i += kBlockRows)
      blocks[std::min<int64_t>(kBlockRows, g.m - i)](g.k, g.a + i * g.ars, along ? g.ars : g.acs,
                                                     packs ? panel : g.b + j, packs ? width : g.brs,
                                                     g.c + i * g.crs + j, g.crs, g.alpha, add, nullptr, last);
  }
}

constexpr int64_t kThin = 12, kNarrow = 64, kFewCols = 24;

template <class T> void run(const Gemm<T>& g) {
  if (is_small(g)) return small(g);
  bool few_rows = g.m <= kNarrow && g.brs == 1 && g.bcs != 1, few_cols = g.n <= kFewCols && g.acs == 1 && g.ars != 1;
  if (g.k < 32 || !(few_rows || few_cols)) return Blocked<T>(g).run();
  Gemm<T> t = g;
  if (!few_rows) t = transposed(g);
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

void vector_gemm(const Gemm<float>& g) { run(g); }
void vector_gemm(const Gemm<double>& g) { run(g); }

}  // namespace rl::RL_ISA
