// Convolutions of bfloat16 where the processor multiplies pairs of them (gemm/half_avx512.cpp): twice the speed of
// floats, and no copies in float.
#include "cpu/conv/bf16_layout.h"
#include "cpu/features.h"
#include "cpu/gemm/half_avx512.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kLeastChannels = 16;     // below, windows are copied in pieces that are too short
constexpr int64_t kMostWindows = 1 << 20;  // elements, where windows of many tiles are laid out

struct Side {
  const bfloat16* data;
  int64_t rs, cs;
};
// c (m, n) = a @ b + d, with rows of c `crs` apart
void multiply(int64_t m, int64_t n, int64_t k, Side a, Side b, bfloat16* c, int64_t crs, const bfloat16* d = nullptr,
              int64_t drs = 0, int64_t dcs = 0) {
  rl::cpu::half_gemm(rl::cpu::HalfGemm<bfloat16>{m, n, k, a.data, a.rs, a.cs, b.data, b.rs, b.cs, c, crs, 1, 1.0f,
                                                 d ? 1.0f : 0.0f, d, drs, dcs});
}

// Few channels, in planes: what the taps see of some pixels are columns that follow the planes.
bool in_columns(const ConvShape& s) {
  return !s.channels_last && s.in_channels < kLeastChannels && s.in_channels * s.taps() >= 8 && s.out_channels >= 16 &&
         s.out_plane() >= 64 && s.stride[2] <= 2;
}
// Rows of planes with their even elements first, then the odd ones: what windows two apart see are runs of them.
void part_rows(const bfloat16* from, int64_t rows, int64_t width, bfloat16* to) {
  const int64_t even = (width + 1) / 2;
  for (int64_t r = 0; r < rows; ++r, from += width, to += width) {
    for (int64_t i = 0; i < even; ++i) to[i].bits = from[2 * i].bits;
    for (int64_t i = 0; i < width / 2; ++i) to[even + i].bits = from[2 * i + 1].bits;
  }
}
// columns (channels * taps, pixels): what each tap sees of the rows [r0, r1) of one result. Up to 31 elements more are
// written.
RL_AVX512 void to_columns_of(const ConvShape& s, const bfloat16* x, int64_t r0, int64_t r1, int64_t step,
                             bfloat16* columns) {
  const int64_t width = s.out[2], even = (s.in[2] + 1) / 2;
  for (int64_t c = 0; c < s.in_channels; ++c, x += s.in_plane())
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < s.kernel[2]; ++kw, columns += step) {
          const int64_t shift = kw * s.dilation[2] - s.padding[2];
          const int64_t from = s.stride[2] == 1 ? shift : (shift & 1 ? even + (shift - 1) / 2 : shift / 2);
          int64_t a, b;
          inside(s, kw, 0, width, &a, &b);
          bfloat16* to = columns;
          for (int64_t r = r0; r < r1; ++r, to += width) {
            const int64_t id = r / s.out[1] * s.stride[0] - s.padding[0] + kd * s.dilation[0];
            const int64_t ih = r % s.out[1] * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            const bool seen = id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1];
            for (int64_t i = 0; i < (seen ? a : width); ++i) to[i].bits = 0;
            if (!seen) continue;
            copy_loosely(to + a, x + (id * s.in[1] + ih) * s.in[2] + from + a, b - a);
            for (int64_t i = b; i < width; ++i) to[i].bits = 0;
          }
        }
}
void columns_forward(const ConvShape& s, bfloat16* y, const bfloat16* x, const bfloat16* w, const bfloat16* bias) {
  constexpr int64_t kPlaces = 512, kLoose = 32;  // of a tile, in whole rows
  const int64_t k = s.taps() * s.in_channels, o = s.out_channels, width = s.out[2], plane = s.out_plane();
  const int64_t rows = s.out[0] * s.out[1], high = std::max<int64_t>(1, kPlaces / width), step = high * width,
                tiles = (rows + high - 1) / high;
  Scratch<bfloat16> parted;
  if (s.stride[2] == 2) {
    const int64_t lines = s.batch * s.in_channels * s.in[0] * s.in[1];
    parted.reset(checked_mul(lines, s.in[2]));
    parallel_for(0, lines, std::max<int64_t>(1, 32768 / s.in[2]), [&](int64_t first, int64_t last) {
      part_rows(x + first * s.in[2], last - first, s.in[2], parted.get() + first * s.in[2]);
    });
    x = parted.get();
  }
  parallel_for(0, s.batch * tiles, 1, [&](int64_t first, int64_t last) {
    Scratch<bfloat16> columns(checked_mul(k, step) + kLoose);
    for (int64_t t = first; t < last; ++t) {
      const int64_t n = t / tiles, r0 = t % tiles * high, r1 = std::min(rows, r0 + high);
      to_columns_of(s, x + n * s.in_channels * s.in_plane(), r0, r1, step, columns.get());
      multiply(o, (r1 - r0) * width, k, {w, k, 1}, {columns.get(), step, 1}, y + n * o * plane + r0 * width, plane,
               bias, 1, 0);
    }
  });
}

// Rows of the filters' channels for all pixels of images x, whose channels are last, by filters w (O, taps, C): to y,
// or, some at a time, to give(first pixel, last, rows) where y is null.
template <class F>
void rows_of(const ConvShape& s, const bfloat16* x, const bfloat16* w, const bfloat16* bias, bfloat16* y, F&& give) {
  const int64_t k = s.taps() * s.in_channels, o = s.out_channels, pixels = s.batch * s.out_plane();
  const int64_t step = k + k % 2;  // windows are read as pairs
  Scratch<float> panels(rl::bf16::half_panels(o, k));
  rl::bf16::pack_half_panels(o, k, w, 1, k, panels.get());
  parallel_for(0, (pixels + kTilePlaces - 1) / kTilePlaces, 1, [&](int64_t first, int64_t last) {
    Scratch<bfloat16> windows(checked_mul(step, kTilePlaces)), rows(y ? 0 : o * kTilePlaces);
    for (int64_t t = first; t < last; ++t) {
      const int64_t p0 = t * kTilePlaces, p1 = std::min(pixels, p0 + kTilePlaces);
      to_windows(s, x, p0, p1, step, windows.get());
      rl::cpu::HalfGemm<bfloat16> g = {p1 - p0, o, step, windows.get(),      step, 1, w, 1,           k, nullptr,
                                       o,       1, 1.0f, bias ? 1.0f : 0.0f, bias, 0, 1, panels.get()};
      g.c = y ? y + p0 * o : rows.get();
      rl::cpu::half_gemm(g);
      if (!y) give(p0, p1, rows.get());
    }
  });
}
// y = x * w + bias. Images whose channels are first are transposed, and the result back.
void forward_of(const ConvShape& s, bfloat16* y, const bfloat16* x, const bfloat16* w, const bfloat16* bias) {
  Scratch<bfloat16> nhwc_x;
  x = with_last(x, s.channels_last, s.batch, s.in_channels, s.in_plane(), nhwc_x);
  rows_of(s, x, w, bias, s.channels_last ? y : nullptr, [&](int64_t p0, int64_t p1, const bfloat16* rows) {
    to_planes(rows, p0, p1, s.out_plane(), s.out_channels, y);
  });
}

// The filters that a convolution of dy by r sees dx with, (C, taps of r, O): tap u of r is tap first + stride (T - 1 -
// u) of w along each dimension.
void flip_filters(const ConvShape& s, const ConvShape& r, const int64_t* first, const bfloat16* w, bfloat16* to) {
  const int64_t c = s.in_channels, o = s.out_channels, taps = s.taps();
  const int64_t step = s.filters_last ? c : 1, skip = s.filters_last ? 1 : taps;  // of taps and channels in w
  parallel_for(0, c, std::max<int64_t>(1, 16384 / (taps * o)), [&](int64_t c0, int64_t c1) {
    for (int64_t i = c0; i < c1; ++i)
      for (int64_t t = 0; t < r.taps(); ++t) {
        const int64_t u[] = {t / (r.kernel[1] * r.kernel[2]), t / r.kernel[2] % r.kernel[1], t % r.kernel[2]};
        int64_t tap = 0;
        for (int d = 0; d < 3; ++d) tap = tap * s.kernel[d] + first[d] + s.stride[d] * (r.kernel[d] - 1 - u[d]);
        for (int64_t j = 0; j < o; ++j) to[(i * r.taps() + t) * o + j] = w[j * c * taps + i * skip + tap * step];
      }
  });
}

// Note [Phases of a stride]
// Windows that are `stride` apart see dx in as many phases: pixel a + stride q is seen by the taps k for which a +
// padding - k divides by the stride, from the pixels q + (a + padding - k) / stride. So each phase is a convolution of
// dy with stride 1 by its own part of the filters, and every sum is whole before it is rounded.
constexpr int64_t kMostPhases = 16;
void input_by_phases(const ConvShape& s, bfloat16* dx, const bfloat16* dy, const bfloat16* w, const bfloat16* bias) {
  const int64_t c = s.in_channels, o = s.out_channels, plane = s.in_plane();
  Scratch<bfloat16> nhwc_y, nhwc_x, filters(c * s.taps() * o), unseen(c);
  for (int64_t i = 0; i < c; ++i) unseen[i] = bias ? bias[i] : bfloat16(0.0f);
  dy = with_last(dy, s.channels_last, s.batch, o, s.out_plane(), nhwc_y);
  bfloat16* to = dx;
  if (!s.channels_last) nhwc_x.reset(checked_mul(s.batch * plane, c)), to = nhwc_x.get();
  ConvShape r = s;
  std::swap(r.in_channels, r.out_channels);
  r.channels_last = true;
  for (int64_t phase = 0; phase < s.stride[0] * s.stride[1] * s.stride[2]; ++phase) {
    const int64_t a[] = {phase / (s.stride[1] * s.stride[2]), phase / s.stride[2] % s.stride[1], phase % s.stride[2]};
    int64_t first[3];
    for (int d = 0; d < 3; ++d) {
      const int64_t stride = s.stride[d];
      first[d] = (a[d] + s.padding[d]) % stride;
      r.in[d] = s.out[d];
      r.out[d] = a[d] < s.in[d] ? (s.in[d] - a[d] + stride - 1) / stride : 0;
      r.kernel[d] = first[d] < s.kernel[d] ? (s.kernel[d] - 1 - first[d]) / stride + 1 : 0;
      r.dilation[d] = stride == 1 ? s.dilation[d] : 1;
      r.padding[d] = r.dilation[d] * (r.kernel[d] - 1) - (a[d] + s.padding[d] - first[d]) / stride;
      r.stride[d] = 1;
    }
    if (r.out_plane() == 0) continue;
    auto give = [&](int64_t p0, int64_t p1, const bfloat16* rows, int64_t step) {
      for (int64_t p = p0; p < p1; ++p, rows += step) {
        const int64_t n = p / r.out_plane(), at = p % r.out_plane();
        const int64_t q[] = {at / (r.out[1] * r.out[2]), at / r.out[2] % r.out[1], at % r.out[2]};
        int64_t pixel = n;
        for (int d = 0; d < 3; ++d) pixel = pixel * s.in[d] + a[d] + s.stride[d] * q[d];
        std::copy(rows, rows + c, to + pixel * c);
      }
    };
    if (r.taps() == 0) {  // seen by no window
      parallel_for(0, s.batch * r.out_plane(), std::max<int64_t>(1, 32768 / c),
                   [&](int64_t p0, int64_t p1) { give(p0, p1, unseen.get(), 0); });
      continue;
    }
    flip_filters(s, r, first, w, filters.get());
    rows_of(r, dy, filters.get(), bias, nullptr,
            [&](int64_t p0, int64_t p1, const bfloat16* rows) { give(p0, p1, rows, c); });
  }
  if (!s.channels_last) transpose_images(to, s.batch, plane, c, dx);
}

}  // namespace

bool bf16_applicable(const ConvShape& s, ConvPass pass) {
  if (!rl::cpu::has_bf16() || s.groups != 1 || s.in_channels < 1 || s.out_channels < 1) return false;
  if (pass != ConvPass::Input || is_pointwise(s)) return true;
  // Each phase of the stride must be a convolution of stride 1 again, with a padding that is not negative.
  for (int d = 0; d < 3; ++d)
    if (s.stride[d] == 1 ? s.dilation[d] * (s.kernel[d] - 1) < s.padding[d] : s.dilation[d] > 1 && s.kernel[d] > 1)
      return false;
  return true;
}
bool bf16_profitable(const ConvShape& s, ConvPass pass) {
  if (is_pointwise(s) || (pass == ConvPass::Forward && in_columns(s))) return true;
  const int64_t read = pass == ConvPass::Input ? s.out_channels : s.in_channels;
  if (read < kLeastChannels && !(s.channels_last && pass == ConvPass::Forward && read * s.taps() >= 16)) return false;
  return pass != ConvPass::Input ||
         (s.stride[0] * s.stride[1] * s.stride[2] <= kMostPhases && s.in_channels >= kLeastChannels);
}

void bf16_forward(const ConvShape& s, bfloat16* y, const bfloat16* x, const bfloat16* w, const bfloat16* bias) {
  const int64_t c = s.in_channels, o = s.out_channels, plane = s.out_plane();
  if (!is_pointwise(s)) {
    Scratch<bfloat16> filters;
    if (in_columns(s)) return columns_forward(s, y, x, w, bias);
    return forward_of(s, y, x, with_last(w, s.filters_last, o, c, s.taps(), filters), bias);
  }
  if (s.channels_last) return multiply(s.batch * plane, o, c, {x, c, 1}, {w, 1, c}, y, o, bias, 0, 1);
  parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n)
      multiply(o, plane, c, {w, c, 1}, {x + n * c * plane, plane, 1}, y + n * o * plane, plane, bias, 1, 0);
  });
}

void bf16_dgrad(const ConvShape& s, bfloat16* dx, const bfloat16* dy, const bfloat16* w, const bfloat16* bias) {
  const int64_t plane = s.in_plane(), c = s.in_channels, o = s.out_channels;
  if (s.stride[0] * s.stride[1] * s.stride[2] > 1) return input_by_phases(s, dx, dy, w, bias);
  if (!is_pointwise(s)) {  // a convolution of dy by the flipped filters
    ConvShape r = s;
    std::swap(r.in_channels, r.out_channels);
    for (int d = 0; d < 3; ++d) {
      std::swap(r.in[d], r.out[d]);
      r.padding[d] = s.dilation[d] * (s.kernel[d] - 1) - s.padding[d];
    }
    Scratch<bfloat16> filters(c * s.taps() * o);
    constexpr int64_t kFirst[3] = {};
    flip_filters(s, r, kFirst, w, filters.get());
    return forward_of(r, dx, dy, filters.get(), bias);
  }
  if (s.channels_last) return multiply(s.batch * plane, c, o, {dy, o, 1}, {w, c, 1}, dx, c, bias, 0, 1);
  parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n)
      multiply(c, plane, o, {w, 1, c}, {dy + n * o * plane, plane, 1}, dx + n * c * plane, plane, bias, 1, 0);
  });
}

// One sum over all pixels of all images.
void bf16_wgrad(const ConvShape& s, bfloat16* dw, const bfloat16* dy, const bfloat16* x) {
  const int64_t pixels = s.batch * s.out_plane(), c = s.in_channels, o = s.out_channels, k = c * s.taps();
  const bool pointwise = is_pointwise(s);
  if (pointwise && !s.channels_last && s.batch == 1)
    return multiply(o, c, pixels, {dy, pixels, 1}, {x, 1, pixels}, dw, c);
  Scratch<bfloat16> tx, ty;
  x = with_last(x, s.channels_last, s.batch, c, s.in_plane(), tx);
  dy = with_last(dy, s.channels_last, s.batch, o, s.out_plane(), ty);
  if (pointwise) return multiply(o, c, pixels, {dy, 1, o}, {x, c, 1}, dw, c);
  // Windows of as many pixels at a time as the caches hold.
  const int64_t step = (k + 31) / 32 * 32, some = std::max(kTilePlaces, (kMostWindows / k) / kTilePlaces * kTilePlaces);
  Scratch<bfloat16> windows(checked_mul(std::min(pixels, some), k)), tw(o * k);
  Scratch<float> sums(o * step);
  std::fill_n(sums.get(), o * step, 0.0f);
  for (int64_t p = 0; p < pixels; p += some) {
    const int64_t count = std::min(some, pixels - p);
    parallel_for(0, count, kTilePlaces, [&](int64_t first, int64_t last) {
      to_windows(s, x, p + first, p + last, k, windows.get() + first * k);
    });
    rl::cpu::HalfGemm<bfloat16> g = {o, k,    count, dy + p * o, 1, o, windows.get(), k, 1, nullptr, 0,
                                     1, 1.0f, 0.0f,  nullptr,    0, 1};
    g.sums = sums.get(), g.srs = step;
    rl::cpu::half_gemm(g);
  }
  for (int64_t i = 0; i < o; ++i) narrow(sums.get() + i * step, tw.get() + i * k, k);
  transpose_images(tw.get(), o, s.taps(), c, dw);
}

}  // namespace rl::RL_ISA
