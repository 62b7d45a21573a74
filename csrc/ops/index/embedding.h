// The rows of a table at indices, and their gradient.
#pragma once
#include "autograd/batched_gradients.h"
#include "ops/index/gather.h"

namespace rl::ops {

Tensor embedding_dense_backward(const Tensor& dy, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                                bool scale_grad_by_freq);

// embedding: y = the rows of weight at indices        dweight = zeros with the rows of dy added, none at padding_idx;
//   scale_grad_by_freq divides each row by how often it was read
//
// Note [Gradients summed by the reader]
// A recurrent layer reads few different rows many times. Its gradient of the table needs one product per different row
// only if that is taken after the gradients of equal rows were summed: then y's own gradient never exists. If nobody
// looks at that, the layer gives the table's gradient to this node instead, before it runs.
struct EmbeddingBackward : Node {
  static constexpr const char* kName = "EmbeddingBackward0";
  static constexpr bool kUndefinedOk = true;
  Saved indices;
  int64_t weight_sym_argsize_0 = 0, padding_idx = -1;
  bool scale_grad_by_freq = false;

  Grads backward(const Grads& dy);
  Grads stacked(const Grads& dy);

  // Whether, in the backward that runs, a reader of one gradient, not a stack, may give sums of y's rows for it.
  bool takes_sums() const;
  // To be called by such a reader: sums (groups, width) of the gradients of y's rows, those at indices `at` (groups).
  void add_sums(const Tensor& sums, const Tensor& at);

  FIELDS(indices, padding_idx, scale_grad_by_freq, weight_sym_argsize_0)

 private:
  struct Given {
    uint64_t run;  // the number of the backward that it is for: several threads may run one
    Tensor sums;   // part of dweight
  };
  SmallVector<Given, 1> given_;
};

}  // namespace rl::ops
