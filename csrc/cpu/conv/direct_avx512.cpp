// Convolutions as products of filters with shifted planes (see Note [Stride phases]), and their gradients wrt the
// input.
#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/direct.h"
#include "cpu/conv/tuning.h"
#include "cpu/loops/scratch.h"

namespace rl::avx512::conv {

bool direct_applicable(const ConvShape& s, ConvPass pass) {
  const bool input = pass == ConvPass::Input;
  int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  if (!available() || in == 0 || out == 0 || s.batch == 0) return false;
  if (in * s.taps() * out > (int64_t{1} << 30) || s.in_channels * s.in_plane() > (int64_t{1} << 30) ||
      s.out_channels * s.out_plane() > (int64_t{1} << 30) || s.taps() > (1 << 20))
    return false;
  // A phase is at most so large for one pixel of one channel.
  for (int d = 0; d < 3; ++d)
    if ((s.kernel[d] - 1) * s.dilation[d] > (1 << 14)) return false;
  if (input && s.stride[0] * s.stride[1] * s.stride[2] > 64) return false;
  return true;
}

// Against im2col, which reads and writes whole columns but has the larger GEMM.
bool direct_profitable(const ConvShape& s, ConvPass pass) {
  const int64_t in = s.in_channels / s.groups, taps = s.taps();
  const bool strided = s.stride[0] * s.stride[1] * s.stride[2] > 1, many = s.batch >= tuning::kDirectImages;
  if (s.out_channels > tuning::kDirectFilters) return false;
  if (taps == 1) {
    const int64_t most = pass == ConvPass::Weight ? tuning::kDirectPointFilters : tuning::kDirectFilters;
    return strided && many && pass != ConvPass::Input && s.out_channels <= most;
  }
  switch (pass) {
    case ConvPass::Forward: return in * taps >= tuning::kDirectField;
    case ConvPass::Input: return in >= tuning::kDirectChannels || (strided && s.in_plane() <= tuning::kDirectPlane);
    default: return (many && in * taps >= tuning::kDirectWgradField) || taps >= tuning::kDirectTaps || s.kernel[0] > 1;
  }
}

void direct_forward(const ConvShape& shape, float* y, const float* x, const float* w, const float* bias) {
  ConvShape s = flattened(shape);
  Direct r{};
  r.batch = s.batch, r.groups = s.groups, r.in = s.in_channels / s.groups, r.out = s.out_channels / s.groups;
  for (int d = 0; d < 3; ++d) r.axes[d] = forward_axis(s, static_cast<Dim>(d));
  r.phases.source = {x, {s.in[0], s.in[1], s.in[2]}, s.in_plane(), s.in_channels * s.in_plane()};
  r.phases.plain = single_pixels(s);
  r.target = {y, {s.out[0], s.out[1], s.out[2]}, s.out_plane(), s.out_channels * s.out_plane()};
  r.w = w, r.bias = bias;
  r.row_step = r.in * s.taps(), r.group_step = r.out * r.row_step;
  r.columns = r.row_step;
  Part p{{0, 0, 0}, {s.out[0], s.out[1], s.out[2]}, {1, 1, 1}, {0, 0, 0}, {}, {}, 0, r.in * s.taps(), s.taps(), {}, {}};
  // By rows of the filters if they are padded, but for few pixels, where filters are read in place.
  const bool by_depth = s.kernel[0] > 1 && s.padding[0] > 0;
  const bool by_rows =
      by_depth || (s.kernel[1] > 1 && s.padding[1] > 0 && r.fills_lanes() && s.batch * s.out_plane() > 128);
  const int64_t rows = s.kernel[0] * s.kernel[1], wide = s.kernel[2];
  if (by_rows) {
    r.column_part.assign(r.columns, 0), r.column_tap.reserve(r.columns);
    for (int64_t c = 0; c < r.in; ++c)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t kw = 0; kw < wide; ++kw)
          r.column_tap.push_back(static_cast<int32_t>((row * r.in + c) * wide + kw));
    for (int64_t row = 0; row < rows && !r.fills_lanes(); ++row)
      for (int64_t c = 0; c < r.in; ++c)
        for (int64_t kw = 0; kw < wide; ++kw) p.weights.push_back(static_cast<int32_t>((c * rows + row) * wide + kw));
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd) p.depths.push_back(kd);
    for (int64_t kh = 0; kh < s.kernel[1]; ++kh) p.heights.push_back(kh);
  }
  r.parts.push_back(p);
  r.regions.by_depth = by_depth;
  for (int d = 0; d < 3; ++d) r.regions.low[d] = 0, r.regions.high[d] = s.out[d];
  r.plan();
  r.parts[0].offsets.reserve(r.columns);
  auto add = [&](int64_t c, int64_t row) {
    for (int64_t kw = 0; kw < wide; ++kw)
      r.parts[0].offsets.push_back(
          static_cast<int32_t>(c * r.phases.channel + r.phases.offset(row / s.kernel[1], row % s.kernel[1], kw)));
  };
  for (int64_t c = 0; c < r.in && !by_rows; ++c)
    for (int64_t row = 0; row < rows; ++row) add(c, row);
  for (int64_t row = 0; row < rows && by_rows; ++row)
    for (int64_t c = 0; c < r.in; ++c) add(c, row);
  r.run();
}

void direct_dgrad(const ConvShape& shape, float* dx, const float* dy, const float* w, const float* bias) {
  ConvShape s = flattened(shape);
  Direct r{};
  // The roles are exchanged: dy is read, dx is written.
  r.batch = s.batch, r.groups = s.groups, r.in = s.out_channels / s.groups, r.out = s.in_channels / s.groups;
  for (int d = 0; d < 3; ++d) r.axes[d] = backward_axis(s, static_cast<Dim>(d));
  r.phases.source = {dy, {s.out[0], s.out[1], s.out[2]}, s.out_plane(), s.out_channels * s.out_plane()};
  r.phases.plain = single_pixels(s);
  r.target = {dx, {s.in[0], s.in[1], s.in[2]}, s.in_plane(), s.in_channels * s.in_plane()};
  r.w = w, r.bias = bias;
  r.row_step = s.taps(), r.group_step = r.in * r.out * s.taps();
  r.outer = r.in, r.outer_step = r.out * s.taps(), r.columns = s.taps();
  r.column_part.assign(s.taps(), -1), r.column_tap.assign(s.taps(), 0);
  for (int d = 0; d < 3; ++d) r.regions.low[d] = INT64_MAX, r.regions.high[d] = INT64_MIN;
  struct Rest {
    int64_t low, high, start;
    std::vector<int64_t> taps;
  };
  std::vector<Rest> rests[3];
  for (int d = 0; d < 3; ++d)
    for (int64_t rest = 0; rest < s.stride[d]; ++rest) {
      int64_t stride = s.stride[d], start = rest - s.padding[d];
      Rest one{start >= 0 ? 0 : (-start + stride - 1) / stride,
               s.in[d] - 1 - start < 0 ? 0 : (s.in[d] - 1 - start) / stride + 1,
               start,
               {}};
      for (int64_t k = 0; k < s.kernel[d]; ++k)
        if (k * s.dilation[d] % stride == rest) one.taps.push_back(k);
      if (one.low >= one.high) continue;
      r.regions.low[d] = std::min(r.regions.low[d], one.low), r.regions.high[d] = std::max(r.regions.high[d], one.high);
      rests[d].push_back(one);
    }
  for (const Rest& a : rests[0])
    for (const Rest& b : rests[1])
      for (const Rest& c : rests[2]) {
        Part p{{a.low, b.low, c.low},
               {a.high, b.high, c.high},
               {s.stride[0], s.stride[1], s.stride[2]},
               {a.start, b.start, c.start},
               {},
               {},
               0,
               r.in * static_cast<int64_t>(a.taps.size() * b.taps.size() * c.taps.size()),
               static_cast<int64_t>(c.taps.size()),
               a.taps,
               b.taps};
        int64_t row = 0;
        for (int64_t kd : a.taps)
          for (int64_t kh : b.taps) {
            for (size_t i = 0; i < c.taps.size(); ++i) {
              const int64_t tap = (kd * s.kernel[1] + kh) * s.kernel[2] + c.taps[i];
              r.column_part[tap] = static_cast<int32_t>(r.parts.size());
              r.column_tap[tap] = static_cast<int32_t>(row * r.in * p.taps + static_cast<int64_t>(i));
            }
            ++row;
          }
        p.weights.reserve(p.length);
        for (int64_t kd : a.taps)
          for (int64_t kh : b.taps)
            for (int64_t o = 0; o < r.in; ++o)
              for (int64_t kw : c.taps)
                p.weights.push_back(
                    static_cast<int32_t>(o * r.out * s.taps() + (kd * s.kernel[1] + kh) * s.kernel[2] + kw));
        r.parts.push_back(std::move(p));
      }
  r.regions.by_depth = s.kernel[0] > 1;
  r.plan();
  size_t i = 0;
  for (const Rest& a : rests[0])
    for (const Rest& b : rests[1])
      for (const Rest& c : rests[2]) {
        Part& p = r.parts[i++];
        p.offsets.reserve(p.length);
        for (int64_t kd : a.taps)
          for (int64_t kh : b.taps)
            for (int64_t o = 0; o < r.in; ++o)
              for (int64_t kw : c.taps)
                p.offsets.push_back(static_cast<int32_t>(o * r.phases.channel + r.phases.offset(kd, kh, kw)));
      }
  r.run();
}

}  // namespace rl::avx512::conv
