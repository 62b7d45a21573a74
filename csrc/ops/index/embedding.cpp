#include "ops/index/embedding.h"

#include "autograd/engine.h"
#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

Grads EmbeddingBackward::backward(const Grads& dy) {
  Tensor given;
  for (int64_t i = 0; i < given_.size(); ++i) {
    if (given_[i].run != current_backward()) continue;
    given = std::move(given_[i].sums);
    given_[i] = std::move(given_[given_.size() - 1]);
    given_.resize(given_.size() - 1);
    break;
  }
  if (!dy[0].defined()) return {given};
  Tensor own =
      embedding_dense_backward(dy[0], indices.unpack(*this), weight_sym_argsize_0, padding_idx, scale_grad_by_freq);
  return {given.defined() ? add(own, given) : own};
}
Grads EmbeddingBackward::stacked(const Grads& dy) {
  if (!dy[0].defined()) return {Tensor()};
  if (scale_grad_by_freq) return backward_by_rows(*this, dy);
  Tensor at = indices.unpack(*this), g = dy[0];
  if (padding_idx >= 0)
    g = masked_fill(g, unsqueeze(binary("eq", Pointwise::Eq, at, Scalar(padding_idx), {.rule = Rule::Bool}), -1), 0);
  int64_t width = g.sizes()[g.dim() - 1];
  Tensor like = zeros(led(g, Ints{weight_sym_argsize_0, width}), g.dtype(), g.device());
  Tensor flat = reshape(at, {at.numel()}), rows = reshape(g, led(g, Ints{at.numel(), width}));
  return {written_to(like, [&] { return index_add(like, 1, flat, rows); })};
}
bool EmbeddingBackward::takes_sums() const {
  auto& self = const_cast<EmbeddingBackward&>(*this);
  return in_backward() && will_run(self) && !is_captured(self) && !hooks && !released && !scale_grad_by_freq &&
         !indices.packed_;
}
void EmbeddingBackward::add_sums(const Tensor& sums, const Tensor& at) {
  Tensor more = embedding_dense_backward(sums, at, weight_sym_argsize_0, padding_idx, false);
  for (Given& g : given_)
    if (g.run == current_backward()) {
      g.sums = add(g.sums, more);
      return;
    }
  given_.push_back({current_backward(), more});
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx, bool scale_grad_by_freq) {
  CHECK(weight.dim() == 2, Runtime, "'weight' must be 2-D, got shape ", to_text(weight.sizes()));
  CHECK(
      indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, Runtime,
      "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.",
      info(indices.dtype()).legacy, "Tensor instead (while checking arguments for embedding)");
  Ints sizes(indices.sizes()), strides(indices.dim(), 0), at(indices.strides());
  sizes.push_back(weight.sizes()[1]);
  strides.push_back(weight.strides()[1]);
  at.push_back(0);
  Tensor y = empty(sizes, weight.dtype(), weight.device());
  if (y.numel()) {
    int32_t ndim = static_cast<int32_t>(sizes.size());
    View in{weight.memory(), sizes.data(), strides.data(), ndim, weight.dtype()};
    View index{indices.memory(), sizes.data(), at.data(), ndim, indices.dtype()};
    CHECK(weight.sizes()[0], Runtime,
          "embedding: index out of range in self, weight has no rows: ", to_text(weight.sizes()));
    int64_t rows = weight.sizes()[0], step = weight.strides()[0];
    int dim = 0;
    try {
      backend(y.device()).index->get(y.view(), in, {&index, 1, &rows, &step, &dim, ErrorKind::Index, false});
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Index) throw;
      fail(ErrorKind::Index, "index out of range in self\n  ", e.what(), ": weight has ", rows,
           " rows, so indices go from 0 to ", rows - 1);
    }
  } else if (!y.numel()) {
    check_indices(indices, 0, weight.sizes()[0], ErrorKind::Runtime);
  }
  return record<EmbeddingBackward>(y, {weight}, [&](auto& n) {
    n.indices = save(indices);
    n.weight_sym_argsize_0 = weight.sizes()[0];
    n.padding_idx = padding_idx;
    n.scale_grad_by_freq = scale_grad_by_freq;
  });
}

// Rows with zeros where indices are padding: filled, not multiplied, since the gradient there may be NaN.
static Tensor without_padding(const Tensor& rows, const Tensor& indices, int64_t padding_idx) {
  if (padding_idx < 0) return rows;
  Tensor at = unsqueeze(binary("eq", Pointwise::Eq, indices, Scalar(padding_idx), {.rule = Rule::Bool}), -1);
  return masked_fill(rows, at, 0);
}

// The adjoint of embedding, linear in dy: its gradient reads the rows again.
Tensor embedding_dense_backward(const Tensor& dy, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                                bool scale_grad_by_freq) {
  Tensor rows = dy;
  rows = without_padding(rows, indices, padding_idx);
  Tensor flat = reshape(indices, {indices.numel()});
  if (scale_grad_by_freq) {
    Tensor one = full(flat.sizes(), Scalar(1), dy.dtype(), dy.device());
    Tensor times = index_add(zeros({num_weights}, dy.dtype(), dy.device()), 0, flat, one);
    rows = div(rows, reshape(index_select(times, 0, flat), [&] {
                 Ints column(indices.sizes());
                 column.push_back(1);
                 return column;
               }()));
  }
  int64_t width = dy.sizes()[dy.dim() - 1];
  Tensor table = zeros({num_weights, width}, dy.dtype(), dy.device());
  rows = reshape(rows, {indices.numel(), width});
  return written_to(table, [&] { return index_add(table, 0, flat, rows); });
}

static Tensor embedding_op(const Tensor& weight, const Tensor& indices, int64_t padding_idx, bool scale_grad_by_freq,
                           bool) {
  return embedding(weight, indices, padding_idx, scale_grad_by_freq);
}

static const Register registered([](Ops& ops) {
  ops.def("embedding", embedding_op, "weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False", kNoOut,
          R"(
    Looks up rows of weight.

    Args:
        weight: the table, one row for each index.
        indices: which rows, any shape.
        padding_idx: a row that gets no gradient; -1 for none.
        scale_grad_by_freq: whether the gradient of a row is divided by how often it was taken.
        sparse: whether the gradient is a sparse tensor.

    Shape:
        (rows, width) and (*) give (*, width).

    Example:
        >>> table = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        >>> torch.embedding(table, torch.tensor([2, 0]))
        tensor([[4., 5.],
                [0., 1.]]))");
  ops.def("embedding_dense_backward", embedding_dense_backward,
          "grad_output, indices, num_weights, padding_idx, scale_grad_by_freq", kNoOut, R"(
    Computes the gradient of the weight of embedding(): rows of grad_output added up by index.

    Args:
        grad_output: the gradient of the result, (*, width).
        indices: which rows were taken.
        num_weights: the number of rows.
        padding_idx: a row that gets none; -1 for no such row.
        scale_grad_by_freq: whether the gradient of a row is divided by how often it was taken.

    Example:
        >>> torch.embedding_dense_backward(torch.ones(3, 2), torch.tensor([0, 0, 2]), 3, -1, False)
        tensor([[2., 2.],
                [0., 0.],
                [1., 1.]]))");
});

}  // namespace rl::ops
