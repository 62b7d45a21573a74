// The body of every reduction: blocks of a row, or columns side by side, then trees over the partial results.
// An operation is a small object with
//   Acc, Part         the type of results, and of partial results inside a block of kBlock elements
//   kVector           whether map and merge also work on Vec<Part>
//   kRun              how many elements in a row go as one block
//   map(x)            element -> Part;  merge(a, b) -> a (x) b;  empty() -> the identity, as Acc
#pragma once
#include <memory>

#include "cpu/reduce/plan.h"
#include "cpu/reduce/source.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {

// The last `count` lanes of x, in front of them what changes nothing: an extreme can be taken twice.
template <class Op, class V> [[gnu::always_inline]] inline V last_lanes(const Op& op, V x, int64_t count) {
  if constexpr (Op::kOrders) {
    return x;
  } else {
    using C = typename Op::Part;
    static constexpr auto kFirst = [] {
      constexpr int L = kLanes<C>;
      struct {
        std::conditional_t<sizeof(C) == 4, int32_t, int64_t> ones[2 * L] = {};
      } table;
      for (int j = 0; j < L; ++j) table.ones[L + j] = -1;
      return table;
    }();
    return load_vec(kFirst.ones + count) ? x : V{} + op.empty();
  }
}

// Eight vectors side by side, then one, the last of them in part, then the lanes. An operation with kOrders compares:
// NaN is checked separately, so that the comparison itself is one instruction.
template <class Op, class C> [[gnu::noinline]] typename Op::Acc reduce_block(const Op& op, const C* p, int64_t n) {
  using P = typename Op::Part;
  if constexpr (Op::kVector) {
    using E = std::conditional_t<is_half_v<C>, P, C>;  // fp16 and bf16 are widened as they are read
    constexpr int L = kLanes<E>, K = 8;
    if (n >= L) {
      auto merge = [&](const auto& a, const auto& b) __attribute__((always_inline)) {
        if constexpr (Op::kOrders) return op.merge_values(a, b);
        else return op.merge(a, b);
      };
      decltype(Vec<E>{} == Vec<E>{}) odd{};
      auto at = [&](int64_t i) __attribute__((always_inline)) {
        Vec<E> x = op.map(load_vec(p + i));
        if constexpr (Op::kOrders) odd |= x != x;
        return x;
      };
      Vec<E> r = at(0);
      int64_t i = L;
      if (n >= K * L) {
        Vec<E> a = r, b = at(L), c = at(2 * L), d = at(3 * L), e = at(4 * L), f = at(5 * L), g = at(6 * L),
               h = at(7 * L);
        for (i = K * L; i + K * L <= n; i += K * L) {
          a = merge(a, at(i)), b = merge(b, at(i + L)), c = merge(c, at(i + 2 * L)), d = merge(d, at(i + 3 * L));
          e = merge(e, at(i + 4 * L)), f = merge(f, at(i + 5 * L)), g = merge(g, at(i + 6 * L)),
          h = merge(h, at(i + 7 * L));
        }
        r = merge(merge(merge(a, b), merge(c, d)), merge(merge(e, f), merge(g, h)));
      }
      for (; i + L <= n; i += L) r = merge(r, at(i));
      if (i < n) r = merge(r, last_lanes(op, at(n - L), n - i));
      alignas(32) E lane[L];
      store_vec(lane, r);
      if constexpr (Op::kOrders) {
        alignas(32) decltype(odd[0] + 0) flags[L];
        __builtin_memcpy(flags, &odd, sizeof odd);
        decltype(odd[0] + 0) some = 0;
        for (int j = 0; j < L; ++j) some |= flags[j];
        if (some) return std::numeric_limits<E>::quiet_NaN();
      }
      for (int half = L / 2; half; half /= 2)
        for (int j = 0; j < half; ++j) lane[j] = op.merge(lane[j], lane[j + half]);
      return lane[0];
    }
  }
  if constexpr (!Op::kVector && !std::is_integral_v<P>) {  // in two halves, as a block of vectors is in lanes
    if (n > 64) return op.merge(reduce_block(op, p, n / 2), reduce_block(op, p + n / 2, n - n / 2));
    if (n >= 8) {  // four side by side: one need not wait for the other
      P a = op.map(p[0]), b = op.map(p[1]), c = op.map(p[2]), d = op.map(p[3]);
      int64_t i = 4;
      for (; i + 4 <= n; i += 4) {
        a = op.merge(a, op.map(p[i])), b = op.merge(b, op.map(p[i + 1]));
        c = op.merge(c, op.map(p[i + 2])), d = op.merge(d, op.map(p[i + 3]));
      }
      for (; i < n; ++i) a = op.merge(a, op.map(p[i]));
      return static_cast<typename Op::Acc>(op.merge(op.merge(a, b), op.merge(c, d)));
    }
  }
  auto element = [&](int64_t i) {
    if constexpr (is_half_v<C>) return static_cast<P>(p[i]);
    else return p[i];
  };
  P r = op.map(element(0));
  for (int64_t i = 1; i < n; ++i) r = op.merge(r, op.map(element(i)));
  return static_cast<typename Op::Acc>(r);
}
// Operations so cheap that widening fp16 and bf16 through memory would take longer.
template <class Op> inline constexpr bool kWidensItself = requires { requires Op::kWidens; };
// A block at `at`, of n elements with stride `stride`; at most kBlock of them where they go through the buffer.
template <class Op, class C> [[gnu::always_inline]] inline typename Op::Acc block_at(const Op& op, const Source<C>& in,
                                                                                     int64_t at, int64_t stride,
                                                                                     int64_t n, C* buffer) {
  if constexpr (kWidensItself<Op>) {
    if (stride == 1 && in.half == DType::BFloat16)
      return reduce_block(op, reinterpret_cast<const bfloat16*>(in.data) + at, n);
    if (stride == 1 && in.half == DType::Float16)
      return reduce_block(op, reinterpret_cast<const float16*>(in.data) + at, n);
  }
  return reduce_block(op, in.run(at, stride, n, buffer), n);
}

// `n` outputs side by side, with stride `step` in the input. Sums go up three levels of at most 32 rows or results
// each, so that no accumulator takes many more additions than that.
template <class Op, class C> void reduce_columns(const Op& op, const Source<C>& in, int64_t offset, int64_t n,
                                                 int64_t step, const ReducePlan& plan, int64_t r0, int64_t r1,
                                                 typename Op::Acc* result) {
  using A = typename Op::Acc;
  constexpr int kLevels = 3, kFan = 32;
  alignas(64) char memory[kLevels][kWidth * sizeof(A)];
  A* level[kLevels + 1];
  for (int l = 0; l < kLevels; ++l) level[l] = reinterpret_cast<A*>(memory[l]);
  const bool few = r1 - r0 <= kFan;  // one level will do
  level[few ? 0 : kLevels] = result;
  int used[kLevels + 1] = {};
  RunBuffer<C> buffer;

  // Copies of n: a byte written could be one of the captured variable's.
  auto merge_into = [&](A* __restrict acc, const C* __restrict x) {
    const int64_t m = n;
    int64_t j = 0;
    if constexpr (Op::kVector)
      for (; j + kLanes<A> <= n; j += kLanes<A>)
        store_vec(acc + j, op.merge(load_vec(acc + j), op.map(load_vec(x + j))));
#pragma GCC ivdep
    for (; j < m; ++j) acc[j] = op.merge(acc[j], static_cast<A>(op.map(x[j])));
  };
  auto fold = [&](int l) {  // adds level l into the next one
    A* __restrict up = level[l + 1];
    const A* __restrict low = level[l];
    const int64_t m = n;
    if (used[l + 1]++) {
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) up[j] = op.merge(up[j], low[j]);
    } else {
      std::copy(low, low + n, up);
    }
    used[l] = 0;
  };
  auto reserve_ahead = [&] {
    for (int l = 0; l < kLevels && used[l] >= kFan; ++l) fold(l);
  };
  auto row = [&](int64_t at) {
    const C* x = in.run(at, step, n, buffer.get());
    A* __restrict acc = level[0];
    if (used[0]++) return merge_into(acc, x);
    const int64_t m = n;
#pragma GCC ivdep
    for (int64_t j = 0; j < m; ++j) acc[j] = static_cast<A>(op.map(x[j]));
  };
  auto four_rows = [&](const auto* q, int64_t row_stride) {
    const auto *x = q, *y = q + row_stride, *z = q + 2 * row_stride, *w = q + 3 * row_stride;
    A* __restrict acc = level[0];
    const int64_t m = n;
    int64_t j = 0;
    const bool some = used[0] != 0;
    used[0] += 4;
    if constexpr (Op::kVector) {
      for (; j + kLanes<A> <= n; j += kLanes<A>) {
        auto s = op.merge(op.merge(op.map(load_vec(x + j)), op.map(load_vec(y + j))),
                          op.merge(op.map(load_vec(z + j)), op.map(load_vec(w + j))));
        store_vec(acc + j, some ? op.merge(load_vec(acc + j), s) : s);
      }
    }
#pragma GCC ivdep
    for (; j < m; ++j) {
      auto one = [&](const auto* row) {
        if constexpr (is_half_v<std::remove_cvref_t<decltype(*row)>>) return op.map(static_cast<A>(row[j]));
        else return static_cast<A>(op.map(row[j]));
      };
      A s = op.merge(op.merge(one(x), one(y)), op.merge(one(z), one(w)));
      acc[j] = some ? op.merge(acc[j], s) : s;
    }
  };
  plan.runs(r0, r1, [&](int64_t at, int64_t rows) {
    at += offset;
    int64_t row_stride = plan.rin[0], r = 0;
    auto by_four = [&](const auto* from) {
      for (; r + 4 <= rows; r += 4, at += 4 * row_stride) {
        reserve_ahead();
        four_rows(from + at, row_stride);
      }
    };
    if (step == 1 && in.direct()) by_four(in.at(0));
    if constexpr (kWidensItself<Op>) {
      if (step == 1 && in.half == DType::BFloat16) by_four(reinterpret_cast<const bfloat16*>(in.data));
      if (step == 1 && in.half == DType::Float16) by_four(reinterpret_cast<const float16*>(in.data));
    }
    for (; r < rows; ++r, at += row_stride) {
      reserve_ahead();
      row(at);
    }
  });
  for (int l = 0; l < kLevels && !few; ++l)
    if (used[l]) fold(l);
}

// The elements numbered [r0, r1) of the plan's reduced dimensions, counted from `offset`; at least one.
template <class Op, class C> typename Op::Acc reduce_row(const Op& op, const Source<C>& in, int64_t offset,
                                                         const ReducePlan& plan, int64_t r0, int64_t r1) {
  using A = typename Op::Acc;
  RunBuffer<C> buffer;
  int64_t stride = plan.rin[0];
  if (plan.reduced == 1 && r1 - r0 <= kBlock) {
    int64_t n = r1 - r0;
    return block_at(op, in, offset + r0 * stride, stride, n, buffer.get());
  }
  // Many short runs: they are merged element by element first, as columns.
  const int64_t w = plan.rsize[0];
  if (plan.reduced == 2 && stride == 1 && w >= 8 && w <= kWidth && r0 % w == 0 && r1 % w == 0 && r1 > r0) {
    alignas(64) char memory[kWidth * sizeof(A)];
    A* acc = reinterpret_cast<A*>(memory);
    reduce_columns(op, in, offset, w, 1, ReducePlan(plan.rin[1]), r0 / w, r1 / w, acc);
    for (int64_t left = w, half; left > 1; left -= half) {
      half = left / 2;
#pragma GCC ivdep
      for (int64_t j = 0; j < half; ++j) acc[j] = op.merge(acc[j], acc[left - half + j]);
    }
    return acc[0];
  }
  auto merge = [&](A a, A b) { return op.merge(a, b); };
  Tree<A, decltype(merge)> tree(merge);
  const int64_t block = stride == 1 && in.direct() ? Op::kRun : kBlock;
  plan.runs(r0, r1, [&](int64_t at, int64_t n) {
    for (at += offset; n > 0; n -= block, at += block * stride) {
      int64_t m = std::min(n, block);
      tree.push(block_at(op, in, at, stride, m, buffer.get()));
    }
  });
  return tree.result(op.empty());
}

// Lanes of a, then of b, in rows of 2 H: the first (kPart = 0) or second H of each row.
template <int H, int kPart, class V> [[gnu::always_inline]] inline V row_halves(V a, V b) {
  return simd::permute<[](int lane) { return lane / H * 2 * H + lane % H + kPart * H; }>(a, b);
}
// kUnit: lanes of one number, which stay together.
template <int H, class Op, class C, int kUnit = 1, class V>
[[gnu::always_inline]] inline V merge_lanes(const Op& op, V* rows) {
  if constexpr (H < kUnit) {
    return rows[0];
  } else {
#pragma GCC unroll 8
    for (int k = 0; k < H / kUnit; ++k)
      rows[k] =
          op.merge(row_halves<H, 0>(rows[2 * k], rows[2 * k + 1]), row_halves<H, 1>(rows[2 * k], rows[2 * k + 1]));
    return merge_lanes<H / 2, Op, C, kUnit>(op, rows);
  }
}
// As many short rows as a register has lanes, each merged in the order of reduce_block.
template <class Op, class C> Vec<C> reduce_short_rows(const Op& op, const C* p, int64_t row_stride, int64_t n) {
  constexpr int L = kLanes<C>;
  auto column = [&](int64_t i) {
    Vec<C> x;
    for (int r = 0; r < L; ++r) x[r] = p[r * row_stride + i];
    return op.map(x);
  };
  if (n >= L) {
    Vec<C> rows[L];
    int64_t i = L;
#pragma GCC unroll 8
    for (int r = 0; r < L; ++r) rows[r] = op.map(load_vec(p + r * row_stride));
    for (; i + L <= n; i += L)
#pragma GCC unroll 8
      for (int r = 0; r < L; ++r) rows[r] = op.merge(rows[r], op.map(load_vec(p + r * row_stride + i)));
    if (i < n)
#pragma GCC unroll 8
      for (int r = 0; r < L; ++r)
        rows[r] = op.merge(rows[r], last_lanes(op, op.map(load_vec(p + r * row_stride + n - L)), n - i));
    return merge_lanes<L / 2, Op, C>(op, rows);
  }
  Vec<C> result = column(0);
  for (int64_t i = 1; i < n; ++i) result = op.merge(result, column(i));
  return result;
}

// Narrow rows that follow each other: as many as fill registers run as one, then what each of them gave is joined.
template <class Op, class C>
void reduce_narrow(const Op& op, const Source<C>& in, int64_t offset, int64_t n, int64_t rows, typename Op::Acc* acc) {
  using A = typename Op::Acc;
  const int64_t group = rows_in_group(n), width = group * n, groups = rows / group, left = rows % group;
  alignas(64) char memory[kWidth * sizeof(A)];
  A* all = reinterpret_cast<A*>(memory);
  reduce_columns(op, in, offset, width, 1, ReducePlan(width), 0, groups, all);
  for (int64_t some = group; some > 1;) {
    const int64_t half = some / 2;
    some -= half;
    const A* from = all + some * n;
#pragma GCC ivdep
    for (int64_t j = 0; j < half * n; ++j) all[j] = op.merge(all[j], from[j]);
  }
  if (left) reduce_columns(op, in, offset + groups * width, n, 1, ReducePlan(n), 0, left, acc);
  for (int64_t j = 0; j < n; ++j) acc[j] = left ? op.merge(all[j], acc[j]) : all[j];
}

// Short rows that follow each other, of elements that are read through a buffer: f(source, first, count) for as many of
// them as it holds, then as a source of its own. False where it is not so.
template <class C, class F>
bool each_buffered(const Source<C>& in, const ReducePlan& plan, const ReducePlan::Unit& u, int64_t n, const F& f) {
  if (in.direct() || plan.columns || plan.reduced != 1 || plan.rin[0] != 1 || plan.kin[0] != n) return false;
  if (n != plan.count || n < 1 || 4 * n > kBlock || u.n < 2) return false;
  RunBuffer<C> buffer;
  const int64_t some = kBlock / n;
  for (int64_t j = 0; j < u.n; j += some) {
    const int64_t count = std::min(some, u.n - j);
    const C* rows = in.run(u.in + j * n, 1, count * n, buffer.get());
    f(Source<C>{reinterpret_cast<const char*>(rows), sizeof(C), nullptr, nullptr}, j, count);
  }
  return true;
}

template <class Op, class C> void reduce_part(const Op& op, const Source<C>& in, const ReducePlan& plan,
                                              const ReducePlan::Unit& u, int64_t r0, int64_t r1,
                                              typename Op::Acc* acc) {
  if constexpr (Op::kVector && std::is_same_v<typename Op::Acc, C>) {
    constexpr int L = kLanes<C>;
    const int64_t row_stride = plan.kin[0], n = r1 - r0;
    if (in.direct() && plan.reduced == 1 && plan.rin[0] == 1 && row_stride > 1 && n > 0 && n < 8 * L) {
      int64_t j = 0;
      for (; j + L <= u.n; j += L)
        store_vec(acc + j, reduce_short_rows(op, in.at(u.in + j * row_stride + r0), row_stride, n));
      for (; j < u.n; ++j) acc[j] = reduce_block(op, in.at(u.in + j * row_stride + r0), n);
      return;
    }
  }
  if constexpr (requires { short_pair_rows(op, in.at(0), r0, r0, r0, acc); }) {  // complex numbers
    if (in.direct() && plan.reduced == 1 && plan.rin[0] == 1 && plan.kin[0] > 1 &&
        short_pair_rows(op, in.at(u.in + r0), plan.kin[0], u.n, r1 - r0, acc))
      return;
  }
  if (each_buffered(in, plan, u, r1 - r0, [&](const Source<C>& rows, int64_t first, int64_t count) {
        reduce_part(op, rows, plan, {0, 0, 0, count}, 0, plan.count, acc + first);
      }))
    return;
  if (plan.narrow_rows(u.n, r1 - r0)) return reduce_narrow(op, in, u.in + r0 * u.n, u.n, r1 - r0, acc);
  if (plan.columns) return reduce_columns(op, in, u.in, u.n, plan.kin[0], plan, r0, r1, acc);
  for (int64_t j = 0; j < u.n; ++j)
    acc[j] = r1 > r0 ? reduce_row(op, in, u.in + j * plan.kin[0], plan, r0, r1) : op.empty();
}

// f(column, last) for each register of a line of n; the last one lies back over the one before it, and where a line is
// less than a register, it goes beyond.
template <int64_t kStep, class F> [[gnu::always_inline]] inline void line_registers(int64_t n, const F& f) {
  int64_t j = 0;
  for (; j + kStep <= n; j += kStep) f(j);
  if (j < n) f(j ? n - kStep : 0);
}
// `lines` lines of n outputs, each of `rows` rows with stride `stride`. The first `safe` lines may be read and written
// a register beyond their end: what follows is there, and its results come later.
template <class Op, class C> void reduce_lines(const Op& op, const C* p, int64_t lines, int64_t safe, int64_t line,
                                               int64_t n, int64_t rows, int64_t row_stride, typename Op::Acc* acc) {
  using A = typename Op::Acc;
  int64_t l = 0;
  if constexpr (Op::kVector && std::is_same_v<A, C>) {
    constexpr int64_t L = kLanes<C>;
    auto one = [&](int64_t j) __attribute__((always_inline)) {
      const C* x = p + j;
      Vec<C> sum = op.map(load_vec(x));
      for (int64_t r = 1; r < rows; ++r) sum = op.merge(sum, op.map(load_vec(x += row_stride)));
      store_vec(acc + j, sum);
    };
    // Two lines of memory at once: rows whose stride is some pages drive each other from the cache before the next
    // comes.
    auto four = [&](int64_t j) __attribute__((always_inline)) {
      const C* x = p + j;
      Vec<C> a = op.map(load_vec(x)), b = op.map(load_vec(x + L)), c = op.map(load_vec(x + 2 * L)),
             d = op.map(load_vec(x + 3 * L));
      for (int64_t r = 1; r < rows; ++r) {
        x += row_stride;
        a = op.merge(a, op.map(load_vec(x))), b = op.merge(b, op.map(load_vec(x + L)));
        c = op.merge(c, op.map(load_vec(x + 2 * L))), d = op.merge(d, op.map(load_vec(x + 3 * L)));
      }
      store_vec(acc + j, a), store_vec(acc + j + L, b), store_vec(acc + j + 2 * L, c), store_vec(acc + j + 3 * L, d);
    };
    for (; l < (n >= L ? lines : safe); ++l, p += line, acc += n) {
      int64_t j = 0;
      for (; j + 4 * L <= n; j += 4 * L) four(j);
      if (j == 0) {
        line_registers<L>(n, one);
        continue;
      }
      for (; j + L <= n; j += L) one(j);
      if (j < n) one(n - L);
    }
  }
  for (; l < lines; ++l, p += line, acc += n) {
    for (int64_t j = 0; j < n; ++j) {
      A sum = static_cast<A>(op.map(p[j]));
      for (int64_t r = 1; r < rows; ++r) sum = op.merge(sum, static_cast<A>(op.map(p[r * row_stride + j])));
      acc[j] = sum;
    }
  }
}

// Many lines at once (see ReducePlan::short_lines); false where it is not so.
template <class Op, class C>
bool reduce_short_lines(const Op& op, const Source<C>& in, const ReducePlan& plan,
                        FunctionRef<void(const ReducePlan::Unit&, typename Op::Acc*)> store) {
  using A = typename Op::Acc;
  if (!plan.short_lines()) return false;
  const bool direct = in.direct();
  const ShortLines cut(plan, !direct);
  if (!cut.fits()) return false;
  cut.each(kLanes<C>, [&](int64_t from, int64_t to, int64_t lines, int64_t n, int64_t safe) {
    alignas(64) char memory[kWidth * sizeof(A)];
    A* acc = reinterpret_cast<A*>(memory);
    RunBuffer<C> buffer;
    const C* p = direct ? in.at(from) : in.run(from, 1, cut.span(lines, n, plan.rin[0]), buffer.get());
    reduce_lines(op, p, lines, direct ? safe : lines, cut.line, n, cut.rows, plan.rin[0], acc);
    store({0, to, 0, lines * n}, acc);
  });
  return true;
}

// store(unit, acc) writes the unit's results.
template <class Op, class C> void reduce_run(const Op& op, const Source<C>& in, const ReducePlan& plan,
                                             FunctionRef<void(const ReducePlan::Unit&, typename Op::Acc*)> store) {
  using A = typename Op::Acc;
  if (plan.outputs == 0 || reduce_short_lines(op, in, plan, store)) return;
  int64_t units = plan.units_per_line() * plan.lines(), chunks = plan.chunks(units);
  int64_t work = std::max<int64_t>(1, plan.outputs * std::max<int64_t>(plan.count, 1) / units);
  if (chunks == 1) {
    auto some_units = [&](int64_t first, int64_t last) {
      alignas(64) char memory[kWidth * sizeof(A)];
      A* acc = reinterpret_cast<A*>(memory);
      for (int64_t i = first; i < last; ++i) {
        ReducePlan::Unit u = plan.unit(i);
        reduce_part(op, in, plan, u, 0, plan.count, acc);
        store(u, acc);
      }
    };
    if (units == 1) return some_units(0, 1);
    return parallel_for(0, units, std::max<int64_t>(1, kPieceWork / work), some_units);
  }
  // Few outputs: cut the reduced elements into equal chunks, then join the chunks' results.
  int64_t width = std::min(plan.width, plan.ksize[0]);
  auto partial = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(units * chunks * width) * sizeof(A));
  A* parts = reinterpret_cast<A*>(partial.get());
  parallel_for(0, units * chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int64_t c = i % chunks;
      reduce_part(op, in, plan, plan.unit(i / chunks), plan.count * c / chunks, plan.count * (c + 1) / chunks,
                  parts + i * width);
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

// Writes n results, with stride `stride`, after the last step of the operation (a mean's division, a norm's root).
template <class A> using Finish = FunctionRef<void(A* acc, int64_t n, char* out, int64_t stride)>;

template <class Op, class C> void reduce_into(const Op& op, const View& out, const View& in, const Source<C>& source,
                                              Finish<typename Op::Acc> finish) {
  using A = typename Op::Acc;
  if (in.ndim == 1 && in.strides[0] == 1 && in.sizes[0] > 0 && in.sizes[0] <= kBlock && out.sizes[0] == 1) {
    RunBuffer<C> buffer;  // the small common case, without a plan
    A r = reduce_block(op, source.run(0, 1, in.sizes[0], buffer.get()), in.sizes[0]);
    return finish(&r, 1, out.as<char>(), 1);
  }
  ReducePlan plan(out, in);
  int64_t size = itemsize(out.dtype);
  reduce_run(op, source, plan,
             [&](const ReducePlan::Unit& u, A* acc) { finish(acc, u.n, out.as<char>() + u.out * size, plan.kout[0]); });
}

}  // namespace rl::RL_ISA
