// im2col and GEMM, some output pixels of one image at a time, for many filters with a small receptive field.
#include "cpu/conv/algorithms.h"

namespace rl::RL_ISA {

bool im2col_tiles_applicable(const ConvShape& s) {
  return s.groups == 1 && s.batch > 0 && s.in_channels > 0 && s.out_channels > 0 && s.out_plane() > 0 &&
         rl::cpu::gemm_available();
}

void im2col_tiles_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  constexpr int64_t kTile = 512;
  const int64_t rows = s.in_channels * s.taps(), plane = s.out_plane(), tiles = (plane + kTile - 1) / kTile;
  parallel_for(0, s.batch * tiles, 1, [&](int64_t first, int64_t last) {
    Scratch<float> columns(checked_mul(rows, kTile));
    for (int64_t t = first; t < last; ++t) {
      const int64_t n = t / tiles, p0 = t % tiles * kTile, p1 = std::min(plane, p0 + kTile);
      im2col(s, x + n * s.in_channels * s.in_plane(), s.in_channels, p0, p1, columns.get(), kTile);
      rl::cpu::gemm(rl::cpu::Gemm<float>{.m = s.out_channels,
                                         .n = p1 - p0,
                                         .k = rows,
                                         .a = w,
                                         .ars = rows,
                                         .acs = 1,
                                         .b = columns.get(),
                                         .brs = kTile,
                                         .bcs = 1,
                                         .c = y + n * s.out_channels * plane + p0,
                                         .crs = plane,
                                         .ccs = 1,
                                         .alpha = 1.0f,
                                         .beta = bias ? 1.0f : 0.0f,
                                         .d = bias,
                                         .drs = 1,
                                         .dcs = 0});
    }
  });
}

void im2col_tiles_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w) {
  const int64_t rows = s.in_channels * s.taps(), plane = s.out_plane();
  parallel_for(0, s.batch, 1, [&](int64_t first, int64_t last) {
    Scratch<float> columns(checked_mul(rows, plane));
    for (int64_t n = first; n < last; ++n) {
      rl::cpu::gemm(rl::cpu::Gemm<float>{.m = rows,
                                         .n = plane,
                                         .k = s.out_channels,
                                         .a = w,
                                         .ars = 1,
                                         .acs = rows,
                                         .b = dy + n * s.out_channels * plane,
                                         .brs = plane,
                                         .bcs = 1,
                                         .c = columns.get(),
                                         .crs = plane,
                                         .ccs = 1,
                                         .alpha = 1.0f,
                                         .beta = 0.0f,
                                         .d = nullptr,
                                         .drs = 0,
                                         .dcs = 1});
      float* image = dx + n * s.in_channels * s.in_plane();
      std::fill(image, image + s.in_channels * s.in_plane(), 0.0f);
      col2im(s, image, s.in_channels, 0, plane, columns.get(), plane);
    }
  });
}

}  // namespace rl::RL_ISA
