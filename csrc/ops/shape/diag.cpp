// Diagonals and triangles.
#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"
#include "tensor/overlap.h"

namespace rl::ops {

namespace {

// Where a diagonal starts and how long it is.
struct Diagonal {
  int64_t length, row, column;
  Diagonal(int64_t rows, int64_t columns, int64_t offset) {
    length = row = column = 0;
    if (offset >= columns || offset <= -rows) return;
    row = offset < 0 ? -offset : 0, column = offset > 0 ? offset : 0;
    length = std::min(rows - row, columns - column);
  }
};

void diagonal_geometry(IntSpan base_sizes, IntSpan base_strides, int64_t offset, int64_t a, int64_t b, Ints& sizes,
                       Ints& strides, int64_t& distance) {
  Diagonal d(base_sizes[a], base_sizes[b], offset);
  sizes.clear();
  strides.clear();
  for (int64_t i = 0; i < base_sizes.size(); ++i)
    if (i != a && i != b) sizes.push_back(base_sizes[i]), strides.push_back(base_strides[i]);
  sizes.push_back(d.length);
  strides.push_back(base_strides[a] + base_strides[b]);
  distance = d.length ? d.row * base_strides[a] + d.column * base_strides[b] : 0;
}

}  // namespace

// diagonal: the elements x[..., i, ..., i + offset], as the last dimension of a view        dx = zeros with dy there
struct DiagonalBackward : Node {
  static constexpr const char* kName = "DiagonalBackward0";
  static constexpr bool kStacks = true;
  Ints self_sym_sizes;
  int64_t offset = 0, dim1 = 0, dim2 = 1;
  Grads backward(const Grads& dy) {
    Ints base = contiguous_strides(self_sym_sizes), sizes, strides;
    int64_t distance;
    diagonal_geometry(self_sym_sizes, base, offset, dim1, dim2, sizes, strides, distance);
    return {embed(dy[0], self_sym_sizes, base, sizes, strides, distance)};
  }
  FIELDS(dim1, dim2, offset, self_sym_sizes)
};
Tensor diagonal(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t a = wrap_dim(dim1, input.dim()), b = wrap_dim(dim2, input.dim());
  CHECK(input.dim() >= 2, Index, "diagonal: expected at least two dimensions, got shape ", to_text(input.sizes()));
  CHECK(a != b, Runtime, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Ints sizes, strides;
  int64_t distance;
  diagonal_geometry(input.sizes(), input.strides(), offset, a, b, sizes, strides, distance);
  Tensor y = alias(input, sizes, strides, input->offset + distance);
  return record_view<DiagonalBackward>(y, input, [&](auto& n) {
    n.self_sym_sizes = Ints(input.sizes());
    n.offset = offset;
    n.dim1 = a;
    n.dim2 = b;
  });
}

// diag_embed: zeros with x on a diagonal of two new dimensions        dx = that diagonal of dy
struct DiagEmbedBackward : Node {
  static constexpr const char* kName = "DiagEmbedBackward0";
  static constexpr bool kStacks = true;
  int64_t offset = 0, dim1 = 0, dim2 = 1;
  Grads backward(const Grads& dy) { return {diagonal(dy[0], offset, dim1 + lead(dy[0]), dim2 + lead(dy[0]))}; }
  FIELDS(offset, dim1, dim2)
};
Tensor diag_embed(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t ndim = input.dim() + 1, a = wrap_dim(dim1, ndim), b = wrap_dim(dim2, ndim);
  CHECK(input.dim() > 0, Index, "diag_embed: expected at least one dimension, got a 0-dim tensor");
  CHECK(a != b, Runtime, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  int64_t n = checked_add(input.sizes()[input.dim() - 1], offset < 0 ? checked_mul(offset, -1) : offset);
  Ints sizes(input.sizes());
  sizes.pop_back();
  sizes.insert(std::min(a, b), n);
  sizes.insert(std::max(a, b), n);
  Tensor y = zeros(sizes, input.dtype(), input.device());
  {
    NoGrad raw;
    copy_into(diagonal(y, offset, a, b), input);
  }
  return record<DiagEmbedBackward>(y, {input}, [&](auto& node) {
    node.offset = offset;
    node.dim1 = a;
    node.dim2 = b;
  });
}
static Tensor diag(const Tensor& input, int64_t offset) {
  CHECK(input.dim() == 1 || input.dim() == 2, Runtime, "diag(): Supports 1D or 2D tensors. Got ", input.dim(), "D");
  return input.dim() == 1 ? diag_embed(input, offset) : clone(diagonal(input, offset), MemoryFormat::Contiguous);
}
static Tensor diagflat(const Tensor& input, int64_t offset) {
  return diag_embed(reshape(contiguous(input), {input.numel()}), offset);
}

// tril, triu: zero above, below a diagonal        dx = the same of dy
struct TrilBackward : Node {
  static constexpr const char* kName = "TrilBackward0";
  static constexpr bool kStacks = true;
  int64_t diagonal = 0;
  Grads backward(const Grads& dy) { return {tril(dy[0], diagonal)}; }
  FIELDS(diagonal)
};
struct TriuBackward : Node {
  static constexpr const char* kName = "TriuBackward0";
  static constexpr bool kStacks = true;
  int64_t diagonal = 0;
  Grads backward(const Grads& dy) { return {triu(dy[0], diagonal)}; }
  FIELDS(diagonal)
};
// Whether the matrices follow each other without gaps; the first dimension may repeat them.
static bool packed_matrices(const Tensor& t) {
  if (t.dim() < 4) return true;
  int64_t expected = t.sizes()[t.dim() - 1] * t.sizes()[t.dim() - 2];
  for (int64_t d = t.dim() - 3; d >= 0; --d) {
    if (d == 0 && (t.strides()[d] == 0 || t.sizes()[d] == 1)) continue;
    if (t.strides()[d] != expected) return false;
    expected *= t.sizes()[d];
  }
  return true;
}
static Tensor triangle(const char* op, const Tensor& input, int64_t diagonal, bool upper) {
  CHECK(input.dim() >= 2, Runtime, op, ": input tensor must have at least 2 dimensions, got shape ",
        to_text(input.sizes()));
  // Repeated elements are refused only where torch, whose kernel wants packed matrices, writes to a copy first.
  if (t_destination.wanted && !packed_matrices(Tensor::borrow(t_destination.wanted)))
    check_no_internal_overlap(Tensor::borrow(t_destination.wanted));
  Tensor y = take_destination(input.sizes(), input.dtype(), will_record({input}));
  if (!y.defined()) y = empty(input.sizes(), input.dtype(), input.device());
  if (y.numel()) backend(y.device()).copy->triangle(y.view(), input.view(), diagonal, upper);
  return y;
}
Tensor tril(const Tensor& input, int64_t diagonal) {
  return record<TrilBackward>(triangle("tril", input, diagonal, false), {input},
                              [&](auto& n) { n.diagonal = diagonal; });
}
Tensor triu(const Tensor& input, int64_t diagonal) {
  return record<TriuBackward>(triangle("triu", input, diagonal, true), {input},
                              [&](auto& n) { n.diagonal = diagonal; });
}

static Tensor diagonal_op(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
  return diagonal(input, offset, dim1, dim2);
}

// trace: y = the sum of the diagonal
static Tensor trace(const Tensor& input) {
  CHECK(input.dim() == 2, Runtime, "trace: expected a matrix, but got tensor with dim ", input.dim());
  return sum(diagonal(input));
}

static const Register registered([](Ops& ops) {
  const uint32_t writes = kMethod | kInplace | kDirect | kKeepsInput;
  ops.def("diagonal", diagonal_op, "input, offset=0, dim1=0, dim2=1", kMethod | kView, R"(
    Shows a diagonal of two dimensions as the last dimension.

    Args:
        offset: which diagonal: 0 is the main one, positive ones lie above it.
        dim1: the dimension of the rows.
        dim2: the dimension of the columns.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.diagonal(x)
        tensor([1, 4])
        >>> torch.diagonal(x, offset=1)
        tensor([2]))");
  ops.def("linalg.diagonal", diagonal_op, "input, *, offset=0, dim1=-2, dim2=-1", kView, R"(
    Shows the diagonals of matrices as the last dimension.

    Args:
        offset: which diagonal: 0 is the main one, positive ones lie above it.
        dim1: the dimension of the rows.
        dim2: the dimension of the columns.

    Example:
        >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4]))");
  ops.def("diag_embed", diag_embed, "input, offset=0, dim1=-2, dim2=-1", kMethod | kNoOut, R"(
    Makes matrices with the last dimension on a diagonal, zeros elsewhere.

    Args:
        offset: which diagonal: 0 is the main one, positive ones lie above it.
        dim1: where the dimension of the rows stands in the result.
        dim2: where that of the columns stands.

    Example:
        >>> torch.diag_embed(torch.tensor([[1, 2], [3, 4]]))
        tensor([[[1, 0],
                 [0, 2]],
        <BLANKLINE>
                [[3, 0],
                 [0, 4]]]))");
  ops.def("diag", diag, "input, diagonal=0", kMethod | kExactOut | kFreeOut, R"(
    Makes a matrix with a vector on its diagonal, or takes the diagonal of a matrix.

    Args:
        diagonal: which one: 0 is the main one, positive ones lie above it.

    Example:
        >>> torch.diag(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
        >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4]))");
  ops.def("trace", trace, "input", kMethod | kCastFull, R"(
    Adds up the main diagonal of a matrix.

    Example:
        >>> torch.trace(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(5.))");
  ops.def("diagflat", diagflat, "input, offset=0", kMethod | kNoOut, R"(
    Makes a matrix with all elements, in order, on a diagonal.

    Args:
        offset: which diagonal: 0 is the main one, positive ones lie above it.

    Example:
        >>> torch.diagflat(torch.tensor([1, 2]), offset=1)
        tensor([[0, 1, 0],
                [0, 0, 2],
                [0, 0, 0]]))");
  ops.def("tril", tril, "input, diagonal=0", writes | kExactOut | kFreeOut | kOverlapOk | kAnyType, R"(
    Keeps the elements on and below a diagonal of each matrix, and sets the others to 0.

    Args:
        diagonal: which one: 0 is the main one, positive ones lie above it.

    Example:
        >>> torch.tril(torch.ones(3, 3, dtype=torch.int64))
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 1]])
        >>> torch.tril(torch.ones(2, 2, dtype=torch.bool), diagonal=-1)
        tensor([[False, False],
                [ True, False]]))");
  ops.def("triu", triu, "input, diagonal=0", writes | kExactOut | kFreeOut | kOverlapOk | kAnyType, R"(
    Keeps the elements on and above a diagonal of each matrix, and sets the others to 0.

    Args:
        diagonal: which one: 0 is the main one, positive ones lie above it.

    Example:
        >>> torch.triu(torch.ones(3, 3, dtype=torch.int64))
        tensor([[1, 1, 1],
                [0, 1, 1],
                [0, 0, 1]])
        >>> torch.triu(torch.ones(2, 2, dtype=torch.bool), diagonal=1)
        tensor([[False,  True],
                [False, False]]))");
});

}  // namespace rl::ops
