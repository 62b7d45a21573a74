// Kernels that compare and put in order. Elements first, NaN after all of them; -0 equals 0.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

struct SortKernels {
  // in sorted along dim, equal elements in their old order; descending puts NaN first. `values` (in's type) and
  // `indices` (int64: where each came from) have in's sizes; either may be null. Real types.
  void (*sort)(const View* values, const View* indices, const View& in, int dim, bool descending);
  // The k first of sort(descending = largest), 0 <= k <= n; outputs have size k along dim. In order only if `sorted`;
  // of equal elements the earlier are taken. NaN counts as largest.
  void (*topk)(const View& values, const View& indices, const View& in, int64_t k, int dim, bool largest, bool sorted);
  // Distinct elements of a contiguous 1-d `in`, in order; each NaN is its own. `values` has room for all. `inverse`
  // (int64, in's size): where each element went; `counts` (int64, room for all): how many. Both may be null.
  // `consecutive` only joins neighbours. Returns the number of distinct elements.
  int64_t (*unique)(const View& values, const View* inverse, const View* counts, const View& in, bool consecutive);
  // The same for the rows of a contiguous 2-d `in`; `first` (int64, room for all rows) gets a row of each kind.
  int64_t (*unique_rows)(const View& first, const View* inverse, const View* counts, const View& in, bool consecutive);
  // out[i] = where values[i] goes in its row of `sorted`: before equal elements, or after them if `right`. out is int32
  // or int64. sorted: (rows, n) or (n) for all values; values and out: (rows, m); all contiguous, sorted and values
  // of one real type. `sorter` (int64, like sorted) gives the order instead, or is null.
  void (*searchsorted)(const View& out, const View& sorted, const View& values, const View* sorter, bool right);
};

}  // namespace rl
