#include <cmath>
#include <cstring>

#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "tensor/promote.h"

namespace rl::ops {

static constexpr Kernel kEq{.op = Pointwise::Eq, .operands = 2, .rule = Rule::Bool};
Tensor eq(const Value& a, const Value& b) { return binary("eq", kEq, a, b); }
static constexpr Kernel kNe{.op = Pointwise::Ne, .operands = 2, .rule = Rule::Bool};
Tensor ne(const Value& a, const Value& b) { return binary("ne", kNe, a, b); }
static constexpr Kernel kLt{.op = Pointwise::Lt, .operands = 2, .rule = Rule::Bool};
Tensor lt(const Value& a, const Value& b) { return binary("lt", kLt, a, b); }
static constexpr Kernel kLe{.op = Pointwise::Le, .operands = 2, .rule = Rule::Bool};
Tensor le(const Value& a, const Value& b) { return binary("le", kLe, a, b); }
static constexpr Kernel kGt{.op = Pointwise::Gt, .operands = 2, .rule = Rule::Bool};
Tensor gt(const Value& a, const Value& b) { return binary("gt", kGt, a, b); }
static constexpr Kernel kGe{.op = Pointwise::Ge, .operands = 2, .rule = Rule::Bool};
Tensor ge(const Value& a, const Value& b) { return binary("ge", kGe, a, b); }

static constexpr Kernel kLogicalAnd{.op = Pointwise::LogicalAnd, .operands = 2, .rule = Rule::Bool};
Tensor logical_and(const Value& a, const Value& b) { return binary("logical_and", kLogicalAnd, a, b); }
static constexpr Kernel kLogicalOr{.op = Pointwise::LogicalOr, .operands = 2, .rule = Rule::Bool};
Tensor logical_or(const Value& a, const Value& b) { return binary("logical_or", kLogicalOr, a, b); }
static constexpr Kernel kLogicalXor{.op = Pointwise::LogicalXor, .operands = 2, .rule = Rule::Bool};
static Tensor logical_xor(const Tensor& a, const Tensor& b) { return binary("logical_xor", kLogicalXor, a, b); }
static Tensor logical_and_op(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
static Tensor logical_or_op(const Tensor& a, const Tensor& b) { return logical_or(a, b); }
static constexpr Kernel kLogicalNot{.op = Pointwise::LogicalNot, .rule = Rule::Bool};
Tensor logical_not(const Tensor& x) { return unary("logical_not", kLogicalNot, x); }

static constexpr Kernel kIsNan{.op = Pointwise::IsNan, .rule = Rule::Bool};
Tensor isnan(const Tensor& x) { return unary("isnan", kIsNan, x); }
static constexpr Kernel kIsInf{.op = Pointwise::IsInf, .rule = Rule::Bool};
Tensor isinf(const Tensor& x) { return unary("isinf", kIsInf, x); }
static constexpr Kernel kIsFinite{.op = Pointwise::IsFinite, .rule = Rule::Bool};
Tensor isfinite(const Tensor& x) { return unary("isfinite", kIsFinite, x); }
static constexpr Kernel kIsPosInf{.op = Pointwise::IsPosInf, .rule = Rule::Bool};
static Tensor isposinf(const Tensor& x) {
  CHECK(!x.is_complex(), Runtime, "isposinf does not support complex inputs.");
  return unary("isposinf", kIsPosInf, x);
}
static constexpr Kernel kIsNegInf{.op = Pointwise::IsNegInf, .rule = Rule::Bool};
static Tensor isneginf(const Tensor& x) {
  CHECK(!x.is_complex(), Runtime, "isneginf does not support complex inputs.");
  return unary("isneginf", kIsNegInf, x);
}
static Tensor isreal(const Tensor& x) {
  return x.is_complex() ? eq(imag(x), 0) : full(x.sizes(), Scalar(true), DType::Bool, x.device());
}
static constexpr Kernel kSignbit{.op = Pointwise::Signbit, .rule = Rule::Bool};
static Tensor signbit(const Tensor& x) {
  CHECK(!x.is_complex(), Runtime, "signbit is not implemented for complex tensors.");
  return unary("signbit", kSignbit, x);
}

// isclose: |a - b| <= atol + rtol |b|, equal infinities are close, NaNs only if asked for
static Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  CHECK(a.dtype() == b.dtype(), Runtime, info(a.dtype()).legacy, " did not match ", info(b.dtype()).legacy);
  CHECK(rtol >= 0, Runtime, "rtol must be greater than or equal to zero, but got ", rtol);
  CHECK(atol >= 0, Runtime, "atol must be greater than or equal to zero, but got ", atol);
  NoGrad raw;
  Tensor close = eq(a, b);
  if (equal_nan && is_differentiable(a.dtype())) close = logical_or(close, logical_and(ne(a, a), ne(b, b)));
  if (rtol == 0 && atol == 0) return close;
  // Integers are compared in the default float type, so that differences do not wrap.
  auto widen = [](const Tensor& t) { return is_differentiable(t.dtype()) ? t : cast(t, default_dtype()); };
  Tensor x = widen(a), y = widen(b), allowed = add(abs(mul(y, rtol)), atol), difference = abs(sub(x, y));
  return logical_or(close, logical_and(isfinite(difference), le(difference, allowed)));
}
static bool all_true(const Tensor& mask) {
  CHECK(mask.has_values(), NotImplemented, "values are compared, and a meta tensor has none");
  Tensor flat = to_host(contiguous(mask));
  return flat.numel() == 0 || !std::memchr(flat.data<bool>(), 0, static_cast<size_t>(flat.numel()));
}
static bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  return all_true(isclose(a, b, rtol, atol, equal_nan));
}
static bool equal(const Tensor& a, const Tensor& b) {
  CHECK(a.device() == b.device(), Runtime, "Expected all tensors to be on the same device, but found ",
        to_text(a.device()), " and ", to_text(b.device()));
  if (!(a.sizes() == b.sizes())) return false;
  const bool exact = !is_differentiable(a.dtype()) && a.dtype() == b.dtype();  // no NaN, which is not itself
  if (exact && a.has_values() && a.memory() == b.memory() && a.strides() == b.strides()) return true;
  NoGrad raw;
  // Tensors that differ mostly do so soon: a first part may spare the rest.
  constexpr int64_t kFirst = 2048;
  if (a.numel() > 4 * kFirst && a.is_contiguous() && b.is_contiguous()) {
    if (!all_true(eq(alias(a, {kFirst}, {1}, a->offset), alias(b, {kFirst}, {1}, b->offset)))) return false;
  }
  return all_true(eq(a, b));
}

static const Register registered([](Ops& ops) {
  const uint32_t flags = kUnary | kNotDifferentiable;
  ops.def("eq", tensor_first<eq>, "input, other", flags | kAnyType, R"(
    Compares: True where input == other. NaN equals nothing.

    Example:
        >>> torch.eq(torch.tensor([1.0, 2.0, math.nan]), torch.tensor([1.0, 3.0, math.nan]))
        tensor([ True, False, False]))",
          kEq);
  ops.def("ne", tensor_first<ne>, "input, other", flags | kAnyType, R"(
    Compares: True where input != other. NaN differs from everything.

    Example:
        >>> torch.ne(torch.tensor([1, 2]), torch.tensor([1, 3]))
        tensor([False,  True]))",
          kNe);
  ops.alias("not_equal", "ne");
  ops.def("lt", tensor_first<lt>, "input, other", flags, R"(
    Compares: True where input < other.

    Example:
        >>> torch.lt(torch.tensor([1, 2, 3]), 2)
        tensor([ True, False, False]))",
          kLt);
  ops.alias("less", "lt");
  ops.def("le", tensor_first<le>, "input, other", flags, R"(
    Compares: True where input <= other.

    Example:
        >>> torch.le(torch.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False]))",
          kLe);
  ops.alias("less_equal", "le");
  ops.def("gt", tensor_first<gt>, "input, other", flags, R"(
    Compares: True where input > other.

    Example:
        >>> torch.gt(torch.tensor([1, 2, 3]), 2)
        tensor([False, False,  True]))",
          kGt);
  ops.alias("greater", "gt");
  ops.def("ge", tensor_first<ge>, "input, other", flags, R"(
    Compares: True where input >= other.

    Example:
        >>> torch.ge(torch.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True]))",
          kGe);
  ops.alias("greater_equal", "ge");
  ops.def("logical_and", logical_and_op, "input, other", flags, R"(
    Tells where both elements are not 0.

    Example:
        >>> torch.logical_and(torch.tensor([0, 1, 2]), torch.tensor([1, 1, 0]))
        tensor([False,  True, False]))",
          kLogicalAnd);
  ops.def("logical_or", logical_or_op, "input, other", flags, R"(
    Tells where at least one of two elements is not 0.

    Example:
        >>> torch.logical_or(torch.tensor([0, 1, 0]), torch.tensor([1, 1, 0]))
        tensor([ True,  True, False]))",
          kLogicalOr);
  ops.def("logical_xor", logical_xor, "input, other", flags, R"(
    Tells where exactly one of two elements is not 0.

    Example:
        >>> torch.logical_xor(torch.tensor([0, 1, 0]), torch.tensor([1, 1, 0]))
        tensor([ True, False, False]))",
          kLogicalXor);
  ops.def("logical_not", logical_not, "input", flags, R"(
    Tells where the elements are 0.

    Example:
        >>> torch.logical_not(torch.tensor([0.0, 1.5]))
        tensor([ True, False]))",
          kLogicalNot);
  const uint32_t tests = kMethod | kNotDifferentiable;
  ops.def("isnan", isnan, "input", tests | kNoOut, R"(
    Tells where the elements are NaN.

    Example:
        >>> torch.isnan(torch.tensor([1.0, math.inf, math.nan]))
        tensor([False, False,  True]))",
          kIsNan);
  ops.def("isinf", isinf, "input", tests | kNoOut, R"(
    Tells where the elements are inf or -inf.

    Example:
        >>> torch.isinf(torch.tensor([1.0, -math.inf, math.nan]))
        tensor([False,  True, False]))",
          kIsInf);
  ops.def("isfinite", isfinite, "input", tests | kNoOut, R"(
    Tells where the elements are neither infinite nor NaN.

    Example:
        >>> torch.isfinite(torch.tensor([1.0, math.inf, math.nan]))
        tensor([ True, False, False]))",
          kIsFinite);
  ops.def("isposinf", isposinf, "input", tests | kExactOut, R"(
    Tells where the elements are +inf.

    Example:
        >>> torch.isposinf(torch.tensor([-math.inf, math.inf, 0.0]))
        tensor([False,  True, False]))",
          kIsPosInf);
  ops.def("isneginf", isneginf, "input", tests | kExactOut, R"(
    Tells where the elements are -inf.

    Example:
        >>> torch.isneginf(torch.tensor([-math.inf, math.inf, 0.0]))
        tensor([ True, False, False]))",
          kIsNegInf);
  ops.def("isreal", isreal, "input", tests | kNoOut | kElementwise, R"(
    Tells where the elements have no imaginary part.

    Example:
        >>> torch.isreal(torch.tensor([1 + 0j, 1 + 1j]))
        tensor([ True, False]))");
  ops.def("signbit", signbit, "input", tests | kExactOut, R"(
    Tells where the sign bit is set: of negative numbers, and of -0.0.

    Example:
        >>> torch.signbit(torch.tensor([-1.0, -0.0, 0.0]))
        tensor([ True,  True, False]))",
          kSignbit);
  ops.def("isclose", isclose, "input, other, rtol=1e-05, atol=1e-08, equal_nan=False",
          tests | kNoOut | kAnyType | kElementwise, R"(
    Tells where |input - other| <= atol + rtol * |other|.

    Args:
        other: what is compared with; it sets the scale of rtol.
        rtol: the relative tolerance.
        atol: the absolute tolerance.
        equal_nan: whether two NaN count as close.

    Example:
        >>> torch.isclose(torch.tensor([1.0, 100.0]), torch.tensor([1.00001, 101.0]))
        tensor([False, False]))");
  ops.def("allclose", allclose, "input, other, rtol=1e-05, atol=1e-08, equal_nan=False", tests | kNoOut, R"(
    Tells whether |input - other| <= atol + rtol * |other| holds everywhere.

    Args:
        other: what is compared with; it sets the scale of rtol.
        rtol: the relative tolerance.
        atol: the absolute tolerance.
        equal_nan: whether two NaN count as close.

    Example:
        >>> torch.allclose(torch.tensor([1.0, 1e-9]), torch.tensor([1.0 + 1e-6, 0.0]))
        True
        >>> torch.allclose(torch.tensor([math.nan]), torch.tensor([math.nan]))
        False)");
  ops.def("equal", equal, "input, other", tests | kNoOut | kAnyType, R"(
    Tells whether two tensors have the same shape and the same elements.

    Example:
        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
        True
        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([[1, 2]]))
        False)");
});

}  // namespace rl::ops
