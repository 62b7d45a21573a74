// Planes of up to sixteen channels as rows of channels, and back. Included after a target pragma, by
// depthwise_nhwc*_avx512.cpp alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/conv/microkernel.h"

namespace rl::cpu::conv512 {
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

// The image with the i-th channel of its group of g in every lane.
inline void order_lanes(const float* from, int64_t n, int64_t g, int64_t i, float* to) {
  alignas(64) int32_t lane[W];
  for (int l = 0; l < W; ++l) lane[l] = static_cast<int32_t>(l / g * g + i);
  const __m512i order = _mm512_load_si512(lane);
  for (int64_t p = 0; p < n; ++p) store(to + p * W, _mm512_permutexvar_ps(order, load(from + p * W)));
}

}  // namespace
}  // namespace rl::cpu::conv512
