// One head of attention, and rows of its weights, in registers of 512 bits.
// Begins what cpu/avx512_end.h ends in the files that compute with them.
#pragma once
#include <algorithm>
#include <limits>

#include "backend/view.h"
#include "cpu/avx512_begin.h"

namespace rl::cpu {
namespace {

using V = Vec<float>;
constexpr int W = V::W;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// The matrix of one head: rows of unit stride.
struct Head {
  float* data;
  int64_t rows, width, step;
  Head(const View& v, int64_t index)
      : data(v.as<float>() + index / v.sizes[1] * v.strides[0] + index % v.sizes[1] * v.strides[1]),
        rows(v.sizes[2]),
        width(v.sizes[3]),
        step(v.sizes[2] > 1 ? v.strides[2] : std::max<int64_t>(v.sizes[3], 1)) {}
};

// What is added to the scores of one head; of a boolean mask, -inf where it is false.
struct HeadMask {
  const View* view;
  int64_t offset = 0;
  HeadMask(const View* mask, int64_t index) : view(mask) {
    if (view) offset = index / view->sizes[1] * view->strides[0] + index % view->sizes[1] * view->strides[1];
  }
  // A row has room for whole vectors.
  void apply(float* row, int64_t query, int64_t count) const {
    const int64_t at = offset + query * view->strides[2], step = view->strides[3];
    const bool* seen = view->dtype == DType::Bool ? view->as<bool>() + at : nullptr;
    const float* add = seen ? nullptr : view->as<float>() + at;
    if (step != 1) {
      for (int64_t j = 0; j < count; ++j)
        row[j] = seen ? (seen[j * step] ? row[j] : -kInfinity) : row[j] + add[j * step];
      return;
    }
    for (int64_t j = 0; j < count; j += W) {
      const auto lanes = first_lanes<float>(count - j);
      const __m512 x = V::load(row + j);
      if (seen) {
        const __m128i bytes = _mm_maskz_loadu_epi8(lanes, seen + j);
        V::store(row + j, _mm512_mask_mov_ps(V::all(-kInfinity), _mm_test_epi8_mask(bytes, bytes), x));
      } else {
        V::store(row + j, _mm512_add_ps(x, V::load(add + j, lanes)));
      }
    }
  }
};

// e^x for x <= 0: x = n ln2 + r, 2^n P(r). Results below the smallest normal number are 0; NaN stays.
inline __m512 exp_below_one(__m512 x) {
  const __m512 t = _mm512_roundscale_ps(_mm512_mul_ps(x, V::all(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
  const __m512 r = V::fma(t, V::all(-1.42860677e-6f), V::fma(t, V::all(-0.693145752f), x));
  __m512 p = V::fma(r, V::all(1.38888889e-3f), V::all(8.33333333e-3f));
  p = V::fma(p, r, V::all(4.16666667e-2f));
  p = V::fma(p, r, V::all(1.66666667e-1f));
  p = V::fma(p, r, V::all(0.5f));
  p = _mm512_add_ps(V::fma(p, V::mul(r, r), r), V::all(1.0f));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, V::all(-87.33f), _CMP_NLT_UQ), p, t);
}

// In place: e^(x - top) of a row, 0 from `count` up to `padded`. Returns the sum; top is 0 where all are -inf.
inline float exponentials(float* row, int64_t count, int64_t padded, float* top) {
  __m512 most = V::all(-kInfinity);
  for (int64_t j = 0; j < count; j += W)
    most = _mm512_mask_max_ps(most, first_lanes<float>(count - j), V::load(row + j), most);
  const float m = _mm512_reduce_max_ps(most);
  *top = m == -kInfinity ? 0.0f : m;
  const __m512 shift = V::all(*top);
  __m512 sum = V::zero();
  int64_t j = 0;
  for (; j < count; j += W) {
    const auto lanes = first_lanes<float>(count - j);
    const __m512 e = _mm512_maskz_mov_ps(lanes, exp_below_one(_mm512_sub_ps(V::load(row + j), shift)));
    V::store(row + j, e);
    sum = _mm512_add_ps(sum, e);
  }
  for (; j < padded; j += W) V::store(row + j, V::zero());
  return _mm512_reduce_add_ps(sum);
}

}  // namespace
}  // namespace rl::cpu
