// The body of every reduction: blocks of a row, or columns side by side, then trees over the partial results.
// An operation is a small object with
//   Acc, Part         the type of results, and of partial results inside a block of kBlock elements
//   kVector           whether map and merge also work on Vec<Part> (floats only)
//   map(x)            element -> Part;  merge(a, b) -> a (x) b;  empty() -> the identity, as Acc
//   finish(a)         the last step, once per result
#pragma once
#include <memory>

#include "cpu/reduce_plan.h"
#include "cpu/vec.h"

namespace rl::RL_ISA {

// Eight vectors side by side, then one, then the lanes, then the rest. An operation with kOrders compares:
// NaN is watched for apart, so that the comparison itself is one instruction.
template <class Op, class C> [[gnu::noinline]] typename Op::Acc reduce_block(const Op& op, const C* p, int64_t n) {
  using P = typename Op::Part;
  if constexpr (Op::kVector) {
    constexpr int L = kLanes<C>, K = 8;
    if (n >= L) {
      auto merge = [&](const auto& a, const auto& b) __attribute__((always_inline)) {
        if constexpr (Op::kOrders) return op.merge_numbers(a, b);
        else return op.merge(a, b);
      };
      decltype(Vec<C>{} == Vec<C>{}) odd{};
      auto at = [&](int64_t i) __attribute__((always_inline)) {
        Vec<C> x = op.map(load_vec(p + i));
        if constexpr (Op::kOrders) odd |= x != x;
        return x;
      };
      Vec<C> r = at(0);
      int64_t i = L;
      if (n >= K * L) {
        Vec<C> a = r, b = at(L), c = at(2 * L), d = at(3 * L), e = at(4 * L), f = at(5 * L), g = at(6 * L),
               h = at(7 * L);
        for (i = K * L; i + K * L <= n; i += K * L) {
          a = merge(a, at(i)), b = merge(b, at(i + L)), c = merge(c, at(i + 2 * L)), d = merge(d, at(i + 3 * L));
          e = merge(e, at(i + 4 * L)), f = merge(f, at(i + 5 * L)), g = merge(g, at(i + 6 * L)),
          h = merge(h, at(i + 7 * L));
        }
        r = merge(merge(merge(a, b), merge(c, d)), merge(merge(e, f), merge(g, h)));
      }
      for (; i + L <= n; i += L) r = merge(r, at(i));
      alignas(32) C lane[L];
      store_vec(lane, r);
      if constexpr (Op::kOrders) {
        alignas(32) decltype(odd[0] + 0) flags[L];
        __builtin_memcpy(flags, &odd, sizeof odd);
        decltype(odd[0] + 0) some = 0;
        for (int j = 0; j < L; ++j) some |= flags[j];
        if (some) return std::numeric_limits<C>::quiet_NaN();
      }
      for (int half = L / 2; half; half /= 2)
        for (int j = 0; j < half; ++j) lane[j] = op.merge(lane[j], lane[j + half]);
      C last = lane[0];
      for (; i < n; ++i) last = op.merge(last, op.map(p[i]));
      return last;
    }
  }
  if constexpr (!Op::kVector && !std::is_integral_v<P>) {  // in halves, as a block of vectors is in lanes
    if (n > 64) return op.merge(reduce_block(op, p, n / 2), reduce_block(op, p + n / 2, n - n / 2));
  }
  P r = op.map(p[0]);
  for (int64_t i = 1; i < n; ++i) r = op.merge(r, op.map(p[i]));
  return static_cast<typename Op::Acc>(r);
}

// n <= kBlock elements of any stride as a contiguous run of the compute type; `buffer` holds kBlock.
template <class T> [[gnu::always_inline]] inline const compute_t<T>* contiguous_run(const T* p, int64_t stride,
                                                                                    int64_t n, compute_t<T>* buffer) {
  if constexpr (is_half_v<T>) {
    if (stride == 1) {
      widen(p, buffer, n);
      return buffer;
    }
  } else {
    if (stride == 1) return p;
  }
  for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<compute_t<T>>(p[i * stride]);
  return buffer;
}

// Room for one run, only where it can be needed.
template <class T> struct RunBuffer {
  alignas(32) char bytes[kBlock * sizeof(compute_t<T>)];
  compute_t<T>* get() { return reinterpret_cast<compute_t<T>*>(bytes); }
};

// The elements of `p` numbered [r0, r1) of the plan's reduced dimensions; at least one.
template <class Op, class T>
typename Op::Acc reduce_row(const Op& op, const T* p, const ReducePlan& plan, int64_t r0, int64_t r1) {
  using A = typename Op::Acc;
  RunBuffer<T> buffer;
  int64_t stride = plan.rin[0];
  if (plan.reduced == 1 && r1 - r0 <= kBlock) {
    int64_t n = r1 - r0;
    return reduce_block(op, contiguous_run(p + r0 * stride, stride, n, buffer.get()), n);
  }
  auto merge = [&](A a, A b) { return op.merge(a, b); };
  Tree<A, decltype(merge)> tree(merge);
  plan.runs(r0, r1, [&](int64_t offset, int64_t n) {
    const T* q = p + offset;
    for (; n > 0; n -= kBlock, q += kBlock * stride) {
      int64_t m = std::min(n, kBlock);
      tree.push(reduce_block(op, contiguous_run(q, stride, m, buffer.get()), m));
    }
  });
  return tree.result(op.empty());
}

// `n` outputs side by side, `step` apart in the input. Sums go up three levels of at most 32 rows or results
// each, so that no accumulator takes many more additions than that.
template <class Op, class T> void reduce_columns(const Op& op, const T* p, int64_t n, int64_t step,
                                                 const ReducePlan& plan, int64_t r0, int64_t r1,
                                                 typename Op::Acc* result) {
  using A = typename Op::Acc;
  using C = compute_t<T>;
  constexpr int kLevels = 3, kFan = 32;
  alignas(64) char memory[kLevels][kWidth * sizeof(A)];
  A* level[kLevels + 1];
  for (int l = 0; l < kLevels; ++l) level[l] = reinterpret_cast<A*>(memory[l]);
  level[kLevels] = result;
  int used[kLevels + 1] = {};
  RunBuffer<T> buffer;

  auto fold = [&](int l) {  // adds level l into the next one
    A* __restrict up = level[l + 1];
    const A* __restrict low = level[l];
    if (used[l + 1]++) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) up[j] = op.merge(up[j], low[j]);
    } else {
      std::copy(low, low + n, up);
    }
    used[l] = 0;
  };
  auto make_room = [&] {
    for (int l = 0; l < kLevels && used[l] >= kFan; ++l) fold(l);
  };
  auto row = [&](const T* q) {
    const C* x;
    if constexpr (is_half_v<T>) {
      x = contiguous_run(q, step, n, buffer.get());
    } else if (step == 1) {
      x = q;
    } else {
      A* __restrict acc = level[0];
      if (used[0]++) {
        for (int64_t j = 0; j < n; ++j) acc[j] = op.merge(acc[j], static_cast<A>(op.map(q[j * step])));
      } else {
        for (int64_t j = 0; j < n; ++j) acc[j] = static_cast<A>(op.map(q[j * step]));
      }
      return;
    }
    A* __restrict acc = level[0];
    if (used[0]++) {
      int64_t j = 0;
      if constexpr (Op::kVector)
        for (; j + kLanes<A> <= n; j += kLanes<A>)
          store_vec(acc + j, op.merge(load_vec(acc + j), op.map(load_vec(x + j))));
#pragma GCC ivdep
      for (; j < n; ++j) acc[j] = op.merge(acc[j], static_cast<A>(op.map(x[j])));
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) acc[j] = static_cast<A>(op.map(x[j]));
    }
  };
  auto four_rows = [&](const C* q, int64_t apart) {
    const C *x = q, *y = q + apart, *z = q + 2 * apart, *w = q + 3 * apart;
    A* __restrict acc = level[0];
    auto sum = [&](int64_t j) {
      return op.merge(op.merge(static_cast<A>(op.map(x[j])), static_cast<A>(op.map(y[j]))),
                      op.merge(static_cast<A>(op.map(z[j])), static_cast<A>(op.map(w[j]))));
    };
    int64_t j = 0;
    if constexpr (Op::kVector) {
      for (; j + kLanes<A> <= n; j += kLanes<A>) {
        auto s = op.merge(op.merge(op.map(load_vec(x + j)), op.map(load_vec(y + j))),
                          op.merge(op.map(load_vec(z + j)), op.map(load_vec(w + j))));
        store_vec(acc + j, used[0] ? op.merge(load_vec(acc + j), s) : s);
      }
    }
    if (used[0]) {
#pragma GCC ivdep
      for (; j < n; ++j) acc[j] = op.merge(acc[j], sum(j));
    } else {
#pragma GCC ivdep
      for (; j < n; ++j) acc[j] = sum(j);
    }
    used[0] += 4;
  };
  plan.runs(r0, r1, [&](int64_t offset, int64_t rows) {
    const T* q = p + offset;
    int64_t apart = plan.rin[0], r = 0;
    if constexpr (!is_half_v<T>) {
      if (step == 1)
        for (; r + 4 <= rows; r += 4, q += 4 * apart) {
          make_room();
          four_rows(q, apart);
        }
    }
    for (; r < rows; ++r, q += apart) {
      make_room();
      row(q);
    }
  });
  for (int l = 0; l < kLevels; ++l)
    if (used[l]) fold(l);
}

template <class Op, class T, class Store>
void reduce_unit(const Op& op, const T* in, const ReducePlan& plan, const ReducePlan::Unit& u, const Store& store) {
  using A = typename Op::Acc;
  alignas(64) char memory[kWidth * sizeof(A)];
  A* acc = reinterpret_cast<A*>(memory);
  if (plan.columns) {
    reduce_columns(op, in + u.in, u.n, plan.kin[0], plan, 0, plan.count, acc);
  } else if (plan.count == 0) {
    for (int64_t j = 0; j < u.n; ++j) acc[j] = op.empty();
  } else {
    for (int64_t j = 0; j < u.n; ++j) acc[j] = reduce_row(op, in + u.in + j * plan.kin[0], plan, 0, plan.count);
  }
  store(u, acc);
}

// store(unit, acc) finishes and writes the unit's results.
template <class Op, class T, class Store>
void reduce_run(const Op& op, const T* in, const ReducePlan& plan, const Store& store) {
  using A = typename Op::Acc;
  if (plan.outputs == 0) return;
  int64_t units = plan.units_per_line() * plan.lines(), chunks = plan.chunks(units);
  int64_t work = std::max<int64_t>(1, plan.outputs * std::max<int64_t>(plan.count, 1) / units);
  if (chunks == 1) {
    if (units == 1) return reduce_unit(op, in, plan, plan.unit(0), store);
    parallel_for(0, units, std::max<int64_t>(1, kPieceWork / work), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) reduce_unit(op, in, plan, plan.unit(i), store);
    });
    return;
  }
  // Few outputs: cut the reduced elements into equal chunks, then join the chunks' results.
  int64_t width = std::min(kWidth, plan.ksize[0]);
  auto partial = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(units * chunks * width) * sizeof(A));
  A* parts = reinterpret_cast<A*>(partial.get());
  parallel_for(0, units * chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int64_t chunk = i % chunks;
      int64_t r0 = plan.count / chunks * chunk + std::min(chunk, plan.count % chunks);
      int64_t r1 = r0 + plan.count / chunks + (chunk < plan.count % chunks);
      ReducePlan::Unit u = plan.unit(i / chunks);
      A* acc = parts + i * width;
      if (plan.columns) {
        reduce_columns(op, in + u.in, u.n, plan.kin[0], plan, r0, r1, acc);
      } else {
        for (int64_t j = 0; j < u.n; ++j) acc[j] = reduce_row(op, in + u.in + j * plan.kin[0], plan, r0, r1);
      }
    }
  });
  for (int64_t i = 0; i < units; ++i) {
    ReducePlan::Unit u = plan.unit(i);
    A* base = parts + i * chunks * width;
    for (int64_t gap = 1; gap < chunks; gap *= 2)
      for (int64_t c = 0; c + gap < chunks; c += 2 * gap)
        for (int64_t j = 0; j < u.n; ++j)
          base[c * width + j] = op.merge(base[c * width + j], base[(c + gap) * width + j]);
    store(u, base);
  }
}

// Writes finished results as O, `stride` apart.
template <class A, class O> void store_results(const A* acc, int64_t n, void* out, int64_t stride) {
  O* o = static_cast<O*>(out);
  for (int64_t j = 0; j < n; ++j) o[j * stride] = static_cast<O>(acc[j]);
}
template <class A> using StoreResults = void (*)(const A*, int64_t, void*, int64_t);

template <class Op, class T>
void reduce_into(const Op& op, const View& out, const View& in, StoreResults<typename Op::Acc> store_as) {
  using A = typename Op::Acc;
  int64_t size = itemsize(out.dtype);
  if (in.ndim == 1 && in.strides[0] == 1 && in.sizes[0] > 0 && in.sizes[0] <= kBlock) {  // the small common case
    RunBuffer<T> buffer;
    if (out.sizes[0] == 1) {
      A r = op.finish(reduce_block(op, contiguous_run(in.as<T>(), 1, in.sizes[0], buffer.get()), in.sizes[0]));
      return store_as(&r, 1, out.data, 1);
    }
  }
  ReducePlan plan(out, in);
  reduce_run(op, in.as<T>(), plan, [&](const ReducePlan::Unit& u, A* acc) {
    for (int64_t j = 0; j < u.n; ++j) acc[j] = op.finish(acc[j]);
    store_as(acc, u.n, static_cast<char*>(out.data) + u.out * size, plan.kout[0]);
  });
}

}  // namespace rl::RL_ISA
