// New tensors: filled, counted, like others.
#include <cmath>

#include "backend/backend.h"
#include "ops/copy/factory.h"
#include "ops/copy/uninitialized.h"
#include "ops/elementwise/scalar_cast.h"
#include "ops/ops.h"
#include "schema/python_side.h"
#include "schema/registry.h"
#include "tensor/default_device.h"

namespace rl::ops {

namespace {

// What every factory takes beside its own arguments.
using OptDType = std::optional<DType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;
constexpr uint32_t kLike = kFactory | kNoOut;

// Complex numbers of half precision are made by name only.
DType dtype_of_number(const Scalar& s) {
  const DType real = default_dtype();
  return s.dtype(s.is_complex() && is_half(real) ? DType::Float32 : real);
}

Tensor finish(Tensor t, const OptBool& requires_grad) {
  return with_grad_flag(std::move(t), requires_grad.value_or(false));
}

Tensor full_op(const Ints& size, const Scalar& value, OptDType dtype, OptLayout layout, OptDevice device, OptBool,
               OptBool requires_grad) {
  check_factory(layout, device);
  return finish(full(size, value, dtype.value_or(dtype_of_number(value)), device_or_default(device)), requires_grad);
}

Tensor scalar_tensor(const Scalar& value, OptDType dtype, OptLayout layout, OptDevice device, OptBool,
                     OptBool requires_grad) {
  check_factory(layout, device);
  return finish(full({}, value, dtype.value_or(default_dtype()), device_or_default(device)), requires_grad);
}

// Memory for a tensor like another one.
Tensor uninitialized_like(const Tensor& like, OptDType dtype, OptLayout layout, OptDevice device, OptFormat format) {
  check_factory(layout, device);
  return empty_strided(like.sizes(), strides_for(like, format.value_or(MemoryFormat::Preserve)),
                       dtype.value_or(like.dtype()), device.value_or(like.device()));
}
Tensor empty_like_op(const Tensor& like, OptDType dtype, OptLayout layout, OptDevice device, OptBool,
                     OptBool requires_grad, OptFormat format) {
  if (is_sparse(layout))
    return sparse_zeros("empty_like", like.sizes(), *layout, dtype.value_or(like.dtype()),
                        requires_grad.value_or(false));
  return finish(known(uninitialized_like(like, dtype, layout, device, format)), requires_grad);
}
Tensor full_like(const Tensor& like, const Scalar& value, OptDType dtype, OptLayout layout, OptDevice device, OptBool,
                 OptBool requires_grad, OptFormat format) {
  Tensor t = uninitialized_like(like, dtype, layout, device, format);
  fill_raw(t, value);
  return finish(t, requires_grad);
}
Tensor zeros_like(const Tensor& like, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin,
                  OptBool requires_grad, OptFormat format) {
  if (is_sparse(layout))
    return sparse_zeros("zeros_like", like.sizes(), *layout, dtype.value_or(like.dtype()),
                        requires_grad.value_or(false));
  return full_like(like, Scalar(0), dtype, layout, device, pin, requires_grad, format);
}
Tensor ones_like(const Tensor& like, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin,
                 OptBool requires_grad, OptFormat format) {
  return full_like(like, Scalar(1), dtype, layout, device, pin, requires_grad, format);
}

Tensor empty_strided_op(const Ints& size, const Ints& stride, OptDType dtype, OptLayout layout, OptDevice device,
                        OptBool, OptBool requires_grad) {
  check_factory(layout, device);
  CHECK(size.size() == stride.size(), Runtime, "empty_strided: dimensionality of sizes (", size.size(),
        ") must match dimensionality of strides (", stride.size(), ")");
  for (int64_t s : stride)
    CHECK(s >= 0, Runtime, "empty_strided: negative strides are not supported, got ", to_text(stride));
  return finish(known(empty_strided(size, stride, dtype.value_or(default_dtype()), device_or_default(device))),
                requires_grad);
}
Tensor empty_permuted(const Ints& size, const Ints& layout_order, OptDType dtype, OptLayout layout, OptDevice device,
                      OptBool, OptBool requires_grad) {
  check_factory(layout, device);
  int64_t n = size.size(), step = 1;
  CHECK(layout_order.size() == n, Runtime,
        "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = ", n,
        " is not equal to len(physical_layout) = ", layout_order.size());
  Ints strides(n);
  uint64_t seen = 0;
  for (int64_t i = n - 1; i >= 0; --i) {
    int64_t d = layout_order[i];
    CHECK(d >= 0 && d < n, Runtime, "Dimension out of range (expected to be between 0 and ", n - 1, ", but got ", d,
          " at index ", i, "). NB: negative dims not currently supported; file an issue if you want it.");
    CHECK(!(seen >> d & 1), Runtime, "Duplicate dim not allowed");
    seen |= uint64_t{1} << d;
    strides[d] = step;
    step = checked_mul(step, std::max<int64_t>(size[d], 1));
  }
  return finish(known(empty_strided(size, strides, dtype.value_or(default_dtype()), device_or_default(device))),
                requires_grad);
}

// x.new_*: type and device of x
Tensor new_empty(const Tensor& like, const Ints& size, OptDType dtype, OptLayout layout, OptDevice device, OptBool,
                 OptBool requires_grad) {
  if (is_sparse(layout))
    return sparse_zeros("new_empty", size, *layout, dtype.value_or(like.dtype()), requires_grad.value_or(false));
  check_factory(layout, device);
  return finish(known(empty(size, dtype.value_or(like.dtype()), device.value_or(like.device()))), requires_grad);
}
Tensor new_full(const Tensor& like, const Ints& size, const Scalar& value, OptDType dtype, OptLayout layout,
                OptDevice device, OptBool, OptBool requires_grad) {
  check_factory(layout, device);
  return finish(full(size, value, dtype.value_or(like.dtype()), device.value_or(like.device())), requires_grad);
}
Tensor new_zeros(const Tensor& like, const Ints& size, OptDType dtype, OptLayout layout, OptDevice device, OptBool,
                 OptBool requires_grad) {
  if (is_sparse(layout))
    return sparse_zeros("new_zeros", size, *layout, dtype.value_or(like.dtype()), requires_grad.value_or(false));
  check_factory(layout, device);
  return finish(zeros(size, dtype.value_or(like.dtype()), device.value_or(like.device())), requires_grad);
}
Tensor new_ones(const Tensor& like, const Ints& size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin,
                OptBool requires_grad) {
  return new_full(like, size, Scalar(1), dtype, layout, device, pin, requires_grad);
}
Tensor new_empty_strided(const Tensor& like, const Ints& size, const Ints& stride, OptDType dtype, OptLayout layout,
                         OptDevice device, OptBool pin, OptBool requires_grad) {
  return empty_strided_op(size, stride, dtype.value_or(like.dtype()), layout, device.value_or(like.device()), pin,
                          requires_grad);
}
Tensor new_tensor(const Tensor& like, Object data, OptDType dtype, OptLayout layout, OptDevice device, OptBool,
                  OptBool requires_grad) {
  check_factory(layout, device);
  return finish(tensor_from_data(data.p, dtype.value_or(like.dtype()), device.value_or(like.device())), requires_grad);
}

// A result for `out`, if there is one: then its type is the one to compute in.
OptDType wanted_type(const OptDType& dtype, const OptTensor& out) {
  if (!out.defined()) return dtype;
  CHECK(!dtype || *dtype == out.dtype(), Runtime, "dtype ", dtype ? info(*dtype).name : "",
        " does not match dtype of out parameter (", info(out.dtype()).name, ")");
  return out.dtype();
}
NewObject deliver(const char* name, Tensor y, const OptTensor& out, const OptBool& requires_grad) {
  if (!out.defined()) return {finish(std::move(y), requires_grad).release()};
  if (out.numel() == y.numel()) y = reshape(y, Ints(out.sizes()));  // in the order of its elements, whatever its shape
  y = finish(std::move(y), requires_grad);
  return {write_result(name, out.object(), y.object(), false)};
}

// arange: start, start + step, ... before end
NewObject arange(const char* name, const Scalar& start, const Scalar& end, const Scalar& step, const OptTensor& out,
                 OptDType given, OptLayout layout, OptDevice device, OptBool requires_grad, bool with_end) {
  check_factory(layout, device);
  OptDType dtype = wanted_type(given, out);
  bool integers = start.is_integral() && end.is_integral() && step.is_integral();
  DType d = dtype.value_or(integers && !with_end ? DType::Int64 : default_dtype());
  CHECK(d != DType::Bool && !is_complex(d), NotImplemented, "\"", name, "_cpu\" not implemented for '", info(d).legacy,
        "'");
  for (const Scalar* s : {&start, &end, &step}) {
    if (!with_end) check_holds(*s, DType::Float64);
    if (is_half(d)) check_computes(*s, d);
    if (is_integral(d) && (with_end || std::isfinite(s->to_double()) || s == &step)) check_holds(*s, DType::Int64);
    integers = integers && !s->above_int64();
  }
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  CHECK(s != 0, Runtime, "step must be nonzero");
  CHECK(std::isfinite(a) && std::isfinite(b), Runtime, "unsupported range: ", a, " -> ", b);
  double count;
  if ((integers || d == DType::Int64) && !with_end) {  // exactly, also beyond 2^53
    __int128 first = start.to_int(), last = end.to_int(), each = step.to_int();
    CHECK(each != 0, Value, "step must be nonzero");
    CHECK((each > 0 && last >= first) || (each < 0 && last <= first), Runtime,
          "upper bound and lower bound inconsistent with step sign");
    count = static_cast<double>((last - first + each - (each > 0 ? 1 : -1)) / each);
  } else {
    CHECK((s > 0 && b >= a) || (s < 0 && b <= a), Runtime, "upper bound and lower bound inconsistent with step sign");
    count = with_end ? std::floor((b - a) / s) + 1 : std::ceil((b - a) / s);
  }
  CHECK(count >= 0 && count <= 9.2e18, Runtime, "invalid size, possible overflow?");
  // The old `range` multiplies a whole number by the step, each on its own; see Note [Blocks of a range].
  const bool counted = with_end && !is_integral(d);
  Tensor y = empty({static_cast<int64_t>(count)}, counted ? DType::Float64 : d, device_or_default(device));
  if (y.numel())
    backend(y.device()).copy->range(y.view(), counted ? 0 : a, counted ? 1 : s, start.to_int(), step.to_int());
  if (counted) y = cast(add(mul(y, step), start), d);
  return deliver(name, y, out, requires_grad);
}
NewObject arange_end(const Scalar& end, const OptTensor& out, OptDType t, OptLayout l, OptDevice d, OptBool,
                     OptBool g) {
  return arange("arange", Scalar(0), end, Scalar(1), out, t, l, d, g, false);
}
NewObject arange_from(const Scalar& start, const Scalar& end, const Scalar& step, const OptTensor& out, OptDType t,
                      OptLayout l, OptDevice d, OptBool, OptBool g) {
  return arange("arange", start, end, step, out, t, l, d, g, false);
}
NewObject range(const Scalar& start, const Scalar& end, const Scalar& step, const OptTensor& out, OptDType t,
                OptLayout l, OptDevice d, OptBool, OptBool g) {
  if (PyErr_WarnEx(PyExc_UserWarning,
                   "torch.range is deprecated and will be removed in a future release because its behavior is "
                   "inconsistent with Python's range "
                   "builtin. Instead, use torch.arange, which produces values in [start, end).",
                   1) < 0)
    python_error();
  return arange("range", start, end, step, out, t, l, d, g, true);
}

// linspace, logspace: from start to end in equal steps, and base to the power of that
NewObject spaced(const char* name, const Value& start, const Value& end, int64_t steps,
                 const std::complex<double>* base, const OptTensor& out, OptDType given, OptLayout layout,
                 OptDevice device, OptBool requires_grad) {
  check_factory(layout, device);
  auto number = [&](const Value& v) {
    CHECK(!v.is_tensor() || v.tensor.dim() == 0, Runtime, name,
          " only supports 0-dimensional start and end tensors, but got one with ", v.is_tensor() ? v.tensor.dim() : 0,
          " dimension(s).");
    return v.is_tensor() ? item(v.tensor) : v.number;
  };
  Scalar a = number(start), b = number(end);
  OptDType dtype = wanted_type(given, out);
  CHECK(steps >= 0, Runtime, "number of steps must be non-negative, got ", steps);
  bool complex_ends = a.is_complex() || b.is_complex();
  CHECK(!dtype || is_complex(*dtype) || !complex_ends, Runtime, "torch.", name, "(): inferred dtype ",
        info(to_complex(default_dtype())).name, " can't be safely cast to passed dtype ",
        dtype ? info(*dtype).name : "");
  DType d = dtype.value_or(complex_ends ? to_complex(default_dtype()) : default_dtype());
  CHECK(d != DType::Bool, NotImplemented, "\"", name, "_cpu\" not implemented for 'Bool'");
  check_holds(a, d);
  check_holds(b, d);
  if (is_integral(d)) a = Scalar(a.to_int()), b = Scalar(b.to_int());
  Tensor y = empty({steps}, d, device_or_default(device));
  if (y.numel()) backend(y.device()).copy->linspace(y.view(), a.to_complex128(), b.to_complex128(), base);
  return deliver(name, y, out, requires_grad);
}
NewObject linspace(const Value& start, const Value& end, int64_t steps, const OptTensor& out, OptDType t, OptLayout l,
                   OptDevice d, OptBool, OptBool g) {
  return spaced("linspace", start, end, steps, nullptr, out, t, l, d, g);
}
NewObject logspace(const Value& start, const Value& end, int64_t steps, double base, const OptTensor& out, OptDType t,
                   OptLayout l, OptDevice d, OptBool, OptBool g) {
  std::complex<double> b = base;
  return spaced("logspace", start, end, steps, &b, out, t, l, d, g);
}

// eye: ones on the diagonal
Tensor eye(int64_t n, std::optional<int64_t> m, OptDType dtype, OptLayout layout, OptDevice device, OptBool,
           OptBool requires_grad) {
  check_factory(layout, device);
  int64_t columns = m.value_or(n);
  CHECK(n >= 0, Runtime, "n must be greater or equal to 0, got ", n);
  CHECK(columns >= 0, Runtime, "m must be greater or equal to 0, got ", columns);
  Tensor y = zeros({n, columns}, dtype.value_or(default_dtype()), device_or_default(device));
  if (y.numel()) fill_raw(alias(y, {std::min(n, columns)}, {columns + 1}, 0), Scalar(1));
  return finish(y, requires_grad);
}

// tril_indices, triu_indices: rows and columns of a triangle
Tensor triangle_indices(const char* name, int64_t row, int64_t col, int64_t offset, bool upper, OptDType dtype,
                        OptLayout layout, OptDevice device) {
  check_factory(layout, device);
  CHECK(row >= 0, Runtime, "row must be non-negative, got ", row);
  CHECK(col >= 0, Runtime, "col must be non-negative, got ", col);
  DType d = dtype.value_or(DType::Int64);
  CHECK(d == DType::Int64 || d == DType::Int32, NotImplemented, "\"", name, "\" not implemented for '", info(d).legacy,
        "'");
  Tensor y = empty({2, triangle_count(row, col, offset, upper)}, d, device_or_default(device));
  if (y.numel()) backend(y.device()).index->triangle_indices(y.view(), row, col, offset, upper);
  return y;
}
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, OptDType dtype, OptLayout layout, OptDevice device,
                    OptBool, OptBool) {
  return triangle_indices("tril_indices", row, col, offset, false, dtype, layout, device);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, OptDType dtype, OptLayout layout, OptDevice device,
                    OptBool, OptBool) {
  return triangle_indices("triu_indices", row, col, offset, true, dtype, layout, device);
}

}  // namespace

#define OPTIONS "*, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=None"
#define WITH_OUT "*, out=None, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=None"
static const Register registered([](Ops& ops) {
  const uint32_t fresh = kMethod | kNoFunction | kLike | kAnyType;
  ops.def("full", full_op, "size, fill_value, " OPTIONS, kFactory | kAnyType, R"(
    Makes a tensor whose elements are all one value.

    Args:
        size: the sizes, as a sequence.
        fill_value: the value.
        dtype: the element type; None takes that of the value: int64, bool, or the default float type.

    Example:
        >>> torch.full((2, 3), 7)
        tensor([[7, 7, 7],
                [7, 7, 7]])
        >>> torch.full((2,), 0.5)
        tensor([0.5000, 0.5000]))");
  ops.def("scalar_tensor", scalar_tensor, "s, " OPTIONS, kLike | kAnyType, R"(
    Makes a 0-dim tensor of a number, of the default float type.

    Args:
        s: the number.

    Example:
        >>> torch.scalar_tensor(3)
        tensor(3.))");
  ops.def("empty_like", empty_like_op, "input, " OPTIONS ", memory_format=None", kLike | kAnyType | kElementwise, R"(
    Makes an uninitialised tensor with the shape and type of another.

    Example:
        >>> torch.empty_like(torch.zeros(2, 3)).shape
        torch.Size([2, 3]))");
  ops.def("zeros_like", zeros_like, "input, " OPTIONS ", memory_format=None", kLike | kAnyType | kElementwise, R"(
    Makes a tensor of zeros with the shape and type of another.

    Example:
        >>> torch.zeros_like(torch.tensor([[3, 4]]))
        tensor([[0, 0]]))");
  ops.def("ones_like", ones_like, "input, " OPTIONS ", memory_format=None", kLike | kAnyType | kElementwise, R"(
    Makes a tensor of ones with the shape and type of another.

    Example:
        >>> torch.ones_like(torch.tensor([[3, 4]]))
        tensor([[1, 1]]))");
  ops.def("full_like", full_like, "input, fill_value, " OPTIONS ", memory_format=None", kLike | kAnyType | kElementwise,
          R"(
    Makes a tensor of one value with the shape and type of another.

    Args:
        fill_value: the value.

    Example:
        >>> torch.full_like(torch.zeros(2), 7)
        tensor([7., 7.]))");
  ops.def("empty_strided", empty_strided_op, "size, stride, " OPTIONS, kLike | kAnyType, R"(
    Makes an uninitialised tensor with given strides.

    Args:
        size: the sizes.
        stride: the strides, in elements.

    Example:
        >>> torch.empty_strided((2, 3), (1, 2)).stride()
        (1, 2))");
  ops.def("empty_permuted", empty_permuted, "size, physical_layout, " OPTIONS, kLike | kAnyType, R"(
    Makes an uninitialised tensor whose dimensions lie in a given order in memory.

    Args:
        size: the sizes.
        physical_layout: the dimensions from the outermost in memory to the innermost.

    Example:
        >>> torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
        (12, 1, 3))");
  ops.def("new_empty", new_empty, "input, size..., " OPTIONS, fresh, R"(
    Makes an uninitialised tensor of this one's type and device.

    Example:
        >>> torch.zeros(1, dtype=torch.int8).new_empty(2, 3).dtype
        torch.int8)");
  ops.def("new_empty_strided", new_empty_strided, "input, size, stride, " OPTIONS, fresh, R"(
    Makes an uninitialised tensor of this one's type and device, with given strides.

    Args:
        size: the sizes.
        stride: the strides, in elements.

    Example:
        >>> torch.zeros(1).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2))");
  ops.def("new_full", new_full, "input, size, fill_value, " OPTIONS, fresh, R"(
    Makes a tensor of one value, of this one's type and device.

    Args:
        size: the sizes, as a sequence.
        fill_value: the value.

    Example:
        >>> torch.zeros(1, dtype=torch.int8).new_full((2,), 7)
        tensor([7, 7], dtype=torch.int8))");
  ops.def("new_zeros", new_zeros, "input, size..., " OPTIONS, fresh, R"(
    Makes a tensor of zeros, of this one's type and device.

    Example:
        >>> torch.ones(1, dtype=torch.int8).new_zeros(2, 2)
        tensor([[0, 0],
                [0, 0]], dtype=torch.int8))");
  ops.def("new_ones", new_ones, "input, size..., " OPTIONS, fresh, R"(
    Makes a tensor of ones, of this one's type and device.

    Example:
        >>> torch.zeros(1, dtype=torch.int8).new_ones(2)
        tensor([1, 1], dtype=torch.int8))");
  ops.def("new_tensor", new_tensor, "input, data, " OPTIONS, fresh, R"(
    Makes a tensor of data, which is copied, of this one's type and device.

    Args:
        data: the values: numbers, nested sequences, arrays or tensors.

    Example:
        >>> torch.zeros(1, dtype=torch.float64).new_tensor([1, 2])
        tensor([1., 2.], dtype=torch.float64))");
  ops.def("arange", arange_end, "end, " WITH_OUT, kLike, R"(
    Counts from start in steps: start, start + step, ... before end.

    Args:
        start: the first value; 0 if only end is given.
        end: the bound, which does not belong to the values.
        step: the distance of two values; it may be negative.
        dtype: the element type; None takes int64 for integers, else the default float type.

    Example:
        >>> torch.arange(5)
        tensor([0, 1, 2, 3, 4])
        >>> torch.arange(1.0, 2.0, 0.25)
        tensor([1.0000, 1.2500, 1.5000, 1.7500]))");
  ops.def("arange", arange_from, "start, end, step=1, " WITH_OUT, kLike);
  ops.def("range", range, "start, end, step=1, " WITH_OUT, kLike, R"(
    Counts from start in steps up to end, which is included; deprecated, use arange().

    Args:
        start: the first value.
        end: the bound, which belongs to the values if a step reaches it.
        step: the distance of two values.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.range(1, 3)
        tensor([1., 2., 3.]))");
  ops.def("linspace", linspace, "start, end, steps, " WITH_OUT, kLike, R"(
    Divides the range from start to end evenly, both included.

    Args:
        start: the first value.
        end: the last value.
        steps: how many values.

    Example:
        >>> torch.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000]))");
  ops.def("logspace", logspace, "start, end, steps, base=10.0, " WITH_OUT, kLike, R"(
    Takes powers of base with exponents from start to end in equal steps, both included.

    Args:
        start: the first exponent.
        end: the last exponent.
        steps: how many values.
        base: the base.

    Example:
        >>> torch.logspace(0, 3, 4)
        tensor([   1.,   10.,  100., 1000.]))");
  ops.def("eye", eye, "n, m=None, " OPTIONS, kFactory, R"(
    Makes a matrix with ones on its diagonal and zeros elsewhere.

    Args:
        n: the number of rows.
        m: the number of columns; None takes n.

    Example:
        >>> torch.eye(2)
        tensor([[1., 0.],
                [0., 1.]])
        >>> torch.eye(2, 3, dtype=torch.int64)
        tensor([[1, 0, 0],
                [0, 1, 0]]))");
  ops.def("tril_indices", tril_indices, "row, col, offset=0, " OPTIONS, kLike, R"(
    Lists rows and columns of the elements on and below a diagonal of a matrix.

    Args:
        row: the number of rows.
        col: the number of columns.
        offset: which diagonal: 0 is the main one, positive ones lie above it.
        dtype: the element type; None takes int64.

    Example:
        >>> torch.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]]))");
  ops.def("triu_indices", triu_indices, "row, col, offset=0, " OPTIONS, kLike, R"(
    Lists rows and columns of the elements on and above a diagonal of a matrix.

    Args:
        row: the number of rows.
        col: the number of columns.
        offset: which diagonal: 0 is the main one, positive ones lie above it.
        dtype: the element type; None takes int64.

    Example:
        >>> torch.triu_indices(2, 2, offset=1)
        tensor([[0],
                [1]]))");
});

}  // namespace rl::ops
