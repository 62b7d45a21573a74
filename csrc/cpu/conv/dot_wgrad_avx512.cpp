// The gradient by filters that see few numbers, over long planes: dots of rows of dy with what each tap sees, places in
// lanes. Nothing is turned, and dy is read as it lies.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/tuning.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/avx512_begin.h"
#include "cpu/conv/strided_load.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int kSides = 6, kSeen = 4;  // rows of dy by taps, in one tile
constexpr int64_t kMostPlaces = 1024;
constexpr int64_t kRuns = 8;

// sums (R, C) += dots of rows of dy with rows of what is seen, which are zeros past the places
template <int R, int C> void add_dots(int64_t places, const float* dy, int64_t dy_step, const float* seen,
                                      int64_t seen_step, float* sums, int64_t ld) {
  Reg acc[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) acc[r][c] = _mm512_setzero_ps();
  auto step = [&](int64_t p, __mmask16 m) {
    Reg x[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) x[c] = load(seen + c * seen_step + p);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Reg y = _mm512_maskz_loadu_ps(m, dy + r * dy_step + p);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) acc[r][c] = fma(y, x[c], acc[r][c]);
    }
  };
  int64_t p = 0;
  for (; p + W <= places; p += W) step(p, 0xffff);
  const __mmask16 rest = lanes(places - p);
  if (rest) step(p, rest);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) sums[r * ld + c] += _mm512_reduce_add_ps(acc[r][c]);
}
using DotsFn = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t);
template <int R, int... C> constexpr std::array<DotsFn, sizeof...(C)> dots_of(std::integer_sequence<int, C...>) {
  return {add_dots<R, C + 1>...};
}
template <int R> constexpr auto kDotsOf = dots_of<R>(std::make_integer_sequence<int, kSeen>());
constexpr const DotsFn* kDots[kSides] = {kDotsOf<1>.data(), kDotsOf<2>.data(), kDotsOf<3>.data(),
                                         kDotsOf<4>.data(), kDotsOf<5>.data(), kDotsOf<6>.data()};

// seen (taps of all channels, step): what each tap sees at the places [p0, p1) of an image; zeros up to a whole
// register
void see(const ConvShape& s, const float* x, const Spaced& spaced, int64_t p0, int64_t p1, float* seen, int64_t step) {
  const int64_t stride = s.stride[2], size = s.in[2];
  for (int64_t c = 0; c < s.in_channels; ++c, x += s.in_plane())
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh)
        for (int64_t kw = 0; kw < s.kernel[2]; ++kw, seen += step) {
          const int64_t shift = kw * s.dilation[2] - s.padding[2];
          for (int64_t p = p0; p < p1;) {
            const int64_t ow = p % s.out[2], row = p / s.out[2], count = std::min(s.out[2] - ow, p1 - p);
            const int64_t d = row / s.out[1] * s.stride[0] - s.padding[0] + kd * s.dilation[0],
                          h = row % s.out[1] * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            // Of `count` places from `start` on, those in the row: [low, high).
            const int64_t start = ow * stride + shift;
            int64_t low = start >= 0 ? 0 : std::min(count, (-start + stride - 1) / stride);
            int64_t high = start >= size ? low : std::clamp((size - 1 - start) / stride + 1, low, count);
            if (d < 0 || d >= s.in[0] || h < 0 || h >= s.in[1]) high = low;
            const float* from = x + (d * s.in[1] + h) * size + start;
            float* to = seen + p - p0;  // what is too much the next row overwrites
            for (int64_t i = 0; i < count; i += W)
              store(to + i, low < high ? spaced.read(from + i * stride, low - i, high - i) : _mm512_setzero_ps());
            p += count;
          }
          store(seen + p1 - p0, _mm512_setzero_ps());
        }
}

}  // namespace

bool dot_wgrad_applicable(const ConvShape& s) {
  return available() && s.groups == 1 && s.batch > 0 && s.in_channels > 0 && s.out_channels > 0 && s.out_plane() > 0 &&
         s.stride[2] <= kMostSpace && s.in_channels * s.taps() <= tuning::kDotMostColumns &&
         s.out_channels <= (1 << 14);
}
bool dot_wgrad_profitable(const ConvShape& s) {
  const int64_t rows = s.in_channels * s.taps();
  // What is seen is moved once for each tap: that must be little next to the dots.
  if (s.taps() == 1 || rows < 4 || (rows > tuning::kDotCheapColumns && s.stride[2] <= 2)) return false;
  return s.out_channels >= 16 && s.out_plane() >= tuning::kDotPixels;
}

void dot_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x) {
  const int64_t O = s.out_channels, K = s.in_channels * s.taps(), plane = s.out_plane();
  // Even parts of each plane, so many that the runs have some.
  const int64_t parts = std::max((plane + kMostPlaces - 1) / kMostPlaces, (kRuns + s.batch - 1) / s.batch);
  const int64_t part = ((plane + parts - 1) / parts + W - 1) / W * W, count = (plane + part - 1) / part;
  const int64_t pieces = s.batch * count, runs = std::min(kRuns, pieces), step = part + 2 * W, size = O * K;
  const Spaced spaced(s.stride[2]);
  Scratch<float> sums((runs - 1) * size);
  auto sums_of = [&](int64_t run) { return run ? sums.get() + (run - 1) * size : dw; };
  parallel_for(0, runs, 1, [&](int64_t first, int64_t last) {
    Scratch<float> seen(K * step);
    for (int64_t run = first; run < last; ++run) {
      float* to = sums_of(run);
      std::fill(to, to + size, 0.0f);
      for (int64_t i = pieces * run / runs; i < pieces * (run + 1) / runs; ++i) {
        const int64_t n = i / count, p0 = i % count * part, p1 = std::min(plane, p0 + part);
        see(s, x + n * s.in_channels * s.in_plane(), spaced, p0, p1, seen.get(), step);
        const float* side = dy + n * O * plane + p0;
        const int64_t tiles = (O + kSides - 1) / kSides;
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t o = O * t / tiles, rows = O * (t + 1) / tiles - o;
          for (int64_t k = 0; k < K; k += kSeen)
            kDots[rows - 1][std::min<int64_t>(kSeen, K - k) - 1](p1 - p0, side + o * plane, plane,
                                                                 seen.get() + k * step, step, to + o * K + k, K);
        }
      }
    }
  });
  if (runs == 1) return;
  parallel_for(0, size, 16384, [&](int64_t first, int64_t last) {
    for (int64_t run = 1; run < runs; ++run)
      for (int64_t i = first; i < last; ++i) dw[i] += sums_of(run)[i];
  });
}

}  // namespace rl::cpu::conv512
#include "cpu/avx512_end.h"
#else
namespace rl::cpu::conv512 {
bool dot_wgrad_applicable(const ConvShape&) { return false; }
bool dot_wgrad_profitable(const ConvShape&) { return false; }
void dot_wgrad(const ConvShape&, float*, const float*, const float*) {}
}  // namespace rl::cpu::conv512
#endif
