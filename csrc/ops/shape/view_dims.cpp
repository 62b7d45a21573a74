// Dimensions in another order, repeated, or read in part.
#include <algorithm>

#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "ops/shape/view.h"
#include "schema/registry.h"

namespace rl::ops {

// permute: dimensions in another order        dx = dy with the inverse order
struct PermuteBackward : Node {
  static constexpr const char* kName = "PermuteBackward0";
  static constexpr bool kStacks = true;
  Ints dims;
  Grads backward(const Grads& dy) {
    Ints inverse(dims.size());
    for (int64_t i = 0; i < dims.size(); ++i) inverse[dims[i]] = i;
    if (lead(dy[0])) inverse = shifted(inverse, 1), inverse.insert(0, 0);
    return {permute(dy[0], inverse)};
  }
  FIELDS(dims)
};
Tensor permute(const Tensor& input, IntSpan dims) {
  CHECK(dims.size() == input.dim(), Runtime,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        "ordering of dimensions i.e. input.dim() = ",
        input.dim(), " is not equal to len(dims) = ", dims.size());
  Ints order(dims.size()), sizes(dims.size()), strides(dims.size());
  uint64_t seen = 0;
  for (int64_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], input.dim());
    CHECK(!(seen >> d & 1), Runtime, "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << d;
    order[i] = d;
    sizes[i] = input.sizes()[d];
    strides[i] = input.strides()[d];
  }
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<PermuteBackward>(y, input, [&](auto& n) { n.dims = order; });
}

// transpose: two dimensions exchanged        dx = the same of dy
struct TransposeBackward : Node {
  static constexpr const char* kName = "TransposeBackward0";
  static constexpr bool kStacks = true;
  int64_t dim0 = 0, dim1 = 0;
  Grads backward(const Grads& dy) {
    if (results[0].sizes.empty()) return {dy[0]};
    return {transpose(dy[0], shifted(dim0, lead(dy[0])), shifted(dim1, lead(dy[0])))};
  }
  FIELDS(dim0, dim1)
};
Tensor transpose(const Tensor& input, int64_t dim0, int64_t dim1) {
  int64_t a = wrap_dim(dim0, input.dim()), b = wrap_dim(dim1, input.dim());
  Ints sizes(input.sizes()), strides(input.strides());
  if (input.dim() > 0) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<TransposeBackward>(y, input, [&](auto& n) { n.dim0 = a, n.dim1 = b; });
}
struct TBackward : Node {
  static constexpr const char* kName = "TBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) {
    return {lead(dy[0]) ? (dy[0].dim() == 3 ? transpose(dy[0], 1, 2) : dy[0]) : t(dy[0])};
  }
};
Tensor t(const Tensor& input) {
  CHECK(input.dim() <= 2, Runtime, "t() expects a tensor with <= 2 dimensions, but self is ", input.dim(), "D");
  Ints sizes(input.sizes()), strides(input.strides());
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<TBackward>(y, input, [](auto&) {});
}

// expand: size-1 dimensions repeated without copying        dx = dy summed over them (by the engine)
struct ExpandBackward : Node {
  static constexpr const char* kName = "ExpandBackward0";
  static constexpr bool kStacks = true;
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) { return {lead(dy[0]) ? dy[0] : sum_to(dy[0], self_sym_sizes)}; }
  FIELDS(self_sym_sizes)
};
Tensor expand(const Tensor& input, IntSpan size) {
  CHECK(size.size() >= input.dim(), Runtime, "expand(", info(input.dtype()).legacy, "Tensor{", to_text(input.sizes()),
        "}, size=", to_text(size), "): the number of sizes provided (", size.size(),
        ") must be greater or equal to the number of dimensions in the tensor (", input.dim(), ")");
  int64_t shift = size.size() - input.dim();
  Ints sizes(size.size()), strides(size.size());
  for (int64_t i = 0; i < size.size(); ++i) {
    if (i < shift) {
      CHECK(size[i] >= 0, Runtime, "The expanded size of the tensor (", size[i],
            ") isn't allowed in a leading, non-existing dimension ", i);
      sizes[i] = size[i];
      continue;
    }
    int64_t have = input.sizes()[i - shift];
    CHECK(size[i] == -1 || size[i] == have || (have == 1 && size[i] >= 0), Runtime, "The expanded size of the tensor (",
          size[i], ") must match the existing size (", have, ") at non-singleton dimension ", i,
          ".  Target sizes: ", to_text(size), ".  Tensor sizes: ", to_text(input.sizes()));
    sizes[i] = size[i] == -1 ? have : size[i];
    strides[i] = have == 1 && sizes[i] != 1 ? 0 : input.strides()[i - shift];
  }
  for (int64_t i = input.dim() ? shift - 1 : -1; i >= 0; --i)  // a new dimension of size 1 is no repetition
    strides[i] = sizes[i] != 1 ? 0 : i + 1 < sizes.size() ? sizes[i + 1] * strides[i + 1] : 1;
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<ExpandBackward>(y, input, [&](auto& n) { n.self_sym_sizes = Ints(input.sizes()); });
}

// select: one index of a dimension, which disappears        dx = zeros with dy there
struct SelectBackward : Node {
  static constexpr const char* kName = "SelectBackward0";
  static constexpr bool kStacks = true;
  Ints self_sym_sizes;
  int64_t dim = 0, index = 0;
  Grads backward(const Grads& dy) {
    Ints strides = contiguous_strides(self_sym_sizes), sizes = self_sym_sizes, rest = strides;
    sizes.erase(dim);
    rest.erase(dim);
    return {embed(dy[0], self_sym_sizes, strides, sizes, rest, index * strides[dim])};
  }
  FIELDS(dim, index, self_sym_sizes)
};
Tensor select(const Tensor& input, int64_t dim, int64_t index) {
  CHECK(input.dim() > 0, Index, "select() cannot be applied to a 0-dim tensor.");
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  CHECK(index >= -n && index < n, Index, "select(): index ", index, " out of range for tensor of size ",
        to_text(input.sizes()), " at dimension ", d);
  int64_t i = index < 0 ? index + n : index;
  Ints sizes(input.sizes()), strides(input.strides());
  int64_t offset = input->offset + i * strides[d];
  sizes.erase(d);
  strides.erase(d);
  Tensor y = alias(input, sizes, strides, offset);
  return record_view<SelectBackward>(y, input, [&](auto& node) {
    node.self_sym_sizes = Ints(input.sizes());
    node.dim = d;
    node.index = i;
  });
}

// slice: every step-th index of a dimension from start to end        dx = zeros with dy there
struct SliceBackward : Node {
  static constexpr const char* kName = "SliceBackward0";
  static constexpr bool kStacks = true;
  Ints self_sym_sizes;
  int64_t dim = 0, start = 0, end = 0, step = 1;
  Grads backward(const Grads& dy) {
    Ints strides = contiguous_strides(self_sym_sizes), part = strides;
    part[dim] *= step;
    return {embed(dy[0], self_sym_sizes, strides, results[0].sizes, part, start * strides[dim])};
  }
  FIELDS(dim, start, end, step, self_sym_sizes)
};
Tensor slice(const Tensor& input, int64_t dim, int64_t start, int64_t end, int64_t step) {
  CHECK(input.dim() > 0, Runtime, "slice() cannot be applied to a 0-dim tensor.");
  CHECK(step > 0, Value, "step must be greater than zero");
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  auto clip = [n](int64_t v) { return std::clamp<int64_t>(v < 0 ? (v < -n ? 0 : v + n) : v, 0, n); };
  int64_t from = clip(start), to = std::max(clip(end), from);
  Ints sizes(input.sizes()), strides(input.strides());
  sizes[d] = to > from ? (to - from - 1) / step + 1 : 0;
  int64_t offset = input->offset + (sizes[d] ? from * strides[d] : from * strides[d]);
  int64_t stretched;
  if (__builtin_mul_overflow(strides[d], step, &stretched)) stretched = strides[d];  // then only one element is left
  strides[d] = stretched;
  Tensor y = alias(input, sizes, strides, offset);
  return record_view<SliceBackward>(y, input, [&](auto& node) {
    node.self_sym_sizes = Ints(input.sizes());
    node.dim = d;
    node.start = from;
    node.end = to;
    node.step = step;
  });
}
Tensor narrow(const Tensor& input, int64_t dim, int64_t start, int64_t length) {
  CHECK(input.dim() > 0, Runtime, "narrow() cannot be applied to a 0-dim tensor.");
  CHECK(length >= 0, Runtime, "narrow(): length must be non-negative.");
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  CHECK(start >= -n && start <= n, Index, "start out of range (expected to be in range of [", -n, ", ", n,
        "], but got ", start, ")");
  if (start < 0) start += n;
  CHECK(start <= n - length, Runtime, "start (", start, ") + length (", length, ") exceeds dimension size (", n, ").");
  return slice(input, d, start, start + length, 1);
}

// sum_to: dimensions that were broadcast, summed        dx = dy expanded
struct SumToBackward : Node {
  static constexpr const char* kName = "SumToSizeBackward0";
  static constexpr bool kStacks = true;
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) {
    if (!lead(dy[0])) return {expand(dy[0], self_sym_sizes)};
    Ints kept(self_sym_sizes.size() - results[0].sizes.size(), 1);
    for (int64_t n : results[0].sizes) kept.push_back(n);
    return {expand(reshape(dy[0], led(dy[0], kept)), led(dy[0], self_sym_sizes))};
  }
};
Tensor sum_to(const Tensor& input, IntSpan sizes) {
  if (input.sizes() == sizes) return input;
  int64_t shift = input.dim() - sizes.size();
  CHECK(shift >= 0, Runtime, "size {", to_text(sizes), "} is not expandable to size {", to_text(input.sizes()), "}.");
  Ints kept(input.dim(), 1);
  for (int64_t i = 0; i < sizes.size(); ++i) {
    CHECK(sizes[i] == 1 || sizes[i] == input.sizes()[shift + i], Runtime, "size {", to_text(sizes),
          "} is not expandable to size {", to_text(input.sizes()), "}.");
    kept[shift + i] = sizes[i];
  }
  Tensor y = empty(kept, input.dtype(), input.device());
  backend(y.device()).reduce->reduce(Reduce::Sum, y.view(), input.view(), 0);
  set_geometry(y.get(), sizes, contiguous_strides(sizes), 0);
  return record<SumToBackward>(y, {input}, [&](auto& n) { n.self_sym_sizes = Ints(input.sizes()); });
}

// Forms that Python calls.
static Tensor permute_op(const Tensor& input, const Ints& dims) { return permute(input, dims); }
static Tensor expand_op(const Tensor& input, const Ints& size, bool) { return expand(input, size); }
static Tensor sum_to_op(const Tensor& input, const Ints& size) {
  // Integers are summed in int64, as by sum.
  bool sums = size.empty() || !(input.sizes() == IntSpan(size));
  return sum_to(sums && is_integral(input.dtype(), true) ? cast(input, DType::Int64) : input, size);
}

static const Register registered([](Ops& ops) {
  ops.def("permute", permute_op, "input, dims...", kMethod | kView, R"(
    Puts the dimensions in another order.

    Args:
        dims: all dimensions in their new order, one by one or as one sequence.

    Example:
        >>> images = torch.zeros(8, 3, 32, 24)
        >>> images.permute(0, 2, 3, 1).shape
        torch.Size([8, 32, 24, 3]))");
  ops.def("transpose", transpose, "input, dim0, dim1", kMethod | kView, R"(
    Exchanges two dimensions.

    Args:
        dim0: one dimension.
        dim1: the other one.

    Example:
        >>> torch.tensor([[1, 2, 3]]).transpose(0, 1)
        tensor([[1],
                [2],
                [3]])
        >>> torch.zeros(8, 10, 64).transpose(1, 2).shape
        torch.Size([8, 64, 10]))");
  ops.def("t", t, "input", kMethod | kView, R"(
    Transposes a matrix; vectors and scalars are returned as they are.

    Example:
        >>> torch.t(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]]))");
  ops.def("expand", expand_op, "input, size..., *, implicit=False", kMethod | kNoFunction | kView, R"(
    Shows the tensor with dimensions of size 1 repeated, and new ones in front, without a copy.

    Args:
        size: the sizes, one by one or as one sequence; -1 keeps the size of a dimension.
        implicit: taken for compatibility, without effect.

    Returns:
        A view in which several indices mean one element: copy it before writing.

    Example:
        >>> torch.tensor([[1], [2]]).expand(2, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]]))");
  ops.def("select", select, "input, dim, index", kMethod | kView, R"(
    Shows one index of a dimension, which the result no longer has: x[index] along dim.

    Args:
        index: which one; negative ones count from the end.

    Example:
        >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0)
        tensor([1, 3]))");
  ops.def("narrow", narrow, "input, dim, start, length", kMethod | kView);
  ops.def("sum_to_size", sum_to_op, "input, size...", kMethod | kNoFunction | kNoOut, R"(
    Sums over dimensions until the tensor has the given sizes: what undoes a broadcast in a backward.

    Args:
        size: sizes that broadcast to those of the tensor.

    Example:
        >>> torch.ones(3, 2).sum_to_size(1, 2)
        tensor([[3., 3.]]))");
});

}  // namespace rl::ops
