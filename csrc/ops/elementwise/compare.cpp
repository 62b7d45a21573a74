#include <cmath>
#include <cstring>

#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "tensor/promote.h"

namespace rl::ops {

static PointwiseOptions to_bool() { return {.rule = Rule::Bool}; }

Tensor eq(const Value& a, const Value& b) { return binary("eq", Pointwise::Eq, a, b, to_bool()); }
Tensor ne(const Value& a, const Value& b) { return binary("ne", Pointwise::Ne, a, b, to_bool()); }
Tensor lt(const Value& a, const Value& b) { return binary("lt", Pointwise::Lt, a, b, to_bool()); }
Tensor le(const Value& a, const Value& b) { return binary("le", Pointwise::Le, a, b, to_bool()); }
Tensor gt(const Value& a, const Value& b) { return binary("gt", Pointwise::Gt, a, b, to_bool()); }
Tensor ge(const Value& a, const Value& b) { return binary("ge", Pointwise::Ge, a, b, to_bool()); }

Tensor logical_and(const Value& a, const Value& b) {
  return binary("logical_and", Pointwise::LogicalAnd, a, b, to_bool());
}
Tensor logical_or(const Value& a, const Value& b) {
  return binary("logical_or", Pointwise::LogicalOr, a, b, to_bool());
}
static Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return binary("logical_xor", Pointwise::LogicalXor, a, b, to_bool());
}
static Tensor logical_and_op(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
static Tensor logical_or_op(const Tensor& a, const Tensor& b) { return logical_or(a, b); }
Tensor logical_not(const Tensor& x) { return unary("logical_not", Pointwise::LogicalNot, x, to_bool()); }

Tensor isnan(const Tensor& x) { return unary("isnan", Pointwise::IsNan, x, to_bool()); }
Tensor isinf(const Tensor& x) { return unary("isinf", Pointwise::IsInf, x, to_bool()); }
Tensor isfinite(const Tensor& x) { return unary("isfinite", Pointwise::IsFinite, x, to_bool()); }
static Tensor isposinf(const Tensor& x) {
  CHECK(!x.is_complex(), Runtime, "isposinf does not support complex inputs.");
  return unary("isposinf", Pointwise::IsPosInf, x, to_bool());
}
static Tensor isneginf(const Tensor& x) {
  CHECK(!x.is_complex(), Runtime, "isneginf does not support complex inputs.");
  return unary("isneginf", Pointwise::IsNegInf, x, to_bool());
}
static Tensor isreal(const Tensor& x) {
  return x.is_complex() ? eq(imag(x), 0) : full(x.sizes(), Scalar(true), DType::Bool, x.device());
}
static Tensor signbit(const Tensor& x) {
  CHECK(!x.is_complex(), Runtime, "signbit is not implemented for complex tensors.");
  return unary("signbit", Pointwise::Signbit, x, to_bool());
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
  ops.def("eq", tensor_first<eq>, "input, other", flags | kAnyType, "input == other.");
  ops.def("ne", tensor_first<ne>, "input, other", flags | kAnyType, "input != other.");
  ops.alias("not_equal", "ne");
  ops.def("lt", tensor_first<lt>, "input, other", flags, "input < other.");
  ops.alias("less", "lt");
  ops.def("le", tensor_first<le>, "input, other", flags, "input <= other.");
  ops.alias("less_equal", "le");
  ops.def("gt", tensor_first<gt>, "input, other", flags, "input > other.");
  ops.alias("greater", "gt");
  ops.def("ge", tensor_first<ge>, "input, other", flags, "input >= other.");
  ops.alias("greater_equal", "ge");
  ops.def("logical_and", logical_and_op, "input, other", flags, "True where both are not 0.");
  ops.def("logical_or", logical_or_op, "input, other", flags, "True where one is not 0.");
  ops.def("logical_xor", logical_xor, "input, other", flags, "True where exactly one is not 0.");
  ops.def("logical_not", logical_not, "input", flags, "True where input is 0.");
  const uint32_t tests = kMethod | kNotDifferentiable;
  ops.def("isnan", isnan, "input", tests | kNoOut, "True where input is NaN.");
  ops.def("isinf", isinf, "input", tests | kNoOut, "True where input is infinite.");
  ops.def("isfinite", isfinite, "input", tests | kNoOut, "True where input is neither infinite nor NaN.");
  ops.def("isposinf", isposinf, "input", tests | kExactOut, "True where input is +inf.");
  ops.def("isneginf", isneginf, "input", tests | kExactOut, "True where input is -inf.");
  ops.def("isreal", isreal, "input", tests | kNoOut, "True where input has no imaginary part.");
  ops.def("signbit", signbit, "input", tests | kExactOut, "True where the sign bit is set, -0.0 included.");
  ops.def("isclose", isclose, "input, other, rtol=1e-05, atol=1e-08, equal_nan=False", tests | kNoOut | kAnyType,
          "True where |input - other| <= atol + rtol * |other|.");
  ops.def("allclose", allclose, "input, other, rtol=1e-05, atol=1e-08, equal_nan=False", tests | kNoOut,
          "Whether isclose holds everywhere.");
  ops.def("equal", equal, "input, other", tests | kNoOut | kAnyType,
          "Whether two tensors have the same sizes and elements.");
});

}  // namespace rl::ops
