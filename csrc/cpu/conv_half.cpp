// Convolutions of bfloat16 where the processor multiplies pairs of them (gemm_half.cpp): twice the speed of floats, and
// no copies in float.
#include "cpu/conv.h"
#include "cpu/gemm_half.h"
#include "cpu/instructions.h"
#include "cpu/transpose.h"

namespace rl::RL_ISA {
namespace {

using Brain = bfloat16;
constexpr int64_t kTilePlaces = 256;       // whose windows are laid out at once
constexpr int64_t kLeastChannels = 16;     // below, windows are copied in pieces that are too short
constexpr int64_t kMostWindows = 1 << 23;  // numbers, where windows of all pictures are laid out

struct Side {
  const Brain* data;
  int64_t rs, cs;
};
// c (m, n) = a @ b + d, with rows of c `crs` apart
void multiply(int64_t m, int64_t n, int64_t k, Side a, Side b, Brain* c, int64_t crs, const Brain* d = nullptr,
              int64_t drs = 0, int64_t dcs = 0) {
  rl::cpu::half_gemm(rl::cpu::HalfGemm<Brain>{m, n, k, a.data, a.rs, a.cs, b.data, b.rs, b.cs, c, crs, 1, 1.0f,
                                              d ? 1.0f : 0.0f, d, drs, dcs});
}

// (images, rows, columns) with its matrices turned
void turn(const Brain* from, int64_t images, int64_t rows, int64_t columns, Brain* to) {
  constexpr int64_t kSide = 16;
  const int64_t strips = (rows + kSide - 1) / kSide;
  parallel_for(0, images * strips, std::max<int64_t>(1, 2048 / columns), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t r = i % strips * kSide, at = i / strips * rows * columns;
      for (int64_t c = 0; c < columns; c += kSide)
        transpose_tile<uint16_t>(reinterpret_cast<char*>(to + at + c * rows + r), rows * 2,
                                 reinterpret_cast<const char*>(from + at + r * columns + c), columns * 2,
                                 std::min(kSide, columns - c), std::min(kSide, rows - r));
    }
  });
}
// A tensor with its channels last: itself, or a copy.
const Brain* with_last(const Brain* x, bool is_last, int64_t images, int64_t channels, int64_t plane,
                       Scratch<Brain>& copy) {
  if (is_last || channels == 1 || plane == 1) return x;
  copy.reset(checked_mul(images * channels, plane));
  turn(x, images, channels, plane, copy.get());
  return copy.get();
}

// windows (p1 - p0, taps * channels): what the places [p0, p1) of all pictures see of x, whose channels are last. The
// taps of a row that follow each other are one copy.
void to_windows(const ConvShape& s, const Brain* x, int64_t p0, int64_t p1, Brain* windows) {
  const int64_t c = s.in_channels, plane = s.out_plane(), row = s.kernel[2] * c;
  auto zero = [&](int64_t count) {
    std::memset(static_cast<void*>(windows), 0, static_cast<size_t>(count) * sizeof(Brain)), windows += count;
  };
  for (int64_t p = p0; p < p1; ++p) {
    const int64_t at = p % plane, od = at / (s.out[1] * s.out[2]), oh = at / s.out[2] % s.out[1], ow = at % s.out[2];
    const Brain* image = x + p / plane * s.in_plane() * c;
    const int64_t left = ow * s.stride[2] - s.padding[2];
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
        const int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
        const int64_t ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
        if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) {
          zero(row);
          continue;
        }
        const Brain* from = image + (id * s.in[1] + ih) * s.in[2] * c;
        const bool dense = s.dilation[2] == 1;
        const int64_t run = dense ? s.kernel[2] : 1;
        for (int64_t kw = 0; kw < s.kernel[2]; kw += run) {
          const int64_t iw = left + kw * s.dilation[2], low = std::clamp<int64_t>(-iw, 0, run),
                        high = std::clamp<int64_t>(s.in[2] - iw, low, run);
          zero(low * c);
          std::memcpy(static_cast<void*>(windows), from + (iw + low) * c,
                      static_cast<size_t>((high - low) * c) * sizeof(Brain));
          windows += (high - low) * c;
          zero((run - high) * c);
        }
      }
  }
}

// y = x * w + bias for filters w (O, taps, C). Pictures whose channels are first are turned, and the result back.
void forward_of(const ConvShape& s, Brain* y, const Brain* x, const Brain* w, const Brain* bias) {
  const int64_t k = s.taps() * s.in_channels, o = s.out_channels, plane = s.out_plane(), places = s.batch * plane;
  Scratch<Brain> turned_x, turned_y;
  x = with_last(x, s.channels_last, s.batch, s.in_channels, s.in_plane(), turned_x);
  Brain* to = y;
  if (!s.channels_last) turned_y.reset(places * o), to = turned_y.get();
  parallel_for(0, (places + kTilePlaces - 1) / kTilePlaces, 1, [&](int64_t first, int64_t last) {
    Scratch<Brain> windows(checked_mul(k, kTilePlaces));
    for (int64_t t = first; t < last; ++t) {
      const int64_t p0 = t * kTilePlaces, p1 = std::min(places, p0 + kTilePlaces);
      to_windows(s, x, p0, p1, windows.get());
      multiply(p1 - p0, o, k, {windows.get(), k, 1}, {w, 1, k}, to + p0 * o, o, bias, 0, 1);
    }
  });
  if (!s.channels_last) turn(to, s.batch, plane, o, y);
}

}  // namespace

bool half_conv_serves(const ConvShape& s, DType dtype, ConvPass pass) {
  if (dtype != DType::BFloat16 || !rl::cpu::has_bf16() || s.groups != 1 || s.in_channels < 1) return false;
  if (is_pointwise(s)) return true;
  if ((pass == ConvPass::Input ? s.out_channels : s.in_channels) < kLeastChannels) return false;
  if (pass == ConvPass::Forward) return true;
  // Sums are rounded once: those of overlapping windows are a convolution again, those over pictures one product.
  if (pass == ConvPass::Weight) return s.batch * s.out_plane() <= kMostWindows / (s.in_channels * s.taps());
  for (int d = 0; d < 3; ++d)
    if (s.stride[d] != 1 || s.dilation[d] * (s.kernel[d] - 1) < s.padding[d]) return false;
  return true;
}

void half_conv_forward(const ConvShape& s, Brain* y, const Brain* x, const Brain* w, const Brain* bias) {
  const int64_t c = s.in_channels, o = s.out_channels, plane = s.out_plane();
  if (!is_pointwise(s)) {
    Scratch<Brain> turned_w;
    return forward_of(s, y, x, with_last(w, s.filters_last, o, c, s.taps(), turned_w), bias);
  }
  if (s.channels_last) return multiply(s.batch * plane, o, c, {x, c, 1}, {w, 1, c}, y, o, bias, 0, 1);
  parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n)
      multiply(o, plane, c, {w, c, 1}, {x + n * c * plane, plane, 1}, y + n * o * plane, plane, bias, 1, 0);
  });
}

void half_conv_input(const ConvShape& s, Brain* dx, const Brain* dy, const Brain* w, const Brain* bias) {
  const int64_t plane = s.in_plane(), c = s.in_channels, o = s.out_channels, taps = s.taps();
  if (!is_pointwise(s)) {  // a convolution of dy by the turned filters
    ConvShape r = s;
    std::swap(r.in_channels, r.out_channels);
    for (int d = 0; d < 3; ++d) {
      std::swap(r.in[d], r.out[d]);
      r.padding[d] = s.dilation[d] * (s.kernel[d] - 1) - s.padding[d];
    }
    Scratch<Brain> turned_w(c * taps * o);
    const int64_t step = s.filters_last ? c : 1, skip = s.filters_last ? 1 : taps;  // of taps and channels in w
    parallel_for(0, c, std::max<int64_t>(1, 16384 / (taps * o)), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        for (int64_t t = 0; t < taps; ++t)
          for (int64_t j = 0; j < o; ++j)
            turned_w[(i * taps + t) * o + j] = w[j * c * taps + i * skip + (taps - 1 - t) * step];
    });
    return forward_of(r, dx, dy, turned_w.get(), bias);
  }
  if (s.channels_last) return multiply(s.batch * plane, c, o, {dy, o, 1}, {w, c, 1}, dx, c, bias, 0, 1);
  parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n)
      multiply(c, plane, o, {w, 1, c}, {dy + n * o * plane, plane, 1}, dx + n * c * plane, plane, bias, 1, 0);
  });
}

// One sum over all places of all pictures.
void half_conv_weight(const ConvShape& s, Brain* dw, const Brain* dy, const Brain* x) {
  const int64_t places = s.batch * s.out_plane(), c = s.in_channels, o = s.out_channels, k = c * s.taps();
  const bool pointwise = is_pointwise(s);
  if (pointwise && !s.channels_last && s.batch == 1)
    return multiply(o, c, places, {dy, places, 1}, {x, 1, places}, dw, c);
  Scratch<Brain> tx, ty, windows, tw;
  x = with_last(x, s.channels_last, s.batch, c, s.in_plane(), tx);
  dy = with_last(dy, s.channels_last, s.batch, o, s.out_plane(), ty);
  if (pointwise) return multiply(o, c, places, {dy, 1, o}, {x, c, 1}, dw, c);
  windows.reset(checked_mul(places, k)), tw.reset(o * k);
  parallel_for(0, places, kTilePlaces,
               [&](int64_t first, int64_t last) { to_windows(s, x, first, last, windows.get() + first * k); });
  multiply(o, k, places, {dy, 1, o}, {windows.get(), k, 1}, tw.get(), k);
  turn(tw.get(), o, s.taps(), c, dw);
}

}  // namespace rl::RL_ISA
