#include "ops/copy/cast.h"

#include <algorithm>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "schema/registry.h"
#include "tensor/overlap.h"

namespace rl::ops {

// Between devices the bytes go by way of the host, in src's type and dst's shape; the rest is done by their own
// kernels.
static void copy_across(const Tensor& dst, const Tensor& src) {
  if (!dst.has_values()) return;
  CHECK(src.has_values(), NotImplemented, "Cannot copy out of meta tensor; no data!");
  NoGrad raw;
  const Tensor from = contiguous(src);
  const int64_t bytes = checked_mul(from.numel(), from.item_size());
  const bool lands = dst.dtype() == src.dtype() && dst.is_contiguous() && dst.sizes() == src.sizes();
  const Tensor to = lands ? dst : empty(src.sizes(), src.dtype(), dst.device());
  const MemoryKernels &there = *backend(dst.device()).memory, &here = *backend(src.device()).memory;
  if (from.on_host()) {
    there.from_host(dst.device(), to.memory(), from.data(), bytes);
  } else if (to.on_host()) {
    here.to_host(src.device(), to.data(), from.memory(), bytes);
  } else {
    const Tensor host = empty(src.sizes(), src.dtype());
    here.to_host(src.device(), host.data(), from.memory(), bytes);
    there.from_host(dst.device(), to.memory(), host.data(), bytes);
  }
  if (!lands) copy_into(dst, to);
}

void copy_into(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
  if (!same_device(dst.device(), src.device())) return copy_across(dst, src);
  View out = dst.view(), in = src.view();
  Ints strides;
  if (!(dst.sizes() == src.sizes())) {
    strides = broadcast_strides(src, dst.sizes());
    in = {src.memory(), dst.sizes().data(), strides.data(), static_cast<int32_t>(dst.dim()), src.dtype()};
  }
  backend(dst.device()).copy->copy(out, in);
}

Tensor to_device(const Tensor& t, Device device) {
  if (same_device(t.device(), device)) return t;
  Tensor y = empty_strided(t.sizes(), dense_strides_like(t), t.dtype(), device);
  copy_into(y, t);
  return y;
}

void fill_raw(const Tensor& dst, const Scalar& value) {
  if (!dst.has_values()) return;
  if (!has_cpp_type(dst.dtype()) && !is_float8(dst.dtype())) fail_without_kernel(dst.dtype(), "fill_cpu");
  LoopScalar element;
  write_element(element.bytes, dst.numel() == 1 ? single_element(value, dst.dtype()) : value, dst.dtype());
  if (dst.numel()) backend(dst.device()).copy->fill(dst.view(), element.bytes);
}

Tensor zeros(IntSpan sizes, DType dtype, Device device) {
  Tensor t = empty(sizes, dtype, device);
  if (t.numel()) backend(t.device()).copy->zero(t.view());
  return t;
}
Tensor full(IntSpan sizes, const Scalar& value, DType dtype, Device device) {
  Tensor t = empty(sizes, dtype, device);
  fill_raw(t, value);
  return t;
}

// cast: y = x in another type        dx = dy, cast back by the engine
struct ToCopyBackward : Node {
  static constexpr const char* kName = "ToCopyBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {dy[0]}; }
};
Tensor cast(const Tensor& input, DType dtype) {
  if (input.dtype() == dtype) return input;
  Tensor y = empty_like(input, dtype);
  // As a clone does (strides_for), it keeps the strides of dimensions of size 1.
  if (input.numel() && input.is_contiguous()) std::copy_n(input.strides().data(), input.dim(), y->sizes + y->ndim);
  copy_into(y, input);
  return record<ToCopyBackward>(y, {input});
}

// clone: y = x in memory of its own        dx = dy
struct CloneBackward : Node {
  static constexpr const char* kName = "CloneBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {dy[0]}; }
};
Ints strides_for(const Tensor& t, MemoryFormat format) {
  if (format == MemoryFormat::Preserve) {
    // Also strides that say nothing, of dimensions of size 1: they decide what counts as the same elements.
    if (t.numel() && non_overlapping_and_dense(t.sizes(), t.strides())) return Ints(t.strides());
    return dense_strides_like(t);
  }
  if (format == MemoryFormat::Contiguous) return contiguous_strides(t.sizes());
  int64_t n = format == MemoryFormat::ChannelsLast ? 4 : 5;
  CHECK(t.dim() == n, Runtime, "required rank ", n, " tensor to use ", n == 4 ? "channels_last" : "channels_last_3d",
        " format");
  Ints strides(n);
  int64_t step = 1;
  for (int64_t k = 0; k < n; ++k) {  // channels, then space from the last dimension, then batch
    int64_t d = k == 0 ? 1 : k == n - 1 ? 0 : n - k;
    strides[d] = step;
    step *= std::max<int64_t>(t.sizes()[d], 1);
  }
  return strides;
}
bool channels_last(const Tensor& t) {
  const int64_t n = t.dim();
  if ((n != 4 && n != 5) || t.strides()[1] == 0) return false;
  int64_t least = 0;
  for (int64_t k = 0; k < n; ++k) {  // channels, then space from the last dimension, then batch
    const int64_t d = k == 0 ? 1 : k == n - 1 ? 0 : n - k;
    const int64_t size = t.sizes()[d], stride = t.strides()[d];
    if (size == 0 || stride < least || (d == 0 && least == t.strides()[1])) return false;
    least = checked_mul(stride, size);
  }
  return true;
}
Tensor empty_ordered(const Ints& sizes, DType dtype, Device device, bool channels_last) {
  if (!channels_last || (sizes.size() != 4 && sizes.size() != 5)) return empty(sizes, dtype, device);
  Ints strides(sizes.size());
  strides[1] = 1;
  int64_t step = std::max<int64_t>(sizes[1], 1);
  for (int64_t d = sizes.size() - 1; d >= 0; --d)
    if (d != 1) strides[d] = step, step = checked_mul(step, std::max<int64_t>(sizes[d], 1));
  return empty_strided(sizes, strides, dtype, device);
}
Tensor ordered(Tensor y, bool channels_last) {
  if (!channels_last || (y.dim() != 4 && y.dim() != 5)) return y;
  auto format = y.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  Tensor turned = empty_strided(y.sizes(), strides_for(y, format), y.dtype(), y.device());
  copy_into(turned, y);
  return turned;
}
Tensor with_neighbours(const Tensor& x) {
  int last = static_cast<int>(x.dim()) - 1;
  while (last >= 0 && x.sizes()[last] == 1) --last;
  if (last < 0 || x.strides()[last] == 1) return x;
  Tensor turned = empty(x.sizes(), x.dtype(), x.device());
  copy_into(turned, x);
  return turned;
}
Tensor clone(const Tensor& input, std::optional<MemoryFormat> format) {
  Tensor y = empty_strided(input.sizes(), strides_for(input, format.value_or(MemoryFormat::Preserve)), input.dtype(),
                           input.device());
  copy_into(y, input);
  return record<CloneBackward>(y, {input});
}

// contiguous: x itself if its memory is in that order, else a clone that is
Tensor contiguous(const Tensor& input, MemoryFormat format) {
  CHECK(format != MemoryFormat::Preserve, Runtime, "preserve memory format is unsupported by the contiguous operator");
  bool already =
      format == MemoryFormat::Contiguous ? input.is_contiguous() : is_channels_last(input.sizes(), input.strides());
  return already ? input : clone(input, format);
}

// copy: x with its elements replaced by those of src        dx = 0, dsrc = dy
struct CopyBackwards : Node {
  static constexpr const char* kName = "CopyBackwards";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) {
    Grads dx(2);
    if (needs(0)) dx[0] = zeros(dy[0].sizes(), dy[0].dtype(), dy[0].device());
    if (needs(1)) dx[1] = dy[0];
    return dx;
  }
};
Tensor copy(const Tensor& input, const Tensor& src, bool) {
  Ints sizes = broadcast_sizes(input.sizes(), src.sizes());
  CHECK(IntSpan(sizes) == input.sizes(), Runtime, "output with shape ", to_text(input.sizes()),
        " doesn't match the broadcast shape ", to_text(sizes));
  Tensor y = empty_like(input);
  copy_into(y, src);
  return record<CopyBackwards>(y, {input, src});
}
// Its in-place form writes without the copy in between.
Tensor copy_(const Tensor& self, const Value& value, bool non_blocking) {
  if (!value.is_tensor()) {
    check_inplace(self);
    fill_raw(self, value.number);
    bump_version(self, "copy_");
    return self;
  }
  const Tensor& src = value.tensor;
  struct Call {
    const Tensor &self, &src;
    bool b;
  } call{self, src, non_blocking};
  bool overlaps = src.storage() == self.storage();
  bool same = src.is(self) || (overlaps && src->offset == self->offset && src.sizes() == self.sizes() &&
                               src.strides() == self.strides() && src.dtype() == self.dtype());
  if (overlaps && !same) {
    check_inplace(self);
    check_overlap(self.get(), &value, 1);
  }
  const bool recorded = grad_enabled() && (self.requires_grad() || src.requires_grad());
  if (same && !recorded) {  // as a module's own state is loaded: it is there
    check_inplace(self, true);
    bump_version(self, "copy_");
    return self;
  }
  if (recorded || overlaps)
    return apply_inplace(
        "copy_", self, InplaceTraits{false, false, same},
        [](void* c) {
          auto* k = static_cast<Call*>(c);
          return copy(k->self, k->src, k->b);
        },
        &call);
  check_inplace(self);
  Ints sizes = broadcast_sizes(self.sizes(), src.sizes());
  CHECK(IntSpan(sizes) == self.sizes(), Runtime, "output with shape ", to_text(self.sizes()),
        " doesn't match the broadcast shape ", to_text(sizes));
  copy_into(self, src);
  bump_version(self, "copy_");
  return self;
}

// fill: x with every element replaced by a number        dx = 0, dvalue = sum dy
struct FillBackward : Node {
  static constexpr const char* kName = "FillBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) {
    Grads dx(2);
    if (needs(0)) dx[0] = zeros(dy[0].sizes(), dy[0].dtype(), dy[0].device());
    if (needs(1)) dx[1] = dy[0];  // summed to the value's shape by the engine
    return dx;
  }
};
Tensor fill(const Tensor& input, const Value& value) {
  CHECK(!value.is_tensor() || value.tensor.dim() == 0, Runtime,
        "fill_ only supports 0-dimension value tensor but got tensor with ", value.is_tensor() ? value.tensor.dim() : 0,
        " dimensions.");
  if (value.is_tensor() && t_destination.wanted) {
    check_no_internal_overlap(Tensor::borrow(t_destination.wanted));
    if (grad_enabled() && value.requires_grad()) check_view_history(Tensor::borrow(t_destination.wanted));
  }
  Tensor y = take_destination(input.sizes(), input.dtype(), will_record({input, value}));
  if (!y.defined()) y = empty_like(input);
  if (value.is_tensor()) copy_into(y, value.tensor);
  else fill_raw(y, value.number);
  return record<FillBackward>(y, {input, value});
}
struct ZeroBackward : Node {
  static constexpr const char* kName = "ZeroBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {zeros(dy[0].sizes(), dy[0].dtype(), dy[0].device())}; }
};
Tensor zero(const Tensor& input) {
  Tensor y = take_destination(input.sizes(), input.dtype(), will_record({input}));
  if (!y.defined()) y = empty_like(input);
  if (y.numel()) backend(y.device()).copy->zero(y.view());
  return record<ZeroBackward>(y, {input});
}

static const Register registered([](Ops& ops) {
  ops.def("_cast", cast, "input, dtype", kMethod | kNoOut | kAnyType | kElementwise | kOwnType,
          "The tensor in another element type.");
  ops.def("clone", clone, "input, *, memory_format=None", kMethod | kNoOut | kAnyType, R"(
    Copies the tensor into memory of its own; gradients flow through.

    Example:
        >>> x = torch.tensor([1, 2])
        >>> y = x.clone()
        >>> y[0] = 9
        >>> x
        tensor([1, 2]))");
  ops.def("contiguous", contiguous, "input, memory_format=None", kMethod | kNoFunction | kNoOut | kAnyType, R"(
    Returns the tensor in row-major memory: itself if it is so already, else a copy.

    Args:
        memory_format: another order, such as torch.channels_last; None is torch.contiguous_format.

    Example:
        >>> x = torch.zeros(2, 3).t()
        >>> x.stride(), x.contiguous().stride()
        ((1, 3), (2, 1)))");
  ops.def("copy_", copy_, "input, other, non_blocking=False", kMethod | kNoFunction | kNoOut | kAnyDevice | kAnyType,
          R"(
    Writes the elements of another tensor, broadcast and cast, into this one.

    Args:
        other: what is written, a tensor or a number.
        non_blocking: taken for compatibility: the copy is done when the call returns.

    Gradient:
        0 for the old values; dy, summed over broadcast dimensions, for other.

    Example:
        >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
        tensor([[1., 2.],
                [1., 2.]]))");
  ops.def("_copy", copy, "input, src, non_blocking=False", kNoOut | kAnyDevice | kAnyType,
          "The tensor with its elements replaced by those of src.");
  ops.def("fill", fill, "input, value",
          kInplace | kAnyDevice | kDirect | kElementwise | kOwnType | kKeepsInput | kOverlapOk | kAnyType, R"(
    Returns the tensor with every element replaced by one value.

    Args:
        value: a number, or a 0-dim tensor.

    Gradient:
        0 for input; the sum of dy for a tensor as value.

    Example:
        >>> torch.fill(torch.zeros(2), 7)
        tensor([7., 7.]))");
  ops.def("zero", zero, "input", kInplace | kDirect | kElementwise | kKeepsInput | kOverlapOk | kAnyType, R"(
    Returns the tensor with every element replaced by 0.

    Example:
        >>> torch.ones(2).zero_()
        tensor([0., 0.]))");
});

}  // namespace rl::ops
