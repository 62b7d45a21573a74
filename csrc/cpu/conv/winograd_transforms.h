// The transforms of Winograd's F(4x4, 3x3), sixteen tiles at a time. Included by
// winograd*_avx512.cpp alone.
//   result   Y = A' [sum over c of (G g G') . (B' d B)] A        g: 3x3 filter, d: 6x6 input, Y: 4x4 outputs
//   filters  dg = G' [sum over tiles of (A dY A') . (B' d B)] G
#pragma once
#include <algorithm>
#include <cstring>

#include "backend/conv.h"
#include "cpu/conv/microkernel.h"

namespace rl::avx512::conv {
namespace {

constexpr int kTile = 4, kIn = 6, kPoints = 36;
constexpr int kMostTiles = W * kVecs;     // of one block
constexpr unsigned kLarge = 0x5d5e0b6bu;  // bits of 1e18: from there on Winograd is not used

// Planes of points are set apart by more than their size, else all would fall into the same sets of the cache.
inline int64_t plane_stride(int64_t size) { return (size + W - 1) / W * W + W; }

// Note [The order of tiles]
// Tiles are numbered along rows of tiles, rows down an image, images one after the other, and cut into sixteens. Lane
// 4 l + q of a register holds tile 4 q + l of its sixteen: then four neighbouring tiles of a row are one load, and a
// transpose of quarters brings equal columns together.
struct Tiles {
  struct One {
    int64_t image;       // number of the image
    int32_t row, col;    // of the first output
    int32_t rows, cols;  // how many outputs lie inside the image
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

// Note [Interpolation points]
// The points are 0, a, -a, b, -b and infinity. With 1 and 2 for a and b the products at some points are so much larger
// than the outputs that rounding errors grow elevenfold; with 11/16 and 3/2 fivefold, near the least of all symmetric
// points, and their powers in A and B are exact. The other half of the error is the sum over channels, which is taken
// in parts, and parts of parts.
constexpr float kA = 0.6875f, kB = 1.5f, kA2 = kA * kA, kB2 = kB * kB;
constexpr double kG0 = 1 / (double(kA2) * kB2), kGA = 1 / (2.0 * kA2 * (double(kA2) - kB2)),
                 kGB = 1 / (2.0 * kB2 * (double(kB2) - kA2));
constexpr float number(double x) { return static_cast<float>(x); }

// B' along one axis.
inline void input_points(const Reg* d, Reg* r) {
  Reg a2 = all(-kA2), b2 = all(-kB2), both = all(kA2 * kB2), sum = all(-kA2 - kB2), a = all(kA), b = all(kB);
  Reg even_a = fma(b2, d[2], d[4]), odd_a = fma(b2, d[1], d[3]);
  Reg even_b = fma(a2, d[2], d[4]), odd_b = fma(a2, d[1], d[3]);
  r[0] = fma(both, d[0], fma(sum, d[2], d[4]));
  r[1] = fma(a, odd_a, even_a);
  r[2] = fma(all(-kA), odd_a, even_a);
  r[3] = fma(b, odd_b, even_b);
  r[4] = fma(all(-kB), odd_b, even_b);
  r[5] = fma(both, d[1], fma(sum, d[3], d[5]));
}
// A along one axis: six values from four.
inline void spread_points(const Reg* d, Reg* r) {
  Reg even_a = fma(all(kA2), d[2], d[0]), odd_a = fma(all(kA2), d[3], d[1]);
  Reg even_b = fma(all(kB2), d[2], d[0]), odd_b = fma(all(kB2), d[3], d[1]);
  r[0] = d[0];
  r[1] = fma(all(kA), odd_a, even_a);
  r[2] = fma(all(-kA), odd_a, even_a);
  r[3] = fma(all(kB), odd_b, even_b);
  r[4] = fma(all(-kB), odd_b, even_b);
  r[5] = d[3];
}
// The transforms back run in double, half a register at a time: their sums cancel, and so each value is rounded once.
using Wide = __m512d;
inline Wide all_pd(double x) { return _mm512_set1_pd(x); }
inline Wide fma(Wide a, Wide b, Wide c) { return _mm512_fmadd_pd(a, b, c); }
template <int N, class F> [[gnu::always_inline]] inline void in_double(const Reg* m, Reg* r, const F& f) {
  __m256 half[2][N];
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    Wide w[kIn], y[N];
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i)
      w[i] = _mm512_cvtps_pd(h ? _mm512_extractf32x8_ps(m[i], 1) : _mm512_castps512_ps256(m[i]));
    f(w, y);
#pragma GCC unroll 4
    for (int a = 0; a < N; ++a) half[h][a] = _mm512_cvtpd_ps(y[a]);
  }
#pragma GCC unroll 4
  for (int a = 0; a < N; ++a) r[a] = _mm512_insertf32x8(_mm512_castps256_ps512(half[0][a]), half[1][a], 1);
}
// A' along one axis: four values from six.
inline void output_points(const Reg* m, Reg* r) {
  in_double<kTile>(m, r, [](const Wide* w, Wide* y) __attribute__((always_inline)) {
    Wide s12 = w[1] + w[2], d12 = w[1] - w[2], s34 = w[3] + w[4], d34 = w[3] - w[4];
    y[0] = w[0] + (s12 + s34);
    y[1] = fma(all_pd(kB), d34, all_pd(kA) * d12);
    y[2] = fma(all_pd(kB2), s34, all_pd(kA2) * s12);
    y[3] = fma(all_pd(kB2 * kB), d34, fma(all_pd(kA2 * kA), d12, w[5]));
  });
}
// G along one axis: six values from three.
inline void filter_points(const Reg* g, Reg* r) {
  Reg even_a = fma(all(kA2), g[2], g[0]), odd_a = all(kA) * g[1];
  Reg even_b = fma(all(kB2), g[2], g[0]), odd_b = all(kB) * g[1];
  r[0] = all(number(kG0)) * g[0];
  r[1] = all(number(kGA)) * (even_a + odd_a);
  r[2] = all(number(kGA)) * (even_a - odd_a);
  r[3] = all(number(kGB)) * (even_b + odd_b);
  r[4] = all(number(kGB)) * (even_b - odd_b);
  r[5] = g[2];
}
// G' along one axis: three values from six.
inline void filter_sums(const Reg* m, Reg* r) {
  in_double<3>(m, r, [](const Wide* w, Wide* y) __attribute__((always_inline)) {
    Wide s12 = all_pd(kGA) * (w[1] + w[2]), d12 = all_pd(kGA) * (w[1] - w[2]);
    Wide s34 = all_pd(kGB) * (w[3] + w[4]), d34 = all_pd(kGB) * (w[3] - w[4]);
    y[0] = fma(all_pd(kG0), w[0], s12 + s34);
    y[1] = fma(all_pd(kA), d12, all_pd(kB) * d34);
    y[2] = fma(all_pd(kA2), s12, fma(all_pd(kB2), s34, w[5]));
  });
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

// The rows of one channel's tiles, transformed along the height: six lines for each segment. For `Spread` the image
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
    // elements [0, length) of the line are columns from `start` on
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
    transpose_quarters(d[0], d[1], d[2], d[3]);
    if constexpr (Spread) {
      for (int q = 0; q < 4; ++q) d[q] = _mm512_maskz_mov_ps(t.held[vec], d[q]);  // a sum over tiles follows
      spread_points(d, r);
    } else {
      for (int q = 0; q < 4; ++q) d[4 + q] = load_four(t, 4 * vec + q, line + 4);
      transpose_quarters(d[4], d[5], d[6], d[7]);
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
    transpose_quarters(out[a][0], out[a][1], out[a][2], out[a][3]);
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
}  // namespace rl::avx512::conv
