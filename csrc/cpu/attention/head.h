// One head of attention, and rows of its weights, in AVX-512 registers.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/view.h"
#include "cpu/attention/attention.h"
#include "cpu/gemm/microkernel_avx512.h"
#include "cpu/simd/exp.h"

namespace rl::RL_ISA {
namespace {

template <class T> constexpr T kInfinity = std::numeric_limits<T>::infinity();

inline int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// Heads of reduced-precision types are widened when they are read, and narrowed when they are written.
inline bool is_half(const View& v) { return v.dtype == DType::BFloat16 || v.dtype == DType::Float16; }
inline void widen_row(const View& v, const uint16_t* from, int64_t count, float* to) {
  using V = Vec<float>;
  for (int64_t j = 0; j < count; j += V::W) {
    const auto m = V::first(count - j);
    const V::Reg x = v.dtype == DType::Float16 ? V::load(reinterpret_cast<const float16*>(from + j), m)
                                               : V::load(reinterpret_cast<const bfloat16*>(from + j), m);
    V::store(to + j, x, m);
  }
}
inline void narrow_row(const View& v, const float* from, int64_t count, uint16_t* to) {
  using V = Vec<float>;
  for (int64_t j = 0; j < count; j += V::W) {
    const auto m = V::first(count - j);
    const V::Reg x = V::load(from + j, m);
    if (v.dtype == DType::Float16) V::store(reinterpret_cast<float16*>(to + j), x, m);
    else V::store(reinterpret_cast<bfloat16*>(to + j), x, m);
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
      return V::select(those, V::zero(), V::all(T(-1)));
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
        V::store(row + j, V::select(those, x, V::all(-kInfinity<T>)));
      } else {
        V::store(row + j, x + V::load(add + j, lanes));
      }
    }
  }
};

// In place: e^(x - top) of a row, 0 from `count` up to `padded`. Returns the sum; top is 0 where all are -inf.
template <class T> T exponentials(T* row, int64_t count, int64_t padded, T* top) {
  using V = Vec<T>;
  constexpr int W = V::W;
  typename V::Reg most = V::all(-kInfinity<T>);
  for (int64_t j = 0; j < count; j += W) most = V::max(first_lanes<T>(count - j), V::load(row + j), most);
  const T m = V::largest(most);
  *top = m == -kInfinity<T> ? T(0) : m;
  const typename V::Reg shift = V::all(*top);
  typename V::Reg sum = V::zero();
  int64_t j = 0;
  for (; j < count; j += W) {
    const typename V::Reg e = V::select(first_lanes<T>(count - j), exp_below_one(V::load(row + j) - shift));
    V::store(row + j, e);
    sum += e;
  }
  for (; j < padded; j += W) V::store(row + j, V::zero());
  return V::sum(sum);
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
