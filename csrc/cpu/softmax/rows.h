// What softmax, its gradient and logsumexp share: the rows along one dimension, listed, shared out, and copied to
// scratch memory where they are no contiguous rows.
#pragma once
#include <algorithm>

#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/reduce/ops.h"
#include "cpu/softmax/max_sum.h"

namespace rl::RL_ISA {
namespace {

template <class T> void gather_row(const T* p, int64_t stride, int64_t n, compute_t<T>* out) {
  if constexpr (is_half_v<T>) {
    if (stride == 1) return widen(p, out, n);
  }
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<compute_t<T>>(p[i * stride]);
}
template <class T> void scatter_row(const compute_t<T>* x, T* p, int64_t stride, int64_t n) {
  if constexpr (is_half_v<T>) {
    if (stride == 1) return narrow(x, p, n);
  }
  for (int64_t i = 0; i < n; ++i) p[i * stride] = static_cast<T>(x[i]);
}

// f(row, rows) for rows that are copied into scratch memory together: as many as have kTogether elements, or one.
constexpr int64_t kTogether = 8192;
template <class F> void together(int64_t count, int64_t n, F&& f) {
  const int64_t most = std::clamp<int64_t>(kTogether / std::max<int64_t>(1, n), 1, kRowsAtOnce);
  for (int64_t r = 0; r < count; r += most) f(r, std::min(most, count - r));
}
template <class T>
void gather_rows(const T* p, int64_t between, int64_t stride, int64_t rows, int64_t n, compute_t<T>* out) {
  if (stride == 1 && between == n) return gather_row(p, 1, rows * n, out);
  for (int64_t r = 0; r < rows; ++r) gather_row(p + r * between, stride, n, out + r * n);
}
template <class T>
void scatter_rows(const compute_t<T>* x, T* p, int64_t between, int64_t stride, int64_t rows, int64_t n) {
  if (stride == 1 && between == n) return scatter_row(x, p, 1, rows * n);
  for (int64_t r = 0; r < rows; ++r) scatter_row(x + r * n, p + r * between, stride, n);
}

// The view without extent along dim: what a plan needs to list the rows.
struct OneRow {
  int64_t sizes[kMaxDims];
  View view;
  OneRow(const View& v, int dim) : view(v) {
    std::copy(v.sizes, v.sizes + v.ndim, sizes);
    if (v.ndim) sizes[dim] = 1;
    view.sizes = sizes;
  }
};

// Calls work(unit) for every unit of rows; `cost` is the work of one element in additions.
template <class F> void for_units(const ReducePlan& plan, int64_t cost, const F& work) {
  if (plan.outputs == 0 || plan.count == 0) return;
  int64_t units = plan.units_per_line() * plan.lines();
  int64_t per_unit = std::max<int64_t>(1, plan.outputs * plan.count / units * cost);
  parallel_for(0, units, std::max<int64_t>(1, kPieceWork / per_unit), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) work(plan.unit(i));
  });
}
// Calls work(in, out, out2, rows) for groups of at most kRowsAtOnce rows, successive along the plan's first dimension.
// Rows are worth cutting finer than kWidth when there are few of them.
template <class F> void for_rows(const ReducePlan& plan, int64_t cost, const F& work) {
  if (plan.outputs == 0 || plan.count == 0) return;
  int64_t per_line = plan.ksize[0];
  parallel_for(0, plan.outputs, std::max<int64_t>(1, kPieceWork / (plan.count * cost)),
               [&](int64_t first, int64_t last) {
                 for (int64_t row = first, rows; row < last; row += rows) {
                   int64_t within = row % per_line, rest = row / per_line;
                   int64_t in = within * plan.kin[0], out = within * plan.kout[0], out2 = within * plan.kout2[0];
                   for (int d = 1; d < plan.kept && rest; ++d) {
                     int64_t i = rest % plan.ksize[d];
                     rest /= plan.ksize[d];
                     in += i * plan.kin[d], out += i * plan.kout[d], out2 += i * plan.kout2[d];
                   }
                   rows = std::min({kRowsAtOnce, per_line - within, last - row});
                   work(in, out, out2, rows);
                 }
               });
}

template <class F> void visit_float(DType t, F&& f) {
  switch (t) {
    case DType::Float16: return f(type_tag<float16>{});
    case DType::BFloat16: return f(type_tag<bfloat16>{});
    case DType::Float32: return f(type_tag<float>{});
    case DType::Float64: return f(type_tag<double>{});
    default: fail(ErrorKind::Runtime, "softmax is defined for floating types, got ", info(t).name);
  }
}

}  // namespace
}  // namespace rl::RL_ISA
