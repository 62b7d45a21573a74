// Convolutions with one filter for each channel, of pictures with their channels last: channels fill the registers, and
// every tap is a row of them (Note [Rows of channels]).
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "cpu/conv512.h"
#include "cpu/conv512_rows.h"
#include "cpu/scratch.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#pragma GCC optimize("O3")  // loops over registers must be unrolled
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "cpu/conv512_block.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int kVectors = 4;     // registers of channels taken together
constexpr int kTaps = 6;        // of a row of filters whose gradients are summed together
constexpr int64_t kPieces = 8;  // of work that are enough
constexpr int64_t kMostTaps = 4096;

// A row of taps: what the first place reads, and filters, in order; steps between taps are equal.
struct TapRow {
  const float *from, *filter;
};

// R places of V registers. Taps [0, count) of each of `rows`, `tap` numbers apart in what is read.
template <int R, int V> void tile(const TapRow* rows, int64_t row_count, int64_t count, int64_t tap,
                                  int64_t filter_step, int64_t place, const float* bias, float* to, int64_t to_step,
                                  __mmask16 last) {
  Reg acc[R][V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const Reg start = bias ? _mm512_maskz_loadu_ps(v == V - 1 ? last : 0xffff, bias + v * W) : _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r][v] = start;
  }
  for (int64_t i = 0; i < row_count; ++i) {
    const float *from = rows[i].from, *filter = rows[i].filter;
    for (int64_t k = 0; k < count; ++k, from += tap, filter += filter_step)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const Reg f = load(filter + v * W);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const float* x = from + r * place + v * W;
          acc[r][v] = fma(f, v == V - 1 ? _mm512_maskz_loadu_ps(last, x) : load(x), acc[r][v]);
        }
      }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) _mm512_mask_storeu_ps(to + r * to_step + v * W, v == V - 1 ? last : 0xffff, acc[r][v]);
}
using TileFn = void (*)(const TapRow*, int64_t, int64_t, int64_t, int64_t, int64_t, const float*, float*, int64_t,
                        __mmask16);
constexpr int kPlaces = 6;
template <int V>
constexpr TileFn kTiles[kPlaces] = {tile<1, V>, tile<2, V>, tile<3, V>, tile<4, V>, tile<5, V>, tile<6, V>};
constexpr const TileFn* kAllTiles[kVectors] = {kTiles<1>, kTiles<2>, kTiles<3>, kTiles<4>};

struct Lanes {
  const ConvShape& s;
  RowAxis axes[3];
  int64_t in_size[3], out_size[3];
  int64_t channels = s.in_channels, padded = (channels + W - 1) / W * W;

  Lanes(const ConvShape& shape, bool input) : s(shape) {
    for (int d = 0; d < 3; ++d) {
      axes[d] = input ? RowAxis::input(s, d) : RowAxis::forward(s, d);
      in_size[d] = input ? s.out[d] : s.in[d], out_size[d] = input ? s.in[d] : s.out[d];
    }
  }
  // One output row of some channels, all its phases.
  void row(const float* image, float* to, int64_t channel, int vectors, __mmask16 last, const RowAxis::Phase& pd,
           int64_t d, const RowAxis::Phase& ph, int64_t h, const float* filters, const float* bias,
           std::vector<TapRow>& rows) const {
    const RowAxis& a = axes[2];
    int64_t d0, d1, h0, h1;
    axes[0].seen(pd, d, &d0, &d1), axes[1].seen(ph, h, &h0, &h1);
    const float* shift = bias ? bias + channel : nullptr;
    for (const RowAxis::Phase& p : a.phases)
      for (int64_t q = 0; q < p.count;) {
        int64_t first, last_tap, n = 1, f, l;
        a.seen(p, q, &first, &last_tap);
        for (; n < kPlaces && q + n < p.count; ++n) {
          a.seen(p, q + n, &f, &l);
          if (f != first || l != last_tap) break;
        }
        const int64_t count = last_tap - first;
        const int64_t kernel = count ? a.taps[first].kernel : 0, offset = count ? a.taps[first].offset : 0;
        const int64_t step = count > 1 ? a.taps[first + 1].offset - offset : 0;
        const int64_t filter_step = count > 1 ? a.taps[first + 1].kernel - kernel : 0;
        rows.clear();
        for (int64_t i = d0; i < d1 && count; ++i)
          for (int64_t j = h0; j < h1; ++j) {
            const RowAxis::Tap &td = axes[0].taps[i], &th = axes[1].taps[j];
            const int64_t id = d * axes[0].in_step + td.offset, ih = h * axes[1].in_step + th.offset;
            rows.push_back(
                {image + ((id * in_size[1] + ih) * in_size[2] + q * a.in_step + offset) * channels + channel,
                 filters + ((td.kernel * s.kernel[1] + th.kernel) * s.kernel[2] + kernel) * padded + channel});
          }
        kAllTiles[vectors - 1][n - 1](rows.data(), static_cast<int64_t>(rows.size()), count, step * channels,
                                      filter_step * padded, a.in_step * channels, shift,
                                      to + (p.start + q * a.out_step) * channels + channel, a.out_step * channels,
                                      last);
        q += n;
      }
  }

  void run(float* y, const float* x, const float* w, const float* bias) const {
    const int64_t taps = s.taps();
    // Filters as (taps, channels).
    Scratch<float> filters(taps * padded);
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t c = 0; c < channels; ++c) filters[t * padded + c] = w[c * taps + t];
      for (int64_t c = channels; c < padded; ++c) filters[t * padded + c] = 0.0f;
    }
    const int64_t height = axes[1].places(), deep = axes[0].places();
    const double work = static_cast<double>(out_size[2] * axes[1].out_step * axes[0].out_step) *
                        static_cast<double>(channels * (taps + 4));
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(4e5 / (work + 1)));
    parallel_for(0, s.batch * deep * height, grain, [&](int64_t begin, int64_t end) {
      std::vector<TapRow> rows;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t h = i % height, d = i / height % deep, n = i / height / deep;
        const float* image = x + n * in_size[0] * in_size[1] * in_size[2] * channels;
        for (const RowAxis::Phase& pd : axes[0].phases)
          for (const RowAxis::Phase& ph : axes[1].phases) {
            if (d >= pd.count || h >= ph.count) continue;
            const int64_t od = pd.start + d * axes[0].out_step, oh = ph.start + h * axes[1].out_step;
            float* to = y + ((n * out_size[0] + od) * out_size[1] + oh) * out_size[2] * channels;
            for (int64_t c = 0; c < channels; c += kVectors * W) {
              const auto vectors = static_cast<int>(std::min<int64_t>(kVectors, (channels - c + W - 1) / W));
              row(image, to, c, vectors, lanes(channels - c - (vectors - 1) * W), pd, d, ph, h, filters.get(), bias,
                  rows);
            }
          }
      }
    });
  }
};

// sums (T, W) += dy * what each of T taps sees, over `count` places
template <int T> void add_row(int64_t count, const float* dy, int64_t dy_step, const float* x, int64_t x_step,
                              int64_t tap, __mmask16 m, float* sums) {
  Reg acc[T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) acc[t] = load(sums + t * W);
  for (int64_t i = 0; i < count; ++i, dy += dy_step, x += x_step) {
    const Reg g = _mm512_maskz_loadu_ps(m, dy);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[t] = fma(g, _mm512_maskz_loadu_ps(m, x + t * tap), acc[t]);
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) store(sums + t * W, acc[t]);
}
using AddFn = void (*)(int64_t, const float*, int64_t, const float*, int64_t, int64_t, __mmask16, float*);
constexpr AddFn kAdd[kTaps] = {add_row<1>, add_row<2>, add_row<3>, add_row<4>, add_row<5>, add_row<6>};

}  // namespace

bool lanes_serve(const ConvShape& s) {
  return available() && s.groups > 1 && s.in_channels == s.groups && s.out_channels == s.groups &&
         s.taps() <= kMostTaps && s.batch > 0 && s.in_plane() > 0 && s.out_plane() > 0 && s.groups >= 12 &&
         s.groups * s.taps() <= (int64_t{1} << 30);
}
void lanes_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  Lanes(s, false).run(y, x, w, bias);
}
void lanes_input(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  Lanes(s, true).run(dx, dy, w, bias);
}

// Sums of each tap along rows of places, sixteen channels at a time; runs of images have sums of their own.
void lanes_weight(const ConvShape& s, float* dw, const float* dy, const float* x) {
  const int64_t channels = s.groups, blocks = (channels + W - 1) / W, taps = s.taps();
  const int64_t runs = std::clamp<int64_t>((kPieces + blocks - 1) / blocks, 1, s.batch);
  Scratch<float> sums(runs * blocks * taps * W);
  const double work =
      static_cast<double>(s.batch * s.out_plane()) * static_cast<double>(taps * W) / static_cast<double>(runs);
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(3e5 / (work + 1)));
  parallel_for(0, runs * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % blocks * W, run = i / blocks;
      const __mmask16 m = lanes(channels - c);
      float* sum = sums.get() + i * taps * W;
      std::fill(sum, sum + taps * W, 0.0f);
      for (int64_t n = s.batch * run / runs; n < s.batch * (run + 1) / runs; ++n)
        for (int64_t od = 0; od < s.out[0]; ++od)
          for (int64_t oh = 0; oh < s.out[1]; ++oh) {
            const float* side = dy + ((n * s.out[0] + od) * s.out[1] + oh) * s.out[2] * channels + c;
            for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
              for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
                const int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0],
                              ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
                if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) continue;
                const float* row = x + ((n * s.in[0] + id) * s.in[1] + ih) * s.in[2] * channels + c;
                float* at = sum + (kd * s.kernel[1] + kh) * s.kernel[2] * W;
                const int64_t stride = s.stride[2];
                // Places that see tap k: [low, high).
                auto low = [&](int64_t k) {
                  const int64_t shift = s.padding[2] - k * s.dilation[2];
                  return shift <= 0 ? 0 : std::min(s.out[2], (shift + stride - 1) / stride);
                };
                auto high = [&](int64_t k) {
                  const int64_t room = s.in[2] - 1 + s.padding[2] - k * s.dilation[2];
                  return room < 0 ? 0 : std::min(s.out[2], room / stride + 1);
                };
                for (int64_t k = 0; k < s.kernel[2]; k += kTaps) {
                  const int64_t count = std::min<int64_t>(kTaps, s.kernel[2] - k), step = s.dilation[2] * channels;
                  // All taps of the row at once where all are seen, the rest one by one.
                  const int64_t a = low(k), b = std::max(a, high(k + count - 1));
                  auto from = [&](int64_t tap, int64_t q) {
                    return row + (q * stride - s.padding[2] + tap * s.dilation[2]) * channels;
                  };
                  if (a < b)
                    kAdd[count - 1](b - a, side + a * channels, channels, from(k, a), stride * channels, step, m,
                                    at + k * W);
                  for (int64_t t = k; t < k + count; ++t) {
                    const int64_t a0 = low(t), b0 = std::max(a0, high(t));
                    const int64_t left = std::min(a, b0), right = a < b ? std::max(b, a0) : std::max(a, a0);
                    if (a0 < left)
                      kAdd[0](left - a0, side + a0 * channels, channels, from(t, a0), stride * channels, 0, m,
                              at + t * W);
                    if (right < b0)
                      kAdd[0](b0 - right, side + right * channels, channels, from(t, right), stride * channels, 0, m,
                              at + t * W);
                  }
                }
              }
          }
    }
  });
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t l = 0; l < std::min<int64_t>(W, channels - block * W); ++l) {
        float total = 0;
        for (int64_t run = 0; run < runs; ++run) total += sums[((run * blocks + block) * taps + t) * W + l];
        dw[(block * W + l) * taps + t] = total;
      }
}

}  // namespace rl::cpu::conv512
#pragma GCC pop_options
#else
namespace rl::cpu::conv512 {
bool lanes_serve(const ConvShape&) { return false; }
void lanes_forward(const ConvShape&, float*, const float*, const float*, const float*) {}
void lanes_input(const ConvShape&, float*, const float*, const float*, const float*) {}
void lanes_weight(const ConvShape&, float*, const float*, const float*) {}
}  // namespace rl::cpu::conv512
#endif
