// Products with a register of channels in each lane block. Included after a target pragma.
//
// Note [Channels in lanes]
// Where planes are small or strides large, places of one row fill a register badly and have to be gathered. With
// sixteen channels in a register instead, the other factor is single numbers of the lattice, broadcast from where they
// are: a filter's tap sees its place by address alone. The price is to turn filters and results, sixteen by sixteen.
#pragma once
#include "cpu/conv/stride_phases.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int64_t kMostVecs = 4;                        // registers of channels in a tile
constexpr int kTileRows[kMostVecs] = {8, 8, 8, 6};      // taps of a tile, by its registers
constexpr int kTilePlaces[kMostVecs] = {14, 12, 8, 6};  // places

// Places that follow each other, at tap p.
struct AtTap {
  const float* data;
  const int32_t* offsets;
  float at(int r, int64_t p) const { return data[offsets[p] + r]; }
};
// Some taps, at place p.
template <int R> struct AtPlace {
  const float* taps[R];
  const int64_t* places;
  float at(int r, int64_t p) const { return taps[r][places[p]]; }
};

// c (rows, vecs registers) = or += a @ b, with b packed as [k][vecs registers].
using PlacesFn = void (*)(int64_t k, const float* lattice, const int32_t* offsets, const float* b, float* c,
                          int64_t ldc, bool add);
template <int R, int V> void places_tile(int64_t k, const float* lattice, const int32_t* offsets, const float* b,
                                         float* c, int64_t ldc, bool add) {
  block<R, V>(k, AtTap{lattice, offsets}, Rows{b, V * W}, c, ldc, add);
}
using TapsFn = void (*)(int64_t k, const float* lattice, const int32_t* taps, const int64_t* places, const float* b,
                        float* c, int64_t ldc, bool add);
template <int R, int V> void taps_tile(int64_t k, const float* lattice, const int32_t* taps, const int64_t* places,
                                       const float* b, float* c, int64_t ldc, bool add) {
  AtPlace<R> a;
  for (int r = 0; r < R; ++r) a.taps[r] = lattice + taps[r];
  a.places = places;
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

// The places of a slab in order, and where they lie.
struct Ground {
  // Places that follow each other in a row of the lattice, and in a channel of the other side.
  struct Run {
    int64_t place, count, from, to, row;
    int64_t first = 0, last = 0;  // taps along the height that see more than the frame
  };
  std::vector<Run> rows, spans;  // spans: whole rows of the other side that follow each other are one
  int64_t count = 0;

  // size: the other side's planes; its place q lies at q * step + start.
  void describe(const Lattice& l, const Plot* plots, int64_t n, const int64_t* low, const int64_t* high,
                const int64_t* size, const int64_t* step, const int64_t* start, int64_t image) {
    rows.clear(), spans.clear(), count = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Plot& p = plots[i];
      if (p.depth < low[kDepth] || p.depth >= high[kDepth]) continue;
      int64_t c0 = std::max(p.col, low[kWidth]), c1 = std::min(p.col + p.cols, high[kWidth]);
      if (c0 >= c1) continue;
      int64_t d = p.depth * step[kDepth] + start[kDepth];
      for (int64_t r = std::max(p.row, low[kHeight]); r < std::min(p.row + p.rows, high[kHeight]); ++r) {
        int64_t h = r * step[kHeight] + start[kHeight];
        int64_t from = l.plain ? p.image * l.plot + c0 : i * l.plot + (r - p.row) * l.pitch + c0 - p.col;
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
}  // namespace rl::cpu::conv512
