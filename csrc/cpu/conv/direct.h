// A convolution as products of filters with the shifted planes of stride phases. Included by
// direct_avx512.cpp alone.
#pragma once
#include <array>
#include <utility>

#include "base/parallel.h"
#include "cpu/conv/channel_microkernel.h"
#include "cpu/conv/output_regions.h"
#include "cpu/loops/scratch.h"

namespace rl::avx512::conv {
namespace {

using BlockFn = void (*)(int64_t, const float*, const float*, const int32_t*, float*, int64_t, bool);
template <int R, int V>
void run_block(int64_t k, const float* a, const float* b, const int32_t* offsets, float* c, int64_t ldc, bool add) {
  block<R, V>(k, Packed<R>{a}, Scattered{b, offsets}, c, ldc, add);
}
template <int V> constexpr BlockFn kRowBlocks[kRows] = {run_block<1, V>, run_block<2, V>, run_block<3, V>,
                                                        run_block<4, V>, run_block<5, V>, run_block<6, V>,
                                                        run_block<7, V>, run_block<8, V>};
using UnpackedFn = void (*)(int64_t, Strided, Scattered, float*, int64_t, bool);
constexpr UnpackedFn kUnpacked[kVecs] = {block<kRows, 1, Strided, Scattered>, block<kRows, 2, Strided, Scattered>,
                                         block<kRows, 3, Strided, Scattered>};
constexpr const BlockFn* kBlocks[kVecs] = {kRowBlocks<1>, kRowBlocks<2>, kRowBlocks<3>};

// One channel alone: more registers along the pixels.
constexpr int kSingleVecs = 8;
constexpr BlockFn kSingles[kSingleVecs] = {run_block<1, 1>, run_block<1, 2>, run_block<1, 3>, run_block<1, 4>,
                                           run_block<1, 5>, run_block<1, 6>, run_block<1, 7>, run_block<1, 8>};

template <int V, int... R> constexpr std::array<PixelsFn, sizeof...(R)> pixel_tiles(std::integer_sequence<int, R...>) {
  return {pixels_tile<R + 1, V>...};
}
template <int V> constexpr auto kPixelTiles = pixel_tiles<V>(std::make_integer_sequence<int, kTilePixels[V - 1]>());
constexpr const PixelsFn* kTiles[kMostVecs] = {kPixelTiles<1>.data(), kPixelTiles<2>.data(), kPixelTiles<3>.data(),
                                               kPixelTiles<4>.data()};

constexpr int64_t kSum = 192;       // length of a gathered panel: it stays in the first-level cache
constexpr int64_t kMostRows = 256;  // of results held at a time
constexpr int64_t kFilters = 384;   // registers of a block of filters by channels: they stay in the first-level cache

// What is written: pixel q of a part lies at q * step + start.
struct Target {
  float* data;
  int64_t size[3], channel, image;
};
// The results that share their taps: all of them, or for gradients those of one remainder by the
// stride.
struct Part {
  int64_t low[3], high[3], step[3], start[3];
  std::vector<int32_t> offsets;  // of the taps of all channels in the phases
  std::vector<int32_t> weights;  // and in a row of filters; empty when they follow each other
  int64_t packed = 0;            // where its filters begin among the packed ones
  int64_t length = 0;            // of the sums
  int64_t taps = 0;              // of one channel in one row
  // Taps along the depth and the height: sums go depth by depth and row by row of the filter, so that
  // those which see padding alone can be left out. Empty where sums go channel by channel.
  std::vector<int64_t> depths, heights;
};

// What is kept from one group to the next on the same region.
struct Held {
  Pixels pixels;
  Ground ground;  // the same with channels in lanes
  Scratch<float> results, gathered;
  int64_t first = 0, last = 0;  // of the sums, the depths that see more than padding
  bool whole = true;            // and whether all rows of the filters do
  int32_t rows[kSum];           // of the gathered panel
};

struct Direct {
  int64_t batch, groups, in, out;  // channels of one group
  Axis axes[3];
  StridePhases phases;
  OutputRegions regions;
  Target target;
  std::vector<Part> parts;
  const float* w;
  const float* bias;
  int64_t row_step, group_step;  // of filters
  int64_t panels = 0, packed_size = 0;
  bool unpacked = false;     // filters are read where they are: so few pixels do not pay for packing
  bool by_channels = false;  // See Note [Channels in lanes].
  // Filters as matrices of `outer` times (out rows, columns): which part a column belongs to, and
  // which of its taps it is; -1 for taps that meet no pixel. Without these the columns are the taps of
  // the only part.
  int64_t outer = 1, outer_step = 0, columns = 0;
  std::vector<int32_t> column_part, column_tap;

  int64_t panel_rows() const { return by_channels ? kMostVecs * W : kRows; }
  int64_t first_row(int64_t panel) const {
    return by_channels ? std::min(out, ChannelBlocks(out).first(panel) * W) : out * panel / panels;
  }

  void plan() {
    phases.depth = axes, phases.height = axes + 1, phases.width = axes + 2;
    // Small regions read all filters again for few pixels: they should come from the second-level cache.
    int64_t longest = 0;
    for (const Part& p : parts) longest = std::max(longest, p.length);
    regions.plan(phases, batch, groups, in, longest * out <= 160000 ? 32 : 96, out == 1 ? 4096 : 384);
    // Rows with a stride of whole pages would fall into one set of the cache.
    unpacked = parts.size() == 1 && parts[0].weights.empty() && parts[0].depths.empty() &&
               regions.most_pixels() * regions.count <= 128 && out % kRows == 0 && row_step % 1024 != 0;
    by_channels = !unpacked && fills_lanes();
    panels = by_channels ? ChannelBlocks(out).count : (out + kRows - 1) / kRows;
    for (Part& p : parts) {
      if (unpacked) break;
      p.packed = packed_size;
      packed_size += groups * (by_channels ? ChannelBlocks(out).vecs * W : out) * p.length;
    }
  }

  bool fills_lanes() const { return ChannelBlocks(out).vecs * W < out * 3 / 2; }

  void see(const Part& part, const HaloTile* halos, int64_t count, Held& held) const {
    held.first = 0, held.last = part.length, held.whole = true;
    if (part.depths.empty()) return;
    for (Ground::Run& run : held.ground.rows) {
      run.first = run.last = 0;
      phases.join_seen(kHeight, part.heights, run.row, &run.first, &run.last);
      held.whole = held.whole && run.last - run.first == static_cast<int64_t>(part.heights.size());
    }
    phases.seen_depths(part.depths, halos, count, part.low[kDepth], part.high[kDepth], &held.first, &held.last);
    const int64_t each = part.length / static_cast<int64_t>(part.depths.size());
    held.first *= each, held.last *= each;
  }

  // Filters of one panel as [k][rows].
  void pack(const Part& part, int64_t g, int64_t panel, float* to) const {
    int64_t row0 = first_row(panel), rows = first_row(panel + 1) - row0, k = part.length;
    const float* from = w + g * group_step + row0 * row_step;
    to += part.packed + (g * out + row0) * k;
    auto wanted = static_cast<__mmask8>((1u << rows) - 1);
    if (part.weights.empty()) {
      for (int64_t p = 0; p < k; p += 2 * W) {
        Reg r[W];
        for (int i = 0; i < kRows; ++i) {
          const float* row = from + i * row_step + p;
          r[i] = _mm512_maskz_loadu_ps(i < rows ? lanes(k - p) : static_cast<__mmask16>(0), row);
          r[kRows + i] = _mm512_maskz_loadu_ps(i < rows ? lanes(k - p - W) : static_cast<__mmask16>(0), row + W);
        }
        transpose(r);
        for (int half = 0; half < 2; ++half)
          for (int64_t i = 0; i < std::min<int64_t>(W, k - p - half * W); ++i) {
            __m256 row = half ? _mm512_extractf32x8_ps(r[i], 1) : _mm512_castps512_ps256(r[i]);
            _mm256_mask_storeu_ps(to + (p + half * W + i) * rows, wanted, row);
          }
      }
      return;
    }
    __m256i step =
        _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(static_cast<int>(row_step)));
    for (int64_t p = 0; p < k; ++p, to += rows) {
      __m256 row = _mm256_mmask_i32gather_ps(_mm256_setzero_ps(), wanted, step, from + part.weights[p], 4);
      _mm256_mask_storeu_ps(to, wanted, row);
    }
  }

  // Filters of all parts for a register of channels, each panel's as [k][its registers].
  void pack_channels(int64_t g, int64_t panel, int64_t v, float* packed) const {
    ChannelBlocks blocks(out);
    int64_t first = blocks.first(panel) * W, width = blocks.width(panel) * W, row = first + v * W, rows = out - row;
    auto to = [&](const Part& part, int64_t k) {
      return packed + part.packed + (g * blocks.vecs * W + first) * part.length + k * width + v * W;
    };
    for (int64_t u = 0; u < outer; ++u) {
      const float* from = w + g * group_step + u * outer_step + row * row_step;
      if (columns <= 3) {  // too few to transpose
        const __m512i at = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                              _mm512_set1_epi32(static_cast<int>(row_step)));
        for (int64_t c = 0; c < columns; ++c) {
          if (!column_part.empty() && column_part[c] < 0) continue;
          const Part& part = parts[column_part.empty() ? 0 : column_part[c]];
          store(to(part, u * part.taps + (column_part.empty() ? c : column_tap[c])),
                row_step == 1 ? _mm512_maskz_loadu_ps(lanes(rows), from)
                              : _mm512_mask_i32gather_ps(_mm512_setzero_ps(), lanes(rows), at, from + c, 4));
        }
        continue;
      }
      for (int64_t c = 0; c < columns; c += W) {
        Reg r[W];
        for (int i = 0; i < W; ++i)
          r[i] = i < rows ? _mm512_maskz_loadu_ps(lanes(columns - c), from + i * row_step + c) : _mm512_setzero_ps();
        transpose(r);
        int64_t n = std::min<int64_t>(W, columns - c);
        if (column_part.empty())
          for (int64_t i = 0; i < n; ++i) store(to(parts[0], c + i), r[i]);
        else
          for (int64_t i = 0; i < n; ++i) {
            if (column_part[c + i] < 0) continue;
            const Part& part = parts[column_part[c + i]];
            store(to(part, u * part.taps + column_tap[c + i]), r[i]);
          }
      }
    }
  }

  // As compute below, with channels in lanes.
  void compute_channels(const Part& part, int64_t g, int64_t region, const HaloTile* halos, int64_t count,
                        const float* memory, const float* packed, int64_t panel0, int64_t panel1, Held& held) const {
    Ground& ground = held.ground;
    if (held.pixels.region != region) {
      ground.describe(phases, halos, count, part.low, part.high, target.size, part.step, part.start, target.image);
      held.pixels.region = region;
      see(part, halos, count, held);
      int64_t pixels = (ground.count + W - 1) / W * W;
      held.results.reset(pixels * kMostVecs * W), held.gathered.reset(W * (pixels + W));
    }
    if (ground.count == 0) return;
    ChannelBlocks blocks(out);
    int64_t k = part.length;
    float* results = held.results.get();
    for (int64_t q = panel0; q < panel1; ++q) {
      int64_t vecs = blocks.width(q), width = vecs * W, most = kTilePixels[vecs - 1];
      const float* filters = packed + part.packed + (g * blocks.vecs + blocks.first(q)) * W * k;
      const int64_t most_sum = std::min<int64_t>(256, kFilters / vecs);
      auto even = [&](int64_t length) {
        const int64_t n = std::max<int64_t>(1, (length + most_sum - 1) / most_sum);
        return (length + n - 1) / n;
      };
      auto tiles_of = [&](const Ground::Run& run, int64_t a, int64_t b, bool add) {
        for (int64_t j = 0, tiles = (run.count + most - 1) / most; tiles > 0; --tiles) {
          int64_t n = (run.count - j + tiles - 1) / tiles;
          kTiles[vecs - 1][n - 1](b - a, memory + run.from + j, part.offsets.data() + a, filters + a * width,
                                  results + (run.pixel + j) * width, width, add);
          j += n;
        }
      };
      if (held.whole || held.first == held.last) {
        if (held.first == held.last) std::fill(results, results + ground.count * width, 0.0f);
        for (int64_t p = held.first, sum = even(held.last - p); p < held.last; p += sum)
          for (const Ground::Run& run : ground.rows) tiles_of(run, p, std::min(held.last, p + sum), p > held.first);
      } else {
        // Rows of filters, several at a time if they are short.
        const auto high = static_cast<int64_t>(part.heights.size());
        const int64_t row = k / static_cast<int64_t>(part.depths.size()) / high, depth = row * high;
        const int64_t sum = row <= most_sum ? most_sum / row * row : even(row);
        for (const Ground::Run& run : ground.rows)
          if (run.first == run.last)
            std::fill(results + run.pixel * width, results + (run.pixel + run.count) * width, 0.0f);
        for (int64_t d = held.first; d < held.last; d += depth)
          for (int64_t p = d, end; p < d + depth; p = end) {
            // no sum goes beyond a row unless it has several whole ones
            end = std::min({p + sum, d + depth, row <= most_sum ? d + depth : d + ((p - d) / row + 1) * row});
            for (const Ground::Run& run : ground.rows) {
              const int64_t a = std::max(p, d + run.first * row), b = std::min(end, d + run.last * row);
              if (a < b) tiles_of(run, a, b, a > held.first + run.first * row);
            }
          }
      }
      for (int64_t v = 0; v < vecs; ++v)
        give_channels(part, g * out + (blocks.first(q) + v) * W, g, ground, results + v * W, width,
                      held.gathered.get());
    }
  }
  // results (pixels, width): sixteen channels of them
  void give_channels(const Part& part, int64_t channel, int64_t g, const Ground& ground, const float* results,
                     int64_t width, float* rows) const {
    int64_t step = (ground.count + W - 1) / W * W + W, n = std::min<int64_t>(W, (g + 1) * out - channel);
    for (int64_t p = 0; p < ground.count; p += W) {
      Reg r[W];
      for (int i = 0; i < W; ++i) r[i] = load(results + (p + i) * width);
      transpose(r);
      for (int i = 0; i < n; ++i) store(rows + i * step + p, r[i]);
    }
    for (int64_t i = 0; i < n; ++i)
      for (const Ground::Run& run : ground.spans)
        put(rows + i * step + run.pixel, run.count, bias ? bias[channel + i] : 0.0f, part.step[kWidth],
            target.data + (channel + i) * target.channel + run.to);
  }

  // Panels [panel0, panel1) of a part's output channels, at the pixels of a region.
  void compute(const Part& part, int64_t g, int64_t region, const HaloTile* halos, int64_t count, const float* memory,
               const float* packed, int64_t panel0, int64_t panel1, Held& held) const {
    Pixels& pixels = held.pixels;
    const Scratch<float>&results = held.results, &gathered = held.gathered;
    int64_t step = W * pixels.most;
    if (pixels.region != region) {
      pixels.describe(phases, halos, count, part.low, part.high);
      pixels.region = region;
      see(part, halos, count, held);
      held.results.reset((std::min(kMostRows, out) + kRows) * pixels.vecs * W);
      if (pixels.exact) held.gathered.reset(kSum * step + W);
      for (int i = 0; i < kSum; ++i) held.rows[i] = static_cast<int32_t>(i * step);
    }
    if (pixels.panels.empty()) return;
    int64_t ld = pixels.vecs * W, k = part.length;
    int64_t at_once = std::max<int64_t>(1, kMostRows / kRows);
    int64_t sum = pixels.exact ? kSum : 512;
    for (int64_t q0 = panel0; q0 < panel1; q0 += at_once) {
      int64_t q1 = std::min(panel1, q0 + at_once), row0 = first_row(q0);
      const int64_t first = held.first, last = held.last;
      if (first == last) std::fill(results.get(), results.get() + (first_row(q1) - row0) * ld, 0.0f);
      for (int64_t p = first; p < last; p += sum)
        for (const Panel& panel : pixels.panels) {
          int64_t len = std::min(sum, last - p);
          const float* b = memory + panel.from;
          const int32_t* offsets = part.offsets.data() + p;
          if (pixels.exact) {
            pixels.gather(panel, memory, phases.plain, offsets, len, gathered.get(), step);
            b = gathered.get(), offsets = held.rows;
          }
          for (int64_t q = q0; q < q1; ++q) {
            int64_t row = first_row(q), rows = first_row(q + 1) - row;
            float* c = results.get() + (row - row0) * ld + panel.at;
            if (unpacked) {
              const float* a = w + g * group_step + row * row_step + p;
              kUnpacked[panel.vecs - 1](len, {a, a + 4 * row_step, row_step}, {b, offsets}, c, ld, p > first);
            } else {
              BlockFn multiply = out == 1 ? kSingles[panel.vecs - 1] : kBlocks[panel.vecs - 1][rows - 1];
              multiply(len, packed + part.packed + (g * out + row) * k + p * rows, b, offsets, c, ld, p > first);
            }
          }
        }
      for (int64_t row = row0; row < first_row(q1); ++row)
        give(part, g * out + row, halos, pixels, results.get() + (row - row0) * ld);
    }
  }

  // to[i * step] = x[i] + shift
  static void put(const float* x, int64_t count, float shift, int64_t step, float* to) {
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i second = _mm512_add_epi32(twice, _mm512_set1_epi32(8));
    if (step > 2) {
      for (int64_t j = 0; j < count; ++j) to[j * step] = x[j] + shift;
      return;
    }
    Reg shifts = all(shift);
    for (int64_t j = 0; j < count; j += W) {
      __mmask16 m = lanes(count - j);
      Reg r = _mm512_maskz_loadu_ps(m, x + j) + shifts;
      if (step == 1) {
        _mm512_mask_storeu_ps(to + j, m, r);
      } else {
        _mm512_mask_storeu_ps(to + 2 * j, lanes(2 * (count - j)) & 0x5555, _mm512_permutexvar_ps(twice, r));
        _mm512_mask_storeu_ps(to + 2 * j + W, lanes(2 * (count - j) - W) & 0x5555, _mm512_permutexvar_ps(second, r));
      }
    }
  }
  // One channel of the results.
  void give(const Part& part, int64_t channel, const HaloTile* halos, const Pixels& pixels, const float* from) const {
    float shift = bias ? bias[channel] : 0.0f;
    for (const Panel& panel : pixels.panels)
      for (int32_t i = panel.first; i < panel.last; ++i) {
        const Piece& p = pixels.pieces[i];
        int64_t d = p.depth * part.step[kDepth] + part.start[kDepth],
                h = p.row * part.step[kHeight] + part.start[kHeight];
        float* to = target.data + halos[p.halo].image * target.image + channel * target.channel +
                    (d * target.size[kHeight] + h) * target.size[kWidth] + p.col * part.step[kWidth] +
                    part.start[kWidth];
        put(from + panel.at + p.lane, p.count, shift, part.step[kWidth], to);
      }
  }

  void run() const {
    // A single channel's filters are packed as they are.
    bool as_is = unpacked || (out == 1 && parts.size() == 1 && parts[0].weights.empty());
    Scratch<float> packed(as_is ? 1 : packed_size);
    const float* filters_at = as_is ? w : packed.get();
    auto part_count = static_cast<int64_t>(parts.size());
    int64_t vecs = ChannelBlocks(out).vecs;
    int64_t filters = by_channels ? groups * vecs : part_count * groups * panels, count = regions.count;
    int64_t longest = 1;
    for (const Part& p : parts) longest = std::max(longest, p.length);
    // Many regions: each is filled where it is used. Few: filled by all threads, then shared by pieces
    // of channels.
    bool shared = count * groups < 8 && !phases.plain;
    int64_t size = phases.size(in), blocks = shared ? (in + 15) / 16 : 0;
    Scratch<float> memory(shared ? count * groups * size : 1);
    auto pack_one = [&](int64_t i) {
      if (by_channels) {
        int64_t panel = 0, v = i % vecs;
        while (ChannelBlocks(out).first(panel + 1) <= v) ++panel;
        return pack_channels(i / vecs, panel, v - ChannelBlocks(out).first(panel), packed.get());
      }
      pack(parts[i % part_count], i / part_count / panels, i / part_count % panels, packed.get());
    };
    const int64_t some = by_channels ? 16384 / (packed_size / filters + 1) : 8192 / longest;  // to pack at a time
    if (!as_is)
      parallel_for(0, filters, std::max<int64_t>(1, some), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) pack_one(i);
      });
    if (shared)
      parallel_for(0, count * groups * blocks, std::max<int64_t>(1, 65536 / (16 * phases.channel + 1)),
                   [&](int64_t first, int64_t last) {
                     std::vector<HaloTile> halos;
                     for (int64_t i = first; i < last; ++i) {
                       int64_t region = i / blocks / groups, g = i / blocks % groups, c = i % blocks * 16;
                       regions.halos(region, halos);
                       phases.fill_all(halos.data(), static_cast<int64_t>(halos.size()), g * in + c,
                                       std::min<int64_t>(in - c, 16), c + 16 >= in,
                                       memory.get() + (region * groups + g) * size + c * phases.channel);
                     }
                   });
    int64_t work = regions.most_pixels() * longest * 2;  // of one row of results
    int64_t chunk = panels;
    if (count * groups < 8)
      chunk = std::clamp<int64_t>(panels * count * groups * part_count / 12,
                                  std::min<int64_t>(panels, 1 + 500000 / (work * panel_rows())), panels);
    int64_t chunks = (panels + chunk - 1) / chunk;
    bool by_parts = count * groups < 8;
    int64_t pieces = count * groups * chunks * (by_parts ? part_count : 1);
    int64_t piece_work = work * std::min(chunk * panel_rows(), out) * (by_parts ? 1 : part_count);
    parallel_for(
        0, pieces, std::max<int64_t>(1, 2000000 / std::max<int64_t>(1, piece_work)), [&](int64_t first, int64_t last) {
          std::vector<HaloTile> halos;
          std::vector<Held> held(parts.size());
          for (Held& h : held)
            if (out == 1) h.pixels.most = kSingleVecs, h.pixels.gaps_worth = 1.6;
          int64_t described = -1;
          Scratch<float> own(shared || phases.plain ? 1 : size);
          for (int64_t i = first; i < last; ++i) {
            // A thread's run of pieces should need few filters: parts are the slowest.
            int64_t regions_of_part = count * groups * chunks, part = by_parts ? i / regions_of_part : 0,
                    j = by_parts ? i % regions_of_part : i;
            int64_t c = j % chunks, g = j / chunks % groups, region = j / chunks / groups;
            if (region != described) regions.halos(region, halos);
            described = region;
            auto n = static_cast<int64_t>(halos.size());
            const float* from = phases.plain ? phases.source.data + g * in * phases.channel
                                : shared     ? memory.get() + (region * groups + g) * size
                                             : own.get();
            if (!shared && !phases.plain) phases.fill_all(halos.data(), n, g * in, in, true, own.get());
            int64_t panel1 = std::min(panels, (c + 1) * chunk);
            for (int64_t p = part; p < (by_parts ? part + 1 : part_count); ++p)
              if (by_channels)
                compute_channels(parts[p], g, region, halos.data(), n, from, filters_at, c * chunk, panel1, held[p]);
              else compute(parts[p], g, region, halos.data(), n, from, filters_at, c * chunk, panel1, held[p]);
          }
        });
  }
};

}  // namespace
}  // namespace rl::avx512::conv
