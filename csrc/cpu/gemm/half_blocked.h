// GEMMs of fp16 and bf16 on vectors, of floats or of bf16 pairs (pack_bf16.h). Compiled in half_avx512.cpp and
// half_bf16.cpp.
#pragma once
#include <algorithm>

#include "cpu/gemm/half_gemv.h"
#include "cpu/gemm/pack_bf16.h"
#include "cpu/gemm/tiles.h"
#include "cpu/gemm/transposed.h"
#include "cpu/loops/scratch.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kPanel = 32, kGroup = 8 * kPanel;  // columns
constexpr int64_t kSliceDwords = 512;                // of the sum: a block's rows of them stay in the first cache
constexpr int64_t kMostRows = 504;                   // of a tile
constexpr int64_t kInPlaceCols = 192;
constexpr int64_t kOwnHalfRows = 64;  // of a thread from which on it packs all of b for itself

// Blocks of a dozen rows, packed, meet the packed panels of a group of columns, a slice of the sum at a time. Each tile
// packs what it reads for itself, as in sgemm_avx512.cpp. An element's sum is the same in any tile.
template <class K> void blocked(const HalfGemm<typename K::Number>& g) {
  const double macs = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  const Tiles tile(g.m, g.n, kMostRows, kBlockRows, kPanel, kGroup, macs / static_cast<double>(K::kSteps),
                   kOwnHalfRows);
  const int64_t all = (g.k + K::kSteps - 1) / K::kSteps, slices = (all + kSliceDwords - 1) / kSliceDwords;
  const int64_t dwords = (all + slices - 1) / slices, slice = dwords * K::kSteps;
  const int64_t padded = std::min(kGroup, (tile.cols + kPanel - 1) / kPanel * kPanel);
  // Pairs that lie along the sum are read in place where few columns would not be worth packing.
  const bool in_place = K::kInPlace && g.acs == 1 && g.ars % 2 == 0 && g.k % 2 == 0 && g.n <= kInPlaceCols && g.m > 1;
  parallel_for(0, tile.down * tile.across, 1, [&](int64_t first, int64_t last) {
    Scratch<float> packed(dwords * padded + (in_place ? 0 : all * tile.rows)),
        sums(slices > 1 && !g.sums ? tile.rows * padded : 0);
    float *panels = packed.get(), *left = panels + dwords * padded;
    alignas(64) float small[kBlockRows * kPanel];
    for (int64_t t = first; t < last; ++t) {
      const int64_t i0 = t / tile.across * tile.rows, rows = std::min(g.m - i0, tile.rows);
      const int64_t j0 = t % tile.across * tile.cols, j1 = std::min(g.n, j0 + tile.cols);
      const int64_t pieces = (rows + kBlockRows - 1) / kBlockRows, even = (rows + pieces - 1) / pieces;
      for (int64_t group = j0; group < j1; group += kGroup)
        for (int64_t p = 0; p < g.k; p += slice) {
          const int64_t cols = std::min(j1 - group, kGroup), len = std::min(slice, g.k - p);
          const int64_t count = (len + K::kSteps - 1) / K::kSteps;
          const auto* from = g.a + i0 * g.ars + p * g.acs;
          float* const blocks = left + p / K::kSteps * rows;
          if (group == j0 && !in_place) pack_panels<K, false>(from, g.ars, g.acs, len, rows, even, blocks);
          if (!g.packed) pack_panels<K, true>(g.b + group * g.bcs + p * g.brs, g.bcs, g.brs, len, cols, kPanel, panels);
          for (int64_t i = 0; i < rows; i += even)
            for (int64_t j = 0; j < cols; j += kPanel) {
              const int64_t height = std::min(even, rows - i), width = panel_width<true>(cols - j, kPanel);
              float* to = g.sums       ? g.sums + (i0 + i) * g.srs + group + j
                          : slices > 1 ? sums.get() + i * padded + j
                                       : small;
              const int64_t step = g.sums ? g.srs : slices > 1 ? padded : kPanel;
              const float* x = in_place ? reinterpret_cast<const float*>(from + i * g.ars) : blocks + i * count;
              const float* y = g.packed ? g.packed + (group + j) * all + p / K::kSteps * width : panels + j * count;
              K::blocks(width > 16 ? 2 : 1, in_place)[height](count, x, in_place ? g.ars / 2 : height, y, width, to,
                                                              step, 1, p > 0 || g.sums, nullptr, 0xffff);
              if (p + slice >= g.k && !g.sums)
                put_rows<K>(g, to, step, i0 + i, height, group + j, std::min(kPanel, cols - j));
            }
        }
    }
  });
}

template <class K> void run(HalfGemm<typename K::Number> g) {
  if (g.packed || g.sums) return blocked<K>(g);
  if (g.n <= kSmallM && g.n < g.m) g = transposed(g);
  if (g.m <= kSmallM && g.bcs == 1) return dots_small_m<K>(g);
  if (g.m > kSmallN || g.brs != 1) return blocked<K>(g);
  Scratch<typename K::Number> rows;
  if (g.acs != 1) {
    rows.reset(g.m * g.k);
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t p = 0; p < g.k; ++p) rows[i * g.k + p] = g.a[i * g.ars + p * g.acs];
    g.a = rows.get(), g.ars = g.k, g.acs = 1;
  }
  gemv_small_m<K>(g);
}

}  // namespace
}  // namespace rl::RL_ISA
