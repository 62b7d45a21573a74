// Whole slices along one dimension, named by a vector of indices.
#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// index_select: y = the slices of x at index        dx = zeros with the slices of dy added
struct IndexSelectBackward : Node {
  static constexpr const char* kName = "IndexSelectBackward0";
  Saved index;
  int64_t dim = 0;
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) {
    Tensor like = zeros(led(dy[0], self_sym_sizes), dy[0].dtype(), dy[0].device());
    return {written_to(like, [&] { return index_add(like, dim + lead(dy[0]), index.unpack(*this), dy[0]); })};
  }
  Grads stacked(const Grads& dy) { return self_sym_sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, index, self_sym_sizes)
};
static void check_selected(const Tensor& index, int64_t d, int64_t size, bool rows) {
  try {
    check_indices(index, d, size, ErrorKind::Index);
  } catch (const Error& e) {
    if (rows) fail(ErrorKind::Runtime, "INDICES element is out of DATA bounds: ", e.what());
    fail(ErrorKind::Index, "index out of range in self: ", e.what());
  }
}
Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index) {
  int64_t d = wrap_dim(dim, input.dim());
  CHECK(index.dim() <= 1, Index, "index_select(): Index is supposed to be a vector, got shape ",
        to_text(index.sizes()));
  CHECK(input.dim() > 0 || index.numel() == 1, Runtime, "index_select(): Index to scalar can have only 1 value, got ",
        index.numel(), " value(s)");
  CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, Runtime,
        "index_select(): Expected dtype int32 or int64 for index, got ", info(index.dtype()).name);
  Ints sizes = lifted_sizes(input);
  sizes[d] = index.numel();
  Tensor y = empty(input.dim() ? IntSpan(sizes) : IntSpan(), input.dtype(), input.device());
  if (y.numel()) {
    CHECK(input.numel() || input.dim() <= 1, Runtime, "index_select(): self indexing axis dim should be positive");
    Along along(input, d, index, sizes, vector_strides(index, d, sizes.size()));
    Ints strides = lifted_strides(y);
    View out{y.memory(), along.sizes.data(), strides.data(), along.ndim(), y.dtype()};
    try {
      backend(y.device()).index->get(out, along.of(input), along.spec(ErrorKind::Index, false));
    } catch (const Error& e) {
      fail(ErrorKind::Index, "index out of range in self: ", e.what());
    }
  } else if (!y.numel()) {
    check_selected(index, d, lifted_sizes(input)[d], input.dim() > 1);
  }
  return record<IndexSelectBackward>(y, {input}, [&](auto& n) {
    n.index = save(index);
    n.dim = d;
    n.self_sym_sizes = Ints(input.sizes());
  });
}

namespace {

// The checks that index_add and index_copy share; returns the sizes of the source, lifted.
Ints check_source(const char* op, const Tensor& input, int64_t d, const Tensor& index, const Tensor& source) {
  CHECK(index.dim() <= 1, Index, op, "(): Index is supposed to be a vector, but got dim: ", index.dim(), " with shape ",
        to_text(index.sizes()));
  CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, Index, op,
        "(): Expected dtype int32/int64 for index but got: ", info(index.dtype()).name);
  CHECK(input.dtype() == source.dtype(), Runtime, op, "(): self (", info(input.dtype()).name, ") and source (",
        info(source.dtype()).name, ") must have the same scalar type");
  CHECK(d == 0 || d < source.dim(), Index, op, "(): Indexing dim ", d,
        " is out of bounds of the source tensor with dim ", source.dim());
  Ints sizes = lifted_sizes(input), given = lifted_sizes(source);
  CHECK(index.numel() == given[d], Runtime, op, "(): Number of indices (", index.numel(),
        ") should be equal to source.size(dim): (", given[d], "), for dim: ", d);
  bool fits = sizes.size() == given.size();
  for (int64_t k = 0; fits && k < sizes.size(); ++k) fits = k == d || sizes[k] == given[k];
  CHECK(fits, Runtime, op,
        "(): source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
        to_text(input.sizes()), " source.shape = ", to_text(source.sizes()));
  return given;
}

// Slices that have elements cannot be written where there is no place for them.
void check_nowhere(const Tensor& input, int64_t d, const Tensor& index) {
  Ints sizes(input.sizes());
  if (input.numel() || sizes[d]) return;
  sizes[d] = 1;
  if (checked_numel(sizes)) check_indices(index, d, 0, ErrorKind::Runtime);
}

Tensor lifted(const Tensor& t) { return t.dim() ? t : alias(t, {1}, {1}, t->offset); }

}  // namespace

// index_add: y = x with alpha * the slices of source added at index        dx = dy, dsource = alpha * dy at index
struct IndexAddBackward : Node {
  static constexpr const char* kName = "IndexAddBackward0";
  Saved index, source;  // only the source's sizes are needed; torch keeps it, and refuses writes to it
  int64_t dim = 0;
  Scalar alpha = Scalar(1);
  Grads backward(const Grads& dy) {
    if (!needs(1)) return {dy[0], Tensor()};
    Tensor ds = index_select(dy[0], dim + lead(dy[0]), index.unpack(*this));
    if (!alpha.equals(1)) ds = mul(ds, alpha.is_complex() ? Scalar(std::conj(alpha.to_complex128())) : alpha);
    return {dy[0], reshape(ds, led(dy[0], source.unpack(*this).sizes()))};
  }
  Grads stacked(const Grads& dy) { return results[0].sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, index, source)
};
Tensor index_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  int64_t d = wrap_dim(dim, input.dim());
  Ints given = check_source("index_add", input, d, index, source);
  check_holds(alpha, source.dtype());
  if (input.dim() == 1 && input.numel() == 0) check_indices(index, d, 0, ErrorKind::Index);
  Tensor y = writable(input, will_record({input, source}));
  if (index.numel() && y.numel()) {
    NoGrad raw;
    Tensor values = alpha.equals(1) ? source : cast(mul(source, alpha), source.dtype());
    put_along(y, d, index, given, vector_strides(index, d, given.size()), lifted(values), Combine::Sum,
              input.dim() > 1 ? ErrorKind::Runtime : ErrorKind::Index, false);
  }
  return record<IndexAddBackward>(y, {input, source}, [&](auto& n) {
    if (n.needs(1)) n.index = save(index), n.source = save(source);
    n.dim = d;
    n.alpha = alpha;
  });
}

// index_fill: y = x with the slices at index set to a number        dx = dy with zeros there, dvalue = sum of dy there
struct IndexFillBackward : Node {
  static constexpr const char* kName = "IndexFillBackward0";
  Saved index;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor rest = index_fill(dy[0], dim + lead(dy[0]), index.unpack(*this), Scalar(0));
    return {needs(0) ? rest : Tensor(), needs(1) ? sub(dy[0], rest) : Tensor()};
  }
  Grads stacked(const Grads& dy) { return results[0].sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, index)
};
Tensor index_fill(const Tensor& input, int64_t dim, const Tensor& index, const Value& value) {
  int64_t d = wrap_dim(dim, input.dim());
  CHECK(index.dtype() == DType::Int64, Index, "index_fill_(): Expected dtype int64 for index, got ",
        info(index.dtype()).name);
  CHECK(index.dim() <= 1, Index, "Index has to be a vector/scalar, got shape ", to_text(index.sizes()));
  CHECK(!value.is_tensor() || value.tensor.dim() == 0, Runtime,
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
        value.is_tensor() ? value.tensor.dim() : 0, " dimension(s).");
  bool complex_value = value.is_tensor() ? value.tensor.is_complex() : value.number.is_complex();
  CHECK(!complex_value || input.is_complex(), Runtime,
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  if (!value.is_tensor()) check_holds(value.number, input.dtype());
  else if (value.tensor.has_values()) check_holds(item(value.tensor), input.dtype());
  check_nowhere(input, d, index);
  Tensor y = writable(input, will_record({input, value}));
  if (index.numel() && y.numel()) {
    NoGrad raw;
    Ints sizes = lifted_sizes(input);
    sizes[d] = index.numel();
    Tensor element = value.is_tensor() ? to_device(cast(value.tensor, y.dtype()), y.device())
                                       : full({}, value.number, y.dtype(), y.device());
    put_along(y, d, index, sizes, vector_strides(index, d, sizes.size()), element, Combine::Set, ErrorKind::Index,
              true);
  }
  return record<IndexFillBackward>(y, {input, value}, [&](auto& n) {
    n.index = save(index);
    n.dim = d;
  });
}

// index_copy: y = x with the slices at index replaced by source's        dx = dy with zeros there, dsource = dy there
struct IndexCopyBackward : Node {
  static constexpr const char* kName = "IndexCopyBackward0";
  Saved index, source;  // the source as in index_add
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor i = index.unpack(*this);
    int64_t d = dim + lead(dy[0]);
    return {needs(0) ? index_fill(dy[0], d, i, Scalar(0)) : Tensor(),
            needs(1) ? reshape(index_select(dy[0], d, i), led(dy[0], source.unpack(*this).sizes())) : Tensor()};
  }
  Grads stacked(const Grads& dy) { return results[0].sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, index, source)
};
static Tensor index_copy(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
  int64_t d = wrap_dim(dim, input.dim());
  CHECK(index.dim() <= 1, Index, "index_copy_(): Index should have dimension 1 or 0 (got ", index.dim(), ")");
  CHECK(source.dim() != 0 || index.numel() == 1, Index,
        "index_copy_(): When source is scalar, index should have one element (got ", index.numel(), ")");
  CHECK(source.dim() == input.dim() || source.dim() == 0 || input.dim() == 0, Index,
        "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
        "dimensionality (",
        source.dim(), "), destination dimensionality (", input.dim(), ")");
  CHECK(index.dtype() == DType::Int64, Runtime, "index_copy_(): Expected a long tensor for index, but got ",
        info(index.dtype()).legacy);
  CHECK(input.dtype() == source.dtype(), Runtime,
        "index_copy_(): self and source expected to have the same dtype, but got (self) ", info(input.dtype()).legacy,
        " and (source) ", info(source.dtype()).legacy);
  Ints sizes = lifted_sizes(input), given = lifted_sizes(source);
  bool fits = given.size() == sizes.size();
  for (int64_t k = 0; fits && k < sizes.size(); ++k) fits = k == d || sizes[k] == given[k];
  CHECK(fits, Index, "index_copy_(): Source/destination tensor must have same slice shapes, got source ",
        to_text(source.sizes()), " and destination ", to_text(input.sizes()), " for dimension ", d);
  CHECK(index.numel() == given[d], Index, "index_copy_(): Number of indices (", index.numel(),
        ") should be equal to source.size(dim) (", given[d], ")");
  check_nowhere(input, d, index);
  Tensor y = writable(input, will_record({input, source}));
  if (index.numel() && y.numel())
    put_along(y, d, index, given, vector_strides(index, d, given.size()), lifted(source), Combine::Set,
              ErrorKind::Index, false);
  return record<IndexCopyBackward>(y, {input, source}, [&](auto& n) {
    n.index = save(index);
    n.dim = d;
    if (n.needs(1)) n.source = save(source);
  });
}

static const Register registered([](Ops& ops) {
  const uint32_t writes = kMethod | kInplace | kDirect | kKeepsInput;
  ops.def("index_select", index_select, "input, dim, index", kMethod | kNoOverlap | kExactOut | kAnyType, R"(
    Takes the slices at given indices, in a copy.

    Args:
        index: a vector of indices along dim.

    Example:
        >>> torch.index_select(torch.tensor([[1, 2], [3, 4], [5, 6]]), 0, torch.tensor([2, 0]))
        tensor([[5, 6],
                [1, 2]]))");
  ops.def("index_add", index_add, "input, dim, index, source, *, alpha=1", writes | kExactOut | kNoOverlap, R"(
    Adds alpha times the slices of source to those at given indices.

    Args:
        index: a vector of indices along dim, one for each slice of source.
        source: the slices.
        alpha: their factor.

    Example:
        >>> torch.zeros(3, 2).index_add(0, torch.tensor([0, 2, 0]), torch.ones(3, 2))
        tensor([[2., 2.],
                [0., 0.],
                [1., 1.]]))");
  ops.def("index_fill", index_fill, "input, dim, index, value", writes | kNoOut | kOverlapOk | kNoOverlap, R"(
    Sets the slices at given indices to a number.

    Args:
        index: a vector of indices along dim.
        value: the number, or a 0-dim tensor.

    Example:
        >>> torch.zeros(2, 3).index_fill(1, torch.tensor([0, 2]), 7.0)
        tensor([[7., 0., 7.],
                [7., 0., 7.]]))");
  ops.def("index_copy", index_copy, "input, dim, index, source", writes | kCastWidest | kExactOut | kNoOverlap, R"(
    Replaces the slices at given indices by those of source.

    Args:
        index: a vector of indices along dim, one for each slice of source.
        source: the slices.

    Example:
        >>> torch.zeros(3, 2).index_copy(0, torch.tensor([2, 0]), torch.tensor([[1.0, 1.0], [2.0, 2.0]]))
        tensor([[2., 2.],
                [0., 0.],
                [1., 1.]]))");
});

}  // namespace rl::ops
