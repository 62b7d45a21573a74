// logsumexp along one dimension.
#include "cpu/isa.h"
#include "cpu/reduce_table.h"
#include "cpu/simd_math.h"
#include "cpu/softmax_lines.h"
#include "cpu/vec_exp.h"
#include "cpu/vec_parts.h"

namespace rl::RL_ISA {
namespace {

// At most kRowsAtOnce contiguous rows. An infinite maximum is the result.
template <class C> void logsumexp_rows(const C* x, int64_t xapart, C* y, int64_t rows, int64_t n) {
  C greatest[kRowsAtOnce], sums[kRowsAtOnce];
  exp_sums(x, xapart, static_cast<C*>(nullptr), 0, rows, n, greatest, sums);
#pragma GCC ivdep
  for (int64_t r = 0; r < rows; ++r) {
    const C m = greatest[r], sum = m + RL_ISA::log(sums[r]);
    y[r] = abs_(m) < kInf<C> ? sum : m;
  }
}

// logsumexp of n columns side by side, up to kWidth. An infinite maximum is the result.
template <class C> void logsumexp_columns(const C* x, int64_t apart, C* y, int64_t n, int64_t rows) {
  alignas(64) C m[kWidth], s[kWidth];
  MaxOp<C> greatest;
  for (int64_t j = 0; j < kWidth; ++j) m[j] = -kInf<C>, s[j] = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += kLanes<C>)
      store_vec(m + j, greatest.merge(load_vec(m + j), load_part(x + r * apart + j, n - j, -kInf<C>)));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += kLanes<C>)
      store_vec<C>(s + j,
                   load_vec(s + j) + exp_below_one(load_part(x + r * apart + j, n - j, -kInf<C>) - load_vec(m + j)));
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    C sum = m[j] + RL_ISA::log(s[j]);
    y[j] = abs_(m[j]) < kInf<C> ? sum : m[j];
  }
}

template <class T> void logsumexp_of(const View& out, const View& in, int dim) {
  using C = compute_t<T>;
  ReducePlan plan(out, in);
  int64_t n = in.ndim ? in.sizes[dim] : 1, apart = in.ndim ? in.strides[dim] : 1;
  if (plan.outputs && n == 0) {
    plan.count = 1;
    return for_rows(plan, 1, [&](int64_t, int64_t o, int64_t, int64_t rows) {
      for (int64_t r = 0; r < rows; ++r) out.as<T>()[o + r * plan.kout[0]] = static_cast<T>(-kInf<C>);
    });
  }
  if (plan.columns && apart != 1 && plan.kin[0] == 1 && plan.kout[0] == 1)
    return for_units(plan, 6, [&](const ReducePlan::Unit& u) {
      if constexpr (is_half_v<T>) {  // as floats beside them
        const int64_t most = std::min(u.n, std::max<int64_t>(16, 65536 / n));
        Scratch<C> scratch((n + 1) * most);
        for (int64_t j = 0; j < u.n; j += most) {
          const int64_t wide = std::min(most, u.n - j);
          C *block = scratch.get(), *results = block + n * wide;
          for (int64_t r = 0; r < n; ++r) widen(in.as<T>() + u.in + r * apart + j, block + r * wide, wide);
          logsumexp_columns(block, wide, results, wide, n);
          narrow(results, out.as<T>() + u.out + j, wide);
        }
      } else {
        logsumexp_columns(in.as<T>() + u.in, apart, out.as<T>() + u.out, u.n, n);
      }
    });
  for_rows(plan, 6, [&](int64_t i, int64_t o, int64_t, int64_t rows) {
    const T* p = in.as<T>() + i;
    C results[kRowsAtOnce];
    bool direct = false;
    if constexpr (!is_half_v<T>) {
      direct = apart == 1;
      if (direct) logsumexp_rows(p, plan.kin[0], results, rows, n);
    }
    if (!direct)
      together(rows, n, [&](int64_t r, int64_t some) {
        Scratch<C> scratch(some * n);
        C* block = scratch.get();
        gather_rows(p + r * plan.kin[0], plan.kin[0], apart, some, n, block);
        logsumexp_rows(block, n, results + r, some, n);
      });
    for (int64_t r = 0; r < rows; ++r) out.as<T>()[o + r * plan.kout[0]] = static_cast<T>(results[r]);
  });
}

}  // namespace

void logsumexp(const View& out, const View& in, int dim) {
  visit_float(in.dtype, [&](auto tag) { logsumexp_of<typename decltype(tag)::type>(out, in, dim); });
}

}  // namespace rl::RL_ISA
