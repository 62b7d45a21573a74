// Planes of up to sixteen channels as rows of channels, and back. Included by
// depthwise_nhwc*_avx512.cpp alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/conv/microkernel.h"

namespace rl::avx512::conv {
namespace {

// to[j][i] = from[i][j] for i < rows <= W, j < n; the lanes beyond `rows` are zeros.
inline void to_lanes(const float* from, int64_t rows, int64_t n, float* to) {
  for (int64_t j = 0; j < n; j += W) {
    Reg r[W];
    for (int i = 0; i < W; ++i)
      r[i] = i < rows ? _mm512_maskz_loadu_ps(lanes(n - j), from + i * n + j) : _mm512_setzero_ps();
    transpose(r);
    for (int i = 0; i < std::min<int64_t>(W, n - j); ++i) store(to + (j + i) * W, r[i]);
  }
}
inline void from_lanes(const float* from, int64_t rows, int64_t n, float* to) {
  for (int64_t j = 0; j < n; j += W) {
    Reg r[W];
    for (int i = 0; i < W; ++i) r[i] = j + i < n ? load(from + (j + i) * W) : _mm512_setzero_ps();
    transpose(r);
    for (int i = 0; i < rows; ++i) _mm512_mask_storeu_ps(to + i * n + j, lanes(n - j), r[i]);
  }
}

}  // namespace
}  // namespace rl::avx512::conv
