// One head of attention, and rows of its weights, in AVX-512 registers.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/view.h"
#include "cpu/attention/attention.h"
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::RL_ISA {
namespace {

template <class T> constexpr T kInfinity = std::numeric_limits<T>::infinity();

inline int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// What the two types' registers do under different names.
inline __m512 plus(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
inline __m512d plus(__m512d a, __m512d b) { return _mm512_add_pd(a, b); }
inline __m512 minus(__m512 a, __m512 b) { return _mm512_sub_ps(a, b); }
inline __m512d minus(__m512d a, __m512d b) { return _mm512_sub_pd(a, b); }
inline __m512 chosen(__mmask16 m, __m512 otherwise, __m512 x) { return _mm512_mask_mov_ps(otherwise, m, x); }
inline __m512d chosen(__mmask8 m, __m512d otherwise, __m512d x) { return _mm512_mask_mov_pd(otherwise, m, x); }
inline __m512 larger(__mmask16 m, __m512 a, __m512 b) { return _mm512_mask_max_ps(b, m, a, b); }
inline __m512d larger(__mmask8 m, __m512d a, __m512d b) { return _mm512_mask_max_pd(b, m, a, b); }
inline __m512 larger(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
inline __m512d larger(__m512d a, __m512d b) { return _mm512_max_pd(a, b); }
inline __mmask16 below_zero(__m512 a) { return _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_LT_OQ); }
inline __mmask8 below_zero(__m512d a) { return _mm512_cmp_pd_mask(a, _mm512_setzero_pd(), _CMP_LT_OQ); }
inline __mmask16 equal_to(__m512 a, __m512 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline __mmask8 equal_to(__m512d a, __m512d b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
inline float sum_of(__m512 x) { return _mm512_reduce_add_ps(x); }
inline double sum_of(__m512d x) { return _mm512_reduce_add_pd(x); }
inline float largest_of(__m512 x) { return _mm512_reduce_max_ps(x); }
inline double largest_of(__m512d x) { return _mm512_reduce_max_pd(x); }

// Heads of reduced-precision types are widened when they are read, and narrowed when they are written.
inline bool is_half(const View& v) { return v.dtype == DType::BFloat16 || v.dtype == DType::Float16; }
inline void widen_row(const View& v, const uint16_t* from, int64_t count, float* to) {
  for (int64_t j = 0; j < count; j += 16) {
    const __mmask16 m = first_lanes<float>(count - j);
    const __m256i x = _mm256_maskz_loadu_epi16(m, from + j);
    _mm512_mask_storeu_ps(to + j, m,
                          v.dtype == DType::Float16
                              ? _mm512_cvtph_ps(x)
                              : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)));
  }
}
inline void narrow_row(const View& v, const float* from, int64_t count, uint16_t* to) {
  for (int64_t j = 0; j < count; j += 16) {
    const __mmask16 m = first_lanes<float>(count - j);
    const __m512 x = _mm512_maskz_loadu_ps(m, from + j);
    __m256i y;
    if (v.dtype == DType::Float16) {
      y = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    } else {  // to the nearest, of two the even one; a NaN stays one
      const __m512i bits = _mm512_castps_si512(x),
                    odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
      __m512i up = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
      up = _mm512_mask_mov_epi32(up, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc0));
      y = _mm512_cvtepi32_epi16(up);
    }
    _mm256_mask_storeu_epi16(to + j, m, y);
  }
}
template <class T> class HeadReader {
 public:
  Head<T> operator()(const View& v, int64_t index, int64_t heads) {
    if constexpr (std::is_same_v<T, float>)
      if (is_half(v)) {
        const Head<uint16_t> from(v, index, heads);
        if (capacity_ < from.rows * from.width) memory_.reset(capacity_ = from.rows * from.width);
        for (int64_t r = 0; r < from.rows; ++r)
          widen_row(v, from.data + r * from.step, from.width, memory_.get() + r * from.width);
        return Head<T>(memory_.get(), v);
      }
    return Head<T>(v, index, heads);
  }

 private:
  Scratch<T> memory_;
  int64_t capacity_ = 0;
};

// What is added to the scores of one head; of a boolean mask, -inf where it is false.
template <class T> struct HeadMask {
  using V = Vec<T>;
  const View* view;
  int64_t offset = 0;
  HeadMask(const View* mask, int64_t index) : view(mask) {
    if (view) offset = index / view->sizes[1] * view->strides[0] + index % view->sizes[1] * view->strides[1];
  }
  bool chooses() const { return view->dtype == DType::Bool; }
  // What query's keys [key, key + count) get, count of a vector at most: values to add, or -1 for those not seen.
  typename V::Reg some(int64_t query, int64_t key, int64_t count) const {
    const int64_t at = offset + query * view->strides[2] + key * view->strides[3], step = view->strides[3];
    const auto lanes = first_lanes<T>(count);
    if (step == 1 && !chooses()) return V::load(view->as<T>() + at, lanes);
    if (step == 1) {
      const __m128i bytes = _mm_maskz_loadu_epi8(lanes, view->as<bool>() + at);
      const auto those = static_cast<typename V::Mask>(_mm_test_epi8_mask(bytes, bytes));
      return chosen(those, V::all(T(-1)), V::zero());
    }
    T row[V::W] = {};
    for (int64_t j = 0; j < count; ++j)
      row[j] = chooses() ? (view->as<bool>()[at + j * step] ? T(0) : T(-1)) : view->as<T>()[at + j * step];
    return V::load(row);
  }
  // A row has room for whole vectors.
  void apply(T* row, int64_t query, int64_t count) const {
    const int64_t at = offset + query * view->strides[2], step = view->strides[3];
    const bool* seen = view->dtype == DType::Bool ? view->as<bool>() + at : nullptr;
    const T* add = seen ? nullptr : view->as<T>() + at;
    if (step != 1) {
      for (int64_t j = 0; j < count; ++j)
        row[j] = seen ? (seen[j * step] ? row[j] : -kInfinity<T>) : row[j] + add[j * step];
      return;
    }
    for (int64_t j = 0; j < count; j += V::W) {
      const auto lanes = first_lanes<T>(count - j);
      const typename V::Reg x = V::load(row + j);
      if (seen) {
        const __m128i bytes = _mm_maskz_loadu_epi8(lanes, seen + j);
        const auto those = static_cast<typename V::Mask>(_mm_test_epi8_mask(bytes, bytes));
        V::store(row + j, chosen(those, V::all(-kInfinity<T>), x));
      } else {
        V::store(row + j, plus(x, V::load(add + j, lanes)));
      }
    }
  }
};

// e^x for x <= 0: x = n ln2 + r, 2^n P(r). Results below the smallest normal number are 0; NaN stays.
inline __m512 exp_below_one(__m512 x) {
  using V = Vec<float>;
  const __m512 t = _mm512_roundscale_ps(_mm512_mul_ps(x, V::all(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
  const __m512 r = V::fma(t, V::all(-1.42860677e-6f), V::fma(t, V::all(-0.693145752f), x));
  __m512 p = V::fma(r, V::all(1.38888889e-3f), V::all(8.33333333e-3f));
  p = V::fma(p, r, V::all(4.16666667e-2f));
  p = V::fma(p, r, V::all(1.66666667e-1f));
  p = V::fma(p, r, V::all(0.5f));
  p = _mm512_add_ps(V::fma(p, V::mul(r, r), r), V::all(1.0f));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, V::all(-87.33f), _CMP_NLT_UQ), p, t);
}
inline __m512d exp_below_one(__m512d x) {
  using V = Vec<double>;
  const __m512d t = _mm512_roundscale_pd(_mm512_mul_pd(x, V::all(1.4426950408889634)), _MM_FROUND_TO_NEAREST_INT);
  const __m512d r = V::fma(t, V::all(-1.9082149292705877e-10), V::fma(t, V::all(-0.69314718036912382), x));
  constexpr double kInverseFactorials[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                           1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                           1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5};
  __m512d p = V::all(kInverseFactorials[0]);
  for (int i = 1; i < 12; ++i) p = V::fma(p, r, V::all(kInverseFactorials[i]));
  p = _mm512_add_pd(V::fma(p, V::mul(r, r), r), V::all(1.0));
  return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, V::all(-708.3), _CMP_NLT_UQ), p, t);
}

// In place: e^(x - top) of a row, 0 from `count` up to `padded`. Returns the sum; top is 0 where all are -inf.
template <class T> T exponentials(T* row, int64_t count, int64_t padded, T* top) {
  using V = Vec<T>;
  constexpr int W = V::W;
  typename V::Reg most = V::all(-kInfinity<T>);
  for (int64_t j = 0; j < count; j += W) most = larger(first_lanes<T>(count - j), V::load(row + j), most);
  const T m = largest_of(most);
  *top = m == -kInfinity<T> ? T(0) : m;
  const typename V::Reg shift = V::all(*top);
  typename V::Reg sum = V::zero();
  int64_t j = 0;
  for (; j < count; j += W) {
    const typename V::Reg e =
        chosen(first_lanes<T>(count - j), V::zero(), exp_below_one(minus(V::load(row + j), shift)));
    V::store(row + j, e);
    sum = plus(sum, e);
  }
  for (; j < padded; j += W) V::store(row + j, V::zero());
  return sum_of(sum);
}

// Turns a row of scores into weights still to be divided by their sum, whose inverse it returns.
template <class T> T weigh(T* row, int64_t count, int64_t padded, T* lse) {
  T top;
  const T sum = exponentials(row, count, padded, &top);
  *lse = sum == T(0) ? kInfinity<T> : top + std::log(sum);
  return sum == T(0) ? T(0) : T(1) / sum;  // a query that sees nothing gets nothing
}

}  // namespace
}  // namespace rl::RL_ISA
