#include "backend/backend.h"
#include "base/allocator.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"
#include "tensor/promote.h"

namespace rl::ops {

namespace {

// An empty vector joins with anything: it has been a neutral element for so long that programs count on it.
bool is_skipped(const Tensor& t) { return t.dim() == 1 && t.sizes()[0] == 0; }

// Whether the strides are in the order of channels last; parts of such an image have gaps between their rows.
bool has_channels_inside(const Tensor& t) {
  const int64_t n = t.dim();
  if ((n != 4 && n != 5) || t.strides()[1] == 0) return false;
  int64_t least = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t d = k == 0 ? 1 : k == n - 1 ? 0 : n - k, size = t.sizes()[d], stride = t.strides()[d];
    if (size == 0 || stride < least) return false;
    if (d == 0 && least == t.strides()[1]) return false;  // as N111 and N11W, whose order cannot be told
    least = std::max<int64_t>(1, stride * (size > 1 ? size : 1));
  }
  return true;
}

Tensor like_part(const Grads& dy, const Node& node, int64_t i) {
  if (dy[i].defined()) return dy[i];
  const ResultMeta& r = node.results[i];
  for (int64_t k = 0; k < dy.size(); ++k)
    if (dy[k].defined()) return zeros(node.led(dy[k], r.sizes, k), r.dtype, r.device);
  return zeros(r.sizes, r.dtype, r.device);
}
int64_t lead_of(const Grads& dy, const Node& node) {
  for (int64_t k = 0; k < dy.size(); ++k)
    if (dy[k].defined()) return node.lead(dy[k], k);
  return 0;
}

}  // namespace

// cat: y = tensors one after the other along dim        each gets its part of dy
struct CatBackward : Node {
  static constexpr const char* kName = "CatBackward0";
  static constexpr bool kStacks = true;
  int64_t dim = 0;
  Ints parts;  // sizes along dim; -1 for skipped tensors
  Grads backward(const Grads& dy) {
    Grads dx;
    int64_t start = 0;
    for (int64_t i = 0; i < parts.size(); ++i) {
      if (parts[i] < 0) {
        dx.push_back(needs(i) ? zeros(led(dy[0], {0}), dy[0].dtype(), dy[0].device()) : Tensor());
        continue;
      }
      dx.push_back(needs(i) ? narrow(dy[0], dim + lead(dy[0]), start, parts[i]) : Tensor());
      start += parts[i];
    }
    return dx;
  }
  FIELDS(dim)
};
Tensor cat(Span<Tensor> tensors, int64_t dim) {
  CHECK(!tensors.empty(), Value, "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* lead = nullptr;
  ResultType types;
  for (int64_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    CHECK(t.dim() > 0, Runtime, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    CHECK(t.device() == tensors[0].device(), Runtime,
          "Expected all tensors to be on the same device, but found at least two devices, ",
          to_text(tensors[0].device()), " and ", to_text(t.device()), "! (cat)");
    types.add(t);
    if (!lead && !is_skipped(t)) lead = &t;
  }
  const bool nothing = !lead && tensors[0].dim() == 1;  // empty vectors may be joined along any dimension
  if (!lead) lead = &tensors[0];
  int64_t d = nothing ? 0 : wrap_dim(dim, lead->dim());
  Ints sizes(lead->sizes()), parts;
  sizes[d] = 0;
  bool channels_last = true;
  for (int64_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (is_skipped(t) && !(lead->dim() == 1)) {
      parts.push_back(-1);
      continue;
    }
    CHECK(t.dim() == lead->dim(), Runtime, "Tensors must have same number of dimensions: got ", lead->dim(), " and ",
          t.dim());
    for (int64_t k = 0; k < t.dim(); ++k)
      CHECK(k == d || t.sizes()[k] == sizes[k], Runtime, "Sizes of tensors must match except in dimension ", d,
            ". Expected size ", sizes[k], " but got size ", t.sizes()[k], " for tensor number ", i,
            " in the list.\n  cat joins along dimension ", d, ": the other sizes of ", to_text(t.sizes()),
            " must be those of the first tensor, ", to_text(lead->sizes()));
    sizes[d] = checked_add(sizes[d], t.sizes()[d]);
    parts.push_back(t.sizes()[d]);
    channels_last &= !t.is_contiguous() && has_channels_inside(t);
  }
  DType dtype = types.get();
  Tensor y;
  if (channels_last) {
    y = empty_ordered(sizes, dtype, lead->device(), true);
  } else {
    y = empty(sizes, dtype, lead->device());
  }
  if (y.numel()) {
    SmallVector<View, 8> views;
    for (int64_t i = 0; i < tensors.size(); ++i)
      if (parts[i] > 0) views.push_back(tensors[i].view());
    backend(y.device()).copy->cat(y.view(), views.data(), views.size(), static_cast<int>(d));
  }
  return record<CatBackward>(y, Inputs(tensors), [&](auto& n) {
    n.dim = d;
    n.parts = parts;
  });
}

// stack: y = tensors along a new dimension        each gets its slice of dy
struct StackBackward : Node {
  static constexpr const char* kName = "StackBackward0";
  static constexpr bool kStacks = true;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Grads dx;
    for (int64_t i = 0; i < edges.size(); ++i) dx.push_back(needs(i) ? select(dy[0], dim + lead(dy[0]), i) : Tensor());
    return dx;
  }
  FIELDS(dim)
};
Tensor stack(Span<Tensor> tensors, int64_t dim) {
  CHECK(!tensors.empty(), Runtime, "stack expects a non-empty TensorList");
  int64_t d = wrap_dim(dim, tensors[0].dim() + 1);
  ResultType types;
  for (int64_t i = 0; i < tensors.size(); ++i) {
    CHECK(tensors[i].sizes() == tensors[0].sizes(), Runtime, "stack expects each tensor to be equal size, but got ",
          to_text(tensors[0].sizes()), " at entry 0 and ", to_text(tensors[i].sizes()), " at entry ", i,
          "\n  Pad them to one length (nn.utils.rnn.pad_sequence), or join them along a dimension they have (cat).");
    types.add(tensors[i]);
  }
  Ints sizes(tensors[0].sizes());
  sizes.insert(d, tensors.size());
  Tensor y = empty(sizes, types.get(), tensors[0].device());
  if (y.numel()) {
    Ints part(sizes);
    part[d] = 1;
    SmallVector<Ints, 8> strides;
    SmallVector<View, 8> views;
    strides.reserve(tensors.size());
    for (const Tensor& t : tensors) {
      Ints s(t.strides());
      s.insert(d, 0);
      strides.push_back(std::move(s));
    }
    for (int64_t i = 0; i < tensors.size(); ++i)
      views.push_back(
          {tensors[i].memory(), part.data(), strides[i].data(), static_cast<int32_t>(part.size()), tensors[i].dtype()});
    backend(y.device()).copy->cat(y.view(), views.data(), views.size(), static_cast<int>(d));
  }
  return record<StackBackward>(y, Inputs(tensors), [&](auto& n) { n.dim = d; });
}

// Refused before the first one is made: so many tensors need more than all the memory there is.
static void check_part_count(const char* op, int64_t count) {
  const auto bytes = static_cast<int64_t>(sizeof(TensorObject));
  CHECK(count <= physical_bytes() / bytes, OutOfMemory, "DefaultCPUAllocator: can't allocate memory: ", op, " makes ",
        count, " tensors of at least ", bytes, " bytes each, more than this machine has memory for");
}

// split: consecutive parts of a dimension, as views        dx = the parts of dy, joined
struct SplitBackward : Node {
  static constexpr const char* kName = "SplitWithSizesBackward0";
  static constexpr bool kUndefinedOk = true;
  static constexpr bool kStacks = true;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensors parts;
    for (int64_t i = 0; i < dy.size(); ++i) parts.push_back(like_part(dy, *this, i));
    return {cat(parts, dim + lead_of(dy, *this))};
  }
  FIELDS(dim)
};
Tensors split_with_sizes(const Tensor& input, IntSpan split_sizes, int64_t dim) {
  CHECK(input.dim() > 0, Runtime, "split expects at least a 1-dimensional tensor");
  int64_t d = wrap_dim(dim, input.dim()), sum = 0;
  for (int64_t s : split_sizes) {
    CHECK(s >= 0, Runtime, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=",
          to_text(split_sizes));
    sum = checked_add(sum, s);
  }
  CHECK(sum == input.sizes()[d], Runtime, "split_with_sizes expects split_sizes to sum exactly to ", input.sizes()[d],
        " (input tensor's size at dimension ", d, "), but got split_sizes=", to_text(split_sizes));
  Tensors parts;
  Ints sizes(input.sizes());
  int64_t offset = input->offset;
  for (int64_t s : split_sizes) {
    sizes[d] = s;
    parts.push_back(alias(input, sizes, input.strides(), offset));
    mark_view(parts.back(), input, ViewOrigin::MultiOutput);
    offset += s * input.strides()[d];
  }
  record_all<SplitBackward>(parts, {input}, [&](auto& n) { n.dim = d; });
  return parts;
}
Tensors split(const Tensor& input, int64_t split_size, int64_t dim) {
  CHECK(input.dim() > 0, Runtime, "split expects at least a 1-dimensional tensor");
  CHECK(split_size >= 0, Runtime, "split expects split_size be non-negative, but got split_size=", split_size);
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  CHECK(split_size > 0 || n == 0, Runtime,
        "split_size can only be 0 if dimension size is 0, but got dimension size of ", n);
  check_part_count("split()", split_size ? n / split_size : 0);
  Ints sizes;
  int64_t rest = n;
  do {
    sizes.push_back(std::min(split_size, rest));
    rest -= sizes.back();
  } while (rest > 0);
  return split_with_sizes(input, sizes, d);
}

// unbind: the slices of a dimension, which disappears, as views        dx = the slices of dy, stacked
struct UnbindBackward : Node {
  static constexpr const char* kName = "UnbindBackward0";
  static constexpr bool kUndefinedOk = true;
  static constexpr bool kStacks = true;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensors parts;
    for (int64_t i = 0; i < dy.size(); ++i) parts.push_back(like_part(dy, *this, i));
    return {stack(parts, dim + lead_of(dy, *this))};
  }
  FIELDS(dim)
};
Tensors unbind(const Tensor& input, int64_t dim) {
  CHECK(input.dim() > 0, Index, "Dimension specified as ", dim, " but tensor has no dimensions");
  int64_t d = wrap_dim(dim, input.dim());
  Ints sizes(input.sizes()), strides(input.strides());
  check_part_count("unbind()", sizes[d]);
  sizes.erase(d);
  strides.erase(d);
  Tensors slices;
  slices.reserve(input.sizes()[d]);
  for (int64_t i = 0; i < input.sizes()[d]; ++i) {
    slices.push_back(alias(input, sizes, strides, input->offset + i * input.strides()[d]));
    mark_view(slices.back(), input, ViewOrigin::MultiOutput);
  }
  record_all<UnbindBackward>(slices, {input}, [&](auto& n) { n.dim = d; });
  return slices;
}

static constexpr int64_t kMaxParts = 1 << 24;  // empty views that one call may make

// chunk: at most `chunks` parts of equal size, the last one smaller
static Tensors chunk(const Tensor& input, int64_t chunks, int64_t dim) {
  CHECK(input.dim() > 0, Runtime, "chunk expects at least a 1-dimensional tensor");
  CHECK(chunks > 0, Runtime, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  int64_t size = n / chunks + (n % chunks != 0);
  CHECK(chunks <= kMaxParts || n > 0, Runtime, "chunk: ", chunks, " chunks are more than a program could hold");
  if (size == 0 && n == 0) return split_with_sizes(input, Ints(chunks, 0), d);
  return split(input, size, d);
}

// tensor_split: exactly n parts, the first n % sections of them one larger; or parts ending at the given indices
static Tensors tensor_split_at(const Tensor& input, const Ints& indices, int64_t dim) {
  CHECK(input.dim() > 0, Runtime, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ",
        input.dim(), " dims");
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d], start = 0;
  Tensors parts;
  for (int64_t end : indices) {
    parts.push_back(slice(input, d, start, end, 1));
    start = end;
  }
  parts.push_back(slice(input, d, start, n, 1));
  return parts;
}
static Tensors tensor_split(const Tensor& input, int64_t sections, int64_t dim) {
  CHECK(input.dim() > 0, Runtime, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ",
        input.dim(), " dims");
  CHECK(sections > 0, Runtime, "number of sections must be larger than 0, got ", sections);
  CHECK(sections <= kMaxParts, Runtime, "tensor_split: ", sections, " sections are more than a program could hold");
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  Ints ends;
  for (int64_t i = 0, end = 0; i + 1 < sections; ++i) ends.push_back(end += n / sections + (i < n % sections));
  return tensor_split_at(input, ends, d);  // views of their own, unlike those of split: each may be written to
}
static Tensors tensor_split_tensor(const Tensor& input, const Tensor& at, int64_t dim) {
  CHECK(at.dtype() == DType::Int64, Runtime,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ", info(at.dtype()).legacy);
  CHECK(at.dim() <= 1, Runtime,
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got "
        "a tensor with ",
        at.dim(), " dims");
  CHECK(at.has_values(), Runtime, "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on meta");
  Tensor flat = to_host(contiguous(at));
  if (at.dim() == 0) return tensor_split(input, *flat.data<int64_t>(), dim);
  return tensor_split_at(input, Ints(IntSpan(flat.data<int64_t>(), flat.numel())), dim);
}

// hsplit, vsplit, dsplit: tensor_split along one dimension, into equal parts
static int64_t check_stack_split(const char* name, const Tensor& input, int64_t least, int64_t dim, int64_t sections) {
  CHECK(input.dim() >= least, Runtime, "torch.", name, " requires a tensor with at least ", least, " dimension",
        least > 1 ? "s" : "", ", but got a tensor with ", input.dim(), " dimensions!");
  CHECK(sections != 0 && input.sizes()[dim] % sections == 0, Runtime, "torch.", name,
        " attempted to split along dimension ", dim, ", but the size of the dimension ", input.sizes()[dim],
        " is not divisible by the split_size ", sections, "!");
  return dim;
}
static Tensors hsplit(const Tensor& x, int64_t sections) {
  CHECK(x.dim() >= 1, Runtime,
        "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!");
  return tensor_split(x, sections, check_stack_split("hsplit", x, 1, x.dim() == 1 ? 0 : 1, sections));
}
static Tensors hsplit_at(const Tensor& x, const Ints& indices) {
  CHECK(x.dim() >= 1, Runtime,
        "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!");
  return tensor_split_at(x, indices, x.dim() == 1 ? 0 : 1);
}
static Tensors vsplit(const Tensor& x, int64_t sections) {
  CHECK(x.dim() >= 2, Runtime, "torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with ",
        x.dim(), " dimensions!");
  return tensor_split(x, sections, check_stack_split("vsplit", x, 2, 0, sections));
}
static Tensors vsplit_at(const Tensor& x, const Ints& indices) {
  CHECK(x.dim() >= 2, Runtime, "torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with ",
        x.dim(), " dimensions!");
  return tensor_split_at(x, indices, 0);
}
static Tensors dsplit(const Tensor& x, int64_t sections) {
  CHECK(x.dim() >= 3, Runtime, "torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with ",
        x.dim(), " dimensions!");
  return tensor_split(x, sections, check_stack_split("dsplit", x, 3, 2, sections));
}
static Tensors dsplit_at(const Tensor& x, const Ints& indices) {
  CHECK(x.dim() >= 3, Runtime, "torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with ",
        x.dim(), " dimensions!");
  return tensor_split_at(x, indices, 2);
}

// hstack, vstack, dstack, column_stack: cat after giving each tensor enough dimensions
static Tensor at_least(const Tensor& x, int64_t n) {
  if (x.dim() >= n) return x;
  if (x.dim() == 0) return reshape(x, Ints(n, 1));
  if (n == 1) return x;
  if (n == 2) return unsqueeze(x, 0);
  return x.dim() == 1 ? unsqueeze(unsqueeze(x, 0), 2) : unsqueeze(x, 2);
}
static Tensors all_at_least(const char* name, const Tensors& tensors, int64_t n) {
  CHECK(!tensors.empty(), Runtime, name, " expects a non-empty TensorList");
  Tensors out;
  for (const Tensor& t : tensors) out.push_back(at_least(t, n));
  return out;
}
static Tensor hstack(const Tensors& tensors) {
  Tensors parts = all_at_least("hstack", tensors, 1);
  return cat(parts, parts[0].dim() == 1 ? 0 : 1);
}
static Tensor vstack(const Tensors& tensors) { return cat(all_at_least("vstack", tensors, 2), 0); }
static Tensor dstack(const Tensors& tensors) { return cat(all_at_least("dstack", tensors, 3), 2); }
static Tensor column_stack(const Tensors& tensors) {
  CHECK(!tensors.empty(), Runtime, "column_stack expects a non-empty TensorList");
  Tensors parts;
  for (const Tensor& t : tensors) parts.push_back(t.dim() <= 1 ? reshape(t, {t.numel(), 1}) : t);
  return hstack(parts);
}
static Tensor at_least_1(const Tensor& x) { return at_least(x, 1); }
static Tensor at_least_2(const Tensor& x) { return at_least(x, 2); }
static Tensor at_least_3(const Tensor& x) { return at_least(x, 3); }

static Tensor cat_op(const Tensors& tensors, int64_t dim) { return cat(tensors, dim); }
static Tensor stack_op(const Tensors& tensors, int64_t dim) { return stack(tensors, dim); }
static Tensors split_op(const Tensor& input, const Ints& sizes, int64_t dim) {
  return split_with_sizes(input, sizes, dim);
}

// unsafe_*: parts that autograd does not know to be views, so that each may be written to; it is the caller's promise
// not to use the whole, or another part in the same memory, afterwards.
static Tensors unbound(Tensors parts) {
  for (Tensor& t : parts) {
    Py_CLEAR(t->base);
    t->view_origin = ViewOrigin::Plain;
    Version* own = new_version(0);  // a write to one part leaves what was saved of the others valid
    set_version(t.get(), own);
    own->refs = 1;  // only t holds it
  }
  return parts;
}
static Tensors unsafe_chunk(const Tensor& x, int64_t n, int64_t dim) { return unbound(chunk(x, n, dim)); }
static Tensors unsafe_split(const Tensor& x, int64_t size, int64_t dim) { return unbound(split(x, size, dim)); }
static Tensors unsafe_split_op(const Tensor& x, const Ints& sizes, int64_t dim) {
  return unbound(split_with_sizes(x, sizes, dim));
}

static const Register registered([](Ops& ops) {
  ops.def("cat", cat_op, "tensors, dim=0", kNoOverlap | kAnyType, R"(
    Joins tensors one after the other along a dimension.

    Args:
        tensors: tensors of the same sizes but along dim; their types are promoted.

    Example:
        >>> x = torch.tensor([[1, 2]])
        >>> torch.cat([x, x])
        tensor([[1, 2],
                [1, 2]])
        >>> torch.cat([x, x], dim=1)
        tensor([[1, 2, 1, 2]]))");
  ops.alias("concat", "cat");
  ops.alias("concatenate", "cat");
  ops.def("stack", stack_op, "tensors, dim=0", kNoOverlap | kAnyType, R"(
    Joins tensors of one shape along a new dimension.

    Args:
        dim: where the new dimension stands in the result.

    Example:
        >>> a, b = torch.tensor([1, 2]), torch.tensor([3, 4])
        >>> torch.stack([a, b])
        tensor([[1, 2],
                [3, 4]])
        >>> torch.stack([a, b], dim=1)
        tensor([[1, 3],
                [2, 4]]))");
  ops.def("split", split, "input, split_size, dim=0", kMethod | kView, R"(
    Cuts a dimension into parts of one size, or of given sizes.

    Args:
        split_size: the size of each part, the last one may be smaller; or a list with the size of each.
        split_size_or_sections: the same.
        tensor: the tensor to work on.
        dim: the dimension to cut.

    Returns:
        A tuple of views.

    Example:
        >>> torch.arange(5).split(2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> torch.arange(5).split([1, 4])
        (tensor([0]), tensor([1, 2, 3, 4])))");
  ops.def("split", split, "tensor, split_size_or_sections, dim=0", kMethod | kView);
  ops.def("split", split_op, "input, split_size, dim=0", kMethod | kView);
  ops.def("split", split_op, "tensor, split_size_or_sections, dim=0", kMethod | kView);
  ops.def("split_with_sizes", split_op, "input, split_sizes, dim=0", kMethod | kView, R"(
    Cuts a dimension into parts of given sizes.

    Args:
        split_sizes: the size of each part; they add up to that of the dimension.
        dim: the dimension to cut.

    Returns:
        A tuple of views.

    Example:
        >>> torch.split_with_sizes(torch.arange(5), [2, 3])
        (tensor([0, 1]), tensor([2, 3, 4])))");
  ops.def("unbind", unbind, "input, dim=0", kMethod | kView, R"(
    Shows the slices of a dimension, which they no longer have.

    Args:
        dim: the dimension to remove.

    Returns:
        A tuple of views.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).unbind(dim=1)
        (tensor([1, 3]), tensor([2, 4])))");
  ops.def("chunk", chunk, "input, chunks, dim=0", kMethod | kView, R"(
    Cuts a dimension into at most a number of equal parts.

    Args:
        chunks: the number of parts; there may be fewer, and the last one may be smaller.
        dim: the dimension to cut.

    Returns:
        A tuple of views.

    Example:
        >>> torch.arange(5).chunk(2)
        (tensor([0, 1, 2]), tensor([3, 4])))");
  ops.def("unsafe_chunk", unsafe_chunk, "input, chunks, dim=0", kMethod | kNoOut | kAnyType, R"(
    Cuts as chunk(), but the parts count as tensors of their own, each of which may be written to.

    Args:
        chunks: the number of parts.
        dim: the dimension to cut.

    Example:
        >>> torch.unsafe_chunk(torch.arange(4), 2)
        (tensor([0, 1]), tensor([2, 3])))");
  ops.def("unsafe_split", unsafe_split, "input, split_size, dim=0", kMethod | kNoOut | kAnyType, R"(
    Cuts as split(), but the parts count as tensors of their own, each of which may be written to.

    Args:
        split_size: the size of each part.
        dim: the dimension to cut.

    Example:
        >>> torch.unsafe_split(torch.arange(4), 3)
        (tensor([0, 1, 2]), tensor([3])))");
  ops.def("unsafe_split_with_sizes", unsafe_split_op, "input, split_sizes, dim=0", kMethod | kNoOut | kAnyType, R"(
    Cuts as split_with_sizes(), but the parts count as tensors of their own, each of which may be written to.

    Args:
        split_sizes: the size of each part.
        dim: the dimension to cut.

    Example:
        >>> torch.unsafe_split_with_sizes(torch.arange(4), [1, 3])
        (tensor([0]), tensor([1, 2, 3])))");
  ops.def("tensor_split", tensor_split_tensor, "input, tensor_indices_or_sections, dim=0", kMethod | kView, R"(
    Cuts a dimension into nearly equal parts, or at given indices.

    Args:
        tensor_indices_or_sections: either of the two, as a tensor on the CPU.
        sections: the number of parts; the first ones are larger by one where it does not divide the size.
        indices: where the parts begin, but the first.
        indices_or_sections: either of the two.
        dim: the dimension to cut.

    Returns:
        A tuple of views.

    Example:
        >>> torch.tensor_split(torch.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
        >>> torch.tensor_split(torch.arange(5), (1, 3))
        (tensor([0]), tensor([1, 2]), tensor([3, 4])))");
  ops.def("tensor_split", tensor_split, "input, sections, dim=0", kMethod | kView);
  ops.def("tensor_split", tensor_split_at, "input, indices, dim=0", kMethod | kView);
  ops.def("tensor_split", tensor_split, "input, indices_or_sections, dim=0", kMethod | kView);
  ops.def("tensor_split", tensor_split_at, "input, indices_or_sections, dim=0", kMethod | kView);
  ops.def("hsplit", hsplit, "input, sections", kMethod | kView, R"(
    Cuts side by side: the second dimension, or the first one of a vector.

    Args:
        sections: the number of equal parts.
        indices: where the parts begin, but the first.

    Returns:
        A tuple of views.

    Example:
        >>> torch.hsplit(torch.tensor([[1, 2, 3, 4]]), 2)
        (tensor([[1, 2]]), tensor([[3, 4]])))");
  ops.def("hsplit", hsplit_at, "input, indices", kMethod | kView);
  ops.def("vsplit", vsplit, "input, sections", kMethod | kView, R"(
    Cuts one below the other: along the first dimension, of at least two.

    Args:
        sections: the number of equal parts.
        indices: where the parts begin, but the first.

    Returns:
        A tuple of views.

    Example:
        >>> torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1, 2]]), tensor([[3, 4]])))");
  ops.def("vsplit", vsplit_at, "input, indices", kMethod | kView);
  ops.def("dsplit", dsplit, "input, sections", kMethod | kView, R"(
    Cuts the third dimension: tensor_split(dim=2).

    Args:
        sections: the number of equal parts.
        indices: where the parts begin, but the first.

    Returns:
        A tuple of views.

    Example:
        >>> [x.shape for x in torch.dsplit(torch.zeros(2, 2, 4), 2)]
        [torch.Size([2, 2, 2]), torch.Size([2, 2, 2])])");
  ops.def("dsplit", dsplit_at, "input, indices", kMethod | kView);
  ops.def("hstack", hstack, "tensors", 0 | kAnyType, R"(
    Joins tensors side by side: along the second dimension, vectors along their only one.

    Example:
        >>> torch.hstack([torch.tensor([1, 2]), torch.tensor([3])])
        tensor([1, 2, 3]))");
  ops.def("vstack", vstack, "tensors", 0 | kAnyType, R"(
    Joins tensors one below the other: along the first dimension, vectors as rows.

    Example:
        >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]]))");
  ops.alias("row_stack", "vstack");
  ops.def("dstack", dstack, "tensors", 0 | kAnyType, R"(
    Joins tensors along the third dimension, which those with fewer dimensions get first.

    Example:
        >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[[1, 3],
                 [2, 4]]]))");
  ops.def("column_stack", column_stack, "tensors", 0 | kAnyType, R"(
    Joins vectors as the columns of a matrix, matrices side by side.

    Example:
        >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[1, 3],
                [2, 4]]))");
  ops.def("_atleast_1d", at_least_1, "input", kView);
  ops.def("_atleast_2d", at_least_2, "input", kView);
  ops.def("_atleast_3d", at_least_3, "input", kView);
});

}  // namespace rl::ops
