// Extrema and the index where they come first. NaN is larger than all and smaller than all.
#include "cpu/isa.h"
#include "cpu/reduce/kernels.h"
#include "cpu/reduce/ops.h"

namespace rl::RL_ISA {
namespace {

template <class C> struct Position {
  C value;
  int64_t index;
};

template <bool largest, class C> [[gnu::always_inline]] inline bool better(C a, C b) {
  bool further = largest ? a > b : a < b;
  if constexpr (is_real_float<C>) return further | ((a != a) & (b == b));
  else return further;
}

// Elements [r0, r1) of a row: the extremum block by block, then its index inside the block that had it.
template <bool largest, class C>
Position<C> index_in_row(const Source<C>& in, int64_t offset, int64_t stride, int64_t r0, int64_t r1) {
  using Op = std::conditional_t<largest, MaxOp<C>, MinOp<C>>;
  RunBuffer<C> buffer;
  Position<C> best{};
  int64_t block = -1;
  for (int64_t r = r0; r < r1; r += kBlock) {
    int64_t n = std::min(kBlock, r1 - r);
    C m = reduce_block(Op{}, in.run(offset + r * stride, stride, n, buffer.get()), n);
    if (block < 0 || better<largest>(m, best.value)) best.value = m, block = r;
  }
  int64_t i = 0, n = std::min(kBlock, r1 - block);
  const C* q = in.run(offset + block * stride, stride, n, buffer.get());
  if (best.value != best.value) {
    while (q[i] == q[i]) ++i;
  } else {
    unsigned here = 0;
    for (; i + kLanes<C> <= n && !here; i += kLanes<C>) here = lane_bits(load_vec(q + i) == best.value);
    if (here) i += __builtin_ctz(here) - kLanes<C>;
    else
      while (q[i] != best.value) ++i;
  }
  best.index = block + i;
  return best;
}

// n rows side by side, with stride `step`. Indices are counted from r0 in 32 bits, to be of a float's width.
template <bool largest, class C> void index_in_columns(const Source<C>& in, int64_t offset, int64_t n, int64_t step,
                                                       int64_t row_stride, int64_t r0, int64_t r1, Position<C>* out) {
  alignas(64) C value[kWidth];
  alignas(64) int32_t index[kWidth];
  RunBuffer<C> buffer;
  for (int64_t from = r0; from < r1; from += INT32_MAX) {
    int64_t to = std::min<int64_t>(r1, from + INT32_MAX);
    for (int64_t r = from; r < to; ++r) {
      const C* __restrict x = in.run(offset + r * row_stride, step, n, buffer.get());
      if (r == from) {
        for (int64_t j = 0; j < n; ++j) value[j] = x[j], index[j] = 0;
        continue;
      }
      int32_t here = static_cast<int32_t>(r - from);
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) {
        bool take = better<largest>(x[j], value[j]);
        value[j] = take ? x[j] : value[j];
        index[j] = take ? here : index[j];
      }
    }
    for (int64_t j = 0; j < n; ++j)
      if (from == r0 || better<largest>(value[j], out[j].value)) out[j] = {value[j], from + index[j]};
  }
}

// Narrow rows that follow each other: as many as fill registers run as one. Of equal ones the first counts.
template <bool largest, class C>
void index_in_narrow(const Source<C>& in, int64_t offset, int64_t n, int64_t r0, int64_t r1, Position<C>* out) {
  const int64_t group = rows_in_group(n), wide = group * n, groups = (r1 - r0) / group, start = r0 + groups * group;
  Position<C> all[kWidth];
  index_in_columns<largest>(in, offset + r0 * n, wide, 1, wide, 0, groups, all);
  for (int64_t j = 0; j < n; ++j) {
    Position<C> best{};
    for (int64_t g = 0; g < group; ++g) {
      const Position<C> here{all[g * n + j].value, r0 + all[g * n + j].index * group + g};
      const bool behind = better<largest>(best.value, here.value);
      if (g == 0 || better<largest>(here.value, best.value) || (!behind && here.index < best.index)) best = here;
    }
    out[j] = best;
  }
  if (start == r1) return;
  index_in_columns<largest>(in, offset, n, 1, n, start, r1, all);
  for (int64_t j = 0; j < n; ++j)
    if (better<largest>(all[j].value, out[j].value)) out[j] = all[j];
}

// Lines of a few rows (see ReducePlan::short_lines), as reduce_lines takes them: values and indices of `lines` * n.
template <bool largest, class C, class I> void index_in_groups(const C* p, int64_t lines, int64_t safe, int64_t line,
                                                               int64_t n, int64_t rows, int64_t row_stride, C* values,
                                                               I* positions) {
  constexpr int64_t L = kLanes<C>;
  int64_t l = 0;
  for (; l < (n >= L ? lines : safe); ++l, p += line, values += n, positions += n)
    line_registers<L>(n, [&](int64_t j) __attribute__((always_inline)) {
      const C* x = p + j;
      Vec<C> best = load_vec(x);
      Vec<I> index = {};
      for (int64_t r = 1; r < rows; ++r) {
        const Vec<C> here = load_vec(x += row_stride);
        auto take = largest ? here > best : here < best;
        if constexpr (is_real_float<C>) take |= (here != here) & (best == best);
        best = take ? here : best;
        index = take ? Vec<I>{} + static_cast<I>(r) : index;
      }
      store_vec(values + j, best);
      store_vec(positions + j, index);
    });
  for (; l < lines; ++l, p += line, values += n, positions += n)
    for (int64_t j = 0; j < n; ++j) {
      values[j] = p[j], positions[j] = 0;
      for (int64_t r = 1; r < rows; ++r)
        if (better<largest>(p[r * row_stride + j], values[j]))
          values[j] = p[r * row_stride + j], positions[j] = static_cast<I>(r);
    }
}

// Extrema with their indices along one dimension, in the order of a plan.
template <bool largest, class C> struct Extrema {
  const View* values;  // or null
  const View& indices;
  const Source<C>& source;
  const ReducePlan& plan;
  int64_t stride = plan.rin[0];

  // The extrema of a unit over [r0, r1) of the reduced dimension.
  void part(const ReducePlan::Unit& u, int64_t r0, int64_t r1, Position<C>* out) const {
    if (plan.narrow_rows(u.n, r1 - r0)) return index_in_narrow<largest>(source, u.in, u.n, r0, r1, out);
    if (plan.columns) return index_in_columns<largest>(source, u.in, u.n, plan.kin[0], stride, r0, r1, out);
    auto rows = [&](const Source<C>& from, int64_t offset, int64_t count, Position<C>* to) {
      for (int64_t j = 0; j < count; ++j) to[j] = index_in_row<largest>(from, offset + j * plan.kin[0], stride, r0, r1);
    };
    if (each_buffered(source, plan, u, r1 - r0, [&](const Source<C>& buffered, int64_t first, int64_t count) {
          rows(buffered, 0, count, out + first);
        }))
      return;
    rows(source, u.in, u.n, out);
  }
  // value(j) of n elements goes to the values from `to` on.
  template <class Value> void store_values(int64_t n, int64_t to, int64_t step, Value value) const {
    if (!values) return;
    visit_compute(values->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!is_complex_v<T>) {
        T* v = values->as<T>() + to;
        for (int64_t j = 0; j < n; ++j) v[j * step] = static_cast<T>(value(j));
      }
    });
  }
  void store(const ReducePlan::Unit& u, const Position<C>* positions) const {
    int64_t* o = indices.as<int64_t>() + u.out;
    for (int64_t j = 0; j < u.n; ++j) o[j * plan.kout[0]] = positions[j].index;
    store_values(u.n, u.out2, plan.kout2[0], [&](int64_t j) { return positions[j].value; });
  }

  // Lines shorter than a vector, several at a time; false if these are none.
  bool run_short() const {
    const bool dense = !values || (plan.kout2[0] == 1 && (plan.kept == 1 || plan.kout2[1] == plan.ksize[0]));
    if (!plan.short_lines() || !dense) return false;
    const bool direct = source.direct();
    const ShortLines cut(plan, !direct);
    if (!cut.fits()) return false;
    cut.each(kLanes<C>, [&](int64_t from, int64_t to, int64_t lines, int64_t n, int64_t safe) {
      using I = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
      alignas(64) C value[kWidth];
      alignas(64) I index[kWidth];
      RunBuffer<C> buffer;
      const C* p = direct ? source.at(from) : source.run(from, 1, cut.span(lines, n, stride), buffer.get());
      index_in_groups<largest>(p, lines, direct ? safe : lines, cut.line, n, cut.rows, stride, value, index);
      int64_t* o = indices.as<int64_t>() + to;
      for (int64_t j = 0; j < lines * n; ++j) o[j] = index[j];
      store_values(lines * n, to, 1, [&](int64_t j) { return value[j]; });
    });
    return true;
  }
  // Each unit by one thread.
  void run_units(int64_t units) const {
    const int64_t work = std::max<int64_t>(1, plan.outputs * plan.count / units);
    parallel_for(0, units, std::max<int64_t>(1, kPieceWork / work), [&](int64_t first, int64_t last) {
      Position<C> positions[kWidth];
      for (int64_t i = first; i < last; ++i) {
        const ReducePlan::Unit u = plan.unit(i);
        part(u, 0, plan.count, positions);
        store(u, positions);
      }
    });
  }
  // The reduced dimension in chunks, for few and long units.
  void run_chunks(int64_t units, int64_t chunks) const {
    const int64_t width = std::min(plan.width, plan.ksize[0]);
    auto parts = std::make_unique_for_overwrite<Position<C>[]>(static_cast<size_t>(units * chunks * width));
    parallel_for(0, units * chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t chunk = i % chunks;
        part(plan.unit(i / chunks), plan.count * chunk / chunks, plan.count * (chunk + 1) / chunks,
             parts.get() + i * width);
      }
    });
    for (int64_t i = 0; i < units; ++i) {
      const ReducePlan::Unit u = plan.unit(i);
      Position<C>* base = parts.get() + i * chunks * width;
      for (int64_t c = 1; c < chunks; ++c)
        for (int64_t j = 0; j < u.n; ++j)
          if (better<largest>(base[c * width + j].value, base[j].value)) base[j] = base[c * width + j];
      store(u, base);
    }
  }
};

template <bool largest, class C>
void extremum_of(const View* values, const View& indices, const View& in, const Source<C>& source) {
  const ReducePlan plan(indices, in, values);
  if (plan.outputs == 0) return;
  const Extrema<largest, C> run{values, indices, source, plan};
  if (run.run_short()) return;
  const int64_t units = plan.units_per_line() * plan.lines(), chunks = plan.chunks(units);
  if (chunks == 1) run.run_units(units);
  else run.run_chunks(units, chunks);
}

template <class C>
void extremum_in(bool largest, const View* values, const View& indices, const View& in, const Source<C>& source) {
  if (largest) extremum_of<true>(values, indices, in, source);
  else extremum_of<false>(values, indices, in, source);
}

}  // namespace

void extremum(bool largest, const View* values, const View& indices, const View& in, int) {
  switch (in.dtype) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32: return extremum_in(largest, values, indices, in, float_source(in, Map::None));
    case DType::Float64: return extremum_in(largest, values, indices, in, double_source(in, Map::None));
    default: return extremum_in(largest, values, indices, in, int_source(in));
  }
}

}  // namespace rl::RL_ISA
