// Joining, cutting, repeating and turning tensors.
#pragma once
#include "autograd/record.h"

namespace rl::ops {

// The same dimensions behind `by` others.
inline int64_t shifted(int64_t dim, int64_t by) { return dim < 0 ? dim : dim + by; }
inline Ints shifted(IntSpan dims, int64_t by) {
  Ints out(dims);
  for (int64_t& d : out) d = shifted(d, by);
  return out;
}

Tensor cat(Span<Tensor> tensors, int64_t dim);
Tensor stack(Span<Tensor> tensors, int64_t dim);
// Views of consecutive parts of a dimension, all results of one node.
Tensors split_with_sizes(const Tensor& input, IntSpan split_sizes, int64_t dim);
Tensors split(const Tensor& input, int64_t split_size, int64_t dim);
Tensors unbind(const Tensor& input, int64_t dim);
Tensor flip(const Tensor& input, IntSpan dims);
Tensor roll(const Tensor& input, IntSpan shifts, IntSpan dims);
Tensor repeat(const Tensor& input, IntSpan repeats);
Tensor movedim(const Tensor& input, IntSpan source, IntSpan destination);
Tensor diagonal(const Tensor& input, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor diag_embed(const Tensor& input, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
Tensor tril(const Tensor& input, int64_t diagonal = 0);
Tensor triu(const Tensor& input, int64_t diagonal = 0);
Tensor unfold(const Tensor& input, int64_t dimension, int64_t size, int64_t step);

}  // namespace rl::ops
