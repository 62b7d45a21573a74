// The gradient by one filter for each channel, with channels in the lanes of registers: of images with their channels
// last, and of small ones, which are transposed so.
#include <algorithm>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/microkernel.h"
#include "cpu/conv/nchw_to_nhwc.h"
#include "cpu/conv/row_segments.h"
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::avx512::conv {
namespace {

constexpr int kTaps = 6;        // of a row of filters whose gradients are summed together
constexpr int64_t kPieces = 8;  // of work that are enough

// sums (T, W) += dy * what each of T taps sees, over `count` pixels
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

// sums (K, W) += dy * what each of K taps sees, over R neighbouring pixels at stride S: what is read serves all taps
// that see it. What the first pixel reads with its first tap is number 0; those in [low, high) are there.
template <int S, int K, int R>
void add_stretch(const float* dy, const float* x, int64_t pixel, int64_t low, int64_t high, __mmask16 m, float* sums) {
  constexpr int P = K == 3 ? 2 : 1;  // sums side by side: three would wait for themselves
  Reg g[R], acc[P][K];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) g[r] = _mm512_maskz_loadu_ps(m, dy + r * pixel);
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
    acc[0][k] = load(sums + k * W);
    if (P > 1) acc[P - 1][k] = _mm512_setzero_ps();
  }
#pragma GCC unroll 64
  for (int j = 0; j < S * (R - 1) + K; ++j) {
    if (j < low || j >= high) continue;
    const Reg v = _mm512_maskz_loadu_ps(m, x + j * pixel);
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
      if (j >= k && (j - k) % S == 0 && (j - k) / S < R) acc[j % P][k] = fma(g[(j - k) / S], v, acc[j % P][k]);
  }
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) store(sums + k * W, P > 1 ? acc[0][k] + acc[P - 1][k] : acc[0][k]);
}
using StretchFn = void (*)(const float*, const float*, int64_t, int64_t, int64_t, __mmask16, float*);
template <int S, int K, int... I>
constexpr std::array<StretchFn, kLengths> stretches(std::integer_sequence<int, I...>) {
  return {add_stretch<S, K, kLength[I]>...};
}
template <int S, int K> constexpr auto kStretches = stretches<S, K>(std::make_integer_sequence<int, kLengths>());
const StretchFn* stretches_of(int64_t stride, int64_t taps) {
  switch (10 * stride + taps) {
    case 13: return kStretches<1, 3>.data();
    case 15: return kStretches<1, 5>.data();
    case 17: return kStretches<1, 7>.data();
    case 23: return kStretches<2, 3>.data();
    default: return kStretches<2, 5>.data();
  }
}
// How a row of pixels and one of taps are cut.
struct Cuts {
  std::vector<int64_t> runs;
  std::vector<Stretch> parts;
  explicit Cuts(const ConvShape& s)
      : runs(cut_taps(s.stride[2], s.dilation[2], s.kernel[2])), parts(cut_row(s.out[2])) {}
};

// One image of a register of channels, `pixel` elements from pixel to pixel: sums (taps, W).
void add_image(const ConvShape& s, const Cuts& cuts, const float* dy, const float* x, int64_t pixel, __mmask16 m,
               float* sums) {
  for (int64_t od = 0; od < s.out[0]; ++od)
    for (int64_t oh = 0; oh < s.out[1]; ++oh)
      for (const Stretch& part : cuts.parts) {
        const int64_t first = part.first * s.stride[2] - s.padding[2];
        const float* side = dy + ((od * s.out[1] + oh) * s.out[2] + part.first) * pixel;
        for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
          for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
            const int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0],
                          ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) continue;
            const float* row = x + ((id * s.in[1] + ih) * s.in[2] + first) * pixel;
            float* to = sums + (kd * s.kernel[1] + kh) * s.kernel[2] * W;
            int64_t tap = 0;
            for (const int64_t run : cuts.runs) {
              stretches_of(s.stride[2], run)[part.length](side, row + tap * pixel, pixel, -first - tap,
                                                          s.in[2] - first - tap, m, to + tap * W);
              tap += run;
            }
          }
      }
}

// The sums of taps in all images, sixteen channels at a time; runs of images have sums of their own. add(image, first
// channel, lanes, sums) adds those of one image.
template <class F> void sum_images(const ConvShape& s, float* dw, const F& add) {
  const int64_t channels = s.groups, blocks = (channels + W - 1) / W, taps = s.taps();
  const int64_t runs = std::clamp<int64_t>((kPieces + blocks - 1) / blocks, 1, s.batch);
  Scratch<float> sums(runs * blocks * taps * W);
  const double work =
      static_cast<double>(s.batch * s.out_plane()) * static_cast<double>(taps * W) / static_cast<double>(runs);
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(3e5 / (work + 1)));
  parallel_for(0, runs * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % blocks * W, run = i / blocks;
      float* sum = sums.get() + i * taps * W;
      std::fill(sum, sum + taps * W, 0.0f);
      for (int64_t n = s.batch * run / runs; n < s.batch * (run + 1) / runs; ++n) add(n, c, lanes(channels - c), sum);
    }
  });
  for (int64_t block = 0; block < blocks; ++block) {
    float* total = sums.get() + block * taps * W;
    for (int64_t run = 1; run < runs; ++run)
      for (int64_t i = 0; i < taps * W; i += W)
        store(total + i, load(total + i) + load(total + run * blocks * taps * W + i));
    from_lanes(total, std::min<int64_t>(W, channels - block * W), taps, dw + block * W * taps);
  }
}

// The same as add_image for taps of any number and distance, along rows of pixels.
void add_rows(const ConvShape& s, const float* dy, const float* x, int64_t channels, __mmask16 m, float* sums) {
  for (int64_t od = 0; od < s.out[0]; ++od)
    for (int64_t oh = 0; oh < s.out[1]; ++oh) {
      const float* side = dy + (od * s.out[1] + oh) * s.out[2] * channels;
      for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
        for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
          const int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0],
                        ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
          if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) continue;
          const float* row = x + (id * s.in[1] + ih) * s.in[2] * channels;
          float* at = sums + (kd * s.kernel[1] + kh) * s.kernel[2] * W;
          const int64_t stride = s.stride[2];
          // Pixels that see tap k: [low, high).
          auto low = [&](int64_t k) {
            const int64_t shift = s.padding[2] - k * s.dilation[2];
            return shift <= 0 ? 0 : std::min(s.out[2], (shift + stride - 1) / stride);
          };
          auto high = [&](int64_t k) {
            const int64_t left_over = s.in[2] - 1 + s.padding[2] - k * s.dilation[2];
            return left_over < 0 ? 0 : std::min(s.out[2], left_over / stride + 1);
          };
          for (int64_t k = 0; k < s.kernel[2]; k += kTaps) {
            const int64_t count = std::min<int64_t>(kTaps, s.kernel[2] - k), step = s.dilation[2] * channels;
            // All taps of the row at once where all are seen, the rest one by one.
            const int64_t a = low(k), b = std::max(a, high(k + count - 1));
            auto from = [&](int64_t tap, int64_t q) {
              return row + (q * stride - s.padding[2] + tap * s.dilation[2]) * channels;
            };
            if (a < b)
              kAdd[count - 1](b - a, side + a * channels, channels, from(k, a), stride * channels, step, m, at + k * W);
            for (int64_t t = k; t < k + count; ++t) {
              const int64_t a0 = low(t), b0 = std::max(a0, high(t));
              const int64_t left = std::min(a, b0), right = a < b ? std::max(b, a0) : std::max(a, a0);
              if (a0 < left)
                kAdd[0](left - a0, side + a0 * channels, channels, from(t, a0), stride * channels, 0, m, at + t * W);
              if (right < b0)
                kAdd[0](b0 - right, side + right * channels, channels, from(t, right), stride * channels, 0, m,
                        at + t * W);
            }
          }
        }
    }
}

}  // namespace

void depthwise_nhwc_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x) {
  const Cuts cuts(s);
  sum_images(s, dw, [&](int64_t n, int64_t c, __mmask16 m, float* sums) {
    const float *side = dy + n * s.out_plane() * s.groups + c, *image = x + n * s.in_plane() * s.groups + c;
    if (!cuts.runs.empty()) add_image(s, cuts, side, image, s.groups, m, sums);
    else add_rows(s, side, image, s.groups, m, sums);
  });
}

void depthwise_reorder_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x) {
  const Cuts cuts(s);
  sum_images(s, dw, [&](int64_t n, int64_t c, __mmask16 m, float* sums) {
    const int64_t in = s.in_plane(), out = s.out_plane(), some = std::min<int64_t>(W, s.groups - c);
    Scratch<float> image(in * W), side(out * W);
    to_lanes(x + (n * s.groups + c) * in, some, in, image.get());
    to_lanes(dy + (n * s.groups + c) * out, some, out, side.get());
    if (!cuts.runs.empty()) add_image(s, cuts, side.get(), image.get(), W, m, sums);
    else add_rows(s, side.get(), image.get(), W, m, sums);
  });
}

}  // namespace rl::avx512::conv
#else
namespace rl::avx512::conv {
void depthwise_nhwc_wgrad(const ConvShape&, float*, const float*, const float*) {}
void depthwise_reorder_wgrad(const ConvShape&, float*, const float*, const float*) {}
}  // namespace rl::avx512::conv
#endif
