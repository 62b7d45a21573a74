// Products with a register of channels in each lane block.
//
// Note [Channels in lanes]
// Where planes are small or strides large, pixels of one row fill a register badly and have to be gathered. With
// sixteen channels in a register instead, the other factor is single elements of the phases, broadcast from where they
// are: a filter's tap sees its pixel by address alone. The price is to transpose filters and results, sixteen by
// sixteen.
#pragma once
#include "cpu/conv/stride_phases.h"

namespace rl::avx512::conv {
namespace {

constexpr int64_t kMostVecs = 4;                        // registers of channels in a tile
constexpr int kTileRows[kMostVecs] = {8, 8, 8, 6};      // taps of a tile, by its registers
constexpr int kTilePixels[kMostVecs] = {14, 12, 8, 6};  // pixels

// Pixels that follow each other, at tap p.
struct AtTap {
  const float* data;
  const int32_t* offsets;
  float at(int r, int64_t p) const { return data[offsets[p] + r]; }
};
// Some taps, at pixel p.
template <int R> struct AtPixel {
  const float* taps[R];
  const int64_t* pixels;
  float at(int r, int64_t p) const { return taps[r][pixels[p]]; }
};

// c (rows, vecs registers) = or += a @ b, with b packed as [k][vecs registers].
using PixelsFn = void (*)(int64_t k, const float* phases, const int32_t* offsets, const float* b, float* c, int64_t ldc,
                          bool add);
template <int R, int V> void pixels_tile(int64_t k, const float* phases, const int32_t* offsets, const float* b,
                                         float* c, int64_t ldc, bool add) {
  block<R, V>(k, AtTap{phases, offsets}, Rows{b, V * W}, c, ldc, add);
}
using TapsFn = void (*)(int64_t k, const float* phases, const int32_t* taps, const int64_t* pixels, const float* b,
                        float* c, int64_t ldc, bool add);
template <int R, int V> void taps_tile(int64_t k, const float* phases, const int32_t* taps, const int64_t* pixels,
                                       const float* b, float* c, int64_t ldc, bool add) {
  AtPixel<R> a;
  for (int r = 0; r < R; ++r) a.taps[r] = phases + taps[r];
  a.pixels = pixels;
  block<R, V>(k, a, Rows{b, V * W}, c, ldc, add);
}

// Registers of channels in blocks of nearly equal width.
struct ChannelBlocks {
  int64_t vecs, count;
  explicit ChannelBlocks(int64_t channels = 0)
      : vecs((channels + W - 1) / W), count((vecs + kMostVecs - 1) / kMostVecs) {}
  int64_t first(int64_t block) const { return vecs * block / count; }
  int64_t width(int64_t block) const { return first(block + 1) - first(block); }
};

// The pixels of a region in order, and where they lie.
struct Ground {
  // Pixels that follow each other in a row of the phases, and in a channel of the other side.
  struct Run {
    int64_t pixel, count, from, to, row;
    int64_t first = 0, last = 0;  // taps along the height that see more than padding
  };
  std::vector<Run> rows, spans;  // spans: whole rows of the other side that follow each other are one
  int64_t count = 0;

  // size: the other side's planes; its pixel q lies at q * step + start.
  void describe(const StridePhases& l, const HaloTile* halos, int64_t n, const int64_t* low, const int64_t* high,
                const int64_t* size, const int64_t* step, const int64_t* start, int64_t image) {
    rows.clear(), spans.clear(), count = 0;
    for (int64_t i = 0; i < n; ++i) {
      const HaloTile& p = halos[i];
      if (p.depth < low[kDepth] || p.depth >= high[kDepth]) continue;
      int64_t c0 = std::max(p.col, low[kWidth]), c1 = std::min(p.col + p.cols, high[kWidth]);
      if (c0 >= c1) continue;
      int64_t d = p.depth * step[kDepth] + start[kDepth];
      for (int64_t r = std::max(p.row, low[kHeight]); r < std::min(p.row + p.rows, high[kHeight]); ++r) {
        int64_t h = r * step[kHeight] + start[kHeight];
        int64_t from = l.plain ? p.image * l.halo + c0 : i * l.halo + (r - p.row) * l.pitch + c0 - p.col;
        Run run{count, c1 - c0, from,
                p.image * image + (d * size[kHeight] + h) * size[kWidth] + c0 * step[kWidth] + start[kWidth], r};
        rows.push_back(run);
        if (step[kWidth] == 1 && !spans.empty() && spans.back().to + spans.back().count == run.to)
          spans.back().count += run.count;
        else spans.push_back(run);
        count += run.count;
      }
    }
  }
};

}  // namespace
}  // namespace rl::avx512::conv
