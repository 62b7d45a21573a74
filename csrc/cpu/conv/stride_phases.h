// Convolutions of any stride as sums over shifted planes. Included by direct*_avx512.cpp alone.
//
// Note [Stride phases]
// A tap of a convolution with stride s reads input pixels o * s + k: those of one remainder by s, shifted. So the
// input is copied once into planes, one per remainder that occurs, with zeros around, and then every tap is a plane
// and a shift: pixel p of the output meets `phases[offset of the tap + p]`. The gradient wrt the input is the other
// way round: the pixels of dx of one remainder are a plain convolution of dy by the taps of that remainder.
// The depth has no shifts: each of its taps has slices of its own.
// Panels of pixels may reach past the last one wanted. What they read there is ours and finite, mostly zeros: products
// of arbitrary bits, often denormal, would be slow.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/conv.h"
#include "cpu/conv/strided_load.h"

namespace rl::avx512::conv {
namespace {

enum Dim { kDepth, kHeight, kWidth };

// What is read: planes of (depth, height, width), with the strides of channels and images.
struct Source {
  const float* data;
  int64_t size[3], channel, image;
};

// Where phases pixel t of phase f, counted from output pixel q, is in the source: (q + t) * step + start[f].
struct Axis {
  int64_t step = 1, reach = 0;  // reach: the largest shift
  std::vector<int64_t> start;   // one a phase
  struct Tap {
    int64_t phase, shift;
  };
  std::vector<Tap> taps;
};

// Taps i * dilation - padding at pixels o * stride.
inline Axis forward_axis(const ConvShape& s, Dim d) {
  Axis a;
  a.step = s.stride[d];
  std::vector<int64_t> rests;
  for (int64_t k = 0; k < s.kernel[d]; ++k) {
    int64_t at = k * s.dilation[d], rest = d == kDepth ? at : at % a.step, shift = d == kDepth ? 0 : at / a.step;
    size_t phase = 0;
    while (phase < rests.size() && rests[phase] != rest) ++phase;
    if (phase == rests.size()) rests.push_back(rest), a.start.push_back(rest - s.padding[d]);
    a.taps.push_back({static_cast<int64_t>(phase), shift});
    a.reach = std::max(a.reach, shift);
  }
  return a;
}

// The taps of pixels of dx that leave one remainder, seen from dy; all remainders share the phases.
inline Axis backward_axis(const ConvShape& s, Dim d) {
  Axis a;
  int64_t most = (s.kernel[d] - 1) * s.dilation[d] / s.stride[d];
  if (d == kDepth)
    for (int64_t shift = 0; shift <= most; ++shift) a.start.push_back(-shift);
  else a.start.push_back(-most), a.reach = most;
  for (int64_t k = 0; k < s.kernel[d]; ++k) {
    int64_t shift = k * s.dilation[d] / s.stride[d];
    a.taps.push_back(d == kDepth ? Axis::Tap{shift, 0} : Axis::Tap{0, most - shift});
  }
  return a;
}

// A rectangle of output pixels of one image.
struct HaloTile {
  int64_t image, depth, row, rows, col, cols;
};

struct StridePhases {
  Source source;
  const Axis *depth, *height, *width;
  bool plain = false;  // the source itself: single pixels, in one row
  int64_t pitch = 0, plane = 0, halo = 0, channel = 0;

  // For halos of at most these sizes, `halos` of them. HaloTiles that span the whole width share the zeros between
  // rows.
  void lay_out(int64_t rows, int64_t cols, int64_t first_col, bool whole, int64_t halos) {
    if (plain) {
      pitch = source.size[kWidth], channel = source.channel, halo = source.image;
      return;
    }
    pitch = cols + width->reach;
    int64_t both =
        whole ? width->reach : 0;  // zeros at the end of a row that may be those at the beginning of the next
    for (int64_t start : width->start) {
      int64_t first = first_col * width->step + start, last = first + (pitch - 1) * width->step;
      int64_t left = first < 0 ? (-first + width->step - 1) / width->step : 0;
      int64_t right = last >= source.size[kWidth] ? (last - source.size[kWidth]) / width->step + 1 : 0;
      both = std::min({both, left, right});
    }
    pitch -= std::max<int64_t>(0, both);
    plane = (rows + height->reach) * pitch + width->reach;
    halo = plane * phases();
    channel = (halos * halo + W - 1) / W * W;
    if (channel % 1024 == 0) channel += W;
  }
  int64_t phases() const {
    return static_cast<int64_t>(depth->start.size() * height->start.size() * width->start.size());
  }
  // Of some taps along a dimension, in order, the first and one past the last that see more than padding from `pixel`
  // on; joined to those in [first, last).
  void join_seen(Dim d, const std::vector<int64_t>& taps, int64_t pixel, int64_t* first, int64_t* last) const {
    const Axis& axis = d == kDepth ? *depth : *height;
    for (int64_t j = 0; j < static_cast<int64_t>(taps.size()); ++j) {
      const Axis::Tap& tap = axis.taps[taps[j]];
      const int64_t at = (pixel + tap.shift) * axis.step + axis.start[tap.phase];
      if (at < 0 || at >= source.size[d]) continue;
      const bool none = *first == *last;
      *first = none ? j : std::min(*first, j), *last = none ? j + 1 : std::max(*last, j + 1);
    }
  }
  // Those along the depth that halos with depths in [low, high) see.
  void seen_depths(const std::vector<int64_t>& taps, const HaloTile* halos, int64_t count, int64_t low, int64_t high,
                   int64_t* first, int64_t* last) const {
    *first = *last = 0;
    for (int64_t i = 0; i < count; ++i)
      if (halos[i].depth >= low && halos[i].depth < high) join_seen(kDepth, taps, halos[i].depth, first, last);
  }
  int64_t size(int64_t channels) const { return channels * channel + 4 * W * kVecs; }

  int64_t offset(int64_t kd, int64_t kh, int64_t kw) const {
    if (plain) return 0;
    const Axis::Tap &d = depth->taps[kd], &h = height->taps[kh], &w = width->taps[kw];
    auto heights = static_cast<int64_t>(height->start.size()), widths = static_cast<int64_t>(width->start.size());
    return ((d.phase * heights + h.phase) * widths + w.phase) * plane + h.shift * pitch + w.shift;
  }

  static void clear(float* to, int64_t count) {
    for (int64_t i = 0; i < count; i += W) _mm512_mask_storeu_ps(to + i, lanes(count - i), _mm512_setzero_ps());
  }
  // What of a plane comes from the source: rows [r0, r1), pixels [a, b) of each; the rest is zeros.
  struct Patch {
    int64_t r0, r1, a, b;
    int64_t from;  // in a channel of the source: pixel 0 of row r0
  };
  void fill_patch(const Patch& p, const Spaced& spaced, const float* from, int64_t rows, float* to) const {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    int64_t step = width->step, row_step = height->step * source.size[kWidth];
    clear(to, p.r0 * pitch);
    float* row = to + p.r0 * pitch;
    from += p.from;
    if (step <= 2)
      for (int64_t i = 0; i < pitch; i += W) {
        // Of what is read, the last pixel wanted is the last that there may be.
        int64_t begin = step * (p.a - i), end = step * (p.b - i - 1) + 1;
        auto low = static_cast<__mmask16>(lanes(end) & ~lanes(begin)),
             high = static_cast<__mmask16>(lanes(end - W) & ~lanes(begin - W)), out = lanes(pitch - i);
        const float* x = from + i * step;
        float* at = row + i;
        if (step == 1)
          for (int64_t t = p.r0; t < p.r1; ++t, x += row_step, at += pitch)
            _mm512_mask_storeu_ps(at, out, _mm512_maskz_loadu_ps(low, x));
        else
          for (int64_t t = p.r0; t < p.r1; ++t, x += row_step, at += pitch)
            _mm512_mask_storeu_ps(
                at, out,
                _mm512_permutex2var_ps(_mm512_maskz_loadu_ps(low, x), even, _mm512_maskz_loadu_ps(high, x + W)));
      }
    else if (step <= kMostSpace)
      for (int64_t i = 0; i < pitch; i += W) {
        __mmask16 there[W];
        spaced.masks(p.a - i, p.b - i, there);
        const __mmask16 out = lanes(pitch - i);
        const float* x = from + i * step;
        float* at = row + i;
        for (int64_t t = p.r0; t < p.r1; ++t, x += row_step, at += pitch)
          _mm512_mask_storeu_ps(at, out, spaced.read(x, there));
      }
    else
      for (int64_t t = p.r0; t < p.r1; ++t, from += row_step) {
        float* at = row + (t - p.r0) * pitch;
        clear(at, pitch);
        for (int64_t i = p.a; i < p.b; ++i) at[i] = from[i * step];
      }
    clear(to + p.r1 * pitch, std::min(plane, rows * pitch + width->reach + W * kVecs) - p.r1 * pitch);
  }

  // The patches of a halo's planes, in their order.
  void describe(const HaloTile& p, std::vector<Patch>& patches) const {
    patches.clear();
    // Of `count` pixels, those that lie in the source: first + i * step in [0, size).
    auto inside = [](int64_t first, int64_t step, int64_t size, int64_t count, int64_t* a, int64_t* b) {
      *a = first >= 0 ? 0 : std::min(count, (-first + step - 1) / step);
      *b = first >= size ? *a : std::max(*a, std::min(count, (size - 1 - first) / step + 1));
    };
    for (int64_t sd : depth->start)
      for (int64_t sh : height->start)
        for (int64_t sw : width->start) {
          Patch patch;
          int64_t d = p.depth * depth->step + sd, h = p.row * height->step + sh, w = p.col * width->step + sw;
          inside(h, height->step, source.size[kHeight], p.rows + height->reach, &patch.r0, &patch.r1);
          inside(w, width->step, source.size[kWidth], pitch, &patch.a, &patch.b);
          if (d < 0 || d >= source.size[kDepth] || patch.a == patch.b) patch.r0 = patch.r1 = 0;
          patch.from = (d * source.size[kHeight] + h + patch.r0 * height->step) * source.size[kWidth] + w;
          patches.push_back(patch);
        }
  }

  // Channels from c0 on, of several halos; `last`: no others follow them.
  void fill_all(const HaloTile* halos, int64_t count, int64_t c0, int64_t channels, bool last, float* memory) const {
    std::vector<Patch> patches;
    const Spaced spaced(std::min(width->step, kMostSpace));
    for (int64_t i = 0; i < count; ++i) {
      const HaloTile& p = halos[i];
      const HaloTile* before = i ? &halos[i - 1] : nullptr;
      if (!before || p.depth != before->depth || p.row != before->row || p.rows != before->rows || p.col != before->col)
        describe(p, patches);
      for (int64_t c = 0; c < channels; ++c) {
        const float* from = source.data + p.image * source.image + (c0 + c) * source.channel;
        float* to = memory + c * channel + i * halo;
        for (const Patch& patch : patches) fill_patch(patch, spaced, from, p.rows + height->reach, to), to += plane;
      }
    }
    for (int64_t c = 0; c < channels; ++c) {
      float *to = memory + c * channel, *rest = to + count * halo;
      clear(rest, std::min<int64_t>(to + channel - rest, W * kVecs));
    }
    if (last) clear(memory + channels * channel, W * kVecs);
  }
};

// A run of pixels of one output row inside a panel.
struct Piece {
  int32_t lane, count;
  int64_t from;             // in the phases
  int64_t depth, row, col;  // of the first pixel
  int32_t halo;
};
// Up to three registers of pixels.
struct Panel {
  int32_t vecs, first, last;  // pieces
  int32_t first_move, last_move;
  int64_t from;  // in the phases, where the pixels follow each other with gaps
  int64_t at;    // in the buffer of results
};
// Up to sixteen floats to gather. Moves are made in order and whole: what is too much the next one overwrites.
struct Move {
  int64_t from;
  int32_t lane, count;
};
struct Pixels {
  std::vector<Piece> pieces;
  std::vector<Move> moves;
  std::vector<Panel> panels;
  int64_t vecs = 0, count = 0;  // count: of the pixels wanted
  int most = kVecs;             // registers of a panel
  double gaps_worth = 1.1;      // pixels between rows are taken along up to so many times the pixels wanted
  int64_t region = -1;          // that is described
  bool exact = false;           // panels hold the pixels wanted alone, and are gathered; else also those between rows

  void close(Panel& p) {
    p.last = static_cast<int32_t>(pieces.size());
    p.first_move = static_cast<int32_t>(moves.size());
    if (exact)
      for (int32_t i = p.first; i < p.last; ++i)
        for (int32_t j = 0; j < pieces[i].count; j += W)
          moves.push_back({pieces[i].from + j, pieces[i].lane + j, pieces[i].count - j});
    p.last_move = static_cast<int32_t>(moves.size());
    p.at = vecs * W;
    vecs += p.vecs;
    panels.push_back(p);
  }
  int next_vecs(int64_t left) const {
    return left == most + 1 ? most / 2 + 1 : static_cast<int>(std::min<int64_t>(left, most));
  }

  // to[i * step + lane] = what tap i of `count` sees at a panel's pixels; may write W floats more. `guarded` memory is
  // not read past the pixels.
  void gather(const Panel& panel, const float* memory, bool guarded, const int32_t* offsets, int64_t count, float* to,
              int64_t step) const {
    const Move *first = moves.data() + panel.first_move, *last = moves.data() + panel.last_move;
    int64_t covered = last[-1].lane + W;
    for (int64_t i = 0; i < count; ++i, to += step) {
      const float* from = memory + offsets[i];
      for (int64_t l = covered; l < panel.vecs * W; l += W) store(to + l, _mm512_setzero_ps());
      if (guarded)
        for (const Move* m = first; m < last; ++m)
          store(to + m->lane, _mm512_maskz_loadu_ps(lanes(m->count), from + m->from));
      else
        for (const Move* m = first; m < last; ++m) store(to + m->lane, load(from + m->from));
    }
  }

  // The pixels of the halos that lie in [low, high).
  void describe(const StridePhases& l, const HaloTile* halos, int64_t count, const int64_t* low, const int64_t* high,
                bool gathered = false) {
    pieces.clear(), panels.clear(), moves.clear(), vecs = 0;
    int64_t gapped = 0, all_pixels = 0;
    auto clip = [&](const HaloTile& p, int64_t& r0, int64_t& r1, int64_t& c0, int64_t& c1) {
      r0 = std::max(p.row, low[kHeight]), r1 = std::min(p.row + p.rows, high[kHeight]);
      c0 = std::max(p.col, low[kWidth]), c1 = std::min(p.col + p.cols, high[kWidth]);
      return r0 < r1 && c0 < c1 && p.depth >= low[kDepth] && p.depth < high[kDepth];
    };
    int64_t r0, r1, c0, c1;
    bool tail_is_ours = !l.plain;  // memory past the last pixel may be read
    for (int64_t i = 0; i < count; ++i)
      if (clip(halos[i], r0, r1, c0, c1)) {
        gapped += ((r1 - r0 - 1) * l.pitch + c1 - c0 + W - 1) / W;
        all_pixels += (r1 - r0) * (c1 - c0);
        if (l.plain) tail_is_ours = tail_is_ours || (c1 - c0) % W == 0;
      }
    exact = !tail_is_ours || static_cast<double>(gapped) > gaps_worth * static_cast<double>((all_pixels + W - 1) / W);
    if (gathered || (l.plain && count > 1)) exact = true;
    this->count = all_pixels;
    Panel panel{};
    int64_t filled = 0, left = (all_pixels + W - 1) / W;
    for (int64_t i = 0; i < count; ++i) {
      if (!clip(halos[i], r0, r1, c0, c1)) continue;
      const HaloTile& p = halos[i];
      int64_t base = l.plain ? p.image * l.halo : i * l.halo;
      auto pixel = [&](int64_t r, int64_t c) { return l.plain ? base + c : base + (r - p.row) * l.pitch + c - p.col; };
      if (exact) {
        for (int64_t r = r0; r < r1; ++r)
          for (int64_t c = c0; c < c1;) {
            if (filled == 0) panel = {next_vecs(left), static_cast<int32_t>(pieces.size()), 0, 0, 0, 0, 0};
            int64_t n = std::min(c1 - c, panel.vecs * W - filled);
            pieces.push_back({static_cast<int32_t>(filled), static_cast<int32_t>(n), pixel(r, c), p.depth, r, c,
                              static_cast<int32_t>(i)});
            filled += n, c += n;
            if (filled == panel.vecs * W) left -= panel.vecs, close(panel), filled = 0;
          }
        continue;
      }
      int64_t length = (r1 - r0 - 1) * l.pitch + c1 - c0;
      for (int64_t f = 0; f < length;) {
        panel = {
            next_vecs((length - f + W - 1) / W), static_cast<int32_t>(pieces.size()), 0, 0, 0, pixel(r0, c0) + f, 0};
        int64_t end = std::min(length, f + panel.vecs * W);
        for (int64_t q = f; q < end;) {
          int64_t r = q / l.pitch, c = q % l.pitch, stop = std::min(end, r * l.pitch + c1 - c0);
          if (q < stop)
            pieces.push_back({static_cast<int32_t>(q - f), static_cast<int32_t>(stop - q), pixel(r0 + r, c0 + c),
                              p.depth, r0 + r, c0 + c, static_cast<int32_t>(i)});
          q = (r + 1) * l.pitch;
        }
        close(panel);
        f = end;
      }
    }
    if (filled) close(panel);
  }
};

}  // namespace
}  // namespace rl::avx512::conv
