// softmax and log_softmax along one dimension.
#include "cpu/features.h"
#include "cpu/isa.h"
#include "cpu/reduce/kernels.h"
#include "cpu/simd/math.h"
#include "cpu/simd/vec_exp.h"
#include "cpu/simd/vec_parts.h"
#include "cpu/softmax/columns_avx512.h"
#include "cpu/softmax/rows.h"

namespace rl::RL_ISA {
namespace {

// At most kRowsAtOnce contiguous rows; y may be x.
template <class C>
void softmax_rows(bool log, const C* x, int64_t x_stride, C* y, int64_t y_stride, int64_t rows, int64_t n) {
  C greatest[kRowsAtOnce], sums[kRowsAtOnce];
  exp_sums(x, x_stride, log ? nullptr : y, y_stride, rows, n, greatest, sums);
  if (!log) return;
#pragma GCC ivdep
  for (int64_t r = 0; r < rows; ++r) sums[r] = RL_ISA::log(sums[r]);
  for (int64_t r = 0; r < rows; ++r, x += x_stride, y += y_stride) {
    // One after the other: a large maximum would swallow the logarithm.
    const C m = greatest[r], rest = sums[r];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) - rest;
  }
}

// Columns side by side, up to kWidth: m and s hold their maxima and sums. Three readings of the rows.
template <class T> void softmax_columns(bool log, const T* x, int64_t step, int64_t stride, T* y, int64_t ystep,
                                        int64_t y_stride, int64_t n, int64_t rows) {
  using C = compute_t<T>;
  alignas(64) C m[kWidth], s[kWidth], e[kWidth];
  RunBuffer<C> buffer;
  MaxOp<C> greatest;
  for (int64_t j = 0; j < kWidth; ++j) m[j] = -kInf<C>, s[j] = 0;
  auto row = [&](int64_t r) -> const C* {
    if constexpr (!is_half_v<T>) {
      if (step == 1) return x + r * stride;
    }
    gather_row(x + r * stride, step, n, buffer.get());
    return buffer.get();
  };
  for (int64_t r = 0; r < rows; ++r) {
    const C* v = row(r);
    for (int64_t j = 0; j < n; j += kLanes<C>)
      store_vec(m + j, greatest.merge(load_vec(m + j), load_part(v + j, n - j, -kInf<C>)));
  }
  for (int64_t r = 0; r < rows; ++r) {
    const C* v = row(r);
    for (int64_t j = 0; j < n; j += kLanes<C>) {
      Vec<C> t = exp_below_one(load_part(v + j, n - j, -kInf<C>) - load_vec(m + j));
      store_vec(e + j, t);
      store_vec(s + j, load_vec(s + j) + t);
    }
    if (!log) scatter_row(e, y + r * y_stride, ystep, n);
  }
  if (log) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) s[j] = RL_ISA::log(s[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) s[j] = 1 / s[j];
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (log) {
      const C* v = row(r);
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) e[j] = (v[j] - m[j]) - s[j];
      scatter_row(e, y + r * y_stride, ystep, n);
    } else {
      T* o = y + r * y_stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) o[j * ystep] = static_cast<T>(static_cast<C>(o[j * ystep]) * s[j]);
    }
  }
}

template <class T> void softmax_of(bool log, const View& out, const View& in, int dim) {
  using C = compute_t<T>;
  OneRow rows(out, dim);
  ReducePlan plan(rows.view, in);
  int64_t n = in.ndim ? in.sizes[dim] : 1, stride = in.ndim ? in.strides[dim] : 1,
          out_stride = out.ndim ? out.strides[dim] : 1;
  const T* x = in.as<T>();
  T* y = out.as<T>();
  if (plan.columns && stride != 1 && plan.kin[0] == 1 && plan.kout[0] == 1) {
    static const SoftmaxColumns<T> wide = has_avx512() ? &avx512::softmax_columns<T> : nullptr;
    plan.width = kStripBytes / static_cast<int64_t>(sizeof(C));
    if (wide)
      return for_units(plan, 2,
                       [&](const ReducePlan::Unit& u) { wide(log, x + u.in, stride, y + u.out, out_stride, n, u.n); });
    return for_units(plan, 8, [&](const ReducePlan::Unit& u) {
      if constexpr (is_half_v<T>) {  // as floats beside them: they would be rounded between the steps
        const int64_t most = std::min(u.n, std::max<int64_t>(16, 65536 / n));
        Scratch<C> scratch(n * most);
        C* block = scratch.get();
        for (int64_t j = 0; j < u.n; j += most) {
          const int64_t width = std::min(most, u.n - j);
          for (int64_t r = 0; r < n; ++r) widen(x + u.in + r * stride + j, block + r * width, width);
          softmax_columns(log, block, 1, width, block, 1, width, width, n);
          for (int64_t r = 0; r < n; ++r) narrow(block + r * width, y + u.out + r * out_stride + j, width);
        }
      } else {
        softmax_columns(log, x + u.in, plan.kin[0], stride, y + u.out, plan.kout[0], out_stride, u.n, n);
      }
    });
  }
  for_rows(plan, 8, [&](int64_t i, int64_t o, int64_t, int64_t count) {
    if constexpr (!is_half_v<T>) {
      if (stride == 1 && out_stride == 1) return softmax_rows(log, x + i, plan.kin[0], y + o, plan.kout[0], count, n);
    }
    together(count, n, [&](int64_t r, int64_t some) {
      Scratch<C> scratch(some * n);
      C* block = scratch.get();
      gather_rows(x + i + r * plan.kin[0], plan.kin[0], stride, some, n, block);
      softmax_rows(log, block, n, block, n, some, n);
      scatter_rows(block, y + o + r * plan.kout[0], plan.kout[0], out_stride, some, n);
    });
  });
}

}  // namespace

void softmax(bool log, const View& out, const View& in, int dim) {
  visit_float(in.dtype, [&](auto tag) { softmax_of<typename decltype(tag)::type>(log, out, in, dim); });
}

}  // namespace rl::RL_ISA
