// to(): another dtype, device or memory order; itself when nothing changes.
#include "backend/backend.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

struct ToDeviceBackward : Node {
  static constexpr const char* kName = "ToCopyBackward0";
  static constexpr bool kStacks = true;
  Device from;
  Grads backward(const Grads& dy) { return {dy[0]}; }
};

Tensor to(const Tensor& input, std::optional<DType> dtype, std::optional<Device> device, bool copy,
          std::optional<MemoryFormat> format) {
  DType d = dtype.value_or(input.dtype());
  Device where = device.value_or(input.device());
  if (!same_device(where, input.device())) {
    Ints strides =
        format && *format != MemoryFormat::Preserve ? strides_for(input, *format) : dense_strides_like(input);
    Tensor y = empty_strided(input.sizes(), strides, d, where);  // names the device if it has no backend
    copy_into(y, input);
    return record<ToDeviceBackward>(y, {input});
  }
  bool order_differs =
      format && *format != MemoryFormat::Preserve &&
      !(*format == MemoryFormat::Contiguous ? input.is_contiguous()
                                            : channels_last(input) && is_channels_last(input.sizes(), input.strides()));
  if (d == input.dtype()) return copy || order_differs ? clone(input, format) : input;
  Tensor y = cast(input, d);
  return order_differs ? clone(y, format) : y;
}

static Tensor to_dtype(const Tensor& input, DType dtype, bool, bool copy, std::optional<MemoryFormat> format) {
  return to(input, dtype, std::nullopt, copy, format);
}
static Tensor to_where(const Tensor& input, std::optional<Device> device, std::optional<DType> dtype, bool, bool copy,
                       std::optional<MemoryFormat> format) {
  return to(input, dtype, device, copy, format);
}
static Tensor to_other(const Tensor& input, const Tensor& other, bool, bool copy, std::optional<MemoryFormat> format) {
  return to(input, other.dtype(), other.device(), copy, format);
}
static Tensor cpu(const Tensor& input, std::optional<MemoryFormat> format) {
  return to(input, std::nullopt, Device(), false, format);
}

template <DType D> static Tensor cast_method(const Tensor& input, std::optional<MemoryFormat> format) {
  return to(input, D, std::nullopt, false, format);
}

static const Register registered([](Ops& ops) {
  const uint32_t flags = kMethod | kNoFunction | kNoOut | kAnyType | kAnyDevice,
                 casts = flags | kElementwise | kOwnType;
  ops.def("to", to_dtype, "input, dtype, non_blocking=False, copy=False, *, memory_format=None", flags, R"(
    Converts to another type or device; a tensor that has both already is returned as it is.

    Args:
        dtype: the element type; None keeps that of the tensor.
        other: a tensor whose type and device are taken.
        device: where the result lives; None keeps that of the tensor.
        non_blocking: taken for compatibility: copies on the CPU are done when the call returns.
        copy: whether to copy in any case.

    Gradient:
        Cast back to the type of the tensor.

    Example:
        >>> x = torch.tensor([1.5, 2.5])
        >>> x.to(torch.int64)
        tensor([1, 2])
        >>> x.to("cpu") is x
        True
        >>> x.to(torch.ones(1, dtype=torch.float64)).dtype
        torch.float64)");
  ops.def("to", to_other, "input, other, non_blocking=False, copy=False, *, memory_format=None", flags);
  ops.def("to", to_where, "input, device=None, dtype=None, non_blocking=False, copy=False, *, memory_format=None",
          flags);
  ops.def("cpu", cpu, "input, memory_format=None", flags | kBatchable, R"(
    Returns the tensor in the CPU's memory: itself, if it is there.

    Example:
        >>> x = torch.ones(2)
        >>> x.cpu() is x
        True)");
  ops.def("float", cast_method<DType::Float32>, "input, memory_format=None", casts, R"(
    Converts to float32; a tensor of that type is returned as it is.

    Example:
        >>> torch.tensor([1.75, -1.75]).float()
        tensor([ 1.7500, -1.7500]))");
  ops.def("double", cast_method<DType::Float64>, "input, memory_format=None", casts, R"(
    Converts to float64; a tensor of that type is returned as it is.

    Example:
        >>> torch.tensor([1.75, -1.75]).double()
        tensor([ 1.7500, -1.7500], dtype=torch.float64))");
  ops.def("half", cast_method<DType::Float16>, "input, memory_format=None", casts, R"(
    Converts to float16; a tensor of that type is returned as it is.

    Example:
        >>> torch.tensor([1.75, -1.75]).half()
        tensor([ 1.7500, -1.7500], dtype=torch.float16))");
  ops.def("bfloat16", cast_method<DType::BFloat16>, "input, memory_format=None", casts, R"(
    Converts to bfloat16; a tensor of that type is returned as it is.

    Example:
        >>> torch.tensor([1.75, -1.75]).bfloat16()
        tensor([ 1.7500, -1.7500], dtype=torch.bfloat16))");
  ops.def("long", cast_method<DType::Int64>, "input, memory_format=None", casts, R"(
    Converts to int64; a tensor of that type is returned as it is. Fractions are cut off.

    Example:
        >>> torch.tensor([1.75, -1.75]).long()
        tensor([ 1, -1]))");
  ops.def("int", cast_method<DType::Int32>, "input, memory_format=None", casts, R"(
    Converts to int32; a tensor of that type is returned as it is. Fractions are cut off.

    Example:
        >>> torch.tensor([1.75, -1.75]).int()
        tensor([ 1, -1], dtype=torch.int32))");
  ops.def("short", cast_method<DType::Int16>, "input, memory_format=None", casts, R"(
    Converts to int16; a tensor of that type is returned as it is. Fractions are cut off.

    Example:
        >>> torch.tensor([1.75, -1.75]).short()
        tensor([ 1, -1], dtype=torch.int16))");
  ops.def("char", cast_method<DType::Int8>, "input, memory_format=None", casts, R"(
    Converts to int8; a tensor of that type is returned as it is. Fractions are cut off.

    Example:
        >>> torch.tensor([1.75, -1.75]).char()
        tensor([ 1, -1], dtype=torch.int8))");
  ops.def("byte", cast_method<DType::UInt8>, "input, memory_format=None", casts, R"(
    Converts to uint8; a tensor of that type is returned as it is. Fractions are cut off.

    Example:
        >>> torch.tensor([1.75, 200.0]).byte()
        tensor([  1, 200], dtype=torch.uint8))");
  ops.def("bool", cast_method<DType::Bool>, "input, memory_format=None", casts, R"(
    Converts to bool; a tensor of that type is returned as it is. Every element but 0 is True.

    Example:
        >>> torch.tensor([0.0, 0.5]).bool()
        tensor([False,  True]))");
  ops.def("cfloat", cast_method<DType::Complex64>, "input, memory_format=None", casts, R"(
    Converts to complex64; a tensor of that type is returned as it is.

    Example:
        >>> torch.tensor([1.75, -1.75]).cfloat()
        tensor([ 1.7500+0.j, -1.7500+0.j]))");
  ops.def("cdouble", cast_method<DType::Complex128>, "input, memory_format=None", casts, R"(
    Converts to complex128; a tensor of that type is returned as it is.

    Example:
        >>> torch.tensor([1.75, -1.75]).cdouble()
        tensor([ 1.7500+0.j, -1.7500+0.j], dtype=torch.complex128))");
  ops.def("chalf", cast_method<DType::Complex32>, "input, memory_format=None", casts, R"(
    Converts to complex32; a tensor of that type is returned as it is.

    Example:
        >>> torch.tensor([1 + 1j]).chalf().dtype
        torch.complex32)");
});

}  // namespace rl::ops
