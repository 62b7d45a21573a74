// One filter for each channel, channels in the lanes of registers: every tap is a row of them (Note [Rows of
// channels]). Included by depthwise_nhwc_avx512.cpp alone.
#pragma once
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "cpu/conv/microkernel.h"
#include "cpu/conv/nhwc_gemm.h"
#include "cpu/conv/row_segments.h"
#include "cpu/loops/scratch.h"

namespace rl::avx512::conv {
namespace {

constexpr int kVectors = 2;  // registers of channels taken together

// A row of taps: where in a image the first pixel reads, and where its filters begin; steps between taps are equal.
struct TapRow {
  int64_t from, filter;
};

// R pixels of V registers. Taps [0, count) of each of `rows`, `tap` elements apart in what is read.
template <int R, int V> void tile(const TapRow* rows, int64_t row_count, const float* image, const float* filters,
                                  int64_t count, int64_t tap, int64_t filter_step, int64_t pixel, const float* bias,
                                  float* to, int64_t to_step, __mmask16 last) {
  Reg acc[R][V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const Reg start = bias ? _mm512_maskz_loadu_ps(v == V - 1 ? last : 0xffff, bias + v * W) : _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r][v] = start;
  }
  for (int64_t i = 0; i < row_count; ++i) {
    const float *from = image + rows[i].from, *filter = filters + rows[i].filter;
    for (int64_t k = 0; k < count; ++k, from += tap, filter += filter_step)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const Reg f = load(filter + v * W);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const float* x = from + r * pixel + v * W;
          acc[r][v] = fma(f, v == V - 1 ? _mm512_maskz_loadu_ps(last, x) : load(x), acc[r][v]);
        }
      }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) _mm512_mask_storeu_ps(to + r * to_step + v * W, v == V - 1 ? last : 0xffff, acc[r][v]);
}
using TileFn = void (*)(const TapRow*, int64_t, const float*, const float*, int64_t, int64_t, int64_t, int64_t,
                        const float*, float*, int64_t, __mmask16);
constexpr int kPlaces = 6;
template <int V>
constexpr TileFn kTiles[kPlaces] = {tile<1, V>, tile<2, V>, tile<3, V>, tile<4, V>, tile<5, V>, tile<6, V>};
constexpr const TileFn* kAllTiles[kVectors] = {kTiles<1>, kTiles<2>};

// R neighbouring pixels of one register at stride S, K taps of each row side by side: what is read serves all taps that
// see it. What the first pixel reads with its first tap is number 0; those in [low, high) are there. `add`: to
// what is written already.
template <int S, int K, int R> void stretch(const TapRow* rows, int64_t row_count, const float* image,
                                            const float* filters, int64_t filter_step, int64_t pixel, int64_t low,
                                            int64_t high, const float* bias, bool add, float* to, __mmask16 m) {
  Reg acc[R];
  const Reg start = bias ? _mm512_maskz_loadu_ps(m, bias) : _mm512_setzero_ps();
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) acc[r] = add ? _mm512_maskz_loadu_ps(m, to + r * pixel) : start;
  for (int64_t i = 0; i < row_count; ++i) {
    const float *from = image + rows[i].from, *filter = filters + rows[i].filter;
    Reg f[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) f[k] = load(filter + k * filter_step);
#pragma GCC unroll 64
    for (int j = 0; j < S * (R - 1) + K; ++j) {
      if (j < low || j >= high) continue;
      const Reg x = _mm512_maskz_loadu_ps(m, from + j * pixel);
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k)
        if (j >= k && (j - k) % S == 0 && (j - k) / S < R) acc[(j - k) / S] = fma(f[k], x, acc[(j - k) / S]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) _mm512_mask_storeu_ps(to + r * pixel, m, acc[r]);
}
using StretchFn = void (*)(const TapRow*, int64_t, const float*, const float*, int64_t, int64_t, int64_t, int64_t,
                           const float*, bool, float*, __mmask16);
template <int S, int K, int... I>
constexpr std::array<StretchFn, kLengths> stretches(std::integer_sequence<int, I...>) {
  return {stretch<S, K, kLength[I]>...};
}
template <int S, int K> constexpr auto kStretches = stretches<S, K>(std::make_integer_sequence<int, kLengths>());
inline const StretchFn* stretches_of(int64_t stride, int64_t taps) {
  switch (stride <= 2 ? 10 * stride + taps : 0) {
    case 13: return kStretches<1, 3>.data();
    case 15: return kStretches<1, 5>.data();
    case 17: return kStretches<1, 7>.data();
    case 23: return kStretches<2, 3>.data();
    case 25: return kStretches<2, 5>.data();
    default: return nullptr;
  }
}

// Some output rows of a image, as calls of the loops above; the same for all images and channels.
struct RowSteps {
  struct Step {
    int64_t first, last;  // of the rows of taps
    int64_t pixels, to;   // how many, of stretches the number of their length; where the first is written
    int64_t count, tap, filter_step;
    int64_t shift, low, high;        // of stretches: where the first pixel reads, what is there
    const StretchFn* run = nullptr;  // the loops for a stretch
    bool add = false;
  };
  std::vector<TapRow> rows;
  std::vector<Step> steps;
  void clear() { rows.clear(), steps.clear(); }
};

struct Lanes {
  const ConvShape& s;
  RowAxis axes[3];
  int64_t in_size[3], out_size[3];
  int64_t channels = s.in_channels, padded = (channels + W - 1) / W * W;
  std::vector<int64_t> runs;   // of taps for which there are loops; else none
  std::vector<Stretch> parts;  // of a row

  Lanes(const ConvShape& shape, bool input) : s(shape) {
    for (int d = 0; d < 3; ++d) {
      axes[d] = input ? RowAxis::input(s, d) : RowAxis::forward(s, d);
      in_size[d] = input ? s.out[d] : s.in[d], out_size[d] = input ? s.in[d] : s.out[d];
    }
    if (!input || s.stride[2] == 1) runs = cut_taps(s.stride[2], s.dilation[2], s.kernel[2]);
    if (!runs.empty()) parts = cut_row(out_size[2]);
  }

  // One output row, all its phases.
  void add_row(const RowAxis::Phase& pd, int64_t d, const RowAxis::Phase& ph, int64_t h, RowSteps& to) const {
    const RowAxis& a = axes[2];
    const int64_t row =
        ((pd.start + d * axes[0].out_step) * out_size[1] + ph.start + h * axes[1].out_step) * out_size[2];
    int64_t d0, d1, h0, h1;
    axes[0].seen(pd, d, &d0, &d1), axes[1].seen(ph, h, &h0, &h1);
    auto read = [&](int64_t pixel, int64_t kernel) {
      const auto first = static_cast<int64_t>(to.rows.size());
      for (int64_t i = d0; i < d1; ++i)
        for (int64_t j = h0; j < h1; ++j) {
          const RowAxis::Tap &td = axes[0].taps[i], &th = axes[1].taps[j];
          const int64_t id = d * axes[0].in_step + td.offset, ih = h * axes[1].in_step + th.offset;
          to.rows.push_back({((id * in_size[1] + ih) * in_size[2] + pixel) * channels,
                             ((td.kernel * s.kernel[1] + th.kernel) * s.kernel[2] + kernel) * padded});
        }
      return first;
    };
    int64_t tap = 0;
    for (const int64_t run : runs) {
      const int64_t offset = a.taps[tap].offset, first = read(offset, a.taps[tap].kernel);
      for (const Stretch& part : parts) {
        const int64_t q = part.first, low = -(q * a.in_step + offset);
        to.steps.push_back({first, static_cast<int64_t>(to.rows.size()), part.length, (row + q) * channels, 0, 0,
                            (a.taps[1].kernel - a.taps[0].kernel) * padded, q * a.in_step * channels, low,
                            in_size[2] + low, stretches_of(s.stride[2], run), tap > 0});
      }
      tap += run;
    }
    if (tap) return;
    for (const RowAxis::Phase& p : a.phases)
      for (int64_t q = 0; q < p.count;) {
        int64_t first, last, n = 1, f, l;
        a.seen(p, q, &first, &last);
        for (; n < kPlaces && q + n < p.count; ++n) {
          a.seen(p, q + n, &f, &l);
          if (f != first || l != last) break;
        }
        const int64_t count = last - first, at = static_cast<int64_t>(to.rows.size());
        const int64_t kernel = count ? a.taps[first].kernel : 0, offset = count ? a.taps[first].offset : 0;
        const int64_t step = count > 1 ? a.taps[first + 1].offset - offset : 0;
        const int64_t filter_step = count > 1 ? a.taps[first + 1].kernel - kernel : 0;
        if (count) read(q * a.in_step + offset, kernel);
        to.steps.push_back({at, static_cast<int64_t>(to.rows.size()), n, (row + p.start + q * a.out_step) * channels,
                            count, step * channels, filter_step * padded, 0, 0, 0});
        q += n;
      }
  }

  // Those rows, for the channels that the pointers begin with.
  void compute(const RowSteps& all, const float* image, float* to, int vectors, __mmask16 last, const float* filters,
               const float* bias) const {
    for (const RowSteps::Step& t : all.steps) {
      const TapRow* rows = all.rows.data() + t.first;
      if (!t.run) {
        kAllTiles[vectors - 1][t.pixels - 1](rows, t.last - t.first, image, filters, t.count, t.tap, t.filter_step,
                                             axes[2].in_step * channels, bias, to + t.to, axes[2].out_step * channels,
                                             last);
        continue;
      }
      for (int v = 0; v < vectors; ++v)
        t.run[t.pixels](rows, t.last - t.first, image + t.shift + v * W, filters + v * W, t.filter_step, channels,
                        t.low, t.high, bias ? bias + v * W : nullptr, t.add, to + t.to + v * W,
                        v == vectors - 1 ? last : 0xffff);
    }
  }

  // All rows of a image.
  RowSteps whole_image() const {
    RowSteps all;
    for (const RowAxis::Phase& pd : axes[0].phases)
      for (int64_t d = 0; d < pd.count; ++d)
        for (const RowAxis::Phase& ph : axes[1].phases)
          for (int64_t h = 0; h < ph.count; ++h) add_row(pd, d, ph, h, all);
    return all;
  }

  void run(float* y, const float* x, const float* w, const float* bias) const {
    const int64_t taps = s.taps();
    // Filters as (taps, channels).
    Scratch<float> filters(taps * padded);
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t c = 0; c < channels; ++c) filters[t * padded + c] = w[c * taps + t];
      for (int64_t c = channels; c < padded; ++c) filters[t * padded + c] = 0.0f;
    }
    const int64_t height = axes[1].pixels(), deep = axes[0].pixels();
    const double work = static_cast<double>(out_size[2] * axes[1].out_step * axes[0].out_step) *
                        static_cast<double>(channels * (taps + 4));
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(4e5 / (work + 1)));
    parallel_for(0, s.batch * deep * height, grain, [&](int64_t begin, int64_t end) {
      RowSteps rows;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t h = i % height, d = i / height % deep, n = i / height / deep;
        const float* image = x + n * in_size[0] * in_size[1] * in_size[2] * channels;
        float* to = y + n * out_size[0] * out_size[1] * out_size[2] * channels;
        rows.clear();
        for (const RowAxis::Phase& pd : axes[0].phases)
          for (const RowAxis::Phase& ph : axes[1].phases)
            if (d < pd.count && h < ph.count) add_row(pd, d, ph, h, rows);
        for (int64_t c = 0; c < channels; c += kVectors * W) {
          const auto vectors = static_cast<int>(std::min<int64_t>(kVectors, (channels - c + W - 1) / W));
          compute(rows, image + c, to + c, vectors, lanes(channels - c - (vectors - 1) * W), filters.get() + c,
                  bias ? bias + c : nullptr);
        }
      }
    });
  }
};

}  // namespace
}  // namespace rl::avx512::conv
