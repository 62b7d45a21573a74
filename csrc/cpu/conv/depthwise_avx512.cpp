// Convolutions at stride 1 where each filter has one channel: a padded copy of the plane, of which every tap is a
// shift.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "cpu/conv/avx512_begin.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int64_t kLanes = 16;

// R rows of NV registers of the result at `to`, from the padded plane at `from`. `left` columns are to be written.
template <int R, int NV> void patch(const ConvShape& s, const float* from, int64_t pitch, const float* filter,
                                    int64_t filter_step, float shift, float* to, int64_t left) {
  __m512 acc[R][NV];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) acc[r][v] = _mm512_set1_ps(shift);
  for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
    for (int64_t kw = 0; kw < s.kernel[2]; ++kw, filter += filter_step) {
      const __m512 f = _mm512_set1_ps(*filter);
      const float* at = from + kh * s.dilation[1] * pitch + kw * s.dilation[2];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v)
          acc[r][v] = _mm512_fmadd_ps(f, _mm512_loadu_ps(at + r * pitch + v * kLanes), acc[r][v]);
    }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      const int64_t count = left - v * kLanes;
      const auto mask = static_cast<__mmask16>(count >= kLanes ? 0xffff : count <= 0 ? 0 : (1u << count) - 1);
      _mm512_mask_storeu_ps(to + r * s.out[2] + v * kLanes, mask, acc[r][v]);
    }
}
template <int R, int NV> void plane(const ConvShape& s, const float* from, int64_t pitch, const float* filter,
                                    int64_t filter_step, float shift, float* to) {
  for (int64_t j = 0; j < s.out[2]; j += NV * kLanes) {
    int64_t i = 0;
    for (; i + R <= s.out[1]; i += R)
      patch<R, NV>(s, from + i * pitch + j, pitch, filter, filter_step, shift, to + i * s.out[2] + j, s.out[2] - j);
    for (; i < s.out[1]; ++i)
      patch<1, NV>(s, from + i * pitch + j, pitch, filter, filter_step, shift, to + i * s.out[2] + j, s.out[2] - j);
  }
}

}  // namespace

bool depthwise_rows_applicable(const ConvShape& s) {
  if (!available() || s.groups != s.in_channels || s.groups < 2 || s.in[0] != 1 || s.kernel[0] != 1 ||
      s.padding[0] != 0)
    return false;
  for (int d = 1; d < 3; ++d)
    if (s.stride[d] != 1 || s.padding[d] < 0 || s.padding[d] > 256 || s.dilation[d] * (s.kernel[d] - 1) > 512)
      return false;
  return s.in_plane() < (1 << 24);
}

void depthwise_rows(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped) {
  const int64_t per = s.out_channels / s.groups, rows = s.in[1] + 2 * s.padding[1];
  // Registers read past the end of the last row, up to a patch.
  const int64_t pitch = (s.in[2] + 2 * s.padding[2] + kLanes - 1) / kLanes * kLanes;
  const int64_t grain = std::max<int64_t>(1, 200000 / std::max<int64_t>(1, per * s.out_plane() * s.taps()));
  parallel_for(0, s.batch * s.groups, grain, [&](int64_t first, int64_t last) {
    const int64_t size = rows * pitch + 8 * kLanes;
    Scratch<float> padded(size);
    std::memset(padded.get(), 0, static_cast<size_t>(size) * sizeof(float));
    for (int64_t t = first; t < last; ++t) {
      const float* image = x + t * s.in_plane();
      float* inner = padded.get() + s.padding[1] * pitch + s.padding[2];
      for (int64_t i = 0; i < s.in[1]; ++i)
        std::memcpy(inner + i * pitch, image + i * s.in[2], static_cast<size_t>(s.in[2]) * sizeof(float));
      for (int64_t k = 0; k < per; ++k) {
        const int64_t o = t % s.groups * per + k;
        const float* filter = w + o * s.taps() + (flipped ? s.taps() - 1 : 0);
        float* to = y + (t * per + k) * s.out_plane();
        const float shift = bias ? bias[o] : 0.0f;
        const auto run = s.out[1] == 1    ? plane<1, 8>
                         : s.out[2] <= 16 ? plane<7, 1>
                         : s.out[2] <= 32 ? plane<4, 2>
                                          : plane<2, 4>;
        run(s, padded.get(), pitch, filter, flipped ? -1 : 1, shift, to);
      }
    }
  });
}

}  // namespace rl::cpu::conv512
#include "cpu/avx512_end.h"
#else
namespace rl::cpu::conv512 {
bool depthwise_rows_applicable(const ConvShape&) { return false; }
void depthwise_rows(const ConvShape&, float*, const float*, const float*, const float*, bool) {}
}  // namespace rl::cpu::conv512
#endif
