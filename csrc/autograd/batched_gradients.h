// Gradients of many rows at once. See Note [Stacked gradients].
#pragma once
#include "autograd/node.h"

namespace rl {

// How many rows the gradients of the backward that runs in this thread have; -1: they are not stacked.
int64_t stacked_rows();
struct StackedRows {  // says so for a run
  int64_t outer;
  explicit StackedRows(int64_t rows);
  ~StackedRows();
};

// The node's backward of stacked gradients, in its own way or row by row.
Grads stacked_backward(Node& node, const Grads& dy);
// Row by row.
Grads backward_by_rows(Node& node, const Grads& dy);
// A stacked gradient, summed over the dimensions that broadcasting added to `sizes`.
Tensor stacked_sum_to(const Tensor& g, IntSpan sizes);
// {rows, *sizes}
Ints stacked_sizes(IntSpan sizes);

// f(*args) where f is Python: the tensors in args, and in tuples of args, are the rows of a vmap to it.
PyObject* call_stacked(PyObject* f, PyObject* args);

}  // namespace rl
