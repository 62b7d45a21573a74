// Variance in one reading: blocks small enough to stay in cache are read again (mean, then distances from it and their
// squares) and joined by Chan's formula, so nothing cancels. The distances' sum tells what the mean lost by rounding:
// without it the means of 100 + noise, as floats, are too rough to be joined.
#include "cpu/isa.h"
#include "cpu/reduce/kernels.h"
#include "cpu/reduce/ops.h"

namespace rl::RL_ISA {
namespace {

// Count, mean and sum of squared distances from the mean, in double: joining is rare and must not lose bits.
struct Moments {
  double n, mean, m2;
};
inline Moments join(const Moments& a, const Moments& b) {
  if (a.n == 0) return b;
  if (b.n == 0) return a;
  double n = a.n + b.n, d = b.mean - a.mean;
  return {n, a.mean + d * (b.n / n), a.m2 + b.m2 + d * d * (a.n / n) * b.n};
}

template <class C> struct DistanceOp : SumOp<C> {
  C mean;
  explicit DistanceOp(C m) : mean(m) {}
  template <class X> [[gnu::always_inline]] X map(X x) const {
    X d = x - mean;
    return d * d;
  }
};

template <class C> struct DeviationOp : SumOp<C> {
  C mean;
  explicit DeviationOp(C m) : mean(m) {}
  template <class X> [[gnu::always_inline]] X map(X x) const { return x - mean; }
};

// Of n elements with a mean that may be rounded, from the sums of their distances to it and of the squares.
inline Moments corrected(double n, double mean, double sum, double squares) {
  const double m2 = squares - sum * sum / n;
  return {n, mean + sum / n, m2 < 0 ? 0 : m2};
}
// In double, where a float's square is no float.
template <class C> Moments moments_in_double(const C* x, int64_t n) {
  double mean = 0, m2 = 0;
  for (int64_t i = 0; i < n; ++i) mean += static_cast<double>(x[i]) / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - mean;
    m2 += d * d;
  }
  return {static_cast<double>(n), mean, m2};
}

template <class C> Moments block_moments(const C* x, int64_t n) {
  C mean = reduce_block(SumOp<C>{}, x, n) / static_cast<C>(n);
  C m2 = reduce_block(DistanceOp<C>(mean), x, n);
  if (sizeof(C) == 4 && !(m2 < kInf<C>)) return moments_in_double(x, n);
  return corrected(static_cast<double>(n), static_cast<double>(mean),
                   static_cast<double>(reduce_block(DeviationOp<C>(mean), x, n)), static_cast<double>(m2));
}

template <class C>
Moments row_moments(const Source<C>& in, int64_t offset, const ReducePlan& plan, int64_t r0, int64_t r1) {
  RunBuffer<C> buffer;
  Tree<Moments, Moments (*)(const Moments&, const Moments&)> tree(join);
  int64_t stride = plan.rin[0];
  plan.runs(r0, r1, [&](int64_t at, int64_t n) {
    for (at += offset; n > 0; n -= kBlock, at += kBlock * stride) {
      int64_t m = std::min(n, kBlock);
      tree.push(block_moments(in.run(at, stride, m, buffer.get()), m));
    }
  });
  return tree.result({0, 0, 0});
}

// n rows side by side: groups of up to kRows rows, each read twice.
template <class C> void column_moments(const Source<C>& in, int64_t offset, int64_t n, int64_t step,
                                       const ReducePlan& plan, int64_t r0, int64_t r1, Moments* out) {
  constexpr int64_t kRows = 32;
  alignas(64) C sum[kWidth], mean[kWidth], rest[kWidth];
  RunBuffer<C> buffer;
  for (int64_t j = 0; j < n; ++j) out[j] = {0, 0, 0};
  plan.runs(r0, r1, [&](int64_t at, int64_t rows) {
    for (int64_t first = 0; first < rows; first += kRows) {
      int64_t group = std::min(kRows, rows - first);
      int64_t base = offset + at + first * plan.rin[0];
      for (int64_t j = 0; j < n; ++j) sum[j] = 0;
      for (int64_t r = 0; r < group; ++r) {
        const C* x = in.run(base + r * plan.rin[0], step, n, buffer.get());
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) sum[j] += x[j];
      }
      C count = static_cast<C>(group);
      for (int64_t j = 0; j < n; ++j) mean[j] = sum[j] / count, sum[j] = rest[j] = 0;
      for (int64_t r = 0; r < group; ++r) {
        const C* x = in.run(base + r * plan.rin[0], step, n, buffer.get());
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) {
          C d = x[j] - mean[j];
          sum[j] += d * d, rest[j] += d;
        }
      }
      for (int64_t j = 0; j < n; ++j) {
        Moments all = corrected(static_cast<double>(group), static_cast<double>(mean[j]), static_cast<double>(rest[j]),
                                static_cast<double>(sum[j]));
        if (sizeof(C) == 4 && !(sum[j] < kInf<C>)) {
          C column[kRows];
          for (int64_t r = 0; r < group; ++r)
            column[r] = *in.run(base + r * plan.rin[0] + j * step, step, 1, buffer.get());
          all = moments_in_double(column, group);
        }
        out[j] = join(out[j], all);
      }
    }
  });
}

template <class C> void variance_of(const View* var, const View* mean, const View& in, const Source<C>& source,
                                    double correction, bool root) {
  const View& shape = var ? *var : *mean;
  ReducePlan plan(shape, in, var ? mean : nullptr);
  if (plan.outputs == 0) return;
  auto part = [&](const ReducePlan::Unit& u, int64_t r0, int64_t r1, Moments* out) {
    if (plan.columns) return column_moments(source, u.in, u.n, plan.kin[0], plan, r0, r1, out);
    for (int64_t j = 0; j < u.n; ++j)
      out[j] = r1 > r0 ? row_moments(source, u.in + j * plan.kin[0], plan, r0, r1) : Moments{0, 0, 0};
  };
  auto store = [&](const ReducePlan::Unit& u, const Moments* m) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    int64_t mean_stride = var ? plan.kout2[0] : plan.kout[0], mean_at = var ? u.out2 : u.out;
    visit_compute(in.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (is_floating_v<T>) {
        for (int64_t j = 0; j < u.n && var; ++j) {
          double x = m[j].n == 0 ? nan : m[j].m2 / std::max(0.0, m[j].n - correction);
          var->as<T>()[u.out + j * plan.kout[0]] = static_cast<T>(static_cast<C>(root ? std::sqrt(x) : x));
        }
        for (int64_t j = 0; j < u.n && mean; ++j)
          mean->as<T>()[mean_at + j * mean_stride] = static_cast<T>(static_cast<C>(m[j].n == 0 ? nan : m[j].mean));
      }
    });
  };
  int64_t units = plan.units_per_line() * plan.lines(), chunks = plan.chunks(units);
  if (chunks == 1) {
    int64_t work = std::max<int64_t>(1, plan.outputs * std::max<int64_t>(plan.count, 1) / units);
    parallel_for(0, units, std::max<int64_t>(1, kPieceWork / 2 / work), [&](int64_t first, int64_t last) {
      Moments moments[kWidth];
      for (int64_t i = first; i < last; ++i) {
        ReducePlan::Unit u = plan.unit(i);
        part(u, 0, plan.count, moments);
        store(u, moments);
      }
    });
    return;
  }
  int64_t width = std::min(plan.width, plan.ksize[0]);
  auto parts = std::make_unique_for_overwrite<Moments[]>(static_cast<size_t>(units * chunks * width));
  parallel_for(0, units * chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int64_t c = i % chunks;
      part(plan.unit(i / chunks), plan.count * c / chunks, plan.count * (c + 1) / chunks, parts.get() + i * width);
    }
  });
  for (int64_t i = 0; i < units; ++i) {
    ReducePlan::Unit u = plan.unit(i);
    Moments* base = parts.get() + i * chunks * width;
    for (int64_t c = 1; c < chunks; ++c)
      for (int64_t j = 0; j < u.n; ++j) base[j] = join(base[j], base[c * width + j]);
    store(u, base);
  }
}

}  // namespace

void variance(const View* var, const View* mean, const View& in, double correction, bool root) {
  switch (in.dtype) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32: return variance_of(var, mean, in, float_source(in, Map::None), correction, root);
    case DType::Float64: return variance_of(var, mean, in, double_source(in, Map::None), correction, root);
    default: fail(ErrorKind::Runtime, "variance is defined for floating types, got ", info(in.dtype).name);
  }
}

}  // namespace rl::RL_ISA
