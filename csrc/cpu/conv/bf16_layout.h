// What bfloat16 images are for the products of bf16.cpp: rows of channels, rows of windows, and planes again.
#pragma once
#include "cpu/conv/algorithms.h"
#include "cpu/simd/transpose.h"

#ifdef RL_HAS_AVX512
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace rl::RL_ISA {
namespace {

inline constexpr int64_t kTilePlaces = 256;  // whose windows are laid out at once

// (images, rows, columns) with its matrices transposed
inline void transpose_images(const bfloat16* from, int64_t images, int64_t rows, int64_t columns, bfloat16* to) {
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
inline const bfloat16* with_last(const bfloat16* x, bool is_last, int64_t images, int64_t channels, int64_t plane,
                                 Scratch<bfloat16>& copy) {
  if (is_last || channels == 1 || plane == 1) return x;
  copy.reset(checked_mul(images * channels, plane));
  transpose_images(x, images, channels, plane, copy.get());
  return copy.get();
}

// Elements that may be followed by up to 31 others in what is written.
RL_AVX512 [[gnu::always_inline]] inline void copy_loosely(bfloat16* to, const bfloat16* from, int64_t count) {
#ifdef RL_HAS_AVX512
  if (count <= 16) {
    const auto wanted = static_cast<__mmask16>((1u << count) - 1);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_maskz_loadu_epi16(wanted, from));
    return;
  }
  for (; count > 0; count -= 32, to += 32, from += 32) {
    const __mmask32 wanted = count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
    _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(wanted, from));
  }
#else
  std::copy(from, from + count, to);
#endif
}

// windows (p1 - p0, taps * channels): what the pixels [p0, p1) of all images see of x, whose channels are last. The
// taps of a row that follow each other are one copy. Rows are `step` apart, those too many zeros.
RL_AVX512 inline void to_windows(const ConvShape& s, const bfloat16* x, int64_t p0, int64_t p1, int64_t step,
                                 bfloat16* windows) {
  const int64_t c = s.in_channels, plane = s.out_plane(), rest = step - s.taps() * c;
  const int64_t run = s.dilation[2] == 1 ? s.kernel[2] : 1;
  const int64_t exact = p1 - 2 - 32 / step;  // from here on nothing may be written behind the last row
  int64_t at = p0 % plane, n = p0 / plane, ow = at % s.out[2], oh = at / s.out[2] % s.out[1];
  int64_t od = at / (s.out[1] * s.out[2]);
  for (int64_t p = p0; p < p1; ++p) {
    const bfloat16* image = x + n * s.in_plane() * c;
    const int64_t left = ow * s.stride[2] - s.padding[2];
    const bool whole = left >= 0 && left + (s.kernel[2] - 1) * s.dilation[2] < s.in[2];
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
        const int64_t id = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
        const int64_t ih = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
        if (id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1]) {
          std::memset(static_cast<void*>(windows), 0, static_cast<size_t>(s.kernel[2] * c) * sizeof(bfloat16));
          windows += s.kernel[2] * c;
          continue;
        }
        const bfloat16* from = image + (id * s.in[1] + ih) * s.in[2] * c;
        for (int64_t kw = 0; kw < s.kernel[2]; kw += run, windows += run * c) {
          const int64_t iw = left + kw * s.dilation[2];
          if (whole && p < exact) {
            copy_loosely(windows, from + iw * c, run * c);
            continue;
          }
          const int64_t low = std::clamp<int64_t>(-iw, 0, run), high = std::clamp<int64_t>(s.in[2] - iw, low, run);
          std::fill(windows, windows + low * c, bfloat16(0.0f));
          std::copy(from + (iw + low) * c, from + (iw + high) * c, windows + low * c);
          std::fill(windows + high * c, windows + run * c, bfloat16(0.0f));
        }
      }
    for (int64_t i = 0; i < rest; ++i) *windows++ = bfloat16(0.0f);
    if (++ow < s.out[2]) continue;
    ow = 0;
    if (++oh < s.out[1]) continue;
    oh = 0;
    if (++od < s.out[0]) continue;
    od = 0, ++n;
  }
}

// The pixels [p0, p1) of all images, rows of o channels, to the planes of y.
inline void to_planes(const bfloat16* rows, int64_t p0, int64_t p1, int64_t plane, int64_t o, bfloat16* y) {
  constexpr int64_t kSide = 32;
  for (int64_t p = p0; p < p1;) {
    const int64_t end = std::min(p1, (p / plane + 1) * plane);
    bfloat16* image = y + p / plane * plane * o + p % plane;
    const bfloat16* from = rows + (p - p0) * o;
    for (int64_t j = 0; j < o; j += kSide)
      transpose_tile<uint16_t>(reinterpret_cast<char*>(image + j * plane), plane * 2,
                               reinterpret_cast<const char*>(from + j), o * 2, std::min(kSide, o - j), end - p);
    p = end;
  }
}

}  // namespace
}  // namespace rl::RL_ISA
