// Convolutions of bfloat16 where the processor multiplies pairs of them (gemm_half.cpp): twice the speed of floats, and
// no copies in float.
#include "cpu/conv.h"
#include "cpu/gemm_half.h"
#include "cpu/instructions.h"
#include "cpu/transpose.h"

namespace rl::RL_ISA {
namespace {

using Brain = bfloat16;
constexpr int64_t kTilePlaces = 512;  // of the picture, whose columns are made at once

// c (m, n) = a @ b, all row-major unless strides say otherwise
struct Side {
  const Brain* data;
  int64_t rs, cs;
};
void multiply(int64_t m, int64_t n, int64_t k, Side a, Side b, Brain* c, int64_t crs, const Brain* d = nullptr,
              int64_t drs = 0, int64_t dcs = 0) {
  rl::cpu::half_gemm(rl::cpu::HalfGemm<Brain>{m, n, k, a.data, a.rs, a.cs, b.data, b.rs, b.cs, c, crs, 1, 1.0f,
                                              d ? 1.0f : 0.0f, d, drs, dcs});
}

bool filters_are_rows(const ConvShape& s) { return !s.filters_last || s.taps() == 1; }

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

}  // namespace

bool half_conv_serves(const ConvShape& s, DType dtype, ConvPass pass) {
  if (dtype != DType::BFloat16 || !rl::cpu::has_bf16() || s.groups != 1 || s.in_channels < 1) return false;
  const bool pointwise = is_pointwise(s);
  // Sums of overlapping windows, and of several pictures, are not rounded in between: only whole products serve.
  if (pass != ConvPass::Forward) return pointwise;
  return pointwise || (!s.channels_last && filters_are_rows(s));
}

void half_conv_forward(const ConvShape& s, Brain* y, const Brain* x, const Brain* w, const Brain* bias) {
  const int64_t rows = s.in_channels * s.taps(), plane = s.out_plane();
  if (s.channels_last)
    return multiply(s.batch * plane, s.out_channels, rows, {x, rows, 1}, {w, 1, rows}, y, s.out_channels, bias, 0, 1);
  const bool direct = is_pointwise(s);
  const int64_t tiles = (plane + kTilePlaces - 1) / kTilePlaces;
  parallel_for(0, s.batch * tiles, 1, [&](int64_t first, int64_t last) {
    Scratch<Brain> columns(direct ? 0 : checked_mul(rows, kTilePlaces));
    for (int64_t t = first; t < last; ++t) {
      const int64_t n = t / tiles, p0 = t % tiles * kTilePlaces, places = std::min(kTilePlaces, plane - p0);
      const Brain* image = x + n * s.in_channels * s.in_plane();
      if (!direct) to_columns(s, image, s.in_channels, p0, p0 + places, columns.get(), places);
      multiply(s.out_channels, places, rows, {w, rows, 1},
               {direct ? image + p0 : columns.get(), direct ? plane : places, 1}, y + n * s.out_channels * plane + p0,
               plane, bias, 1, 0);
    }
  });
}

// Of filters of one number.
void half_conv_input(const ConvShape& s, Brain* dx, const Brain* dy, const Brain* w, const Brain* bias) {
  const int64_t plane = s.in_plane(), c = s.in_channels, o = s.out_channels;
  if (s.channels_last) return multiply(s.batch * plane, c, o, {dy, o, 1}, {w, c, 1}, dx, c, bias, 0, 1);
  parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n)
      multiply(c, plane, o, {w, 1, c}, {dy + n * o * plane, plane, 1}, dx + n * c * plane, plane, bias, 1, 0);
  });
}

// One sum over all pictures: channels are put last for it.
void half_conv_weight(const ConvShape& s, Brain* dw, const Brain* dy, const Brain* x) {
  const int64_t places = s.batch * s.in_plane(), c = s.in_channels, o = s.out_channels;
  Scratch<Brain> tx, ty;
  if (!s.channels_last && s.batch == 1) return multiply(o, c, places, {dy, places, 1}, {x, 1, places}, dw, c);
  if (!s.channels_last) {
    tx.reset(places * c), ty.reset(places * o);
    turn(x, s.batch, c, s.in_plane(), tx.get()), turn(dy, s.batch, o, s.in_plane(), ty.get());
    x = tx.get(), dy = ty.get();
  }
  multiply(o, c, places, {dy, 1, o}, {x, c, 1}, dw, c);
}

}  // namespace rl::RL_ISA
