// The rows of softmax: maxima and sums of exponentials.
#include "cpu/softmax/max_sum.h"

#include <algorithm>

#include "cpu/features.h"
#include "cpu/reduce/ops.h"
#include "cpu/simd/math.h"
#include "cpu/simd/vec_exp.h"
#include "cpu/simd/vec_parts.h"

namespace rl::RL_ISA {
namespace {

template <class C> C row_max(const C* x, int64_t n) {
  C m = -kInf<C>;
  for (int64_t i = 0; i < n; i += kBlock)
    m = MaxOp<C>{}.merge(m, reduce_block(MaxOp<C>{}, x + i, std::min(kBlock, n - i)));
  return m;
}

// sum(exp(x - m)); writes the terms to `terms` unless it is null.
template <bool write, class C> double sum_exp(const C* x, C m, C* terms, int64_t n) {
  double total = 0;
  for (int64_t b = 0; b < n; b += kBlock) {
    int64_t end = std::min(n, b + kBlock);
    Vec<C> s{}, t{};
    int64_t i = b;
    for (; i + 2 * kLanes<C> <= end; i += 2 * kLanes<C>) {
      Vec<C> e = exp_below_one(load_vec(x + i) - m), f = exp_below_one(load_vec(x + i + kLanes<C>) - m);
      s += e, t += f;
      if constexpr (write) store_vec(terms + i, e), store_vec(terms + i + kLanes<C>, f);
    }
    for (; i < end; i += kLanes<C>) {
      Vec<C> e = exp_below_one(load_part(x + i, end - i, -kInf<C>) - m);
      s += e;
      if constexpr (write) store_part(terms + i, end - i, e);
    }
    total += lane_sum<C>(s + t);
  }
  return total;
}

}  // namespace

template <class C>
void exp_sums(const C* x, int64_t x_stride, C* y, int64_t y_stride, int64_t rows, int64_t n, C* greatest, C* sums) {
  static const ExpSums<C> wide = has_avx512() ? &avx512::exp_sums<C> : nullptr;
  if (wide) return wide(x, x_stride, y, y_stride, rows, n, greatest, sums);
  for (int64_t r = 0; r < rows; ++r, x += x_stride) {
    C m = greatest[r] = row_max(x, n);
    const double total = y ? sum_exp<true>(x, m, y, n) : sum_exp<false>(x, m, y, n);
    sums[r] = static_cast<C>(total);
    if (!y) continue;
    const C scale = static_cast<C>(1 / total);
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
    y += y_stride;
  }
}

template void exp_sums(const float*, int64_t, float*, int64_t, int64_t, int64_t, float*, float*);
template void exp_sums(const double*, int64_t, double*, int64_t, int64_t, int64_t, double*, double*);

}  // namespace rl::RL_ISA
