// New tensors of given sizes: empty, zeros, ones.
#include "ops/copy/factory.h"

#include <limits>

#include "backend/backend.h"
#include "ops/copy/uninitialized.h"
#include "ops/ops.h"
#include "schema/registry.h"
#include "tensor/default_device.h"

namespace rl::ops {

Tensor with_grad_flag(Tensor t, bool requires_grad) {
  if (!requires_grad) return t;
  CHECK(is_differentiable(t.dtype()), Runtime,
        "Only Tensors of floating point and complex dtype can require gradients\n  Write dtype=torch.float32.");
  t->requires_grad = true;
  return t;
}

Tensor sparse_zeros(const char* name, IntSpan sizes, Layout layout, DType dtype, bool requires_grad) {
  CHECK(layout != Layout::Mkldnn, Runtime, name, ": the layout torch._mkldnn does not exist in rushlight");
  Owned module(PyImport_ImportModule("rushlight.sparse._layouts"));
  Owned size(size_object(sizes));
  Owned result(PyObject_CallMethod(module.p, "empty", "OOOis", size.p, layout_object(layout), dtype_object(dtype),
                                   static_cast<int>(requires_grad), name));
  return Tensor::borrow(result.p);
}

void check_factory(const std::optional<Layout>& layout, const std::optional<Device>& device) {
  CHECK(!is_sparse(layout), Runtime,
        "full(...) is not implemented for sparse layout: only zeros(), empty() and their kin make tensors without "
        "entries; "
        "otherwise make a dense tensor and call to_sparse()");
  if (device) backend(*device);
}

bool g_fill_uninitialized = false;

void fill_known(const Tensor& t) {
  const DType d = t.dtype();
  const int64_t bits = itemsize(d) * 8 - info(d).is_signed;
  if (is_differentiable(d)) fill_raw(t, Scalar(std::numeric_limits<double>::quiet_NaN()));
  else if (d == DType::Bool) fill_raw(t, Scalar(true));
  else if (is_integral(d) && has_cpp_type(d))
    fill_raw(t, Scalar::from_unsigned(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1));
}
static void set_fill_uninitialized(bool on) { g_fill_uninitialized = on; }

static Tensor empty_op(const Ints& size, std::optional<DType> dtype, std::optional<Layout> layout,
                       std::optional<Device> device, bool pin, bool requires_grad, std::optional<MemoryFormat> format) {
  (void)pin;
  if (is_sparse(layout)) return sparse_zeros("empty", size, *layout, dtype.value_or(default_dtype()), requires_grad);
  check_factory(layout, device);
  DType d = dtype.value_or(default_dtype());
  if (format && *format != MemoryFormat::Contiguous) {
    CHECK(*format != MemoryFormat::Preserve, Runtime,
          "memory format option is only supported by strided tensors that exist: use empty_like");
    Tensor shape = empty(size, d, Device{DeviceType::Meta, -1});
    return with_grad_flag(known(empty_strided(size, strides_for(shape, *format), d, device_or_default(device))),
                          requires_grad);
  }
  return with_grad_flag(known(empty(size, d, device_or_default(device))), requires_grad);
}
static Tensor zeros_op(const Ints& size, std::optional<DType> dtype, std::optional<Layout> layout,
                       std::optional<Device> device, bool, bool requires_grad) {
  if (is_sparse(layout)) return sparse_zeros("zeros", size, *layout, dtype.value_or(default_dtype()), requires_grad);
  check_factory(layout, device);
  return with_grad_flag(zeros(size, dtype.value_or(default_dtype()), device_or_default(device)), requires_grad);
}
static Tensor ones_op(const Ints& size, std::optional<DType> dtype, std::optional<Layout> layout,
                      std::optional<Device> device, bool, bool requires_grad) {
  check_factory(layout, device);
  return with_grad_flag(full(size, Scalar(1), dtype.value_or(default_dtype()), device_or_default(device)),
                        requires_grad);
}

static const Register registered([](Ops& ops) {
  ops.def("_set_fill_uninitialized", set_fill_uninitialized, "on", kNoOut);
  ops.def("empty", empty_op,
          "size..., *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None",
          kFactory | kAnyType, R"(
    Makes a tensor whose elements are whatever was in memory: write before reading.

    Example:
        >>> torch.empty(2, 3).shape
        torch.Size([2, 3]))");
  ops.def("zeros", zeros_op, "size..., *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False",
          kFactory | kAnyType, R"(
    Makes a tensor of zeros.

    Example:
        >>> torch.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
        >>> torch.zeros((2,), dtype=torch.int64)
        tensor([0, 0]))");
  ops.def("ones", ones_op, "size..., *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False",
          kFactory | kAnyType, R"(
    Makes a tensor of ones.

    Example:
        >>> torch.ones(2, 3)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
        >>> torch.ones((2,), dtype=torch.int64)
        tensor([1, 1]))");
});

}  // namespace rl::ops
