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
  ops.def("to", to_dtype, "input, dtype, non_blocking=False, copy=False, *, memory_format=None", flags,
          "The tensor in another type or on another device.");
  ops.def("to", to_other, "input, other, non_blocking=False, copy=False, *, memory_format=None", flags);
  ops.def("to", to_where, "input, device=None, dtype=None, non_blocking=False, copy=False, *, memory_format=None",
          flags);
  ops.def("cpu", cpu, "input, memory_format=None", flags | kBatchable, "The tensor in the CPU's memory.");
  ops.def("float", cast_method<DType::Float32>, "input, memory_format=None", casts);
  ops.def("double", cast_method<DType::Float64>, "input, memory_format=None", casts);
  ops.def("half", cast_method<DType::Float16>, "input, memory_format=None", casts);
  ops.def("bfloat16", cast_method<DType::BFloat16>, "input, memory_format=None", casts);
  ops.def("long", cast_method<DType::Int64>, "input, memory_format=None", casts);
  ops.def("int", cast_method<DType::Int32>, "input, memory_format=None", casts);
  ops.def("short", cast_method<DType::Int16>, "input, memory_format=None", casts);
  ops.def("char", cast_method<DType::Int8>, "input, memory_format=None", casts);
  ops.def("byte", cast_method<DType::UInt8>, "input, memory_format=None", casts);
  ops.def("bool", cast_method<DType::Bool>, "input, memory_format=None", casts);
  ops.def("cfloat", cast_method<DType::Complex64>, "input, memory_format=None", casts);
  ops.def("cdouble", cast_method<DType::Complex128>, "input, memory_format=None", casts);
  ops.def("chalf", cast_method<DType::Complex32>, "input, memory_format=None", casts);
});

}  // namespace rl::ops
