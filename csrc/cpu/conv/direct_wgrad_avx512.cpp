// The gradient wrt the weight for any shape: sums over pixels of dy times what each tap sees (Note [Stride phases]).
#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/channel_microkernel.h"
#include "cpu/conv/output_regions.h"
#include "cpu/conv/stride_phases.h"
#include "cpu/loops/scratch.h"

namespace rl::avx512::conv {
namespace {

using BlockFn = void (*)(int64_t, Strided, Rows, float*, int64_t, bool);
template <int R>
constexpr BlockFn kBlocks[kVecs] = {block<R, 1, Strided, Rows>, block<R, 2, Strided, Rows>, block<R, 3, Strided, Rows>};

template <int V> constexpr TapsFn kTapTiles[8] = {taps_tile<1, V>, taps_tile<2, V>, taps_tile<3, V>, taps_tile<4, V>,
                                                  taps_tile<5, V>, taps_tile<6, V>, taps_tile<7, V>, taps_tile<8, V>};
constexpr const TapsFn* kTiles[kMostVecs] = {kTapTiles<1>, kTapTiles<2>, kTapTiles<3>, kTapTiles<4>};

constexpr int64_t kSum = 192;   // pixels summed in one go: their block of taps stays in the first-level cache
constexpr int64_t kSides = 64;  // channels of dy held at a time
constexpr int64_t kPieces = 8;  // pieces of work that are enough

struct WeightSums {
  const ConvShape& s;
  int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups, taps = s.taps();
  Axis axes[3];
  StridePhases phases;
  OutputRegions regions;
  int64_t share = 1, shares = 1, runs = 1;  // channels of one piece; pieces along the channels, along the regions
  int64_t sides = 1;                        // pieces along the channels of dy
  int64_t width = 0;                        // taps of a share, in whole registers
  bool by_channels = false;                 // See Note [Channels in lanes].
  std::vector<int32_t> offsets;

  explicit WeightSums(const ConvShape& shape) : s(shape) {}

  // Some hundred taps in a piece, with few lanes left over.
  void choose_share() {
    double best = 1e30;
    for (int64_t c = 1; c <= std::min<int64_t>(in, 192); ++c) {
      if (c > 1 && c * taps > 208) break;
      double lanes_used = static_cast<double>((c * taps + W - 1) / W * W) / static_cast<double>(c * taps);
      int64_t count = (in + c - 1) / c;
      double cost = lanes_used * (1 + 30.0 / static_cast<double>(c * taps)) * static_cast<double>(count * c) /
                    static_cast<double>(in);
      if (cost < best - 1e-9) best = cost, share = c;
    }
    double waste = static_cast<double>(ChannelBlocks(out).vecs * W) / static_cast<double>(out);
    by_channels = waste < 1.5 * best;
    if (by_channels) {
      // More taps, so that dy is transposed less often; but enough pieces.
      int64_t least = (in * taps + 383) / 384, most = in * taps / 128;
      int64_t count =
          std::clamp<int64_t>(std::clamp((kPieces + s.groups - 1) / s.groups, least, std::max(least, most)), 1, in);
      share = (in + count - 1) / count;
    }
    shares = (in + share - 1) / share;
    width = (share * taps + W - 1) / W * W;
  }

  void plan(const float* x) {
    for (int d = 0; d < 3; ++d) axes[d] = forward_axis(s, static_cast<Dim>(d));
    phases.depth = axes, phases.height = axes + 1, phases.width = axes + 2;
    phases.source = {x, {s.in[0], s.in[1], s.in[2]}, s.in_plane(), s.in_channels * s.in_plane()};
    phases.plain = single_pixels(s);
    for (int d = 0; d < 3; ++d) regions.low[d] = 0, regions.high[d] = s.out[d];
    choose_share();
    regions.by_depth = by_channels && s.kernel[0] > 1 && s.padding[0] > 0;
    regions.plan(phases, s.batch, 1, share, 96, by_channels ? 128 : 384);
    if (by_channels) {
      ChannelBlocks blocks(out);
      int64_t wanted = phases.plain ? blocks.count : (kPieces + shares * s.groups - 1) / (shares * s.groups);
      sides = std::min(blocks.count, wanted);
    }
    int64_t pieces = shares * s.groups * sides;
    if (pieces < kPieces) runs = std::min(regions.count, (kPieces + pieces - 1) / pieces);
    for (int64_t c = 0; c < share; ++c)
      for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
        for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
          for (int64_t kw = 0; kw < s.kernel[2]; ++kw)
            offsets.push_back(static_cast<int32_t>(c * phases.channel + phases.offset(kd, kh, kw)));
  }

  // The taps of a share, depth by depth, so that those which see padding alone can be left out: where the i-th
  // of the filters' order stands.
  std::vector<int64_t> ranks_by_depth(int64_t channels) const {
    const int64_t flat = s.kernel[1] * s.kernel[2];
    std::vector<int64_t> ranks;
    ranks.reserve(channels * taps);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
        for (int64_t i = 0; i < flat; ++i) ranks.push_back((kd * channels + c) * flat + i);
    return ranks;
  }

  // seen (pixels, width): what each tap sees.
  void see(const Pixels& pixels, const float* memory, int64_t count, float* rows, float* seen) const {
    int64_t step = pixels.vecs * W + W;
    for (int64_t k = 0; k < width; k += W) {
      int64_t n = std::clamp<int64_t>(count - k, 0, W);
      for (const Panel& panel : pixels.panels)
        pixels.gather(panel, memory, phases.plain, offsets.data() + k, n, rows + panel.at, step);
      for (int64_t p = 0; p < pixels.vecs * W; p += W) {
        Reg r[W];
        for (int i = 0; i < W; ++i) r[i] = i < n ? load(rows + i * step + p) : _mm512_setzero_ps();
        transpose(r);
        for (int i = 0; i < W; ++i) store(seen + (p + i) * width + k, r[i]);
      }
    }
  }

  // sides (channels, step): dy at the pixels.
  void take_sides(const Pixels& pixels, const HaloTile* halos, const float* dy, int64_t channels, float* sides,
                  int64_t step) const {
    int64_t plane = s.out_plane(), image = s.out_channels * plane;
    for (int64_t o = 0; o < channels; ++o)
      for (const Panel& panel : pixels.panels)
        for (int32_t i = panel.first; i < panel.last; ++i) {
          const Piece& p = pixels.pieces[i];
          const float* from =
              dy + halos[p.halo].image * image + o * plane + (p.depth * s.out[1] + p.row) * s.out[2] + p.col;
          float* to = sides + o * step + panel.at + p.lane;
          for (int64_t j = 0; j < p.count; j += W) {
            __mmask16 m = lanes(p.count - j);
            _mm512_mask_storeu_ps(to + j, m, _mm512_maskz_loadu_ps(m, from + j));
          }
        }
  }

  // sums (out, width) = or += sides' products with what is seen
  void multiply(int64_t channels, const float* sides, int64_t step, const float* seen, int64_t pixels, float* sums,
                bool add) const {
    for (int64_t p = 0; p < pixels; p += kSum, add = true) {
      int64_t len = std::min(kSum, pixels - p);
      for (int64_t k = 0; k < width;) {
        int64_t left = (width - k) / W, vecs = left == 4 ? 2 : std::min<int64_t>(left, kVecs);
        for (int64_t o = 0; o < channels;) {
          int64_t rest = channels - o;
          const float* a = sides + o * step + p;
          Strided rows{a, a + 4 * step, step};
          Rows columns{seen + p * width + k, width};
          float* c = sums + o * width + k;
          if (rest >= 8) kBlocks<8>[vecs - 1](len, rows, columns, c, width, add), o += 8;
          else if (rest >= 4) kBlocks<4>[vecs - 1](len, rows, columns, c, width, add), o += 4;
          else if (rest >= 2) kBlocks<2>[vecs - 1](len, rows, columns, c, width, add), o += 2;
          else kBlocks<1>[vecs - 1](len, rows, columns, c, width, add), o += 1;
        }
        k += vecs * W;
      }
    }
  }

  // side (pixels, vecs registers): dy of some channels at the pixels.
  void transpose_sides(const Ground& ground, const float* dy, int64_t channels, int64_t vecs, float* rows,
                       float* side) const {
    int64_t pixels = (ground.count + W - 1) / W * W, step = pixels + W, plane = s.out_plane();
    for (int64_t v = 0; v < vecs; ++v) {
      int64_t n = std::min<int64_t>(W, channels - v * W);
      for (int64_t o = 0; o < n; ++o)
        for (const Ground::Run& run : ground.spans) {
          const float* from = dy + (v * W + o) * plane + run.to;
          float* to = rows + o * step + run.pixel;
          for (int64_t j = 0; j < run.count; j += W)
            store(to + j, _mm512_maskz_loadu_ps(lanes(run.count - j), from + j));
        }
      for (int64_t p = 0; p < pixels; p += W) {
        Reg r[W];
        for (int i = 0; i < W; ++i) r[i] = i < n ? load(rows + i * step + p) : _mm512_setzero_ps();
        transpose(r);
        for (int i = 0; i < W; ++i) store(side + ((p + i) * vecs + v) * W, r[i]);
      }
    }
  }

  // The same with channels of dy in lanes, for one of their `sides`.
  void sum_by_channels(int64_t g, int64_t c0, int64_t part, int64_t first, int64_t last, const float* dy,
                       float* dw) const {
    int64_t channels = std::min(share, in - c0), count = channels * taps;
    int64_t most = (regions.most_pixels() + W - 1) / W * W;
    ChannelBlocks blocks(out);
    int64_t block0 = blocks.count * part / sides, block1 = blocks.count * (part + 1) / sides;
    Scratch<float> memory(phases.plain ? 1 : phases.size(share)), rows(W * (most + W) + W), side(most * kMostVecs * W),
        sums(count * (blocks.first(block1) - blocks.first(block0)) * W);
    auto sums_of = [&](int64_t b) { return sums.get() + (blocks.first(b) - blocks.first(block0)) * W * count; };
    Scratch<int64_t> pixels(most);
    std::vector<HaloTile> halos;
    Ground ground;
    const bool by_depth = regions.by_depth;
    const std::vector<int64_t> ranks = by_depth ? ranks_by_depth(channels) : std::vector<int64_t>();
    std::vector<int32_t> ranked(ranks.size());
    for (size_t i = 0; i < ranks.size(); ++i) ranked[ranks[i]] = offsets[i];
    const int32_t* at = by_depth ? ranked.data() : offsets.data();
    std::vector<int64_t> depths;
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd) depths.push_back(kd);
    if (by_depth) std::fill(sums.get(), sums_of(block1), 0.0f);
    const int64_t step[3] = {1, 1, 1}, start[3] = {0, 0, 0};
    for (int64_t region = first; region < last; ++region) {
      regions.halos(region, halos);
      auto n = static_cast<int64_t>(halos.size());
      const float* from = phases.source.data + (g * in + c0) * phases.channel;
      if (!phases.plain) {
        phases.fill_all(halos.data(), n, g * in + c0, channels, true, memory.get());
        from = memory.get();
      }
      ground.describe(phases, halos.data(), n, regions.low, regions.high, s.out, step, start,
                      s.out_channels * s.out_plane());
      for (const Ground::Run& run : ground.rows)
        for (int64_t i = 0; i < run.count; ++i) pixels[run.pixel + i] = run.from + i;
      int64_t k0 = 0, k1 = count;
      if (by_depth) {
        phases.seen_depths(depths, halos.data(), n, 0, s.out[0], &k0, &k1);
        k0 *= count / s.kernel[0], k1 *= count / s.kernel[0];
      }
      for (int64_t b = block0; b < block1; ++b) {
        int64_t o = blocks.first(b) * W, vecs = blocks.width(b), tile = kTileRows[vecs - 1];
        transpose_sides(ground, dy + (g * out + o) * s.out_plane(), std::min(out - o, vecs * W), vecs, rows.get(),
                        side.get());
        for (int64_t k = k0; k < k1; k += tile)
          kTiles[vecs - 1][std::min(tile, k1 - k) - 1](ground.count, from, at + k, pixels.get(), side.get(),
                                                       sums_of(b) + k * vecs * W, vecs * W, by_depth || region > first);
      }
    }
    for (int64_t b = block0; b < block1; ++b)
      for (int64_t v = 0; v < blocks.width(b); ++v)
        for (int64_t k = 0; k < count; k += W) {
          int64_t o = (blocks.first(b) + v) * W;
          const float* from = sums_of(b) + v * W;
          Reg r[W];
          for (int i = 0; i < W; ++i)
            r[i] = k + i < count ? load(from + (by_depth ? ranks[k + i] : k + i) * blocks.width(b) * W)
                                 : _mm512_setzero_ps();
          transpose(r);
          float* to = dw + ((g * out + o) * in + c0) * taps + k;
          for (int i = 0; i < W && o + i < out; ++i) _mm512_mask_storeu_ps(to + i * in * taps, lanes(count - k), r[i]);
        }
  }

  // One group's filters for a share of its channels, over the regions [first, last).
  void sum(int64_t g, int64_t c0, int64_t first, int64_t last, const float* dy, float* dw) const {
    int64_t channels = std::min(share, in - c0), count = channels * taps;
    int64_t most = (regions.most_pixels() + W - 1) / W * W, step = most + W;
    Scratch<float> memory(phases.plain ? 1 : phases.size(share)), rows(W * step + W), seen(most * width),
        sides(std::min(out, kSides) * step), sums(out * width);
    std::vector<HaloTile> halos;
    Pixels pixels;
    for (int64_t region = first; region < last; ++region) {
      regions.halos(region, halos);
      auto n = static_cast<int64_t>(halos.size());
      const float* from = phases.source.data + (g * in + c0) * phases.channel;
      if (!phases.plain) {
        phases.fill_all(halos.data(), n, g * in + c0, channels, true, memory.get());
        from = memory.get();
      }
      pixels.describe(phases, halos.data(), n, regions.low, regions.high, true);
      see(pixels, from, count, rows.get(), seen.get());
      for (int64_t o = 0; o < out; o += kSides) {
        int64_t held = std::min(kSides, out - o);
        take_sides(pixels, halos.data(), dy + (g * out + o) * s.out_plane(), held, sides.get(), step);
        multiply(held, sides.get(), step, seen.get(), pixels.count, sums.get() + o * width, region > first);
      }
    }
    for (int64_t o = 0; o < out; ++o) {
      float* to = dw + ((g * out + o) * in + c0) * taps;
      std::memcpy(to, sums.get() + o * width, static_cast<size_t>(count) * sizeof(float));
    }
  }
};

}  // namespace

void direct_wgrad(const ConvShape& shape, float* dw, const float* dy, const float* x) {
  ConvShape s = flattened(shape);
  WeightSums w(s);
  w.plan(x);
  int64_t pieces = w.shares * s.groups * w.sides, size = s.out_channels * w.in * w.taps;
  Scratch<float> parts((w.runs - 1) * size);
  double work = 2.0 * static_cast<double>(s.batch * s.out_plane()) * static_cast<double>(w.out * w.share * w.taps) /
                static_cast<double>(w.runs * w.sides);
  int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(2e6 / (work + 1)));
  parallel_for(0, pieces * w.runs, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int64_t run = i / pieces, side = i % w.sides, c = i / w.sides % w.shares * w.share;
      int64_t g = i % pieces / w.sides / w.shares;
      int64_t slab0 = w.regions.count * run / w.runs, slab1 = w.regions.count * (run + 1) / w.runs;
      float* to = run ? parts.get() + (run - 1) * size : dw;
      if (w.by_channels) w.sum_by_channels(g, c, side, slab0, slab1, dy, to);
      else w.sum(g, c, slab0, slab1, dy, to);
    }
  });
  if (w.runs == 1) return;
  parallel_for(0, size, 16384, [&](int64_t first, int64_t last) {
    for (int64_t r = 0; r < w.runs - 1; ++r)
      for (int64_t i = first; i < last; ++i) dw[i] += parts[r * size + i];
  });
}

}  // namespace rl::avx512::conv
