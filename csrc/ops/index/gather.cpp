#include "ops/index/gather.h"

#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

Ints lifted_sizes(const Tensor& t) { return t.dim() ? Ints(t.sizes()) : Ints{1}; }
Ints lifted_strides(const Tensor& t) { return t.dim() ? Ints(t.strides()) : Ints{1}; }

Tensor writable(const Tensor& input, bool will_be_recorded) {
  Tensor y = take_destination(input.sizes(), input.dtype(), will_be_recorded);
  if (!y.defined()) {
    y = empty(input.sizes(), input.dtype(), input.device());
    copy_into(y, input);
    return y;
  }
  if (!y.is(input)) copy_into(y, input);
  return y;
}

Along::Along(const Tensor& x, int64_t d, const Tensor& i, IntSpan dense_sizes, IntSpan along_strides)
    : sizes(dense_sizes), strides(lifted_strides(x)), index_strides(along_strides), dim(static_cast<int>(d)) {
  size = x.dim() ? x.sizes()[d] : 1;
  stride = x.dim() ? x.strides()[d] : 1;
  strides[d] = 0;
  index = {i.memory(), sizes.data(), index_strides.data(), ndim(), i.dtype()};
}

Ints vector_strides(const Tensor& index, int64_t dim, int64_t ndim) {
  Ints strides(ndim, 0);
  strides[dim] = index.dim() ? index.strides()[0] : 1;
  return strides;
}

void check_indices(const Tensor& index, int64_t dim, int64_t size, ErrorKind error) {
  if (!index.has_values() || index.numel() == 0) return;
  NoGrad raw;
  Tensor at = to_host(contiguous(cast(index, DType::Int64)));
  for (const int64_t *p = at.data<int64_t>(), *end = p + at.numel(); p != end; ++p)
    if (*p < 0 || *p >= size) fail(error, "index ", *p, " is out of bounds for dimension ", dim, " with size ", size);
}

void put_along(const Tensor& y, int64_t dim, const Tensor& index, IntSpan dense_sizes, IntSpan index_strides,
               const Tensor& values, Combine combine, ErrorKind error, bool wrap, bool round_each) {
  NoGrad raw;
  // What is written must not be read through another view meanwhile.
  Tensor from = values.storage() == y.storage() ? clone(values) : values;
  Tensor at = index.storage() == y.storage() ? clone(index) : index;
  Ints at_strides(index_strides);
  if (!at.is(index))
    for (int64_t d = 0; d < at_strides.size(); ++d)
      if (at_strides[d] != 0) at_strides[d] = index.dim() == 1 || index.dim() == 0 ? 1 : at.strides()[d];
  Along along(y, dim, at, dense_sizes, at_strides);
  Ints strides = from.dim() == 0 ? Ints(dense_sizes.size(), 0) : Ints(from.strides());
  View dense{from.memory(), along.sizes.data(), strides.data(), along.ndim(), from.dtype()};
  const IndexKernels& kernels = *backend(y.device()).index;
  const bool arithmetic = combine == Combine::Sum || combine == Combine::Prod;
  if (!arithmetic || round_each || !is_half(y.dtype()))
    return kernels.put(along.of(y), dense, along.spec(error, wrap), combine);
  if (combine == Combine::Sum && kernels.add_half_rows(along.of(y), dense, along.spec(error, wrap))) return;
  Tensor wide = cast(y, DType::Float32);
  put_along(wide, dim, index, dense_sizes, index_strides, cast(values, DType::Float32), combine, error, wrap);
  copy_into(y, wide);
}

namespace {

void check_index_dtype(const char* op, const Tensor& index) {
  CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32 || index.numel() == 0, Runtime, op,
        "(): Expected dtype int32/int64 for index, got ", info(index.dtype()).name);
}

void check_gather_shapes(const Tensor& input, int64_t dim, const Tensor& index) {
  Ints sizes = lifted_sizes(input), wanted = lifted_sizes(index);
  CHECK(sizes.size() == wanted.size(), Runtime,
        "Index tensor must have the same number of dimensions as input tensor, got ", to_text(index.sizes()), " and ",
        to_text(input.sizes()));
  for (int64_t d = 0; d < sizes.size(); ++d)
    CHECK(d == dim || wanted[d] <= sizes[d], Runtime, "Size does not match at dimension ", d, " expected index ",
          to_text(index.sizes()), " to be no larger than self ", to_text(input.sizes()), " apart from dimension ", dim);
}

void check_scatter_shapes(const Tensor& input, int64_t dim, const Tensor& index, const Tensor* src) {
  Ints sizes = lifted_sizes(input), wanted = lifted_sizes(index), given = src ? lifted_sizes(*src) : wanted;
  CHECK(sizes.size() == wanted.size(), Runtime,
        "Index tensor must have the same number of dimensions as self tensor, got ", to_text(index.sizes()), " and ",
        to_text(input.sizes()));
  CHECK(given.size() == wanted.size(), Runtime,
        "Index tensor must have the same number of dimensions as src tensor, got ", to_text(index.sizes()), " and ",
        src ? to_text(src->sizes()) : "");
  for (int64_t d = 0; d < sizes.size(); ++d)
    CHECK((d == dim || wanted[d] <= sizes[d]) && wanted[d] <= given[d], Runtime, "Expected index ",
          to_text(index.sizes()), " to be no larger than self ", to_text(input.sizes()), " apart from dimension ", dim,
          src ? text(" and to be no larger in size than src ", to_text(src->sizes())) : std::string());
}

}  // namespace

// gather: y = x at index along dim        dx = zeros with dy added at index
struct GatherBackward : Node {
  static constexpr const char* kName = "GatherBackward0";
  Saved index, self;  // only self's sizes are needed; torch keeps it, and refuses writes to it
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor like = zeros(led(dy[0], self.unpack(*this).sizes()), dy[0].dtype(), dy[0].device());
    Tensor at = repeated(*this, index.unpack(*this), dy[0]);
    return {written_to(like, [&] { return scatter_add(like, dim + lead(dy[0]), at, dy[0]); })};
  }
  Grads stacked(const Grads& dy) { return self.unpack(*this).dim() == 0 ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, index, self)
};
Tensor gather(const Tensor& input, int64_t dim, const Tensor& index) {
  int64_t d = wrap_dim(dim, input.dim());
  check_index_dtype("gather", index);
  Tensor y = empty(index.sizes(), input.dtype(), input.device());
  if (index.numel()) {
    check_gather_shapes(input, d, index);
    Along along(input, d, index, lifted_sizes(index), lifted_strides(index));
    Ints strides = lifted_strides(y);
    View out{y.memory(), along.sizes.data(), strides.data(), along.ndim(), y.dtype()};
    backend(y.device()).index->get(out, along.of(input), along.spec(ErrorKind::Runtime, false));
  }
  return record<GatherBackward>(y, {input}, [&](auto& n) {
    n.index = save(index.numel() ? index : cast(index, DType::Int64));
    n.self = save(input);
    n.dim = d;
  });
}

// The gradient of a scatter's src, which may be larger than the index: zero where nothing was read.
static Tensor gather_for(const Tensor& dy, int64_t dim, const Tensor& index, IntSpan src_sizes) {
  Tensor dsrc = gather(dy, dim, index);
  if (dsrc.sizes() == src_sizes) return dsrc;
  Ints strides = contiguous_strides(src_sizes);
  return embed(dsrc, src_sizes, strides, dsrc.sizes(), strides, 0);
}

// scatter: y = x with src at index along dim        dx = dy with zeros at index, dsrc = dy at index
struct ScatterBackward : Node {
  static constexpr const char* kName = "ScatterBackward0";
  Saved index;
  int64_t dim = 0;
  Ints src_sizes;
  Grads backward(const Grads& dy) {
    Tensor i = repeated(*this, index.unpack(*this), dy[0]);
    int64_t d = dim + lead(dy[0]);
    return {needs(0) ? scatter(dy[0], d, i, Scalar(0)) : Tensor(),
            needs(1) ? gather_for(dy[0], d, i, led(dy[0], src_sizes)) : Tensor()};
  }
  Grads stacked(const Grads& dy) { return results[0].sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, index)
};
static Tensor scatter_into(const char* op, const Tensor& input, int64_t dim, const Tensor& index, const Value& src,
                           Combine combine) {
  int64_t d = wrap_dim(dim, input.dim());
  check_index_dtype(op, index);
  const Tensor* values = src.is_tensor() ? &src.tensor : nullptr;
  if (values)
    CHECK(values->dtype() == input.dtype(), Runtime, op, "(): Expected self.dtype to be equal to src.dtype, got ",
          info(input.dtype()).name, " and ", info(values->dtype()).name);
  Tensor y = writable(input, will_record({input, src}));
  if (index.numel() == 0) return y;
  check_scatter_shapes(input, d, index, values);
  if (!values) check_holds(src.number, y.dtype());
  put_along(y, d, index, lifted_sizes(index), lifted_strides(index), values ? *values : full({}, src.number, y.dtype()),
            combine, ErrorKind::Runtime, false);
  return y;
}
Tensor scatter(const Tensor& input, int64_t dim, const Tensor& index, const Value& src) {
  Tensor y = scatter_into("scatter", input, dim, index, src, Combine::Set);
  return record<ScatterBackward>(y, {input, src}, [&](auto& n) {
    n.index = save(index);
    n.dim = wrap_dim(dim, input.dim());
    if (src.is_tensor()) n.src_sizes = Ints(src.tensor.sizes());
  });
}
static Tensor scatter_op(const Tensor& input, int64_t dim, const Tensor& index, const Value& src,
                         const std::optional<std::string>& reduce) {
  if (!reduce) return scatter(input, dim, index, src);
  CHECK(*reduce == "add" || *reduce == "multiply", Runtime, "reduce argument must be either add or multiply, got ",
        *reduce);
  Tensor y = scatter_into("scatter", input, dim, index, src, *reduce == "add" ? Combine::Sum : Combine::Prod);
  return record_not_differentiable("scatter", y, {input, src});
}

// scatter_add: y = x with src added at index        dx = dy, dsrc = dy at index
struct ScatterAddBackward : Node {
  static constexpr const char* kName = "ScatterAddBackward0";
  Saved index;
  int64_t dim = 0;
  Ints src_sizes;
  Grads backward(const Grads& dy) {
    if (!needs(1)) return {dy[0], Tensor()};
    Tensor i = repeated(*this, index.unpack(*this), dy[0]);
    return {dy[0], gather_for(dy[0], dim + lead(dy[0]), i, led(dy[0], src_sizes))};
  }
  Grads stacked(const Grads& dy) { return results[0].sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, index)
};
Tensor scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
  Tensor y = scatter_into("scatter_add", input, dim, index, src, Combine::Sum);
  return record<ScatterAddBackward>(y, {input, src}, [&](auto& n) {
    if (n.needs(1)) n.index = save(index);
    n.dim = wrap_dim(dim, input.dim());
    n.src_sizes = Ints(src.sizes());
  });
}

static Tensor gather_op(const Tensor& input, int64_t dim, const Tensor& index, bool) {
  return gather(input, dim, index);
}

static const Register registered([](Ops& ops) {
  const uint32_t writes = kMethod | kInplace | kDirect | kKeepsInput;
  ops.def("gather", gather_op, "input, dim, index, *, sparse_grad=False", kMethod | kNoOverlap | kExactOut, R"(
    Takes elements by index along a dimension: for dim 0, y[i][j] = x[index[i][j]][j].

    Args:
        index: int64 indices along dim; as many dimensions as input, and the shape of the result.
        sparse_grad: whether the gradient of input is a sparse tensor.

    Gradient:
        Elements that were taken several times get the sum.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.gather(x, 1, torch.tensor([[0, 0], [1, 0]]))
        tensor([[1, 1],
                [4, 3]]))");
  ops.def("scatter", scatter_op, "input, dim, index, src, *, reduce=None", writes | kExactOut | kNoOverlap, R"(
    Writes elements by index along a dimension: for dim 0, y[index[i][j]][j] = src[i][j].

    Args:
        src: what is written, at least as large as index.
        value: a number instead of src.
        reduce: 'add' or 'multiply' instead of replacing; scatter_reduce() knows more.

    Gradient:
        To src from where it was written, to input elsewhere. Not defined for an index that occurs twice.

    Example:
        >>> x = torch.zeros(2, 3)
        >>> x.scatter(1, torch.tensor([[0], [2]]), 1.0)
        tensor([[1., 0., 0.],
                [0., 0., 1.]]))");
  ops.def("scatter", scatter_op, "input, dim, index, value, *, reduce=None", writes | kExactOut | kNoOverlap);
  ops.def("scatter_add", scatter_add, "input, dim, index, src", writes | kExactOut | kNoOverlap, R"(
    Adds elements by index along a dimension: for dim 0, y[index[i][j]][j] += src[i][j].

    Args:
        src: what is added, at least as large as index.

    Example:
        >>> torch.zeros(3).scatter_add(0, torch.tensor([0, 2, 2]), torch.tensor([1.0, 2.0, 3.0]))
        tensor([1., 0., 5.]))");
});

}  // namespace rl::ops
