// logsumexp along one dimension, also as its two summands: the maximum, and the logarithm of the sum of e^(x -
// maximum). A loss needs them separately: their sum has lost the digits of the logarithm where the maximum is large.
#include "cpu/isa.h"
#include "cpu/reduce/kernels.h"
#include "cpu/simd/math.h"
#include "cpu/simd/vec_exp.h"
#include "cpu/simd/vec_parts.h"
#include "cpu/softmax/rows.h"

namespace rl::RL_ISA {
namespace {

// At most kRowsAtOnce contiguous rows: the maxima and the logarithms.
template <class C> void log_sum_rows(const C* x, int64_t x_stride, C* m, C* y, int64_t rows, int64_t n) {
  exp_sums(x, x_stride, static_cast<C*>(nullptr), 0, rows, n, m, y);
#pragma GCC ivdep
  for (int64_t r = 0; r < rows; ++r) y[r] = RL_ISA::log(y[r]);
}

// The same of n columns side by side, up to kWidth; m and y have room for kWidth.
template <class C> void log_sum_columns(const C* x, int64_t stride, C* m, C* s, int64_t n, int64_t rows) {
  MaxOp<C> greatest;
  for (int64_t j = 0; j < kWidth; ++j) m[j] = -kInf<C>, s[j] = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += kLanes<C>)
      store_vec(m + j, greatest.merge(load_vec(m + j), load_part(x + r * stride + j, n - j, -kInf<C>)));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += kLanes<C>)
      store_vec<C>(s + j,
                   load_vec(s + j) + exp_below_one(load_part(x + r * stride + j, n - j, -kInf<C>) - load_vec(m + j)));
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) s[j] = RL_ISA::log(s[j]);
}

// What is written: the sum (an infinite maximum is the result), or both, of the computing type.
template <class T> struct SumWriter {
  T* out;
  template <class C> void operator()(int64_t o, int64_t stride, const C* m, const C* y, int64_t n) const {
    for (int64_t r = 0; r < n; ++r) out[o + r * stride] = static_cast<T>(abs_(m[r]) < kInf<C> ? m[r] + y[r] : m[r]);
  }
};
template <class C> struct PairWriter {
  C *greatest, *log;
  void operator()(int64_t o, int64_t stride, const C* m, const C* y, int64_t n) const {
    for (int64_t r = 0; r < n; ++r) {
      greatest[o + r * stride] = m[r];
      log[o + r * stride] = abs_(m[r]) < kInf<C> ? y[r] : kNan<C>;
    }
  }
};

template <class T, class Write> void log_sums_of(const View& out, const View& in, int dim, const Write& write) {
  using C = compute_t<T>;
  ReducePlan plan(out, in);
  int64_t n = in.ndim ? in.sizes[dim] : 1, stride = in.ndim ? in.strides[dim] : 1;
  if (plan.outputs && n == 0) {
    plan.count = 1;
    return for_rows(plan, 1, [&](int64_t, int64_t o, int64_t, int64_t rows) {
      const C none = -kInf<C>;
      for (int64_t r = 0; r < rows; ++r) write(o + r * plan.kout[0], 1, &none, &none, 1);
    });
  }
  if (plan.columns && stride != 1 && plan.kin[0] == 1 && plan.kout[0] == 1)
    return for_units(plan, 6, [&](const ReducePlan::Unit& u) {
      alignas(64) C m[kWidth], sums[kWidth];
      if constexpr (is_half_v<T>) {  // as floats beside them
        const int64_t most = std::min(u.n, std::max<int64_t>(16, 65536 / n));
        Scratch<C> block(n * most);
        for (int64_t j = 0; j < u.n; j += most) {
          const int64_t width = std::min(most, u.n - j);
          for (int64_t r = 0; r < n; ++r) widen(in.as<T>() + u.in + r * stride + j, block.get() + r * width, width);
          log_sum_columns(block.get(), width, m, sums, width, n);
          write(u.out + j, 1, m, sums, width);
        }
      } else {
        log_sum_columns(in.as<T>() + u.in, stride, m, sums, u.n, n);
        write(u.out, 1, m, sums, u.n);
      }
    });
  for_rows(plan, 6, [&](int64_t i, int64_t o, int64_t, int64_t rows) {
    const T* p = in.as<T>() + i;
    C m[kRowsAtOnce], sums[kRowsAtOnce];
    bool direct = false;
    if constexpr (!is_half_v<T>) {
      direct = stride == 1;
      if (direct) log_sum_rows(p, plan.kin[0], m, sums, rows, n);
    }
    if (!direct)
      together(rows, n, [&](int64_t r, int64_t some) {
        Scratch<C> scratch(some * n);
        C* block = scratch.get();
        gather_rows(p + r * plan.kin[0], plan.kin[0], stride, some, n, block);
        log_sum_rows(block, n, m + r, sums + r, some, n);
      });
    write(o, plan.kout[0], m, sums, rows);
  });
}

}  // namespace

void logsumexp(const View& out, const View& in, int dim) {
  visit_float(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    log_sums_of<T>(out, in, dim, SumWriter<T>{out.as<T>()});
  });
}

void log_sums(const View& greatest, const View& log, const View& in, int dim) {
  visit_float(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    log_sums_of<T>(log, in, dim, PairWriter<C>{greatest.as<C>(), log.as<C>()});
  });
}

}  // namespace rl::RL_ISA
