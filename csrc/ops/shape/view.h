// Views: other shapes on the same memory.
#pragma once
#include <optional>

#include "autograd/record.h"

namespace rl::ops {

Tensor as_strided(const Tensor& input, IntSpan size, IntSpan stride,
                  std::optional<int64_t> storage_offset = std::nullopt);
Tensor view(const Tensor& input, IntSpan size);      // fails if the memory does not allow it
Tensor reshape(const Tensor& input, IntSpan shape);  // a view if possible, else a copy
Tensor permute(const Tensor& input, IntSpan dims);
Tensor transpose(const Tensor& input, int64_t dim0, int64_t dim1);
Tensor t(const Tensor& input);
Tensor expand(const Tensor& input, IntSpan size);
Tensor select(const Tensor& input, int64_t dim, int64_t index);
Tensor slice(const Tensor& input, int64_t dim, int64_t start, int64_t end, int64_t step);  // indices as Python's slices
Tensor narrow(const Tensor& input, int64_t dim, int64_t start, int64_t length);
Tensor squeeze(const Tensor& input, int64_t dim);
Tensor unsqueeze(const Tensor& input, int64_t dim);
// A fresh result itself, no view of it, less a dimension of size 1.
Tensor without_dim(const Tensor& result, int64_t dim);
Tensor flatten(const Tensor& input, int64_t start_dim = 0, int64_t end_dim = -1);
Tensor detach(const Tensor& input);
Tensor record_alias(Tensor y, const Tensor& input);  // y, an alias of input, with the identity as its history
// Sums over dimensions until the tensor has these sizes (the inverse of expand).
Tensor sum_to(const Tensor& input, IntSpan sizes);
// dy of a strided view, in a tensor with the base's sizes and strides. dy may have a dimension more in front: then so
// has the result.
Tensor embed(const Tensor& dy, IntSpan base_sizes, IntSpan base_strides, IntSpan sizes, IntSpan strides,
             int64_t distance);

}  // namespace rl::ops
