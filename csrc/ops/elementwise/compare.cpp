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
  ops.def("eq", tensor_first<eq>, "input, other", flags | kAnyType, "input == other.", kEq);
  ops.def("ne", tensor_first<ne>, "input, other", flags | kAnyType, "input != other.", kNe);
  ops.alias("not_equal", "ne");
  ops.def("lt", tensor_first<lt>, "input, other", flags, "input < other.", kLt);
  ops.alias("less", "lt");
  ops.def("le", tensor_first<le>, "input, other", flags, "input <= other.", kLe);
  ops.alias("less_equal", "le");
  ops.def("gt", tensor_first<gt>, "input, other", flags, "input > other.", kGt);
  ops.alias("greater", "gt");
  ops.def("ge", tensor_first<ge>, "input, other", flags, "input >= other.", kGe);
  ops.alias("greater_equal", "ge");
  ops.def("logical_and", logical_and_op, "input, other", flags, "True where both are not 0.", kLogicalAnd);
  ops.def("logical_or", logical_or_op, "input, other", flags, "True where one is not 0.", kLogicalOr);
  ops.def("logical_xor", logical_xor, "input, other", flags, "True where exactly one is not 0.", kLogicalXor);
  ops.def("logical_not", logical_not, "input", flags, "True where input is 0.", kLogicalNot);
  const uint32_t tests = kMethod | kNotDifferentiable;
  ops.def("isnan", isnan, "input", tests | kNoOut, "True where input is NaN.", kIsNan);
  ops.def("isinf", isinf, "input", tests | kNoOut, "True where input is infinite.", kIsInf);
  ops.def("isfinite", isfinite, "input", tests | kNoOut, "True where input is neither infinite nor NaN.", kIsFinite);
  ops.def("isposinf", isposinf, "input", tests | kExactOut, "True where input is +inf.", kIsPosInf);
  ops.def("isneginf", isneginf, "input", tests | kExactOut, "True where input is -inf.", kIsNegInf);
  ops.def("isreal", isreal, "input", tests | kNoOut | kElementwise, "True where input has no imaginary part.");
  ops.def("signbit", signbit, "input", tests | kExactOut, "True where the sign bit is set, -0.0 included.", kSignbit);
  ops.def("isclose", isclose, "input, other, rtol=1e-05, atol=1e-08, equal_nan=False",
          tests | kNoOut | kAnyType | kElementwise, "True where |input - other| <= atol + rtol * |other|.");
  ops.def("allclose", allclose, "input, other, rtol=1e-05, atol=1e-08, equal_nan=False", tests | kNoOut,
          "Whether isclose holds everywhere.");
  ops.def("equal", equal, "input, other", tests | kNoOut | kAnyType,
          "Whether two tensors have the same sizes and elements.");
});

}  // namespace rl::ops
