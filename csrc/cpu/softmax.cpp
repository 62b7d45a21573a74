// softmax, log_softmax, their gradients and logsumexp along one dimension.
#include <cmath>
#include <vector>

#include "cpu/isa.h"
#include "cpu/reduce_ops.h"
#include "cpu/reduce_table.h"
#include "cpu/simd_math.h"
#include "cpu/softmax_rows.h"
#include "cpu/vec_exp.h"

namespace rl::RL_ISA {
namespace {

template <class C> inline constexpr C kNegInf = -std::numeric_limits<C>::infinity();

#ifdef __AVX2__
// Ones for the first `left` lanes.
template <class I> [[gnu::always_inline]] inline Vec<I> first_lanes(int64_t left) {
  static constexpr I kOnes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return load_vec(kOnes + 8 - left);
}
[[gnu::always_inline]] inline Vec<float> masked_load(const float* p, Vec<int32_t> mask) {
  return __builtin_ia32_maskloadps256(reinterpret_cast<const Vec<float>*>(p), mask);
}
[[gnu::always_inline]] inline Vec<double> masked_load(const double* p, Vec<long long> mask) {
  return __builtin_ia32_maskloadpd256(reinterpret_cast<const Vec<double>*>(p), mask);
}
[[gnu::always_inline]] inline void masked_store(float* p, Vec<int32_t> mask, Vec<float> v) {
  __builtin_ia32_maskstoreps256(reinterpret_cast<Vec<float>*>(p), mask, v);
}
[[gnu::always_inline]] inline void masked_store(double* p, Vec<long long> mask, Vec<double> v) {
  __builtin_ia32_maskstorepd256(reinterpret_cast<Vec<double>*>(p), mask, v);
}
template <class C> using MaskOf = std::conditional_t<sizeof(C) == 4, int32_t, long long>;
#endif

// The vector at p[i] of n elements, the missing ones replaced.
template <class C> [[gnu::always_inline]] inline Vec<C> load_part(const C* p, int64_t left, C fill) {
  if (left >= kLanes<C>) return load_vec(p);
#ifdef __AVX2__
  auto mask = first_lanes<MaskOf<C>>(left);
  return mask ? masked_load(p, mask) : Vec<C>{} + fill;
#else
  C lane[kLanes<C>];
  for (int j = 0; j < kLanes<C>; ++j) lane[j] = j < left ? p[j] : fill;
  return load_vec(lane);
#endif
}
template <class C> [[gnu::always_inline]] inline void store_part(C* p, int64_t left, const Vec<C>& v) {
  if (left >= kLanes<C>) return store_vec(p, v);
#ifdef __AVX2__
  masked_store(p, first_lanes<MaskOf<C>>(left), v);
#else
  C lane[kLanes<C>];
  store_vec(lane, v);
  for (int j = 0; j < left; ++j) p[j] = lane[j];
#endif
}
// The sum of the lanes, by halves.
template <class C> [[gnu::always_inline]] inline double lane_sum(const Vec<C>& v) {
  C lane[kLanes<C>];
  store_vec(lane, v);
#pragma GCC unroll 4
  for (int w = kLanes<C> / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) lane[j] += lane[j + w];
  return static_cast<double>(lane[0]);
}

template <class C> C row_max(const C* x, int64_t n) {
  C m = kNegInf<C>;
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
      Vec<C> e = exp_below_one(load_part(x + i, end - i, kNegInf<C>) - m);
      s += e;
      if constexpr (write) store_part(terms + i, end - i, e);
    }
    total += lane_sum<C>(s + t);
  }
  return total;
}

// The maxima of contiguous rows and the sums of e^(x - maximum), as ExpSums says.
template <class C>
void exp_sums(const C* x, int64_t xapart, C* y, int64_t yapart, int64_t rows, int64_t n, C* greatest, C* sums) {
  static const ExpSums<C> wide = wide_exp_sums<C>();
  if (wide) return wide(x, xapart, y, yapart, rows, n, greatest, sums);
  for (int64_t r = 0; r < rows; ++r, x += xapart) {
    C m = greatest[r] = row_max(x, n);
    const double total = y ? sum_exp<true>(x, m, y, n) : sum_exp<false>(x, m, y, n);
    sums[r] = static_cast<C>(total);
    if (!y) continue;
    const C scale = static_cast<C>(1 / total);
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
    y += yapart;
  }
}

// At most kRowsAtOnce contiguous rows; y may be x.
template <class C>
void softmax_rows(bool log, const C* x, int64_t xapart, C* y, int64_t yapart, int64_t rows, int64_t n) {
  C greatest[kRowsAtOnce], sums[kRowsAtOnce];
  exp_sums(x, xapart, log ? nullptr : y, yapart, rows, n, greatest, sums);
  if (!log) return;
#pragma GCC ivdep
  for (int64_t r = 0; r < rows; ++r) sums[r] = RL_ISA::log(sums[r]);
  for (int64_t r = 0; r < rows; ++r, x += xapart, y += yapart) {
    // One after the other: a large maximum would swallow the logarithm.
    const C m = greatest[r], rest = sums[r];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) - rest;
  }
}

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

// Scratch that grows once per piece of work.
template <class C> struct Scratch {
  std::vector<C> memory;
  C* get(int64_t n) {
    if (static_cast<int64_t>(memory.size()) < n) memory.resize(static_cast<size_t>(n));
    return memory.data();
  }
};

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
// Calls work(in, out, out2, rows) for groups of at most kRowsAtOnce rows, one step of the plan's first dimension apart.
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

// Columns side by side, up to kWidth: m and s hold their maxima and sums. Three readings of the rows.
template <class T> void softmax_columns(bool log, const T* x, int64_t step, int64_t apart, T* y, int64_t ystep,
                                        int64_t yapart, int64_t n, int64_t rows) {
  using C = compute_t<T>;
  alignas(64) C m[kWidth], s[kWidth], e[kWidth];
  RunBuffer<C> buffer;
  MaxOp<C> greatest;
  for (int64_t j = 0; j < kWidth; ++j) m[j] = kNegInf<C>, s[j] = 0;
  auto row = [&](int64_t r) -> const C* {
    if constexpr (!is_half_v<T>) {
      if (step == 1) return x + r * apart;
    }
    gather_row(x + r * apart, step, n, buffer.get());
    return buffer.get();
  };
  for (int64_t r = 0; r < rows; ++r) {
    const C* v = row(r);
    for (int64_t j = 0; j < n; j += kLanes<C>)
      store_vec(m + j, greatest.merge(load_vec(m + j), load_part(v + j, n - j, kNegInf<C>)));
  }
  for (int64_t r = 0; r < rows; ++r) {
    const C* v = row(r);
    for (int64_t j = 0; j < n; j += kLanes<C>) {
      Vec<C> t = exp_below_one(load_part(v + j, n - j, kNegInf<C>) - load_vec(m + j));
      store_vec(e + j, t);
      store_vec(s + j, load_vec(s + j) + t);
    }
    if (!log) scatter_row(e, y + r * yapart, ystep, n);
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
      scatter_row(e, y + r * yapart, ystep, n);
    } else {
      T* o = y + r * yapart;
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) o[j * ystep] = static_cast<T>(static_cast<C>(o[j * ystep]) * s[j]);
    }
  }
}

template <class T> void softmax_of(bool log, const View& out, const View& in, int dim) {
  using C = compute_t<T>;
  OneRow rows(out, dim);
  ReducePlan plan(rows.view, in);
  int64_t n = in.ndim ? in.sizes[dim] : 1, apart = in.ndim ? in.strides[dim] : 1,
          oapart = out.ndim ? out.strides[dim] : 1;
  const T* x = in.as<T>();
  T* y = out.as<T>();
  if (plan.columns && apart != 1 && plan.kin[0] == 1 && plan.kout[0] == 1) {
    return for_units(plan, 8, [&](const ReducePlan::Unit& u) {
      if constexpr (is_half_v<T>) {  // as floats beside them: they would be rounded between the steps
        thread_local Scratch<C> scratch;
        const int64_t most = std::max<int64_t>(16, 65536 / n);
        for (int64_t j = 0; j < u.n; j += most) {
          const int64_t wide = std::min(most, u.n - j);
          C* block = scratch.get(n * wide);
          for (int64_t r = 0; r < n; ++r) widen(x + u.in + r * apart + j, block + r * wide, wide);
          softmax_columns(log, block, 1, wide, block, 1, wide, wide, n);
          for (int64_t r = 0; r < n; ++r) narrow(block + r * wide, y + u.out + r * oapart + j, wide);
        }
      } else {
        softmax_columns(log, x + u.in, plan.kin[0], apart, y + u.out, plan.kout[0], oapart, u.n, n);
      }
    });
  }
  for_rows(plan, 8, [&](int64_t i, int64_t o, int64_t, int64_t count) {
    if constexpr (!is_half_v<T>) {
      if (apart == 1 && oapart == 1) return softmax_rows(log, x + i, plan.kin[0], y + o, plan.kout[0], count, n);
    }
    thread_local Scratch<C> scratch;
    together(count, n, [&](int64_t r, int64_t some) {
      C* block = scratch.get(some * n);
      gather_rows(x + i + r * plan.kin[0], plan.kin[0], apart, some, n, block);
      softmax_rows(log, block, n, block, n, some, n);
      scatter_rows(block, y + o + r * plan.kout[0], plan.kout[0], oapart, some, n);
    });
  });
}

template <class T> void softmax_grad_of(bool log, const View& dx, const View& dy, const View& y, int dim) {
  using C = compute_t<T>;
  OneRow rows(dx, dim), rows2(dy, dim);
  ReducePlan plan(rows.view, y, &rows2.view);
  int64_t n = y.ndim ? y.sizes[dim] : 1;
  int64_t yapart = y.ndim ? y.strides[dim] : 1, dapart = dy.ndim ? dy.strides[dim] : 1,
          xapart = dx.ndim ? dx.strides[dim] : 1;
  if (plan.columns && yapart != 1 && plan.kin[0] == 1 && plan.kout[0] == 1 && plan.kout2[0] <= 1 && !is_half_v<T>) {
    return for_units(plan, 8, [&](const ReducePlan::Unit& u) {
      alignas(64) C s[kWidth] = {};
      const T *yp = y.as<T>() + u.in, *dp = dy.as<T>() + u.out2;
      T* xp = dx.as<T>() + u.out;
      int64_t ds = plan.kout2[0];
      for (int64_t r = 0; r < n; ++r) {
        const T *a = yp + r * yapart, *d = dp + r * dapart;
        if (log) {
#pragma GCC ivdep
          for (int64_t j = 0; j < u.n; ++j) s[j] += static_cast<C>(d[j * ds]);
        } else {
#pragma GCC ivdep
          for (int64_t j = 0; j < u.n; ++j) s[j] += static_cast<C>(d[j * ds]) * static_cast<C>(a[j]);
        }
      }
      for (int64_t r = 0; r < n; ++r) {
        const T *a = yp + r * yapart, *d = dp + r * dapart;
        T* o = xp + r * xapart;
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
    thread_local Scratch<C> scratch;
    if constexpr (!is_half_v<T>) {
      if (yapart == 1 && dapart == 1 && xapart == 1) {
        for (int64_t r = 0; r < count; ++r, yp += plan.kin[0], dp += plan.kout2[0], xp += plan.kout[0])
          softmax_grad_row(log, dp, yp, xp, n);
        return;
      }
    }
    together(count, n, [&](int64_t r, int64_t some) {
      C *a = scratch.get(2 * some * n), *d = a + some * n;
      gather_rows(yp + r * plan.kin[0], plan.kin[0], yapart, some, n, a);
      gather_rows(dp + r * plan.kout2[0], plan.kout2[0], dapart, some, n, d);
      for (int64_t k = 0; k < some; ++k) softmax_grad_row(log, d + k * n, a + k * n, d + k * n, n);
      scatter_rows(d, xp + r * plan.kout[0], plan.kout[0], xapart, some, n);
    });
  });
}

// logsumexp of n columns side by side, up to kWidth. An infinite maximum is the result.
template <class C> void logsumexp_columns(const C* x, int64_t apart, C* y, int64_t n, int64_t rows) {
  alignas(64) C m[kWidth], s[kWidth];
  MaxOp<C> greatest;
  for (int64_t j = 0; j < kWidth; ++j) m[j] = kNegInf<C>, s[j] = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += kLanes<C>)
      store_vec(m + j, greatest.merge(load_vec(m + j), load_part(x + r * apart + j, n - j, kNegInf<C>)));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += kLanes<C>)
      store_vec<C>(s + j,
                   load_vec(s + j) + exp_below_one(load_part(x + r * apart + j, n - j, kNegInf<C>) - load_vec(m + j)));
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
      for (int64_t r = 0; r < rows; ++r) out.as<T>()[o + r * plan.kout[0]] = static_cast<T>(kNegInf<C>);
    });
  }
  if (plan.columns && apart != 1 && plan.kin[0] == 1 && plan.kout[0] == 1)
    return for_units(plan, 6, [&](const ReducePlan::Unit& u) {
      if constexpr (is_half_v<T>) {  // as floats beside them
        thread_local Scratch<C> scratch;
        const int64_t most = std::max<int64_t>(16, 65536 / n);
        for (int64_t j = 0; j < u.n; j += most) {
          const int64_t wide = std::min(most, u.n - j);
          C *block = scratch.get((n + 1) * wide), *results = block + n * wide;
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
    thread_local Scratch<C> scratch;
    if (!direct)
      together(rows, n, [&](int64_t r, int64_t some) {
        C* block = scratch.get(some * n);
        gather_rows(p + r * plan.kin[0], plan.kin[0], apart, some, n, block);
        logsumexp_rows(block, n, results + r, some, n);
      });
    for (int64_t r = 0; r < rows; ++r) out.as<T>()[o + r * plan.kout[0]] = static_cast<T>(results[r]);
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

void softmax(bool log, const View& out, const View& in, int dim) {
  visit_float(in.dtype, [&](auto tag) { softmax_of<typename decltype(tag)::type>(log, out, in, dim); });
}
void softmax_grad(bool log, const View& dx, const View& dy, const View& y, int dim) {
  visit_float(y.dtype, [&](auto tag) { softmax_grad_of<typename decltype(tag)::type>(log, dx, dy, y, dim); });
}
void logsumexp(const View& out, const View& in, int dim) {
  visit_float(in.dtype, [&](auto tag) { logsumexp_of<typename decltype(tag)::type>(out, in, dim); });
}

}  // namespace rl::RL_ISA
