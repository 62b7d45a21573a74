
#include <algorithm>

#include "cpu/conv/algorithms.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/tuning.h"

namespace rl::RL_ISA {

namespace conv512 = rl::avx512::conv;

bool dgrad_shape(const ConvShape& s, ConvShape& r) {
  r = s;
  std::swap(r.in_channels, r.out_channels);
  bool fits = true;
  for (int d = 0; d < 3; ++d) {
    std::swap(r.in[d], r.out[d]);
    r.padding[d] = s.dilation[d] * (s.kernel[d] - 1) - s.padding[d];
    fits = fits && s.stride[d] == 1 && r.padding[d] >= 0;
  }
  return fits;
}

bool takes_winograd_avx512(const ConvShape& s, ConvPass pass) {
  ConvShape r = s;
  if (pass == ConvPass::Input && !dgrad_shape(s, r)) return false;
  return conv512::winograd_applicable(r) && conv512::winograd_profitable(r);
}
bool takes_dilated(const ConvShape& s, ConvPass pass) {
  return dilated_applicable(s, pass) && dilated_profitable(s, pass);
}

namespace {

// How many times as many pixels the image has as filters begin in it. That is what computing the gradient wrt the input
// pixel by pixel of dx costs more than pixel by pixel of dy: all other taps of a pixel see padding.
double input_excess(const ConvShape& s) {
  double excess = 1;
  for (int d = 0; d < 3; ++d)
    excess *= std::max(1.0, static_cast<double>(s.in[d]) / static_cast<double>(s.out[d] * s.stride[d]));
  return excess;
}

// The part of the taps that see the image, not padding, over all output pixels.
double inside_part(const ConvShape& s) {
  double part = 1;
  for (int d = 0; d < 3; ++d) {
    int64_t seen = 0;
    for (int64_t k = 0; k < s.kernel[d]; ++k) {
      const int64_t shift = k * s.dilation[d] - s.padding[d];
      const int64_t low = shift >= 0 ? 0 : (-shift + s.stride[d] - 1) / s.stride[d];
      const int64_t high = shift >= s.in[d] ? 0 : std::min(s.out[d], (s.in[d] - 1 - shift) / s.stride[d] + 1);
      seen += std::max<int64_t>(0, high - low);
    }
    part *= static_cast<double>(seen) / static_cast<double>(s.kernel[d] * s.out[d]);
  }
  return part;
}

double groups_per_filter(const ConvShape& s) {
  return static_cast<double>(s.groups) / static_cast<double>(s.out_channels);
}

bool bf16_pairs(const ConvShape& s, ConvPass pass) { return bf16_applicable(s, pass) && bf16_profitable(s, pass); }

// Whether bf16 is multiplied as pairs although Winograd's algorithm is applicable: its transforms and the copies in
// float pay where there is much to multiply, and, wrt weight, many pixels.
bool bf16_before_winograd(const ConvShape& s, ConvPass pass) {
  if (!bf16_pairs(s, pass)) return false;
  const int64_t pixels = s.batch * s.out_plane();
  if (pass == ConvPass::Weight) return pixels <= tuning::kBf16WgradPixels;
  return static_cast<double>(pixels * s.in_channels) * static_cast<double>(s.out_channels * s.taps()) <
         tuning::kBf16Macs;
}

}  // namespace

bool im2row_profitable(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  if (!im2row_long_rows(s)) return false;
  bool tiles = s.groups == 1 && s.kernel[2] >= tuning::kIm2rowTile && s.out_channels >= tuning::kIm2rowTileFilters;
  for (int d = 0; d < 3; ++d) tiles = tiles && s.kernel[d] == s.stride[d] && s.padding[d] == 0;
  if (tiles && p.dtype == DType::Float32 && rl::cpu::gemm_available()) return true;  // each row is copied once
  // With few filters moving what they see costs as much as the multiplications.
  const double excess = input_excess(s);
  if (p.pass == ConvPass::Input)
    return excess > tuning::kIm2rowDgradExcess + tuning::kIm2rowDgradPerFilter * groups_per_filter(s);
  if (excess < tuning::kIm2rowExcess) return false;
  if (!rl::cpu::gemm_available()) return true;
  if (p.dtype == DType::Float64)
    return p.pass == ConvPass::Weight || s.in_channels / s.groups < tuning::kIm2rowGroupChannels;
  if (p.pass == ConvPass::Weight || s.out_plane() == 1) return true;
  return (s.batch * s.out_plane() <= tuning::kIm2rowPixels || s.kernel[2] == s.in[2]) &&
         s.out_channels >= tuning::kIm2rowFilters * s.groups;
}

bool im2col_dgrad_profitable(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  return s.batch > 0 && s.in_channels > 0 && s.out_plane() > 0 && p.dtype != DType::Float64 &&
         input_excess(s) > tuning::kIm2colDgradExcess + tuning::kIm2colDgradPerFilter * groups_per_filter(s);
}

bool reorder_profitable(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  const bool is_double = p.dtype == DType::Float64, input = p.pass == ConvPass::Input;
  if (is_pointwise(s) || !conv512::nhwc_gemm_profitable(s, input, is_double ? 8 : 16)) return false;
  if (is_double) return true;
  if (s.groups != 1 || takes_winograd_avx512(s, p.pass)) return false;
  // Each tap of many is an im2col copy less; taps that see padding alone are left out.
  const int64_t read = input ? s.out_channels : s.in_channels;
  return (s.taps() >= tuning::kReorderTaps && read >= tuning::kReorderChannels) ||
         (s.dilation[2] >= tuning::kReorderDilation && inside_part(s) < tuning::kReorderInside);
}

bool bf16_nchw_profitable(const ConvProblem& p) {
  return bf16_before_winograd(p.shape, p.pass) ||
         (bf16_profitable(p.shape, p.pass) && !takes_winograd_avx512(p.shape, p.pass));
}

bool bf16_nhwc_profitable(const ConvProblem& p) {
  const ConvShape& s = p.shape;
  if (is_whole_image(s) || (im2row_applicable(s) && im2row_profitable(p))) return false;
  if (bf16_before_winograd(s, p.pass)) return true;
  if (takes_dilated(s, p.pass)) {  // worth the copies
    ConvShape nchw = s;
    nchw.channels_last = false;
    return bf16_pairs(nchw, p.pass);
  }
  return bf16_profitable(s, p.pass) && !takes_winograd_avx512(s, p.pass);
}

}  // namespace rl::RL_ISA
