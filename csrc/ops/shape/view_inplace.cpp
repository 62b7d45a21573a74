// Views in place: the tensor itself gets the geometry of its view. Memory stays, so nothing is copied.
#include "autograd/meta.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

Tensor squeeze_all(const Tensor& input);  // ops/shape/view.cpp
Tensor squeeze_dims(const Tensor& input, const Ints& dim);

namespace {

// x gets sizes, strides and history of y, a view of it.
Tensor take_geometry(const Tensor& x, const Tensor& y) {
  set_geometry(x.get(), y.sizes(), y.strides(), y->offset);
  if (y->grad_fn) {
    x->view_version = x->version->value;
    Py_INCREF(reinterpret_cast<PyObject*>(y->grad_fn));
    Node* before = std::exchange(x->grad_fn, y->grad_fn);
    Py_XDECREF(reinterpret_cast<PyObject*>(before));
    x->output_nr = y->output_nr;
    x->requires_grad = true;
  }
  return x;
}

Tensor become(const Tensor& x, const Tensor& y) {
  check_inplace(x, true);
  bump_version(x);
  return take_geometry(x, y);
}

Tensor transpose_(const Tensor& x, int64_t dim0, int64_t dim1) { return become(x, transpose(x, dim0, dim1)); }
Tensor t_(const Tensor& x) { return become(x, t(x)); }
Tensor unsqueeze_(const Tensor& x, int64_t dim) { return become(x, unsqueeze(x, dim)); }
Tensor squeeze_dims_(const Tensor& x, const Ints& dim) { return become(x, squeeze_dims(x, dim)); }
Tensor squeeze_(const Tensor& x) { return become(x, squeeze_all(x)); }
Tensor as_strided_(const Tensor& x, const Ints& size, const Ints& stride, std::optional<int64_t> storage_offset) {
  return become(x, as_strided(x, size, stride, storage_offset));
}

// resize_as_: the sizes of another tensor over the same storage, which grows if it must; new elements are uninitialised
void resize_to(const Tensor& x, IntSpan sizes, IntSpan strides) {
  CHECK(!x.requires_grad() || t_grad_mode.inference, Runtime, "cannot resize variables that require grad");
  int64_t end = checked_numel(sizes) == 0 ? 0 : checked_add(checked_extent(sizes, strides), x->offset);
  int64_t bytes;
  CHECK(!__builtin_mul_overflow(end, x.item_size(), &bytes), Runtime,
        "Storage size calculation overflowed with sizes=", to_text(sizes), ": ", end, " elements of ", x.item_size(),
        " bytes cannot be counted in 64 bits");
  if (x.storage()->bytes < bytes) x.storage()->resize(bytes);
  const bool resized = !(x.sizes() == sizes);
  set_geometry(x.get(), sizes, strides, x->offset);
  if (resized) bump_version(x);
}
Tensor resize_as_(const Tensor& x, const Tensor& other, std::optional<MemoryFormat> format) {
  if (format && *format == MemoryFormat::Preserve) {
    resize_to(x, other.sizes(), dense_strides_like(other));
    return x;
  }
  Ints strides = !format && x.sizes() == other.sizes() ? Ints(x.strides())
                                                       : strides_for(other, format.value_or(MemoryFormat::Contiguous));
  resize_to(x, other.sizes(), strides);
  return x;
}

}  // namespace

Tensor without_dim(const Tensor& result, int64_t dim) { return take_geometry(result, squeeze(result, dim)); }

static const Register registered([](Ops& ops) {
  const uint32_t flags = kMethod | kNoFunction | kNoOut | kLazyOk;
  ops.def("transpose_", transpose_, "input, dim0, dim1", flags, R"(
    Exchanges two dimensions of the tensor itself.

    Args:
        dim0: one dimension.
        dim1: the other one.

    Example:
        >>> torch.tensor([[1, 2]]).transpose_(0, 1)
        tensor([[1],
                [2]]))");
  ops.def("swapdims_", transpose_, "input, dim0, dim1", flags, R"(
    Exchanges two dimensions of the tensor itself, as transpose_().

    Args:
        dim0: one dimension.
        dim1: the other one.

    Example:
        >>> torch.tensor([[1, 2]]).swapdims_(0, 1)
        tensor([[1],
                [2]]))");
  ops.def("swapaxes_", transpose_, "input, axis0, axis1", flags, R"(
    Exchanges two dimensions of the tensor itself, as transpose_().

    Args:
        axis0: one dimension.
        axis1: the other one.

    Example:
        >>> torch.tensor([[1, 2]]).swapaxes_(0, 1)
        tensor([[1],
                [2]]))");
  ops.def("t_", t_, "input", flags, R"(
    Transposes the matrix itself.

    Example:
        >>> torch.tensor([[1, 2]]).t_()
        tensor([[1],
                [2]]))");
  ops.def("unsqueeze_", unsqueeze_, "input, dim", flags, R"(
    Gives the tensor itself a new dimension of size 1.

    Args:
        dim: where it stands in the result.

    Example:
        >>> torch.zeros(2).unsqueeze_(0)
        tensor([[0., 0.]]))");
  ops.def("squeeze_", squeeze_, "input", flags, R"(
    Removes dimensions of size 1 of the tensor itself: all of them, or those named.

    Args:
        dim: the dimension, or dimensions.

    Example:
        >>> torch.zeros(1, 2).squeeze_()
        tensor([0., 0.]))");
  ops.def("squeeze_", squeeze_dims_, "input, dim", flags);
  ops.def("as_strided_", as_strided_, "input, size, stride, storage_offset=None", flags, R"(
    Gives the tensor itself any sizes and strides over its storage.

    Args:
        size: the sizes.
        stride: the strides, in elements.
        storage_offset: where in the storage it begins; None keeps it.

    Example:
        >>> torch.arange(4).as_strided_((2,), (2,))
        tensor([0, 2]))");
  ops.def("resize_as_", resize_as_, "input, the_template, *, memory_format=None",
          kMethod | kNoOut | kAnyDevice | kLazyOk | kAnyType, R"(
    Gives the tensor itself the sizes of another one, as resize_().

    Args:
        the_template: the tensor whose sizes are taken.

    Example:
        >>> torch.arange(6).resize_as_(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]]))");
});

}  // namespace rl::ops
