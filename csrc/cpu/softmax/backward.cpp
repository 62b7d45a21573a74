// The gradients of softmax and log_softmax.
#include "cpu/features.h"
#include "cpu/isa.h"
#include "cpu/reduce/kernels.h"
#include "cpu/simd/vec_exp.h"
#include "cpu/simd/vec_parts.h"
#include "cpu/softmax/columns_avx512.h"
#include "cpu/softmax/rows.h"

namespace rl::RL_ISA {
namespace {

// dx = y (dy - sum(y dy)), or for the logarithm dx = dy - exp(y) sum(dy).
template <class C> void softmax_grad_row(bool log, const C* dy, const C* y, C* dx, int64_t n) {
  double total = 0;
  for (int64_t b = 0; b < n; b += kBlock) {
    int64_t end = std::min(n, b + kBlock);
    Vec<C> s{};
    for (int64_t i = b; i < end; i += kLanes<C>) {
      Vec<C> d = load_part(dy + i, end - i, C(0));
      s += log ? d : d * load_part(y + i, end - i, C(0));
    }
    total += lane_sum<C>(s);
  }
  C t = static_cast<C>(total);
  if (log) {
    for (int64_t i = 0; i < n; i += kLanes<C>) {
      Vec<C> d = load_part(dy + i, n - i, C(0)), e = exp_vec(load_part(y + i, n - i, C(0)));
      store_part<C>(dx + i, n - i, d - e * t);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - t);
  }
}

template <class T> void softmax_grad_of(bool log, const View& dx, const View& dy, const View& y, int dim) {
  using C = compute_t<T>;
  OneRow rows(dx, dim), rows2(dy, dim);
  ReducePlan plan(rows.view, y, &rows2.view);
  int64_t n = y.ndim ? y.sizes[dim] : 1;
  int64_t y_stride = y.ndim ? y.strides[dim] : 1, dy_stride = dy.ndim ? dy.strides[dim] : 1,
          x_stride = dx.ndim ? dx.strides[dim] : 1;
  const bool columns = plan.columns && y_stride != 1 && plan.kin[0] == 1 && plan.kout[0] == 1;
  static const SoftmaxGrad<T> columns_avx512 = has_avx512() ? &avx512::softmax_grad_columns<T> : nullptr,
                              rows_avx512 = has_avx512() ? &avx512::softmax_grad_rows<T> : nullptr;
  if (columns) plan.width = kStripBytes / static_cast<int64_t>(sizeof(C));
  if (columns && columns_avx512 && plan.kout2[0] == 1) {
    return for_units(plan, 2, [&](const ReducePlan::Unit& u) {
      columns_avx512(log, dy.as<T>() + u.out2, dy_stride, y.as<T>() + u.in, y_stride, dx.as<T>() + u.out, x_stride, n,
                     u.n);
    });
  }
  if (columns && plan.kout2[0] <= 1 && !is_half_v<T>) {
    return for_units(plan, 8, [&](const ReducePlan::Unit& u) {
      alignas(64) C s[kWidth] = {};
      const T *yp = y.as<T>() + u.in, *dp = dy.as<T>() + u.out2;
      T* xp = dx.as<T>() + u.out;
      int64_t ds = plan.kout2[0];
      for (int64_t r = 0; r < n; ++r) {
        const T *a = yp + r * y_stride, *d = dp + r * dy_stride;
        if (log) {
#pragma GCC ivdep
          for (int64_t j = 0; j < u.n; ++j) s[j] += static_cast<C>(d[j * ds]);
        } else {
#pragma GCC ivdep
          for (int64_t j = 0; j < u.n; ++j) s[j] += static_cast<C>(d[j * ds]) * static_cast<C>(a[j]);
        }
      }
      for (int64_t r = 0; r < n; ++r) {
        const T *a = yp + r * y_stride, *d = dp + r * dy_stride;
        T* o = xp + r * x_stride;
        if constexpr (!is_half_v<T>) {
          if (log) {
            for (int64_t j = 0; j < u.n; j += kLanes<C>) {
              alignas(32) C g[kLanes<C>];
              for (int64_t k = 0; k < kLanes<C>; ++k) g[k] = j + k < u.n ? d[(j + k) * ds] : C(0);
              store_part<C>(o + j, u.n - j, load_vec(g) - exp_vec(load_part(a + j, u.n - j, C(0))) * load_vec(s + j));
            }
          } else {
#pragma GCC ivdep
            for (int64_t j = 0; j < u.n; ++j) o[j] = a[j] * (d[j * ds] - s[j]);
          }
        }
      }
    });
  }
  for_rows(plan, 6, [&](int64_t yo, int64_t xo, int64_t dyo, int64_t count) {
    const T *yp = y.as<T>() + yo, *dp = dy.as<T>() + dyo;
    T* xp = dx.as<T>() + xo;
    if (rows_avx512 && y_stride == 1 && dy_stride == 1 && x_stride == 1)
      return rows_avx512(log, dp, plan.kout2[0], yp, plan.kin[0], xp, plan.kout[0], count, n);
    if constexpr (!is_half_v<T>) {
      if (y_stride == 1 && dy_stride == 1 && x_stride == 1) {
        for (int64_t r = 0; r < count; ++r, yp += plan.kin[0], dp += plan.kout2[0], xp += plan.kout[0])
          softmax_grad_row(log, dp, yp, xp, n);
        return;
      }
    }
    together(count, n, [&](int64_t r, int64_t some) {
      Scratch<C> scratch(2 * some * n);
      C *a = scratch.get(), *d = a + some * n;
      gather_rows(yp + r * plan.kin[0], plan.kin[0], y_stride, some, n, a);
      gather_rows(dp + r * plan.kout2[0], plan.kout2[0], dy_stride, some, n, d);
      for (int64_t k = 0; k < some; ++k) softmax_grad_row(log, d + k * n, a + k * n, d + k * n, n);
      scatter_rows(d, xp + r * plan.kout[0], plan.kout[0], x_stride, some, n);
    });
  });
}

}  // namespace

void softmax_grad(bool log, const View& dx, const View& dy, const View& y, int dim) {
  visit_float(y.dtype, [&](auto tag) { softmax_grad_of<typename decltype(tag)::type>(log, dx, dy, y, dim); });
}

}  // namespace rl::RL_ISA
