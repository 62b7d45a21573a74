// Pieces of many arrays as one parallel loop, and the arithmetic that optimizer formulas share.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/optim.h"
#include "base/parallel.h"

namespace rl::RL_ISA {

// Elements of one block, and blocks of one piece: some 30 us of work that waits for memory.
inline constexpr int64_t kOptimBlock = 4096;
inline constexpr int64_t kOptimGrain = 8;

// body(row, begin, end) over all rows. Blocks never cross rows; where they begin depends on the sizes alone.
template <class F> void over_rows(const OptimRow* rows, int64_t count, F&& body) {
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += rows[i].numel;
  if (total <= kOptimBlock * kOptimGrain || num_threads() == 1) {
    for (int64_t i = 0; i < count; ++i) body(rows[i], 0, rows[i].numel);
    return;
  }
  std::vector<int64_t> first(static_cast<size_t>(count) + 1, 0);  // the number of blocks before each row
  for (int64_t i = 0; i < count; ++i) first[i + 1] = first[i] + (rows[i].numel + kOptimBlock - 1) / kOptimBlock;
  parallel_for(0, first[count], kOptimGrain, [&](int64_t begin, int64_t end) {
    int64_t i = std::upper_bound(first.begin(), first.end(), begin) - first.begin() - 1;
    for (; begin < end; ++i) {
      int64_t stop = std::min(end, first[i + 1]);
      if (stop <= begin) continue;
      body(rows[i], (begin - first[i]) * kOptimBlock, std::min(rows[i].numel, (stop - first[i]) * kOptimBlock));
      begin = stop;
    }
  });
}

// a * b + c, rounded once where the processor can.
template <class C> inline C mul_add(C a, C b, C c) {
#ifdef __FMA__
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class C> inline C root(C x) { return std::sqrt(x); }
template <class C> inline C magnitude(C x) { return std::fabs(x); }
// The larger; NaN if either is.
template <class C> inline C largest(C a, C b) { return a > b || a != a ? a : b; }
// From a towards b by the share w, exact at both ends.
template <class C> inline C towards(C a, C b, C w) {
  return w < C(0.5) ? mul_add(w, b - a, a) : b - (b - a) * (C(1) - w);
}

// In norms.cpp.
void powers(DType dtype, double order, const OptimRow* rows, int64_t count, double* out);
void scale(DType dtype, double factor, const OptimRow* rows, int64_t count);
// In adafactor.cpp.
void adafactor(DType dtype, const FactorGroup& group, const FactorRow* rows, int64_t count);

}  // namespace rl::RL_ISA
