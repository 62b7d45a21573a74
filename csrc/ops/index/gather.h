// Reading and writing at computed indices.
#pragma once
#include <optional>
#include <utility>

#include "autograd/batched_gradients.h"
#include "autograd/destination.h"
#include "autograd/record.h"
#include "backend/index.h"
#include "ops/shape/view.h"

namespace rl::ops {

// One entry per leading dimension; undefined ones stand for a whole dimension.
using IndexList = SmallVector<Tensor, 4>;

Tensor gather(const Tensor& input, int64_t dim, const Tensor& index);
Tensor scatter(const Tensor& input, int64_t dim, const Tensor& index, const Value& src);
Tensor scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src);
Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index);
Tensor index_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha = Scalar(1));
Tensor index_fill(const Tensor& input, int64_t dim, const Tensor& index, const Value& value);
// Indices that are the same for all rows of a stacked dy.
inline Tensor repeated(const Node& node, const Tensor& index, const Tensor& dy) {
  return node.lead(dy) ? expand(index, node.led(dy, index.sizes())) : index;
}
Tensor index(const Tensor& input, const IndexList& indices);
Tensor index_put(const Tensor& input, const IndexList& indices, const Tensor& values, bool accumulate = false);
Tensor take(const Tensor& input, const Tensor& index);
Tensor put(const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate = false);
Tensor masked_fill(const Tensor& input, const Tensor& mask, const Value& value);
Tensor masked_select(const Tensor& input, const Tensor& mask);
Tensor masked_scatter(const Tensor& input, const Tensor& mask, const Tensor& source);
Tensor nonzero(const Tensor& input);
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1,
                 bool scale_grad_by_freq = false);

// The sizes and strides of a tensor, a 0-dim one as one element of one dimension.
Ints lifted_sizes(const Tensor& t);
Ints lifted_strides(const Tensor& t);

// What a functional op with an in-place form writes into: the offered tensor, or a row-major copy of the input.
Tensor writable(const Tensor& input, bool will_be_recorded);

// op(), which makes a copy of `fresh` with something written to it, may write to `fresh` itself: nobody else has it.
template <class F> Tensor written_to(const Tensor& fresh, F&& op) {
  Destination outer = std::exchange(t_destination, Destination());
  struct Restore {
    Destination& outer;
    ~Restore() { t_destination = std::move(outer); }
  } restore{outer};
  t_destination.wanted = fresh.get();
  return op();
}

// A tensor and an index along one of its dimensions, seen with the sizes of the dense operand.
// Not to be copied: the views point into it.
struct Along {
  Ints sizes, strides, index_strides;
  int64_t size, stride;
  int dim;
  View index;
  Along(const Tensor& x, int64_t dim, const Tensor& index, IntSpan dense_sizes, IntSpan index_strides);
  Along(const Along&) = delete;
  View of(const Tensor& x) const { return {x.memory(), sizes.data(), strides.data(), ndim(), x.dtype()}; }
  int32_t ndim() const { return static_cast<int32_t>(sizes.size()); }
  IndexSpec spec(ErrorKind error, bool wrap) const { return {&index, 1, &size, &stride, &dim, error, wrap}; }
};
// The strides of a vector of indices along one of `ndim` dimensions.
Ints vector_strides(const Tensor& index, int64_t dim, int64_t ndim);

// An error if one of the indices is not among 0 ... size - 1: where no kernel runs that would find it.
void check_indices(const Tensor& index, int64_t dim, int64_t size, ErrorKind error);

// y at the indices along `dim` = combine(y, values); the values are 0-dim (one number for all) or at least as large as
// the dense sizes. Sums and products of float16 and bfloat16 are taken in float, unless each step is to be rounded.
void put_along(const Tensor& y, int64_t dim, const Tensor& index, IntSpan dense_sizes, IntSpan index_strides,
               const Tensor& values, Combine combine, ErrorKind error, bool wrap, bool round_each = false);

}  // namespace rl::ops
