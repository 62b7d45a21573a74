// Convolutions whose groups have a few channels each, as many filters as channels, sixteen channels at a time in the
// lanes of registers.
//
// Note [Groups in lanes]
// Lane l of a result meets the channels of its group alone. So what a pixel reads is put into order g times, g being
// the channels of a group: the i-th time lane l holds the i-th channel of its group, and the filters lie accordingly.
// Then each time is one filter for each channel. Planes are transposed on the way in and out.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/nhwc_gemm.h"
#include "cpu/conv/row_segments.h"
#include "cpu/conv/tuning.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/nchw_to_nhwc.h"
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::avx512::conv {
namespace {

constexpr int64_t kPieces = 8;  // of work that are enough

// Where a row of taps reads, and where its filters begin.
struct TapRow {
  int64_t from, filter;
};
// How lanes are put into order, for each of `count` times, and how far the filters of one lie from those of the next.
struct Orders {
  alignas(64) int32_t lane[W][W];
  int64_t count, filters;
  Orders(int64_t g, int64_t taps) : count(g), filters(taps * W) {
    for (int i = 0; i < g; ++i)
      for (int l = 0; l < W; ++l) lane[i][l] = static_cast<int32_t>(l / g * g + i);
  }
  __m512i at(int64_t i) const { return _mm512_load_si512(lane[i]); }
};

// R pixels at stride S, K taps of each row side by side. What the first pixel reads with its first tap is number 0;
// those in [low, high) are there.
template <int S, int K, int R> void stretch(const TapRow* rows, int64_t row_count, const float* image,
                                            const float* filters, int64_t filter_step, int64_t low, int64_t high,
                                            const Orders& orders, const float* bias, float* to, int64_t to_step) {
  Reg acc[R];
  const Reg start = bias ? load(bias) : _mm512_setzero_ps();
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) acc[r] = start;
  for (int64_t row = 0; row < row_count; ++row) {
    const float *from = image + rows[row].from, *filter = filters + rows[row].filter;
    for (int64_t i = 0; i < orders.count; ++i, filter += orders.filters) {
      const __m512i order = orders.at(i);
      Reg f[K];
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k) f[k] = load(filter + k * filter_step);
#pragma GCC unroll 64
      for (int j = 0; j < S * (R - 1) + K; ++j) {
        if (j < low || j >= high) continue;
        const Reg x = _mm512_permutexvar_ps(order, load(from + j * W));
#pragma GCC unroll 8
        for (int k = 0; k < K; ++k)
          if (j >= k && (j - k) % S == 0 && (j - k) / S < R) acc[(j - k) / S] = fma(f[k], x, acc[(j - k) / S]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) store(to + r * to_step, acc[r]);
}
using StretchFn = void (*)(const TapRow*, int64_t, const float*, const float*, int64_t, int64_t, int64_t, const Orders&,
                           const float*, float*, int64_t);

// sums (g, taps, W) += dy * what the K taps of a row see, over R pixels.
template <int S, int K, int R>
void add_stretch(const float* dy, const float* x, int64_t low, int64_t high, const Orders& orders, float* sums) {
  constexpr int P = 2;  // sums side by side: three would wait for themselves
  Reg g[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) g[r] = load(dy + r * W);
  for (int64_t i = 0; i < orders.count; ++i, sums += orders.filters) {
    const __m512i order = orders.at(i);
    Reg acc[P][K];
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) acc[0][k] = load(sums + k * W), acc[1][k] = _mm512_setzero_ps();
#pragma GCC unroll 64
    for (int j = 0; j < S * (R - 1) + K; ++j) {
      if (j < low || j >= high) continue;
      const Reg v = _mm512_permutexvar_ps(order, load(x + j * W));
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k)
        if (j >= k && (j - k) % S == 0 && (j - k) / S < R) acc[j % P][k] = fma(g[(j - k) / S], v, acc[j % P][k]);
    }
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) store(sums + k * W, acc[0][k] + acc[1][k]);
  }
}
using AddFn = void (*)(const float*, const float*, int64_t, int64_t, const Orders&, float*);

template <int S, int K, int... I>
constexpr std::array<StretchFn, kLengths> stretches(std::integer_sequence<int, I...>) {
  return {stretch<S, K, kLength[I]>...};
}
template <int S, int K, int... I> constexpr std::array<AddFn, kLengths> adders(std::integer_sequence<int, I...>) {
  return {add_stretch<S, K, kLength[I]>...};
}
using Lengths = std::make_integer_sequence<int, kLengths>;
template <int S, int K> constexpr auto kStretches = stretches<S, K>(Lengths());
const StretchFn* stretches_of(int64_t stride, int64_t taps) {
  if (stride == 2) return kStretches<2, 3>.data();
  return (taps == 3 ? kStretches<1, 3> : taps == 2 ? kStretches<1, 2> : kStretches<1, 1>).data();
}
template <int S, int K> constexpr auto kAdders = adders<S, K>(Lengths());

// One of the calls that make a image; the same for all images and channels.
struct Step {
  const StretchFn* run;
  int64_t first, last;  // of the rows of taps
  int length;           // its number among the lengths
  int64_t to, filter_step, shift, low, high;
};
struct Steps {
  std::vector<TapRow> rows;
  std::vector<Step> all;
  int64_t to_step = W;

  Steps(const ConvShape& s, bool input) {
    RowAxis axes[3];
    for (int d = 0; d < 3; ++d) axes[d] = input ? RowAxis::input(s, d) : RowAxis::forward(s, d);
    const int64_t *in = input ? s.out : s.in, *out = input ? s.in : s.out;
    const RowAxis& a = axes[2];
    to_step = a.out_step * W;
    for (const RowAxis::Phase& ph : axes[1].phases)
      for (int64_t h = 0; h < ph.count; ++h)
        for (const RowAxis::Phase& p : a.phases) {
          const int64_t count = p.last - p.first, kernel = count ? a.taps[p.first].kernel : 0;
          const int64_t offset = count ? a.taps[p.first].offset : 0, first = static_cast<int64_t>(rows.size());
          int64_t h0, h1;
          axes[1].seen(ph, h, &h0, &h1);
          for (int64_t j = h0; j < h1 && count; ++j)
            rows.push_back({((h * axes[1].in_step + axes[1].taps[j].offset) * in[2] + offset) * W,
                            (axes[1].taps[j].kernel * s.kernel[2] + kernel) * W});
          const StretchFn* run = stretches_of(a.in_step, count);
          const int64_t row = (ph.start + h * axes[1].out_step) * out[2] + p.start;
          for (const Stretch& part : cut_row(p.count)) {
            const int64_t q = part.first, low = -(q * a.in_step + offset);
            all.push_back({run, first, static_cast<int64_t>(rows.size()), part.length, (row + q * a.out_step) * W,
                           count > 1 ? (a.taps[p.first + 1].kernel - kernel) * W : int64_t{0}, q * a.in_step * W, low,
                           in[2] + low});
          }
        }
  }
};

// Filters of sixteen channels from c on as (g, taps, W); for the gradient by the input lanes are the channels that the
// filters see, and their elements in the group what is put into order.
void pack(const ConvShape& s, const float* w, int64_t g, int64_t c, bool input, float* to) {
  const int64_t taps = s.taps();
  if (!input) return to_lanes(w + c * g * taps, W, g * taps, to);
  for (int64_t i = 0; i < g; ++i, to += taps * W) {
    Reg r[W];
    for (int64_t l = 0; l < W; ++l)
      r[l] = _mm512_maskz_loadu_ps(lanes(taps), w + (((c + l) / g * g + i) * g + (c + l) % g) * taps);
    transpose(r);
    for (int64_t t = 0; t < taps; ++t) store(to + t * W, r[t]);
  }
}

}  // namespace

bool grouped_applicable(const ConvShape& s) {
  const int64_t g = s.groups ? s.in_channels / s.groups : 0;
  if (!available() || s.in_channels != s.out_channels || (g != 2 && g != 4 && g != 8 && g != 16) ||
      s.in_channels % W != 0 || s.batch == 0 || s.in_plane() == 0 || s.out_plane() == 0)
    return false;
  if (s.in[0] != 1 || s.kernel[0] != 1 || s.padding[0] != 0) return false;
  for (int d = 1; d < 3; ++d)
    if (s.kernel[d] != 3 || s.dilation[d] != 1 || s.stride[d] > 2) return false;
  return true;
}

static void grouped(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool input) {
  const int64_t channels = s.in_channels, g = channels / s.groups, blocks = channels / W, taps = s.taps();
  const int64_t in = input ? s.out_plane() : s.in_plane(), out = input ? s.in_plane() : s.out_plane();
  const Steps steps(s, input);
  const Orders orders(g, taps);
  Scratch<float> filters(blocks * g * taps * W);
  parallel_for(0, blocks, std::max<int64_t>(1, 16384 / (g * taps * W)), [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) pack(s, w, g, b * W, input, filters.get() + b * g * taps * W);
  });
  const double work = static_cast<double>(s.out_plane() * W) * static_cast<double>(taps * g);
  parallel_for(0, s.batch * blocks, std::max<int64_t>(1, static_cast<int64_t>(4e5 / work)),
               [&](int64_t begin, int64_t end) {
                 Scratch<float> image(in * W), results(out * W);
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t n = i / blocks, c = i % blocks * W;
                   to_lanes(x + (n * channels + c) * in, W, in, image.get());
                   for (const Step& t : steps.all)
                     t.run[t.length](steps.rows.data() + t.first, t.last - t.first, image.get() + t.shift,
                                     filters.get() + c * g * taps, t.filter_step, t.low, t.high, orders,
                                     bias ? bias + c : nullptr, results.get() + t.to, steps.to_step);
                   from_lanes(results.get(), W, out, y + (n * channels + c) * out);
                 }
               });
}

void grouped_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  grouped(s, y, x, w, bias, false);
}
void grouped_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  grouped(s, dx, dy, w, bias, true);
}

void grouped_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x) {
  const int64_t channels = s.in_channels, g = channels / s.groups, blocks = channels / W, taps = s.taps();
  const int64_t in = s.in_plane(), out = s.out_plane(), size = g * taps * W;
  const Orders orders(g, taps);
  const AddFn* run = s.stride[2] == 2 ? kAdders<2, 3>.data() : kAdders<1, 3>.data();
  const std::vector<Stretch> parts = cut_row(s.out[2]);
  const int64_t runs = std::clamp<int64_t>((kPieces + blocks - 1) / blocks, 1, s.batch);  // of images
  Scratch<float> sums(runs * blocks * size);
  parallel_for(0, runs * blocks, 1, [&](int64_t begin, int64_t end) {
    Scratch<float> image(in * W), side(out * W);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % blocks * W, some = i / blocks;
      float* sum = sums.get() + i * size;
      std::fill(sum, sum + size, 0.0f);
      for (int64_t n = s.batch * some / runs; n < s.batch * (some + 1) / runs; ++n) {
        to_lanes(x + (n * channels + c) * in, W, in, image.get());
        to_lanes(dy + (n * channels + c) * out, W, out, side.get());
        for (int64_t oh = 0; oh < s.out[1]; ++oh)
          for (const Stretch& part : parts) {
            const int64_t q = part.first, first = q * s.stride[2] - s.padding[2];
            for (int64_t kh = 0; kh < 3; ++kh) {
              const int64_t ih = oh * s.stride[1] - s.padding[1] + kh;
              if (ih < 0 || ih >= s.in[1]) continue;
              run[part.length](side.get() + (oh * s.out[2] + q) * W, image.get() + (ih * s.in[2] + first) * W, -first,
                               s.in[2] - first, orders, sum + kh * 3 * W);
            }
          }
      }
    }
  });
  for (int64_t b = 0; b < blocks; ++b) {
    float* total = sums.get() + b * size;
    for (int64_t part = 1; part < runs; ++part)
      for (int64_t i = 0; i < size; i += W) store(total + i, load(total + i) + load(total + part * blocks * size + i));
    from_lanes(total, W, g * taps, dw + b * W * g * taps);
  }
}

}  // namespace rl::avx512::conv
#else
namespace rl::avx512::conv {
bool grouped_applicable(const ConvShape&) { return false; }
void grouped_forward(const ConvShape&, float*, const float*, const float*, const float*) {}
void grouped_dgrad(const ConvShape&, float*, const float*, const float*, const float*) {}
void grouped_wgrad(const ConvShape&, float*, const float*, const float*) {}
}  // namespace rl::avx512::conv
#endif
