// The transforms of Winograd's F(4x4, 3x3), sixteen tiles at a time. Included after a target pragma, by
// conv512_winograd*.cpp alone.
//   result   Y = A' [sum over c of (G g G') . (B' d B)] A        g: 3x3 filter, d: 6x6 input, Y: 4x4 outputs
//   filters  dg = G' [sum over tiles of (A dY A') . (B' d B)] G
#pragma once
#include <algorithm>
#include <cstring>

#include "backend/conv.h"
#include "cpu/conv512_block.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int kTile = 4, kIn = 6, kPoints = 36;
constexpr int kMostTiles = W * kVecs;     // of one block
constexpr unsigned kLarge = 0x5d5e0b6bu;  // bits of 1e18: from there on Winograd is not used

// Planes of points are set apart by more than their size, else all would fall into the same sets of the cache.
inline int64_t apart(int64_t size) { return (size + W - 1) / W * W + W; }

// Note [The order of tiles]
// Tiles are numbered along rows of tiles, rows down an image, images one after the other, and cut into sixteens. Lane
// 4 l + q of a register holds tile 4 q + l of its sixteen: then four neighbouring tiles of a row are one load, and a
// turn of quarters brings equal columns together.
struct Tiles {
  struct One {
    int64_t image;       // number of the image
    int32_t row, col;    // of the first output
    int32_t rows, cols;  // how many outputs lie inside the picture
    int32_t at;          // of the first input in the lines
  };
  const ConvShape& s;
  int64_t high = (s.out[1] + kTile - 1) / kTile, wide = (s.out[2] + kTile - 1) / kTile;
  int64_t count = s.batch * high * wide;

  // A run of tiles of one row of tiles.
  struct Segment {
    int64_t image, row, first, last;  // tiles first to last of that row of tiles
  };
  One one[kMostTiles];
  bool run[kMostTiles / 4];  // whether four tiles follow each other in one row
  Segment segments[kMostTiles];
  int segment_count = 0;
  int64_t pitch = 0;      // of the lines
  __mmask16 held[kVecs];  // lanes with a tile

  // Describes the tiles [first, first + W * vecs); those past the end have no outputs.
  void describe(int64_t first, int vecs) {
    int64_t most = std::min<int64_t>(wide, W * vecs), left = std::min<int64_t>(count - first, W * vecs);
    pitch = (kTile * most + 2 + 2 * W - 1) / W * W + 4;  // 4: rows of lines fall into different sets of the cache
    segment_count = 0;
    int t = 0;
    while (t < left) {
      int64_t at = first + t, row = at / wide, col = at % wide, n = std::min(wide - col, left - t);
      Segment& g = segments[segment_count];
      g = {row / high, row % high, col, col + n};
      for (int64_t i = 0; i < n; ++i, ++t) {
        int64_t r = g.row * kTile, c = (col + i) * kTile;
        one[t] = {g.image,
                  static_cast<int32_t>(r),
                  static_cast<int32_t>(c),
                  static_cast<int32_t>(std::min<int64_t>(kTile, s.out[1] - r)),
                  static_cast<int32_t>(std::min<int64_t>(kTile, s.out[2] - c)),
                  static_cast<int32_t>(segment_count * kIn * pitch + kTile * i)};
      }
      ++segment_count;
    }
    for (; t < W * vecs; ++t) one[t] = {0, 0, 0, 0, 0, 0};
    for (int v = 0; v < vecs; ++v) {
      unsigned mask = 0;
      for (int i = 0; i < W; ++i) mask |= (one[v * W + i].rows ? 1u : 0u) << (i % 4 * 4 + i / 4);
      held[v] = static_cast<__mmask16>(mask);
    }
    for (int q = 0; q < 4 * vecs; ++q) {
      const One *a = one + 4 * q, *d = a + 3;
      run[q] = d->rows && a->image == d->image && a->row == d->row && d->col == a->col + 3 * kTile;
    }
  }
  int64_t lines_size() const { return static_cast<int64_t>(kMostTiles) * kIn * (4 + 2 + 2 * W + 4) + 4 * W; }
};

// B' along one axis.
inline void input_points(const Reg* d, Reg* r) {
  Reg four = all(4), minus4 = all(-4), minus5 = all(-5), two = all(2);
  Reg even = fma(minus4, d[2], d[4]), odd = fma(minus4, d[1], d[3]);
  Reg even2 = d[4] - d[2], odd2 = d[3] - d[1];
  r[0] = fma(four, d[0], fma(minus5, d[2], d[4]));
  r[1] = even + odd;
  r[2] = even - odd;
  r[3] = fma(two, odd2, even2);
  r[4] = fma(all(-2), odd2, even2);
  r[5] = fma(four, d[1], fma(minus5, d[3], d[5]));
}
// A along one axis: six values from four.
inline void spread_points(const Reg* d, Reg* r) {
  Reg even = d[0] + d[2], odd = d[1] + d[3];
  Reg even2 = fma(all(4), d[2], d[0]), odd2 = fma(all(4), d[3], d[1]);
  r[0] = d[0];
  r[1] = even + odd;
  r[2] = even - odd;
  r[3] = fma(all(2), odd2, even2);
  r[4] = fma(all(-2), odd2, even2);
  r[5] = d[3];
}
// A' along one axis: four values from six.
inline void output_points(const Reg* m, Reg* r) {
  Reg s12 = m[1] + m[2], d12 = m[1] - m[2], s34 = m[3] + m[4], d34 = m[3] - m[4];
  r[0] = m[0] + s12 + s34;
  r[1] = fma(all(2), d34, d12);
  r[2] = fma(all(4), s34, s12);
  r[3] = fma(all(8), d34, d12) + m[5];
}
// G along one axis: six values from three.
inline void filter_points(const Reg* g, Reg* r) {
  Reg sixth = all(-1.0f / 6), ends = g[0] + g[2];
  Reg even = fma(all(1.0f / 24), g[0], all(1.0f / 6) * g[2]), odd = all(1.0f / 12) * g[1];
  r[0] = all(0.25f) * g[0];
  r[1] = sixth * (ends + g[1]);
  r[2] = sixth * (ends - g[1]);
  r[3] = even + odd;
  r[4] = even - odd;
  r[5] = g[2];
}
// G' along one axis: three values from six.
inline void filter_sums(const Reg* m, Reg* r) {
  Reg s12 = m[1] + m[2], d12 = m[2] - m[1], s34 = m[3] + m[4], d34 = m[3] - m[4];
  Reg sixth = all(1.0f / 6);
  r[0] = fma(all(0.25f), m[0], fma(all(-1.0f / 6), s12, all(1.0f / 24) * s34));
  r[1] = fma(sixth, d12, all(1.0f / 12) * d34);
  r[2] = fma(sixth, s34 - s12, m[5]);
}

// The largest magnitudes met, as bits.
struct Largest {
  __m512i bits;
  Largest() : bits(_mm512_setzero_si512()) {}  // written out: an implicit one would not have the target
  void see(Reg x) {
    __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    bits = _mm512_max_epu32(bits, magnitude);
  }
  bool too_large() const { return _mm512_cmpgt_epu32_mask(bits, _mm512_set1_epi32(kLarge)) != 0; }
};

// The rows of one channel's tiles, transformed along the height: six lines for each segment. For `Spread` the picture
// is dy, whose tiles are 4x4 and neither padded nor overlapping.
template <bool Spread>
void make_lines(const Tiles& t, const float* x, int64_t image_step, float* lines, Largest& largest) {
  const ConvShape& s = t.s;
  constexpr int kHeld = Spread ? kTile : kIn;
  int64_t H = Spread ? s.out[1] : s.in[1], wide = Spread ? s.out[2] : s.in[2];
  int64_t pad_h = Spread ? 0 : s.padding[1], pad_w = Spread ? 0 : s.padding[2];
  for (int g = 0; g < t.segment_count; ++g) {
    const Tiles::Segment& segment = t.segments[g];
    const float* image = x + segment.image * image_step;
    float* to = lines + g * kIn * t.pitch;
    // places of the line [0, length) are columns from `start` on
    int64_t length = kTile * (segment.last - segment.first) + (Spread ? 0 : 2), start = kTile * segment.first - pad_w;
    int64_t a = std::min(length, std::max<int64_t>(0, -start)), b = std::max(a, std::min(length, wide - start));
    const float* rows[kIn];
    bool there[kIn];
    for (int i = 0; i < kHeld; ++i) {
      int64_t h = segment.row * kTile + i - pad_h;
      there[i] = h >= 0 && h < H;
      rows[i] = image + (there[i] ? h * wide : 0) + start;
    }
    for (int i = 0; i < kIn; ++i) std::fill(to + i * t.pitch, to + i * t.pitch + a, 0.0f);
    for (int64_t p = a; p < b; p += W) {
      __mmask16 inside = lanes(b - p);
      Reg d[kIn], r[kIn];
      for (int i = 0; i < kHeld; ++i) {
        d[i] = _mm512_maskz_loadu_ps(there[i] ? inside : static_cast<__mmask16>(0), rows[i] + p);
        largest.see(d[i]);
      }
      if constexpr (Spread) spread_points(d, r);
      else input_points(d, r);
      for (int i = 0; i < kIn; ++i) store(to + i * t.pitch + p, r[i]);
    }
    int64_t done = a + (b - a + W - 1) / W * W;
    if (done < length)
      for (int i = 0; i < kIn; ++i) std::fill(to + i * t.pitch + done, to + i * t.pitch + length, 0.0f);
  }
}

// Four floats of each of four tiles.
inline Reg load_four(const Tiles& t, int q, const float* line) {
  const Tiles::One* o = t.one + 4 * q;
  if (t.run[q]) return load(line + o->at);
  Reg r = _mm512_castps128_ps512(_mm_loadu_ps(line + o[0].at));
  r = _mm512_insertf32x4(r, _mm_loadu_ps(line + o[1].at), 1);
  r = _mm512_insertf32x4(r, _mm_loadu_ps(line + o[2].at), 2);
  return _mm512_insertf32x4(r, _mm_loadu_ps(line + o[3].at), 3);
}

// Sixteen tiles of one channel from its lines, transformed along the width; point p goes to v + p * step.
template <bool Spread> void take_tiles(const Tiles& t, int vec, const float* lines, float* v, int64_t step) {
  for (int i = 0; i < kIn; ++i) {
    const float* line = lines + i * t.pitch;
    Reg d[8], r[kIn];
    for (int q = 0; q < 4; ++q) d[q] = load_four(t, 4 * vec + q, line);
    turn_quarters(d[0], d[1], d[2], d[3]);
    if constexpr (Spread) {
      for (int q = 0; q < 4; ++q) d[q] = _mm512_maskz_mov_ps(t.held[vec], d[q]);  // a sum over tiles follows
      spread_points(d, r);
    } else {
      for (int q = 0; q < 4; ++q) d[4 + q] = load_four(t, 4 * vec + q, line + 4);
      turn_quarters(d[4], d[5], d[6], d[7]);
      input_points(d, r);
    }
    for (int j = 0; j < kIn; ++j) store(v + (i * kIn + j) * step, r[j]);
  }
}

// The outputs of sixteen tiles of one channel: y is that channel's plane in the first image.
inline void give_tiles(const Tiles& t, int vec, const float* m, int64_t step, float bias, float* y,
                       int64_t image_step) {
  Reg mixed[kTile][kIn];
  for (int j = 0; j < kIn; ++j) {
    Reg d[kIn], r[kTile];
    for (int i = 0; i < kIn; ++i) d[i] = load(m + (i * kIn + j) * step);
    output_points(d, r);
    for (int a = 0; a < kTile; ++a) mixed[a][j] = r[a];
  }
  Reg shift = all(bias);
  Reg out[kTile][4];
  for (int a = 0; a < kTile; ++a) {
    output_points(mixed[a], out[a]);
    turn_quarters(out[a][0], out[a][1], out[a][2], out[a][3]);
    for (int q = 0; q < 4; ++q) out[a][q] += shift;
  }
  int64_t width = t.s.out[2];
  for (int q = 0; q < 4; ++q) {
    const Tiles::One* o = t.one + 4 * (4 * vec + q);
    if (t.run[4 * vec + q] && o[3].cols == kTile) {
      float* to = y + o->image * image_step + o->row * width + o->col;
      for (int a = 0; a < o->rows; ++a) store(to + a * width, out[a][q]);
      continue;
    }
    for (int l = 0; l < 4; ++l) {
      float* to = y + o[l].image * image_step + o[l].row * width + o[l].col;
      auto mask = static_cast<__mmask8>((1u << o[l].cols) - 1);
      for (int a = 0; a < o[l].rows; ++a) {
        Reg whole = out[a][q];
        __m128 part = l == 0   ? _mm512_castps512_ps128(whole)
                      : l == 1 ? _mm512_extractf32x4_ps(whole, 1)
                      : l == 2 ? _mm512_extractf32x4_ps(whole, 2)
                               : _mm512_extractf32x4_ps(whole, 3);
        _mm_mask_storeu_ps(to + a * width, mask, part);
      }
    }
  }
}

}  // namespace
}  // namespace rl::cpu::conv512
