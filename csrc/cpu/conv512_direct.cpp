// Convolutions as products of filters with shifted planes (see Note [Lattices]), and their gradients by the input.
#include "base/parallel.h"
#include "cpu/conv512.h"
#include "cpu/scratch.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#pragma GCC optimize("O3")  // loops over registers must be unrolled
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "cpu/conv512_lattice.h"
#include "cpu/conv512_slabs.h"

namespace rl::cpu::conv512 {
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

// One channel alone: more registers along the places.
constexpr int kMostVecs = 8;
constexpr BlockFn kSingles[kMostVecs] = {run_block<1, 1>, run_block<1, 2>, run_block<1, 3>, run_block<1, 4>,
                                         run_block<1, 5>, run_block<1, 6>, run_block<1, 7>, run_block<1, 8>};

constexpr int64_t kSum = 192;       // length of a gathered panel: it stays in the first-level cache
constexpr int64_t kMostRows = 256;  // of results held at a time

// What is written: place q of a part lies at q * step + start.
struct Target {
  float* data;
  int64_t size[3], channel, image;
};
// The results that share their taps: all of them, or for gradients those of one remainder by the stride.
struct Part {
  int64_t low[3], high[3], step[3], start[3];
  std::vector<int32_t> offsets;  // of the taps of all channels in the lattice
  std::vector<int32_t> weights;  // and in a row of filters; empty when they follow each other
  int64_t packed = 0;            // where its filters begin among the packed ones
  int64_t length = 0;            // of the sums
};

// What is kept from one group to the next on the same slab.
struct Held {
  Places places;
  Scratch<float> results, gathered;
  int32_t rows[kSum];  // of the gathered panel
};

struct Direct {
  int64_t batch, groups, in, out;  // channels of one group
  Axis axes[3];
  Lattice lattice;
  Slabs slabs;
  Target target;
  std::vector<Part> parts;
  const float* w;
  const float* bias;
  int64_t row_step, group_step;  // of filters
  int64_t panels = 0, packed_size = 0;
  bool unpacked = false;  // filters are read where they are: so few places do not pay for packing

  int64_t first_row(int64_t panel) const { return out * panel / panels; }

  void plan() {
    panels = (out + kRows - 1) / kRows;
    lattice.depth = axes, lattice.height = axes + 1, lattice.width = axes + 2;
    // Small slabs read all filters again for few places: they should come from the second-level cache.
    int64_t longest = 0;
    for (const Part& p : parts) longest = std::max(longest, p.length);
    slabs.plan(lattice, batch, in, longest * out <= 160000 ? 32 : 96, out == 1 ? 4096 : 384);
    // Rows that are whole pages apart would fall into one set of the cache.
    unpacked = parts.size() == 1 && parts[0].weights.empty() && slabs.most_places() * slabs.count <= 128 &&
               out % kRows == 0 && row_step % 1024 != 0;
    for (Part& p : parts) {
      if (unpacked) break;
      p.packed = packed_size;
      packed_size += groups * out * p.length;
    }
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
        turn(r);
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

  // Panels [panel0, panel1) of a part's output channels, at the places of a slab.
  void compute(const Part& part, int64_t g, int64_t slab, const Plot* plots, int64_t count, const float* memory,
               const float* packed, int64_t panel0, int64_t panel1, Held& held) const {
    Places& places = held.places;
    const Scratch<float>&results = held.results, &gathered = held.gathered;
    int64_t step = W * places.most;
    if (places.slab != slab) {
      places.describe(lattice, plots, count, part.low, part.high);
      places.slab = slab;
      held.results.reset((std::min(kMostRows, out) + kRows) * places.vecs * W);
      if (places.exact) held.gathered.reset(kSum * step + W);
      for (int i = 0; i < kSum; ++i) held.rows[i] = static_cast<int32_t>(i * step);
    }
    if (places.panels.empty()) return;
    int64_t ld = places.vecs * W, k = part.length;
    int64_t at_once = std::max<int64_t>(1, kMostRows / kRows);
    int64_t sum = places.exact ? kSum : 512;
    for (int64_t q0 = panel0; q0 < panel1; q0 += at_once) {
      int64_t q1 = std::min(panel1, q0 + at_once), row0 = first_row(q0);
      if (k == 0) std::fill(results.get(), results.get() + (first_row(q1) - row0) * ld, 0.0f);
      for (int64_t p = 0; p < k; p += sum)
        for (const Panel& panel : places.panels) {
          int64_t len = std::min(sum, k - p);
          const float* b = memory + panel.from;
          const int32_t* offsets = part.offsets.data() + p;
          if (places.exact) {
            places.gather(panel, memory, lattice.plain, offsets, len, gathered.get(), step);
            b = gathered.get(), offsets = held.rows;
          }
          for (int64_t q = q0; q < q1; ++q) {
            int64_t row = first_row(q), rows = first_row(q + 1) - row;
            float* c = results.get() + (row - row0) * ld + panel.at;
            if (unpacked) {
              const float* a = w + g * group_step + row * row_step + p;
              kUnpacked[panel.vecs - 1](len, {a, a + 4 * row_step, row_step}, {b, offsets}, c, ld, p > 0);
            } else {
              BlockFn multiply = out == 1 ? kSingles[panel.vecs - 1] : kBlocks[panel.vecs - 1][rows - 1];
              multiply(len, packed + part.packed + (g * out + row) * k + p * rows, b, offsets, c, ld, p > 0);
            }
          }
        }
      for (int64_t row = row0; row < first_row(q1); ++row)
        give(part, g * out + row, plots, places, results.get() + (row - row0) * ld);
    }
  }

  // One channel of the results.
  void give(const Part& part, int64_t channel, const Plot* plots, const Places& places, const float* from) const {
    float shift = bias ? bias[channel] : 0.0f;
    Reg shifts = all(shift);
    int64_t step = part.step[kWidth];
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i second = _mm512_add_epi32(twice, _mm512_set1_epi32(8));
    for (const Panel& panel : places.panels)
      for (int32_t i = panel.first; i < panel.last; ++i) {
        const Piece& p = places.pieces[i];
        int64_t d = p.depth * part.step[kDepth] + part.start[kDepth],
                h = p.row * part.step[kHeight] + part.start[kHeight];
        float* to = target.data + plots[p.plot].image * target.image + channel * target.channel +
                    (d * target.size[kHeight] + h) * target.size[kWidth] + p.col * step + part.start[kWidth];
        const float* x = from + panel.at + p.lane;
        if (step > 2) {
          for (int64_t j = 0; j < p.count; ++j) to[j * step] = x[j] + shift;
          continue;
        }
        for (int64_t j = 0; j < p.count; j += W) {
          __mmask16 m = lanes(p.count - j);
          Reg r = _mm512_maskz_loadu_ps(m, x + j) + shifts;
          if (step == 1) {
            _mm512_mask_storeu_ps(to + j, m, r);
          } else {
            _mm512_mask_storeu_ps(to + 2 * j, lanes(2 * (p.count - j)) & 0x5555, _mm512_permutexvar_ps(twice, r));
            _mm512_mask_storeu_ps(to + 2 * j + W, lanes(2 * (p.count - j) - W) & 0x5555,
                                  _mm512_permutexvar_ps(second, r));
          }
        }
      }
  }

  void run() const {
    // A single channel's filters are packed as they are.
    bool as_is = unpacked || (out == 1 && parts.size() == 1 && parts[0].weights.empty());
    Scratch<float> packed(as_is ? 1 : packed_size);
    const float* filters_at = as_is ? w : packed.get();
    auto part_count = static_cast<int64_t>(parts.size());
    int64_t filters = part_count * groups * panels, count = slabs.count;
    int64_t longest = 1;
    for (const Part& p : parts) longest = std::max(longest, p.length);
    // Many slabs: each is filled where it is used. Few: filled by all threads, then shared by pieces of channels.
    bool shared = count * groups < 8 && !lattice.plain;
    int64_t size = lattice.size(in), blocks = shared ? (in + 15) / 16 : 0;
    Scratch<float> memory(shared ? count * groups * size : 1);
    auto pack_one = [&](int64_t i) {
      pack(parts[i % part_count], i / part_count / panels, i / part_count % panels, packed.get());
    };
    if (!as_is)
      parallel_for(0, filters, std::max<int64_t>(1, 8192 / longest), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) pack_one(i);
      });
    if (shared)
      parallel_for(0, count * groups * blocks, std::max<int64_t>(1, 65536 / (16 * lattice.channel + 1)),
                   [&](int64_t first, int64_t last) {
                     std::vector<Plot> plots;
                     for (int64_t i = first; i < last; ++i) {
                       int64_t slab = i / blocks / groups, g = i / blocks % groups, c = i % blocks * 16;
                       slabs.plots(slab, plots);
                       lattice.fill_all(plots.data(), static_cast<int64_t>(plots.size()), g * in + c,
                                        std::min<int64_t>(in - c, 16), c + 16 >= in,
                                        memory.get() + (slab * groups + g) * size + c * lattice.channel);
                     }
                   });
    int64_t work = slabs.most_places() * longest * 2;  // of one row of results
    int64_t chunk = panels;
    if (count * groups < 8)
      chunk = std::clamp<int64_t>(panels * count * groups * part_count / 12,
                                  std::min<int64_t>(panels, 1 + 500000 / (work * kRows)), panels);
    int64_t chunks = (panels + chunk - 1) / chunk;
    bool by_parts = count * groups < 8;
    int64_t pieces = count * groups * chunks * (by_parts ? part_count : 1);
    int64_t piece_work = work * std::min(chunk * kRows, out) * (by_parts ? 1 : part_count);
    parallel_for(0, pieces, std::max<int64_t>(1, 2000000 / std::max<int64_t>(1, piece_work)),
                 [&](int64_t first, int64_t last) {
                   std::vector<Plot> plots;
                   std::vector<Held> held(parts.size());
                   for (Held& h : held)
                     if (out == 1) h.places.most = kMostVecs, h.places.gaps_worth = 1.6;
                   int64_t described = -1;
                   Scratch<float> own(shared || lattice.plain ? 1 : size);
                   for (int64_t i = first; i < last; ++i) {
                     int64_t part = by_parts ? i % part_count : 0, j = by_parts ? i / part_count : i;
                     int64_t c = j % chunks, g = j / chunks % groups, slab = j / chunks / groups;
                     if (slab != described) slabs.plots(slab, plots);
                     described = slab;
                     auto n = static_cast<int64_t>(plots.size());
                     const float* from = lattice.plain ? lattice.source.data + g * in * lattice.channel
                                         : shared      ? memory.get() + (slab * groups + g) * size
                                                       : own.get();
                     if (!shared && !lattice.plain) lattice.fill_all(plots.data(), n, g * in, in, true, own.get());
                     int64_t panel1 = std::min(panels, (c + 1) * chunk);
                     for (int64_t p = part; p < (by_parts ? part + 1 : part_count); ++p)
                       compute(parts[p], g, slab, plots.data(), n, from, filters_at, c * chunk, panel1, held[p]);
                   }
                 });
  }
};

}  // namespace

bool direct_serves(const ConvShape& s, bool input) {
  int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  if (!available() || in == 0 || out == 0 || s.batch == 0) return false;
  if (in * s.taps() * out > (int64_t{1} << 30) || s.in_channels * s.in_plane() > (int64_t{1} << 30) ||
      s.out_channels * s.out_plane() > (int64_t{1} << 30) || s.taps() > (1 << 20))
    return false;
  // A lattice is at most so large for one place of one channel.
  for (int d = 0; d < 3; ++d)
    if ((s.kernel[d] - 1) * s.dilation[d] > (1 << 14)) return false;
  if (input && s.stride[0] * s.stride[1] * s.stride[2] > 64) return false;
  return true;
}

void direct(const ConvShape& shape, float* y, const float* x, const float* w, const float* bias) {
  ConvShape s = flattened(shape);
  Direct r{};
  r.batch = s.batch, r.groups = s.groups, r.in = s.in_channels / s.groups, r.out = s.out_channels / s.groups;
  for (int d = 0; d < 3; ++d) r.axes[d] = forward_axis(s, static_cast<Dim>(d));
  r.lattice.source = {x, {s.in[0], s.in[1], s.in[2]}, s.in_plane(), s.in_channels * s.in_plane()};
  r.lattice.plain = single_places(s);
  r.target = {y, {s.out[0], s.out[1], s.out[2]}, s.out_plane(), s.out_channels * s.out_plane()};
  r.w = w, r.bias = bias;
  r.row_step = r.in * s.taps(), r.group_step = r.out * r.row_step;
  Part p{{0, 0, 0}, {s.out[0], s.out[1], s.out[2]}, {1, 1, 1}, {0, 0, 0}, {}, {}, 0, r.in * s.taps()};
  r.parts.push_back(p);
  for (int d = 0; d < 3; ++d) r.slabs.low[d] = 0, r.slabs.high[d] = s.out[d];
  r.plan();
  for (int64_t c = 0; c < r.in; ++c)
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < s.kernel[2]; ++kw)
          r.parts[0].offsets.push_back(static_cast<int32_t>(c * r.lattice.channel + r.lattice.offset(kd, kh, kw)));
  r.run();
}

void direct_input(const ConvShape& shape, float* dx, const float* dy, const float* w, const float* bias) {
  ConvShape s = flattened(shape);
  Direct r{};
  // The roles are exchanged: dy is read, dx is written.
  r.batch = s.batch, r.groups = s.groups, r.in = s.out_channels / s.groups, r.out = s.in_channels / s.groups;
  for (int d = 0; d < 3; ++d) r.axes[d] = backward_axis(s, static_cast<Dim>(d));
  r.lattice.source = {dy, {s.out[0], s.out[1], s.out[2]}, s.out_plane(), s.out_channels * s.out_plane()};
  r.lattice.plain = single_places(s);
  r.target = {dx, {s.in[0], s.in[1], s.in[2]}, s.in_plane(), s.in_channels * s.in_plane()};
  r.w = w, r.bias = bias;
  r.row_step = s.taps(), r.group_step = r.in * r.out * s.taps();
  for (int d = 0; d < 3; ++d) r.slabs.low[d] = INT64_MAX, r.slabs.high[d] = INT64_MIN;
  struct Rest {
    int64_t low, high, start;
    std::vector<int64_t> taps;
  };
  std::vector<Rest> rests[3];
  for (int d = 0; d < 3; ++d)
    for (int64_t rest = 0; rest < s.stride[d]; ++rest) {
      int64_t stride = s.stride[d], start = rest - s.padding[d];
      Rest one{start >= 0 ? 0 : (-start + stride - 1) / stride,
               s.in[d] - 1 - start < 0 ? 0 : (s.in[d] - 1 - start) / stride + 1,
               start,
               {}};
      for (int64_t k = 0; k < s.kernel[d]; ++k)
        if (k * s.dilation[d] % stride == rest) one.taps.push_back(k);
      if (one.low >= one.high) continue;
      r.slabs.low[d] = std::min(r.slabs.low[d], one.low), r.slabs.high[d] = std::max(r.slabs.high[d], one.high);
      rests[d].push_back(one);
    }
  for (const Rest& a : rests[0])
    for (const Rest& b : rests[1])
      for (const Rest& c : rests[2]) {
        Part p{{a.low, b.low, c.low},
               {a.high, b.high, c.high},
               {s.stride[0], s.stride[1], s.stride[2]},
               {a.start, b.start, c.start},
               {},
               {},
               0,
               r.in * static_cast<int64_t>(a.taps.size() * b.taps.size() * c.taps.size())};
        for (int64_t o = 0; o < r.in; ++o)
          for (int64_t kd : a.taps)
            for (int64_t kh : b.taps)
              for (int64_t kw : c.taps)
                p.weights.push_back(
                    static_cast<int32_t>(o * r.out * s.taps() + (kd * s.kernel[1] + kh) * s.kernel[2] + kw));
        r.parts.push_back(std::move(p));
      }
  r.plan();
  size_t i = 0;
  for (const Rest& a : rests[0])
    for (const Rest& b : rests[1])
      for (const Rest& c : rests[2]) {
        Part& p = r.parts[i++];
        for (int64_t o = 0; o < r.in; ++o)
          for (int64_t kd : a.taps)
            for (int64_t kh : b.taps)
              for (int64_t kw : c.taps)
                p.offsets.push_back(static_cast<int32_t>(o * r.lattice.channel + r.lattice.offset(kd, kh, kw)));
      }
  r.run();
}

}  // namespace rl::cpu::conv512
#pragma GCC pop_options
#else
namespace rl::cpu::conv512 {
bool direct_serves(const ConvShape&, bool) { return false; }
void direct(const ConvShape&, float*, const float*, const float*, const float*) {}
void direct_input(const ConvShape&, float*, const float*, const float*, const float*) {}
}  // namespace rl::cpu::conv512
#endif
