// Norms of many tensors, and their scaling: what clipping gradients needs.
#include "cpu/isa.h"
#include "cpu/optim/steps.h"

namespace rl::RL_ISA {
namespace {

enum class Power { One, Two, Largest };

// One block: lanes first, then the lanes in order.
template <Power kind, class T> double block(const T* __restrict x, int64_t n) {
  using C = compute_t<T>;
  constexpr int kLanes = 32;
  C lanes[kLanes] = {};
  int64_t i = 0;
  auto add = [](C& sum, C v) {
    if constexpr (kind == Power::Two) sum += v * v;
    if constexpr (kind == Power::One) sum += magnitude(v);
    if constexpr (kind == Power::Largest) {
      v = magnitude(v);
      sum = v > sum || v != v ? v : sum;  // NaN stays
    }
  };
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) add(lanes[j], C(x[i + j]));
  for (int j = 0; i + j < n; ++j) add(lanes[j], C(x[i + j]));
  double total = 0;
  for (C lane : lanes) {
    if constexpr (kind == Power::Largest) total = largest(total, double(lane));
    else total += double(lane);
  }
  return total;
}

template <Power kind, class T> void powers_of(const OptimRow* rows, int64_t count, double* out) {
  std::vector<int64_t> first(static_cast<size_t>(count) + 1, 0);
  for (int64_t i = 0; i < count; ++i) first[i + 1] = first[i] + (rows[i].numel + kOptimBlock - 1) / kOptimBlock;
  std::vector<double> parts(static_cast<size_t>(first[count]), 0.0);
  parallel_for(0, first[count], 2 * kOptimGrain, [&](int64_t begin, int64_t end) {
    int64_t row = std::upper_bound(first.begin(), first.end(), begin) - first.begin() - 1;
    for (int64_t b = begin; b < end; ++b) {
      while (b >= first[row + 1]) ++row;
      int64_t at = (b - first[row]) * kOptimBlock;
      parts[b] =
          block<kind>(static_cast<const T*>(rows[row].data[0]) + at, std::min(kOptimBlock, rows[row].numel - at));
    }
  });
  for (int64_t i = 0; i < count; ++i) {
    out[i] = 0;
    for (int64_t b = first[i]; b < first[i + 1]; ++b)
      out[i] = kind == Power::Largest ? largest(out[i], parts[b]) : out[i] + parts[b];
  }
}

template <class T> void powers_as(double order, const OptimRow* rows, int64_t count, double* out) {
  if (order == 2) powers_of<Power::Two, T>(rows, count, out);
  else if (order == 1) powers_of<Power::One, T>(rows, count, out);
  else powers_of<Power::Largest, T>(rows, count, out);
}

template <class T> void scale_as(double factor, const OptimRow* rows, int64_t count) {
  const compute_t<T> f = compute_t<T>(factor);
  over_rows(rows, count, [&](const OptimRow& row, int64_t begin, int64_t end) {
    T* x = static_cast<T*>(row.data[0]);
    for (int64_t i = begin; i < end; ++i) x[i] = T(compute_t<T>(x[i]) * f);
  });
}

}  // namespace

void powers(DType dtype, double order, const OptimRow* rows, int64_t count, double* out) {
  if (dtype == DType::Float32) powers_as<float>(order, rows, count, out);
  else if (dtype == DType::Float64) powers_as<double>(order, rows, count, out);
  else if (dtype == DType::Float16) powers_as<float16>(order, rows, count, out);
  else powers_as<bfloat16>(order, rows, count, out);
}

void scale(DType dtype, double factor, const OptimRow* rows, int64_t count) {
  if (dtype == DType::Float32) scale_as<float>(factor, rows, count);
  else if (dtype == DType::Float64) scale_as<double>(factor, rows, count);
  else if (dtype == DType::Float16) scale_as<float16>(factor, rows, count);
  else scale_as<bfloat16>(factor, rows, count);
}

}  // namespace rl::RL_ISA
