// Masks: reading and writing where a condition holds.
#include "autograd/destination.h"
#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "schema/registry.h"
#include "tensor/overlap.h"

namespace rl::ops {

namespace {

// The mask's strides seen with the given sizes.
struct MaskView {
  Ints strides;
  View view;
  MaskView(const Tensor& mask, IntSpan sizes) : strides(broadcast_strides(mask, sizes)) {
    view = {mask.memory(), sizes.data(), strides.data(), static_cast<int32_t>(sizes.size()), DType::Bool};
  }
  MaskView(const MaskView&) = delete;
};

}  // namespace

// masked_fill: y = value where mask, else x        dx = dy with zeros where mask, dvalue = sum of dy where mask
struct MaskedFillBackward : Node {
  static constexpr const char* kName = "MaskedFillBackward0";
  static constexpr bool kStacks = true;
  Saved mask;
  Grads backward(const Grads& dy) {
    Tensor m = mask.unpack(*this);
    Grads dx(2);
    if (needs(0)) dx[0] = masked_fill(dy[0], m, Scalar(0));
    if (needs(1))
      dx[1] = masked_fill(dy[0], unary("logical_not", Pointwise::LogicalNot, m, {.rule = Rule::Bool}), Scalar(0));
    return dx;
  }
  FIELDS(mask)
};
Tensor masked_fill(const Tensor& input, const Tensor& mask, const Value& value) {
  CHECK(mask.dtype() == DType::Bool, Runtime, "masked_fill_ only supports boolean masks, but got mask with dtype ",
        info(mask.dtype()).name);
  CHECK(!value.is_tensor() || value.tensor.dim() == 0, Runtime,
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
        value.is_tensor() ? value.tensor.dim() : 0, " dimension(s).");
  if (!value.is_tensor()) check_holds(value.number, input.dtype());
  else if (value.tensor.has_values()) check_holds(item(value.tensor), input.dtype());
  Ints sizes = broadcast_sizes(input.sizes(), mask.sizes());
  if (t_destination.wanted) check_no_partial_overlap(Tensor::borrow(t_destination.wanted), mask);
  bool recorded = will_record({input, value});
  Tensor y;
  if (IntSpan(sizes) == input.sizes()) {
    y = writable(input, recorded);
  } else {
    y = empty(sizes, input.dtype(), input.device());
    copy_into(y, input);
  }
  if (y.numel()) {
    NoGrad raw;
    Tensor own = mask.storage() == y.storage() ? clone(mask) : mask;
    Tensor element = value.is_tensor() ? cast(value.tensor, y.dtype())
                     : value.number.is_complex() && !y.is_complex()
                         ? full({}, Scalar(value.number.to_complex128().real()), y.dtype())
                         : full({}, value.number, y.dtype());
    MaskView m(own, y.sizes());
    backend(y.device())
        .index->masked_fill(y.view(), m.view, (element.has_values() ? to_host(element) : element).memory());
  }
  return record<MaskedFillBackward>(y, {input, value}, [&](auto& n) { n.mask = save(mask); });
}

// masked_select: y = the elements of x where mask, in order        dx = zeros with dy scattered where mask
struct MaskedSelectBackward : Node {
  static constexpr const char* kName = "MaskedSelectBackward0";
  static constexpr bool kStacks = true;
  Saved mask;
  Ints sizes;
  Grads backward(const Grads& dy) {
    Tensor like = zeros(led(dy[0], sizes), dy[0].dtype(), dy[0].device()), m = mask.unpack(*this);
    return {masked_scatter(like, lead(dy[0]) ? expand(m, like.sizes()) : m, dy[0])};
  }
  FIELDS(mask)
};
Tensor masked_select(const Tensor& input, const Tensor& mask) {
  CHECK(mask.dtype() == DType::Bool, Runtime, "masked_select: expected BoolTensor for mask, got ",
        info(mask.dtype()).name);
  CHECK(input.has_values(), NotImplemented,
        "masked_select: the result's size depends on the data, which a meta tensor has not");
  Ints sizes = broadcast_sizes(input.sizes(), mask.sizes());
  MaskView m(mask, sizes);
  Tensor y = empty({checked_numel(sizes) ? backend(mask.device()).index->count_nonzero(m.view) : 0}, input.dtype(),
                   input.device());
  if (y.numel()) {
    Ints strides = broadcast_strides(input, sizes);
    View in{input.memory(), sizes.data(), strides.data(), static_cast<int32_t>(sizes.size()), input.dtype()};
    backend(y.device()).index->masked_select(y.view(), in, m.view);
  }
  return record<MaskedSelectBackward>(y, {input}, [&](auto& n) {
    n.mask = save(mask);
    n.sizes = sizes;
  });
}

// masked_scatter: y = x with the next element of source where mask
//   dx = dy with zeros where mask, dsource = dy where mask, then zeros for what was not used
struct MaskedScatterBackward : Node {
  static constexpr const char* kName = "MaskedScatterBackward0";
  Saved mask;
  Ints source_sizes;
  Grads backward(const Grads& dy) {
    Tensor m = mask.unpack(*this);
    Grads dx(2);
    if (needs(0)) dx[0] = masked_fill(dy[0], m, Scalar(0));
    if (needs(1) && !m.has_values()) {
      dx[1] = empty(source_sizes, dy[0].dtype(), dy[0].device());
    } else if (needs(1)) {
      Tensor used = masked_select(dy[0], m);
      dx[1] = reshape(embed(used, {checked_numel(source_sizes)}, {1}, used.sizes(), {1}, 0), source_sizes);
    }
    return dx;
  }
  Grads stacked(const Grads& dy) { return needs(1) ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(mask)
};
Tensor masked_scatter(const Tensor& input, const Tensor& mask, const Tensor& source) {
  CHECK(mask.dtype() == DType::Bool, Runtime, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        info(mask.dtype()).name);
  CHECK(input.dtype() == source.dtype(), Runtime,
        "masked_scatter: expected self and source to have same dtypes but got ", info(input.dtype()).name, " and ",
        info(source.dtype()).name);
  Ints sizes = broadcast_sizes(input.sizes(), mask.sizes());
  bool recorded = will_record({input, source});
  Tensor y;
  if (IntSpan(sizes) == input.sizes()) {
    y = writable(input, recorded);
  } else {
    y = empty(sizes, input.dtype(), input.device());
    copy_into(y, input);
  }
  if (y.numel()) {
    NoGrad raw;
    Tensor own = mask.storage() == y.storage() ? clone(mask) : mask;
    Tensor from = source.storage() == y.storage() ? clone(source, MemoryFormat::Contiguous) : contiguous(source);
    MaskView m(own, y.sizes());
    backend(y.device()).index->masked_scatter(y.view(), m.view, from.view());
  }
  return record<MaskedScatterBackward>(y, {input, source}, [&](auto& n) {
    n.mask = save(mask);
    n.source_sizes = Ints(source.sizes());
  });
}

// What is not zero, as a mask in row-major order: the kernel goes over it twice, so that it is worth making one of what
// is large.
static Tensor as_mask(const Tensor& input) {
  if (input.numel() < 4096 || (input.dtype() == DType::Bool && input.is_contiguous())) return input;
  NoGrad raw;
  return contiguous(input.dtype() == DType::Bool ? input : cast(input, DType::Bool));
}
// nonzero: the coordinates of the elements that are not zero, one row for each
Tensor nonzero(const Tensor& input) {
  CHECK(input.has_values(), NotImplemented,
        "nonzero: the result's size depends on the data, which a meta tensor has not");
  const Tensor mask = as_mask(input);
  int64_t count = mask.numel() ? backend(mask.device()).index->count_nonzero(mask.view()) : 0;
  Tensor y = empty({count, mask.dim()}, DType::Int64, mask.device());
  if (y.numel()) backend(y.device()).index->nonzero(y.view(), mask.view());
  return y;
}
static Tensors nonzero_tuple(const Tensor& input) {
  Tensor lifted = input.dim() ? as_mask(input) : alias(input, {1}, {1}, input->offset);
  // Columns that are contiguous each: written transposed.
  int64_t count = lifted.numel() ? backend(lifted.device()).index->count_nonzero(lifted.view()) : 0;
  Tensor rows = empty({lifted.dim(), count}, DType::Int64, lifted.device());
  Tensor y = alias(rows, {count, lifted.dim()}, {1, count}, 0);
  if (y.numel()) backend(y.device()).index->nonzero(y.view(), lifted.view());
  Tensors out;
  for (int64_t d = 0; d < lifted.dim(); ++d) out.push_back(alias(rows, {count}, {1}, d * count));
  return out;
}
static NewObject nonzero_op(const Tensor& input, bool as_tuple) {
  return {as_tuple ? to_python(nonzero_tuple(input)) : to_python(nonzero(input))};
}
static Tensor nonzero_static(const Tensor& input, int64_t size, int64_t fill_value) {
  CHECK(size >= 0, Runtime, "nonzero_static: 'size' must be an non-negative integer, got ", size);
  Tensor y = full({size, input.dim()}, Scalar(fill_value), DType::Int64, input.device());
  if (!input.numel() || !y.numel() || !input.has_values()) return y;
  int64_t count = std::min(size, backend(input.device()).index->count_nonzero(input.view()));
  if (count == 0) return y;
  Tensor part = alias(y, {count, input.dim()}, y.strides(), 0);
  backend(part.device()).index->nonzero(part.view(), input.view());
  return y;
}

static const Register registered([](Ops& ops) {
  const uint32_t writes = kMethod | kInplace | kDirect | kKeepsInput;
  ops.def("masked_fill", masked_fill, "input, mask, value",
          writes | kOverlapOk | kNoOut | kAnyType | kElementwise | kOwnType, R"(
    Writes a number where mask is true.

    Args:
        mask: bools, which broadcast to input.
        value: the number, or a 0-dim tensor.

    Gradient:
        0 where mask is true; value gets the sum of those.

    Example:
        >>> scores = torch.tensor([1.0, 2.0, 3.0])
        >>> scores.masked_fill(torch.tensor([False, True, False]), -math.inf)
        tensor([1., -inf, 3.]))");
  ops.def("masked_select", masked_select, "input, mask", kMethod | kNoOverlap | kExactOut | kAnyType, R"(
    Takes the elements where mask is true, in order, as a vector.

    Args:
        mask: bools, which broadcast with input.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.masked_select(x, x > 2)
        tensor([3, 4]))");
  ops.def("masked_scatter", masked_scatter, "input, mask, source", writes | kNoOut, R"(
    Writes the elements of source, in order, where mask is true.

    Args:
        mask: bools, which broadcast with input.
        source: at least as many elements as mask has true ones.

    Example:
        >>> mask = torch.tensor([True, False, True])
        >>> torch.zeros(3).masked_scatter(mask, torch.tensor([1.0, 2.0, 3.0]))
        tensor([1., 0., 2.]))");
  ops.def("nonzero", nonzero_op, "input, *, as_tuple=False", kMethod | kNotDifferentiable | kExactOut, R"(
    Lists the coordinates of the elements that are not 0.

    Args:
        as_tuple: whether to return one vector for each dimension, which indexes the elements, instead
         of a matrix with a row for each element.

    Example:
        >>> x = torch.tensor([[1, 0], [0, 2]])
        >>> x.nonzero()
        tensor([[0, 0],
                [1, 1]])
        >>> x[x.nonzero(as_tuple=True)]
        tensor([1, 2]))");
  ops.def("argwhere", nonzero, "input", kMethod | kNotDifferentiable | kNoOut, R"(
    Lists the coordinates of the elements that are not 0, one row for each.

    Example:
        >>> torch.argwhere(torch.tensor([[1, 0], [0, 2]]))
        tensor([[0, 0],
                [1, 1]]))");
  ops.def("nonzero_static", nonzero_static, "input, *, size, fill_value=-1", kMethod | kNotDifferentiable | kExactOut,
          R"(
    Lists the coordinates of the elements that are not 0 in a given number of rows.

    Args:
        size: the number of rows: more are cut off.
        fill_value: what missing rows are filled with.

    Example:
        >>> torch.nonzero_static(torch.tensor([0, 3, 0, 5]), size=3)
        tensor([[ 1],
                [ 3],
                [-1]]))");
});

}  // namespace rl::ops
