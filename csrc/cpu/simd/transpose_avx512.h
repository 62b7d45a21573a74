// Matrices of registers, transposed in place.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace rl::RL_ISA {
namespace {

// Four registers as four 4x4 matrices, one in each quarter.
inline void transpose_quarters(__m512& a, __m512& b, __m512& c, __m512& d) {
  __m512d ab0 = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)), ab1 = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
  __m512d cd0 = _mm512_castps_pd(_mm512_unpacklo_ps(c, d)), cd1 = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
  a = _mm512_castpd_ps(_mm512_unpacklo_pd(ab0, cd0));
  b = _mm512_castpd_ps(_mm512_unpackhi_pd(ab0, cd0));
  c = _mm512_castpd_ps(_mm512_unpacklo_pd(ab1, cd1));
  d = _mm512_castpd_ps(_mm512_unpackhi_pd(ab1, cd1));
}

// 16x16
inline void transpose(__m512* r) {
  for (int i = 0; i < 4; ++i) transpose_quarters(r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
  __m512 t[16];
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

// 8x8
inline void transpose(__m512d* r) {
  __m512d t[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    r[i] = _mm512_shuffle_f64x2(t[i], t[2 + i], 0x88);
    r[2 + i] = _mm512_shuffle_f64x2(t[i], t[2 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_f64x2(t[4 + i], t[6 + i], 0x88);
    r[6 + i] = _mm512_shuffle_f64x2(t[4 + i], t[6 + i], 0xdd);
  }
  for (int i = 0; i < 2; ++i) {
    t[i] = _mm512_shuffle_f64x2(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_f64x2(r[i], r[4 + i], 0xdd);
    t[2 + i] = _mm512_shuffle_f64x2(r[2 + i], r[6 + i], 0x88);
    t[6 + i] = _mm512_shuffle_f64x2(r[2 + i], r[6 + i], 0xdd);
  }
  for (int i = 0; i < 8; ++i) r[i] = t[i];
}

// out[i] = the sum of r[i]'s lanes, for as many registers as one has lanes.
inline void lane_sums(const __m512* r, float* out) {
  __m512 t[8], u[4], v[2];
  for (int i = 0; i < 8; ++i)
    t[i] = _mm512_add_ps(_mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]), _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]));
  for (int i = 0; i < 4; ++i) {
    __m512d x = _mm512_castps_pd(t[2 * i]), y = _mm512_castps_pd(t[2 * i + 1]);
    u[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  }
  for (int i = 0; i < 2; ++i)
    v[i] = _mm512_add_ps(_mm512_shuffle_f32x4(u[2 * i], u[2 * i + 1], 0x88),
                         _mm512_shuffle_f32x4(u[2 * i], u[2 * i + 1], 0xdd));
  _mm512_storeu_ps(out, _mm512_add_ps(_mm512_shuffle_f32x4(v[0], v[1], 0x88), _mm512_shuffle_f32x4(v[0], v[1], 0xdd)));
}
inline void lane_sums(const __m512d* r, double* out) {
  __m512d t[4], u[2];
  for (int i = 0; i < 4; ++i)
    t[i] = _mm512_add_pd(_mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]), _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]));
  for (int i = 0; i < 2; ++i)
    u[i] = _mm512_add_pd(_mm512_shuffle_f64x2(t[2 * i], t[2 * i + 1], 0x88),
                         _mm512_shuffle_f64x2(t[2 * i], t[2 * i + 1], 0xdd));
  _mm512_storeu_pd(out, _mm512_add_pd(_mm512_shuffle_f64x2(u[0], u[1], 0x88), _mm512_shuffle_f64x2(u[0], u[1], 0xdd)));
}

// 4 kQuarters rows of `from`, with stride `step`, as columns: r[t][j] = from[j * step + t] for t < 4. Quarters of
// registers are put together by the reads, which leaves half of the shuffles.
template <int kQuarters> inline void transpose_rows(const float* from, int64_t step, __m512 (&r)[4]) {
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const float* row = from + s * step;
    r[s] = _mm512_zextps128_ps512(_mm_loadu_ps(row));
    if (kQuarters > 1) r[s] = _mm512_insertf32x4(r[s], _mm_loadu_ps(row + 4 * step), 1);
    if (kQuarters > 2) r[s] = _mm512_insertf32x4(r[s], _mm_loadu_ps(row + 8 * step), 2);
    if (kQuarters > 3) r[s] = _mm512_insertf32x4(r[s], _mm_loadu_ps(row + 12 * step), 3);
  }
  transpose_quarters(r[0], r[1], r[2], r[3]);
}

}  // namespace
}  // namespace rl::RL_ISA
