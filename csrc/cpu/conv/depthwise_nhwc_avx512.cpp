// Convolutions with one filter for each channel, with channels in the lanes of registers: of images with their
// channels last, and of small ones, which are transposed so, sixteen channels at a time.
#include <algorithm>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/tuning.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/depthwise_nhwc.h"
#include "cpu/conv/nchw_to_nhwc.h"
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::avx512::conv {
namespace {

constexpr int64_t kMostTaps = 4096;

// Planes of sixteen channels are transposed, met by their filters, and transposed back.
void run_transposed(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool input) {
  ConvShape some = s;
  some.batch = 1, some.groups = some.in_channels = some.out_channels = W;
  const Lanes lanes(some, input);
  const RowSteps rows = lanes.whole_image();
  const int64_t channels = s.groups, blocks = (channels + W - 1) / W, taps = s.taps();
  const int64_t in = input ? s.out_plane() : s.in_plane(), out = input ? s.in_plane() : s.out_plane();
  Scratch<float> filters(blocks * taps * W);
  for (int64_t b = 0; b < blocks; ++b)
    to_lanes(w + b * W * taps, std::min<int64_t>(W, channels - b * W), taps, filters.get() + b * taps * W);
  const double work = static_cast<double>(s.out_plane() * W) * static_cast<double>(taps) + 8.0 * (in + out) * W;
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(4e5 / work));
  parallel_for(0, s.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    Scratch<float> image(in * W), results(out * W);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / blocks, c = i % blocks * W, some = std::min<int64_t>(W, channels - c);
      to_lanes(x + (n * channels + c) * in, some, in, image.get());
      lanes.compute(rows, image.get(), results.get(), 1, avx512::conv::lanes(some), filters.get() + c * taps,
                    bias ? bias + c : nullptr);
      from_lanes(results.get(), some, out, y + (n * channels + c) * out);
    }
  });
}

}  // namespace

bool depthwise_nhwc_applicable(const ConvShape& s) {
  return available() && s.groups > 1 && s.in_channels == s.groups && s.out_channels == s.groups &&
         s.taps() <= kMostTaps && s.batch > 0 && s.in_plane() > 0 && s.out_plane() > 0 &&
         s.groups * s.taps() <= (int64_t{1} << 30);
}
bool depthwise_nhwc_profitable(const ConvShape& s) { return s.groups >= tuning::kDepthwiseNhwcChannels; }
void depthwise_nhwc_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  Lanes(s, false).run(y, x, w, bias);
}
void depthwise_nhwc_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  Lanes(s, true).run(dx, dy, w, bias);
}

bool depthwise_reorder_profitable(const ConvShape& s) { return depthwise_nhwc_profitable(s) && s.taps() > 1; }
void depthwise_reorder_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  run_transposed(s, y, x, w, bias, false);
}
void depthwise_reorder_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  run_transposed(s, dx, dy, w, bias, true);
}

}  // namespace rl::avx512::conv
#else
namespace rl::avx512::conv {
bool depthwise_nhwc_applicable(const ConvShape&) { return false; }
bool depthwise_nhwc_profitable(const ConvShape&) { return false; }
void depthwise_nhwc_forward(const ConvShape&, float*, const float*, const float*, const float*) {}
void depthwise_nhwc_dgrad(const ConvShape&, float*, const float*, const float*, const float*) {}
bool depthwise_reorder_profitable(const ConvShape&) { return false; }
void depthwise_reorder_forward(const ConvShape&, float*, const float*, const float*, const float*) {}
void depthwise_reorder_dgrad(const ConvShape&, float*, const float*, const float*, const float*) {}
}  // namespace rl::avx512::conv
#endif
