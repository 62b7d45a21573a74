// With an RL_OVERLAY, which gathers.
#include "cpu/image/grid_corners.h"

#include "cpu/image/grid_pixels.h"
#include "cpu/simd/math.h"
#ifdef RL_OVERLAY
#include <immintrin.h>
#endif

namespace rl::RL_ISA {
namespace {

// tx, ty = coordinates in pixels; sx, sy = their derivatives.
template <int kPadding, bool kAlign, class T>
RL_INLINE void pixels(Corners<T>& at, const GridShape& s, const T* __restrict grid, int64_t n) {
#pragma GCC ivdep
  for (int64_t q = 0; q < n; ++q) {
    auto [x, dx] = to_pixel<kPadding, kAlign>(grid[2 * q], s.width);
    auto [y, dy] = to_pixel<kPadding, kAlign>(grid[2 * q + 1], s.height);
    at.tx[q] = x, at.ty[q] = y, at.sx[q] = dx, at.sy[q] = dy;
  }
}
// What lies around them; tx, ty = how far they are from the pixel at the top left.
template <bool kNearest, class T> RL_INLINE void around(Corners<T>& at, const GridShape& s, int64_t n) {
  const T right = static_cast<T>(s.width - 1), low = static_cast<T>(s.height - 1);
  const int32_t width = static_cast<int32_t>(s.width);
#pragma GCC ivdep
  for (int64_t q = 0; q < n; ++q) {
    T x = at.tx[q], y = at.ty[q];
    T x0 = kNearest ? rint_(x) : floor_(x), y0 = kNearest ? rint_(y) : floor_(y);
    T fx = kNearest ? T(0) : x - x0, fy = kNearest ? T(0) : y - y0;
    at.tx[q] = fx, at.ty[q] = fy;
    if (kNearest) at.sx[q] = at.sy[q] = T(0);
    // Comparisons are false for NaN, so that points outside and nonsense read pixel 0 with weight 0.
    bool x_in = (x0 >= 0) & (x0 <= right), x1_in = (x0 >= -1) & (x0 <= right - 1);
    bool y_in = (y0 >= 0) & (y0 <= low), y1_in = (y0 >= -1) & (y0 <= low - 1);
    int32_t xa = static_cast<int32_t>(x_in ? x0 : T(0)), xb = static_cast<int32_t>(x1_in ? x0 + 1 : T(0));
    int32_t ya = static_cast<int32_t>(y_in ? y0 : T(0)), yb = static_cast<int32_t>(y1_in ? y0 + 1 : T(0));
    at.offset[0][q] = ya * width + xa, at.offset[1][q] = ya * width + xb;
    at.offset[2][q] = yb * width + xa, at.offset[3][q] = yb * width + xb;
    T in0 = y_in & x_in ? T(1) : T(0), in1 = y_in & x1_in ? T(1) : T(0);
    T in2 = y1_in & x_in ? T(1) : T(0), in3 = y1_in & x1_in ? T(1) : T(0);
    at.inside[0][q] = in0, at.inside[1][q] = in1, at.inside[2][q] = in2, at.inside[3][q] = in3;
    at.weight[0][q] = in0 != 0 ? (1 - fx) * (1 - fy) : T(0), at.weight[1][q] = in1 != 0 ? fx * (1 - fy) : T(0);
    at.weight[2][q] = in2 != 0 ? (1 - fx) * fy : T(0), at.weight[3][q] = in3 != 0 ? fx * fy : T(0);
  }
}
template <class T> RL_INLINE void fill(Corners<T>& at, const GridShape& s, const T* grid, int64_t n) {
  if (s.padding == 0) s.align_corners ? pixels<0, true>(at, s, grid, n) : pixels<0, false>(at, s, grid, n);
  else if (s.padding == 1) s.align_corners ? pixels<1, true>(at, s, grid, n) : pixels<1, false>(at, s, grid, n);
  else s.align_corners ? pixels<2, true>(at, s, grid, n) : pixels<2, false>(at, s, grid, n);
  if (s.nearest) around<true>(at, s, n);
  else around<false>(at, s, n);
}

#ifndef RL_OVERLAY
// The values of one plane at some points. A pixel outside counts nothing, whatever the one read instead of it holds.
template <class T> void sample(const Corners<T>& at, const T* from, T* to, int64_t count, bool nearest) {
  auto value = [&](int k, int64_t q) { return at.inside[k][q] != 0 ? from[at.offset[k][q]] : T(0); };
  if (nearest) {
    for (int64_t q = 0; q < count; ++q) to[q] = value(0, q);
    return;
  }
  for (int64_t q = 0; q < count; ++q)
    to[q] = at.weight[0][q] * value(0, q) + at.weight[1][q] * value(1, q) + at.weight[2][q] * value(2, q) +
            at.weight[3][q] * value(3, q);
}
#endif

}  // namespace

[[gnu::flatten]] void fill_corners(Corners<float>& at, const GridShape& s, const float* grid, int64_t n) {
  fill(at, s, grid, n);
}
[[gnu::flatten]] void fill_corners(Corners<double>& at, const GridShape& s, const double* grid, int64_t n) {
  fill(at, s, grid, n);
}
#ifdef RL_OVERLAY
void sample_corners(const Corners<float>& at, const float* from, float* to, int64_t count, bool nearest) {
  const __m512 zero = _mm512_setzero_ps();
  for (int64_t q = 0; q < count; q += 16) {
    const auto here = static_cast<__mmask16>(count - q >= 16 ? 0xffff : (1u << (count - q)) - 1);
    __m512 sum = zero;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      if (k && nearest) break;
      const __mmask16 in = here & _mm512_cmp_ps_mask(_mm512_load_ps(at.inside[k] + q), zero, _CMP_NEQ_OQ);
      const __m512 v = _mm512_mask_i32gather_ps(zero, in, _mm512_load_si512(at.offset[k] + q), from, 4);
      sum = nearest ? v : _mm512_add_ps(sum, _mm512_mul_ps(_mm512_load_ps(at.weight[k] + q), v));
    }
    _mm512_mask_storeu_ps(to + q, here, sum);
  }
}
void sample_corners(const Corners<double>& at, const double* from, double* to, int64_t count, bool nearest) {
  const __m512d zero = _mm512_setzero_pd();
  for (int64_t q = 0; q < count; q += 8) {
    const auto here = static_cast<__mmask8>(count - q >= 8 ? 0xff : (1u << (count - q)) - 1);
    __m512d sum = zero;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      if (k && nearest) break;
      const __mmask8 in = here & _mm512_cmp_pd_mask(_mm512_load_pd(at.inside[k] + q), zero, _CMP_NEQ_OQ);
      const __m256i offset = _mm256_load_si256(reinterpret_cast<const __m256i*>(at.offset[k] + q));
      const __m512d v = _mm512_mask_i32gather_pd(zero, in, offset, from, 8);
      sum = nearest ? v : _mm512_add_pd(sum, _mm512_mul_pd(_mm512_load_pd(at.weight[k] + q), v));
    }
    _mm512_mask_storeu_pd(to + q, here, sum);
  }
}
#else
void sample_corners(const Corners<float>& at, const float* from, float* to, int64_t n, bool nearest) {
  sample(at, from, to, n, nearest);
}
void sample_corners(const Corners<double>& at, const double* from, double* to, int64_t n, bool nearest) {
  sample(at, from, to, n, nearest);
}
#endif

}  // namespace rl::RL_ISA
