#include "autograd/grad_mode.h"
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

// div with rounding: y = floor(a / b) or trunc(a / b)        flat: da = db = 0
struct DivModeBackward : Node {
  static constexpr const char* kName = "DivBackward1";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) {
    return {needs(0) ? zeros_like(dy[0]) : Tensor(), needs(1) ? zeros_like(dy[0]) : Tensor()};
  }
};
// float16 and bfloat16 divided by a number: computed in float from end to end, since cutting the fraction makes the
// rounding of the number, or of the quotient, a whole unit.
static Tensor quotient(const Kernel& kernel, const char* name, const Value& a, const Value& b) {
  if (a.is_tensor() && !b.is_tensor() && !b.number.is_complex() && is_half(a.tensor.dtype())) {
    NoGrad raw;
    return cast(binary(name, kernel, cast(a.tensor, DType::Float32), b), a.tensor.dtype());
  }
  return binary(name, kernel, a, b);
}
static Tensor divide_rounded(const Kernel& kernel, const char* name, const Value& a, const Value& b) {
  return record<DivModeBackward>(quotient(kernel, name, a, b), {a, b});
}
static constexpr Kernel kFloorDiv{.op = Pointwise::FloorDiv, .operands = 2, .cost = 8};
static constexpr Kernel kTruncDiv{.op = Pointwise::TruncDiv, .operands = 2, .cost = 8};
Tensor div_mode(const Value& a, const Value& b, const std::optional<std::string>& rounding_mode) {
  if (!rounding_mode) return div(a, b);
  if (*rounding_mode == "floor") return divide_rounded(kFloorDiv, "div_floor", a, b);
  CHECK(*rounding_mode == "trunc", Runtime,
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *rounding_mode, "'");
  return divide_rounded(kTruncDiv, "div_trunc", a, b);
}
Tensor floor_divide(const Value& a, const Value& b) {
  return record_not_differentiable("floor_divide", quotient(kFloorDiv, "floor_divide", a, b), {a, b});
}
static Tensor rfloordiv(const Tensor& b, const Value& a) { return floor_divide(a, b); }

// remainder: y = a - b floor(a / b)        da = dy, db = -dy floor(a / b)
struct RemainderBackward : PairNode {
  static constexpr const char* kName = "RemainderBackward0";
  Grads backward(const Grads& dy) {
    return {dy[0], needs(1) ? neg(mul(dy[0], div_mode(a(), b(), "floor"))) : Tensor()};
  }
};
static constexpr Kernel kRemainder{.op = Pointwise::Remainder, .operands = 2, .cost = 8};
Tensor remainder(const Value& a, const Value& b) {
  Tensor y = binary("remainder", kRemainder, a, b);
  return record<RemainderBackward>(y, {a, b}, [&](auto& n) {
    if (!n.needs(1)) return;
    n.self = save(a);
    n.other = save(b);
  });
}
static Tensor rmod(const Tensor& b, const Value& a) { return remainder(a, b); }

// fmod: y = a - b trunc(a / b)        da = dy, db = -dy trunc(a / b)
struct FmodBackward : PairNode {
  static constexpr const char* kName = "FmodBackward0";
  Grads backward(const Grads& dy) {
    return {dy[0], needs(1) ? neg(mul(dy[0], div_mode(a(), b(), "trunc"))) : Tensor()};
  }
};
static constexpr Kernel kFmod{.op = Pointwise::Fmod, .operands = 2, .cost = 8};
Tensor fmod(const Value& a, const Value& b) {
  Tensor y = binary("fmod", kFmod, a, b);
  return record<FmodBackward>(y, {a, b}, [&](auto& n) {
    if (!n.needs(1)) return;
    n.self = save(a);
    n.other = save(b);
  });
}

static Tensor rsub(const Tensor& a, const Value& b, const Scalar& alpha) { return sub(b, a, alpha); }

static Tensor div_rounded(const Tensor& a, const Value& b, const std::optional<std::string>& mode) {
  return div_mode(a, b, mode);
}

static Tensor as_tensor(const Scalar& a) {
  DType type = a.is_complex() ? to_complex(default_dtype()) : a.is_integral() ? DType::Int64 : default_dtype();
  return full({}, a, type, Device());
}
static Tensor divide_numbers(const Scalar& a, const Scalar& b) { return div(as_tensor(a), b); }
static Tensor floor_divide_numbers(const Scalar& a, const Scalar& b) { return floor_divide(as_tensor(a), b); }

static const Register registered([](Ops& ops) {
  ops.def("div", div_rounded, "input, other, *, rounding_mode", kUnary, "");
  ops.alias("divide", "div");
  ops.def("true_divide", tensor_first<div>, "input, other", kUnary, R"(
    Divides exactly: input / other, also of integers, as div() without rounding_mode.

    Args:
        other: the divisor.

    Example:
        >>> torch.true_divide(torch.tensor([1, 3]), 2)
        tensor([0.5000, 1.5000]))");
  ops.def("true_divide", number_first<div>, "input, other");
  ops.def("true_divide", divide_numbers, "input, other", kNoOut);
  ops.def("floor_divide", tensor_first<floor_divide>, "input, other", kUnary, R"(
    Divides and rounds down: floor(input / other), as Python's //.

    Args:
        other: the divisor.

    Gradient:
        Not differentiable: backward() raises. div(..., rounding_mode='floor') gives 0.

    Example:
        >>> torch.floor_divide(torch.tensor([7, -7]), 2)
        tensor([ 3, -4])
        >>> torch.tensor([7.5]) // 2
        tensor([3.]))",
          kFloorDiv);
  ops.def("floor_divide", number_first<floor_divide>, "input, other");
  ops.def("floor_divide", floor_divide_numbers, "input, other", kNoOut);
  ops.def("__rfloordiv_op__", rfloordiv, "input, other", kMethod | kNoFunction);
  ops.def("remainder", tensor_first<remainder>, "input, other", kUnary, R"(
    Takes the remainder of division with the sign of other: x - floor(x / other) * other, Python's %.

    Args:
        other: the divisor.

    Example:
        >>> torch.remainder(torch.tensor([-5, 5]), 3)
        tensor([1, 2])
        >>> torch.tensor([5.5]) % -2
        tensor([-0.5000]))",
          kRemainder);
  ops.def("remainder", number_first<remainder>, "input, other");
  ops.def("__rmod_op__", rmod, "input, other", kMethod | kNoFunction);
  ops.def("fmod", tensor_first<fmod>, "input, other", kUnary, R"(
    Takes the remainder of division with the sign of input: x - trunc(x / other) * other, C's %.

    Args:
        other: the divisor.

    Example:
        >>> torch.fmod(torch.tensor([-5, 5]), 3)
        tensor([-2,  2])
        >>> torch.fmod(torch.tensor([5.5]), 2)
        tensor([1.5000]))",
          kFmod);
  ops.def("rsub", rsub, "input, other, *, alpha=1", kNoOut | kElementwise, R"(
    Subtracts the other way round: other - alpha * input.

    Args:
        input: what is taken away.
        other: what it is taken from.
        alpha: the factor of input.

    Example:
        >>> torch.rsub(torch.tensor([1.0, 2.0]), 10)
        tensor([9., 8.]))");
});

}  // namespace rl::ops
