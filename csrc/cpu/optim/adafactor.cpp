// Adafactor. Three passes over a parameter's gradient and none over memory of its size: means of g^2, then the size of
// the update, then the update.
#include "cpu/isa.h"
#include "cpu/optim/steps.h"

namespace rl::RL_ISA {
namespace {

// Lines of one block: some 16 thousand elements, and never more than 64 blocks a matrix, since each keeps a line of
// sums.
int64_t lines_of_block(int64_t lines, int64_t columns) {
  const int64_t by_work = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns));
  return std::max(by_work, (lines + 63) / 64);
}

// The running means of g^2 of one matrix: row[i] over its columns, col[j] over its rows.
template <class T> void factor_means(const T* g, T* row, T* col, int64_t lines, int64_t columns, double fresh) {
  using C = compute_t<T>;
  const int64_t block = lines_of_block(lines, columns), blocks = (lines + block - 1) / block;
  std::vector<C> sums(static_cast<size_t>(blocks * columns), C(0));
  parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      C* __restrict below = sums.data() + b * columns;
      for (int64_t i = b * block; i < std::min(lines, (b + 1) * block); ++i) {
        const T* __restrict x = g + i * columns;
        constexpr int kLanes = 16;
        C lanes[kLanes] = {};
        int64_t j = 0;
        for (; j + kLanes <= columns; j += kLanes)
          for (int k = 0; k < kLanes; ++k) {
            const C square = C(x[j + k]) * C(x[j + k]);
            lanes[k] += square;
            below[j + k] += square;
          }
        double total = 0;
        for (; j < columns; ++j) {
          const C square = C(x[j]) * C(x[j]);
          total += double(square);
          below[j] += square;
        }
        for (C lane : lanes) total += double(lane);
        row[i] = T(towards(C(row[i]), C(total / double(columns)), C(fresh)));
      }
    }
  });
  for (int64_t j = 0; j < columns; ++j) {
    double total = 0;
    for (int64_t b = 0; b < blocks; ++b) total += double(sums[static_cast<size_t>(b * columns + j)]);
    col[j] = T(towards(C(col[j]), C(total / double(lines)), C(fresh)));
  }
}

// use(i, n, update) for all elements of a line, update(k) = g / sqrt(what its square is expected to be).
template <class T> struct Lines {
  using C = compute_t<T>;
  const FactorRow& r;
  C sign, least;
  std::vector<C> mean;  // of each matrix's row sums, at least floor

  Lines(const FactorRow& row, double sign_of_g) : r(row), sign(C(sign_of_g)), least(C(row.floor * row.floor)) {
    if (!r.col) return;
    const T* sums = static_cast<const T*>(r.row);
    for (int64_t b = 0; b < r.batch; ++b) {
      double total = 0;
      for (int64_t i = 0; i < r.rows; ++i) total += double(C(sums[b * r.rows + i]));
      mean.push_back(largest(C(total / double(r.rows)), C(r.floor)));
    }
  }
  C update(C g, C expected) const { return sign * g * (C(1) / root(largest(expected, least))); }
  // each(first element, number of elements, expectation of the k-th) over elements that share a row
  template <class F> void over(int64_t begin, int64_t end, F&& each) const {
    const T* row = static_cast<const T*>(r.row);
    if (!r.col) {
      each(begin, end - begin, [&](int64_t k) { return C(row[begin + k]); });
      return;
    }
    for (int64_t at = begin; at < end;) {
      const int64_t line = at / r.columns, batch = line / r.rows;
      const int64_t n = std::min(end, (line + 1) * r.columns) - at;
      const T* col = static_cast<const T*>(r.col) + batch * r.columns + (at - line * r.columns);
      const C left = C(row[line]), below = mean[static_cast<size_t>(batch)];
      each(at, n, [&](int64_t k) { return left * C(col[k]) / below; });
      at += n;
    }
  }
};

template <class T> void step_one(const FactorGroup& group, const FactorRow& r, double norm_squared) {
  using C = compute_t<T>;
  T* __restrict p = static_cast<T*>(r.p);
  const T* __restrict g = static_cast<const T*>(r.g);
  const int64_t numel = r.batch * r.rows * r.columns;
  if (numel == 0) return;
  if (r.col) {
    for (int64_t b = 0; b < r.batch; ++b)
      factor_means(g + b * r.rows * r.columns, static_cast<T*>(r.row) + b * r.rows,
                   static_cast<T*>(r.col) + b * r.columns, r.rows, r.columns, r.fresh);
  } else {
    T* v = static_cast<T*>(r.row);
    for (int64_t i = 0; i < numel; ++i) v[i] = T(towards(C(v[i]), C(g[i]) * C(g[i]), C(r.fresh)));
  }
  const Lines<T> lines(r, group.sign);
  const int64_t blocks = (numel + kOptimBlock - 1) / kOptimBlock;
  std::vector<double> parts(static_cast<size_t>(blocks), 0.0);
  parallel_for(0, blocks, kOptimGrain, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b)
      lines.over(b * kOptimBlock, std::min(numel, (b + 1) * kOptimBlock), [&](int64_t at, int64_t n, auto expected) {
        constexpr int kLanes = 16;
        C lanes[kLanes] = {};
        int64_t k = 0;
        for (; k + kLanes <= n; k += kLanes)
          for (int j = 0; j < kLanes; ++j) {
            const C u = lines.update(C(g[at + k + j]), expected(k + j));
            lanes[j] += u * u;
          }
        for (int j = 0; k + j < n; ++j) {
          const C u = lines.update(C(g[at + k + j]), expected(k + j));
          lanes[j] += u * u;
        }
        for (C lane : lanes) parts[static_cast<size_t>(b)] += double(lane);
      });
  });
  double squares = 0;
  for (double part : parts) squares += part;
  const double count = double(numel);
  const double scale = largest(group.smallest, std::sqrt(norm_squared / count)) * r.rate;
  const double clip = largest(1.0, std::sqrt(squares / count) / group.clip);
  const C rate = C(-scale / clip), decoupled_decay = C(group.decoupled_decay);
  parallel_for(0, blocks, kOptimGrain, [&](int64_t first, int64_t last) {
    lines.over(first * kOptimBlock, std::min(numel, last * kOptimBlock), [&](int64_t at, int64_t n, auto expected) {
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k)
        p[at + k] = T(mul_add(lines.update(C(g[at + k]), expected(k)), rate, C(p[at + k]) * decoupled_decay));
    });
  });
}

template <class T> void step_all(DType dtype, const FactorGroup& group, const FactorRow* rows, int64_t count) {
  std::vector<OptimRow> params(static_cast<size_t>(count));
  std::vector<double> norms(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    params[i].data[0] = rows[i].p;
    params[i].numel = rows[i].batch * rows[i].rows * rows[i].columns;
  }
  powers(dtype, 2, params.data(), count, norms.data());
  for (int64_t i = 0; i < count; ++i) step_one<T>(group, rows[i], norms[i]);
}

}  // namespace

void adafactor(DType dtype, const FactorGroup& group, const FactorRow* rows, int64_t count) {
  if (dtype == DType::Float32) step_all<float>(dtype, group, rows, count);
  else if (dtype == DType::Float64) step_all<double>(dtype, group, rows, count);
  else if (dtype == DType::Float16) step_all<float16>(dtype, group, rows, count);
  else step_all<bfloat16>(dtype, group, rows, count);
}

}  // namespace rl::RL_ISA
