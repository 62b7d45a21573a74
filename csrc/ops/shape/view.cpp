// Other sizes over the same elements.
#include "ops/shape/view.h"

#include <algorithm>
#include <optional>

#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/lazy_view.h"
#include "ops/ops.h"
#include "schema/registry.h"
#include "tensor/no_grad_reason.h"

namespace rl::ops {

// One -1 among the sizes stands for what is left.
static Ints infer_size(IntSpan size, int64_t numel) {
  Ints out(size);
  int64_t known = 1, unknown = -1;
  for (int64_t i = 0; i < size.size(); ++i) {
    if (size[i] == -1) {
      CHECK(unknown < 0, Runtime, "only one dimension can be inferred");
      unknown = i;
    } else {
      CHECK(size[i] >= 0, Runtime, "invalid shape dimension ", size[i], " at index ", i, " of shape ", to_text(size));
      known = checked_mul(known, size[i]);
    }
  }
  if (unknown >= 0) {
    CHECK(known != 0, Runtime, "cannot reshape tensor of ", numel, " elements into shape ", to_text(size),
          " because the unspecified dimension size -1 can be any value and is ambiguous");
    CHECK(numel % known == 0, Runtime, "shape '", to_text(size), "' is invalid for input of size ", numel);
    out[unknown] = numel / known;
  } else {
    CHECK(known == numel, Runtime, "shape '", to_text(size), "' is invalid for input of size ", numel);
  }
  return out;
}

// Whether also the strides of dimensions of size 1, which say nothing, are those of rows.
static bool in_order(const Tensor& t) {
  int64_t expected = 1;
  for (int64_t i = t.dim() - 1; i >= 0; --i) {
    if (t.strides()[i] != expected) return false;
    expected *= t.sizes()[i];
  }
  return true;
}

// Strides of the same memory under other sizes; nothing if there are none.
static std::optional<Ints> view_strides(const Tensor& t, IntSpan sizes) {
  if (t.numel() == 1) return Ints(sizes.size(), t.dim() ? t.strides()[t.dim() - 1] : 1);
  if (t.numel() == 0 || (t.is_contiguous() && in_order(t))) return contiguous_strides(sizes);
  Ints strides(sizes.size());
  int64_t at = sizes.size() - 1;
  int64_t run = 1, covered = 1, base = t.strides()[t.dim() - 1];
  for (int64_t i = t.dim() - 1; i >= 0; --i) {
    run *= t.sizes()[i];
    bool ends = i == 0 || (t.sizes()[i - 1] != 1 && t.strides()[i - 1] != run * base);
    if (!ends) continue;
    while (at >= 0 && (covered < run || sizes[at] == 1)) {
      strides[at] = covered * base;
      covered *= sizes[at];
      --at;
    }
    if (covered != run) return std::nullopt;
    if (i > 0) {
      base = t.strides()[i - 1];
      run = covered = 1;
    }
  }
  if (at != -1) return std::nullopt;
  return strides;
}

// view: other sizes over the same elements        dx = dy in x's sizes
struct ViewBackward : Node {
  static constexpr const char* kName = "ViewBackward0";
  static constexpr bool kStacks = true;
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) { return {reshape(dy[0], led(dy[0], self_sym_sizes))}; }
  FIELDS(self_sym_sizes)
};
Tensor view(const Tensor& input, IntSpan size) {
  Ints sizes = infer_size(size, input.numel());
  std::optional<Ints> strides = view_strides(input, sizes);
  if (!strides) {
    std::string how = text("\n  its sizes are ", to_text(input.sizes()), ", its strides ", to_text(input.strides()));
    if (input->grad_fn && input->grad_fn->site)
      how += text(": an order of memory made by ", input->grad_fn->type->name, " at ", input->grad_fn->site.describe());
    else if (input->cut && input->cut->kind == CutKind::Strided && input->cut->site)
      how += text(": an order of memory made by ", input->cut->op, "() at ", input->cut->site.describe());
    how += "\n  reshape() copies where it must; contiguous().view() always does.";
    fail(ErrorKind::Runtime,
         "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
         "contiguous "
         "subspaces). Use .reshape(...) instead.",
         how);
  }
  Tensor y = alias(input, sizes, *strides, input->offset);
  return record_view<ViewBackward>(y, input, [&](auto& n) { n.self_sym_sizes = Ints(input.sizes()); });
}

// view(dtype): the same bytes read as another type; no derivative
static Tensor view_dtype(const Tensor& input, DType dtype) {
  int64_t from = input.item_size(), to = itemsize(dtype);
  CHECK(!input->conj || dtype == input.dtype(), Runtime,
        "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype.");
  CHECK(!input->neg || dtype == input.dtype(), Runtime,
        "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype.");
  Ints sizes(input.sizes()), strides(input.strides());
  int64_t offset = input->offset;
  if (from != to) {
    CHECK(input.dim() > 0, Runtime, "self.dim() cannot be 0 to view ", info(input.dtype()).legacy, " as ",
          info(dtype).legacy, " (different element sizes)");
    CHECK(input.strides()[input.dim() - 1] == 1 || input.sizes()[input.dim() - 1] <= 1, Runtime,
          "self.stride(-1) must be 1 to view ", info(input.dtype()).legacy, " as ", info(dtype).legacy,
          " (different element sizes), but got ", input.strides()[input.dim() - 1]);
    auto rescale = [&](int64_t v, const char* what) {
      CHECK(v * from % to == 0, Runtime, what, " must be divisible by ", to / std::max<int64_t>(from, 1), " to view ",
            info(input.dtype()).legacy, " as ", info(dtype).legacy, " (different element sizes), but got ", v);
      return v * from / to;
    };
    int64_t last = input.dim() - 1;
    sizes[last] = rescale(sizes[last], "self.size(-1)");
    offset = rescale(offset, "self.storage_offset()");
    strides[last] = 1;  // of a single element any stride is as good
    for (int64_t i = 0; i < last; ++i) strides[i] = rescale(strides[i], text("self.stride(", i, ")").c_str());
  }
  Tensor y = alias_as(input, dtype, sizes, strides, offset);
  // Not a view to autograd, so it belongs to the mode that it is made in; only normal tensors count their writes.
  y->inference = t_grad_mode.inference;
  if (input->inference != y->inference) {
    Version* own = new_version(0);
    set_version(y.get(), own);
    own->refs = 1;  // only y holds it
  }
  return y;
}

// reshape: a view where the memory allows, else a copy
struct UnsafeViewBackward : ViewBackward {
  static constexpr const char* kName = "UnsafeViewBackward0";
};
Tensor reshape(const Tensor& input, IntSpan shape) {
  Ints sizes = infer_size(shape, input.numel());
  if (view_strides(input, sizes)) return view(input, sizes);
  // Nobody else holds the copy: the result is no view of it.
  Tensor copy = clone(resolved(input), MemoryFormat::Contiguous);
  Tensor y = alias(copy, sizes, contiguous_strides(sizes), copy->offset);
  return record<UnsafeViewBackward>(y, {copy}, [&](auto& n) { n.self_sym_sizes = Ints(copy.sizes()); });
}

// squeeze, unsqueeze: size-1 dimensions removed or added        dx = dy in x's sizes
struct SqueezeBackward : Node {
  static constexpr const char* kName = "SqueezeBackward1";
  static constexpr bool kStacks = true;
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) { return {reshape(dy[0], led(dy[0], self_sym_sizes))}; }
  FIELDS(self_sym_sizes)
};
static Tensor squeeze_where(const Tensor& input, uint64_t dims) {
  Ints sizes, strides;
  for (int64_t i = 0; i < input.dim(); ++i)
    if (!(dims >> i & 1) || input.sizes()[i] != 1) {
      sizes.push_back(input.sizes()[i]);
      strides.push_back(input.strides()[i]);
    }
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<SqueezeBackward>(y, input, [&](auto& n) { n.self_sym_sizes = Ints(input.sizes()); });
}
Tensor squeeze(const Tensor& input, int64_t dim) {
  return squeeze_where(input, uint64_t{1} << wrap_dim(dim, input.dim()));
}
Tensor squeeze_all(const Tensor& input) { return squeeze_where(input, ~uint64_t{0}); }
Tensor squeeze_dims(const Tensor& input, const Ints& dim) {
  uint64_t mask = 0;
  for (int64_t d : dim) {
    uint64_t bit = uint64_t{1} << wrap_dim(d, input.dim());
    CHECK(!(mask & bit), Runtime, "dim ", wrap_dim(d, input.dim()), " appears multiple times in the list of dims");
    mask |= bit;
  }
  return squeeze_where(input, mask);
}

struct UnsqueezeBackward : Node {
  static constexpr const char* kName = "UnsqueezeBackward0";
  static constexpr bool kStacks = true;
  int64_t dim = 0;
  Grads backward(const Grads& dy) { return {squeeze(dy[0], dim + lead(dy[0]))}; }
  FIELDS(dim)
};
Tensor unsqueeze(const Tensor& input, int64_t dim) {
  int64_t d = wrap_dim(dim, input.dim() + 1);
  Ints sizes(input.sizes()), strides(input.strides());
  int64_t stride = d < input.dim() ? sizes[d] * strides[d] : 1;
  sizes.insert(d, 1);
  strides.insert(d, stride);
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<UnsqueezeBackward>(y, input, [&](auto& n) { n.dim = d; });
}

Tensor flatten(const Tensor& input, int64_t start_dim, int64_t end_dim) {
  int64_t a = wrap_dim(start_dim, input.dim()), b = wrap_dim(end_dim, input.dim());
  CHECK(a <= b, Runtime, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (input.dim() == 0) return reshape(input, {1});
  if (a == b) return input;
  Ints sizes;
  int64_t joined = 1;
  for (int64_t i = a; i <= b; ++i) joined *= input.sizes()[i];
  for (int64_t i = 0; i < input.dim(); ++i) {
    if (i < a || i > b) sizes.push_back(input.sizes()[i]);
    else if (i == a) sizes.push_back(joined);
  }
  return reshape(input, sizes);
}

// detach: the same memory and version counter, no history
Tensor detach(const Tensor& input) { return alias(input); }

struct AliasBackward : Node {
  static constexpr const char* kName = "AliasBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {dy[0]}; }
};
Tensor record_alias(Tensor y, const Tensor& input) {
  return record_view<AliasBackward>(std::move(y), input, [](auto&) {});
}
static Tensor alias_op(const Tensor& input) { return record_alias(alias(input), input); }

// Forms that Python calls.
static Tensor view_op(const Tensor& input, const Ints& size) { return view(input, size); }
static Tensor reshape_op(const Tensor& input, const Ints& shape) { return reshape(input, shape); }

static const Register registered([](Ops& ops) {
  ops.def("view", view_op, "input, size...", kMethod | kNoFunction | kView, R"(
    Shows the elements, in their order, in other sizes, without a copy; or their bytes as another type.

    Args:
        size: the sizes, of which one may be -1: what remains.
        dtype: the type to read the bytes as; the last dimension grows or shrinks if its elements are of
         another size.

    Raises:
        RuntimeError: strides do not allow such a view; reshape() copies then.

    Example:
        >>> x = torch.arange(6)
        >>> x.view(2, 3)
        tensor([[0, 1, 2],
                [3, 4, 5]])
        >>> x.view(-1, 2).shape
        torch.Size([3, 2])
        >>> torch.tensor([1.0]).view(torch.int32)
        tensor([1065353216], dtype=torch.int32))");
  ops.def("view", view_dtype, "input, dtype", kMethod | kNoFunction | kView);
  ops.def("reshape", reshape_op, "input, shape...", kMethod | kView, R"(
    Gives the elements, in their order, other sizes.

    Args:
        shape: the sizes, of which one may be -1: what remains.

    Returns:
        A view where strides allow it, else a copy; view() never copies.

    Example:
        >>> torch.arange(6).reshape(2, 3)
        tensor([[0, 1, 2],
                [3, 4, 5]])
        >>> torch.arange(6).reshape(3, -1).shape
        torch.Size([3, 2]))");
  ops.def("squeeze", squeeze_all, "input", kMethod | kView, R"(
    Removes dimensions of size 1: all of them, or those named; others are left as they are.

    Args:
        dim: the dimension, or dimensions.

    Example:
        >>> x = torch.zeros(1, 3, 1)
        >>> x.squeeze().shape
        torch.Size([3])
        >>> x.squeeze(0).shape
        torch.Size([3, 1])
        >>> x.squeeze(1).shape
        torch.Size([1, 3, 1]))");
  ops.def("squeeze", squeeze, "input, dim", kMethod | kView);
  ops.def("squeeze", squeeze_dims, "input, dim...", kMethod | kView);
  ops.def("unsqueeze", unsqueeze, "input, dim", kMethod | kView, R"(
    Adds a dimension of size 1.

    Args:
        dim: where it stands in the result; -1 is the end.

    Example:
        >>> x = torch.tensor([1, 2, 3])
        >>> x.unsqueeze(0)
        tensor([[1, 2, 3]])
        >>> x.unsqueeze(-1).shape
        torch.Size([3, 1]))");
  ops.def("flatten", flatten, "input, start_dim=0, end_dim=-1", kMethod | kView, R"(
    Joins several dimensions into one; without arguments, all of them.

    Args:
        start_dim: the first one to join.
        end_dim: the last one to join.

    Returns:
        A view where strides allow it, else a copy.

    Example:
        >>> images = torch.zeros(8, 3, 32, 32)
        >>> images.flatten().shape
        torch.Size([24576])
        >>> images.flatten(start_dim=1).shape
        torch.Size([8, 3072]))");
  ops.def("detach", detach, "input", kMethod | kView | kNotDifferentiable | kBatchable, R"(
    Shows the same memory outside the graph: nothing flows back through the result.

    Returns:
        A view without history. Writing to it changes the tensor, which backward() notices.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> (2 * x).detach().requires_grad
        False)");
  ops.def("alias", alias_op, "input", kView | kBatchable, R"(
    Shows the same memory with the same sizes, as another tensor object.

    Example:
        >>> x = torch.zeros(2)
        >>> torch.alias(x).data_ptr() == x.data_ptr()
        True)");
});

}  // namespace rl::ops
