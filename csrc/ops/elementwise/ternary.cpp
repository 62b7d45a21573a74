#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "tensor/overlap.h"
#include "tensor/promote.h"

namespace rl::ops {

// addcmul: y = x + value a b        dx = dy, da = value dy conj(b), db = value dy conj(a)
struct AddcmulBackward : Node {
  static constexpr const char* kName = "AddcmulBackward0";
  static constexpr bool kStacks = true;
  Saved tensor1, tensor2;
  Scalar value = Scalar(1);
  Grads backward(const Grads& dy) {
    Grads dx(3);
    dx[0] = dy[0];
    if (needs(1)) dx[1] = mul(mul(dy[0], conj(tensor2.unpack(*this))), value);
    if (needs(2)) dx[2] = mul(mul(dy[0], conj(tensor1.unpack(*this))), value);
    return dx;
  }
  FIELDS(tensor1, tensor2)
};
static constexpr Kernel kAddcmul{.op = Pointwise::Addcmul, .operands = 3};
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
  ResultType types;
  for (const Tensor* t : {&x, &a, &b}) types.add(*t);
  if (types.get() == DType::Complex32) {  // computed in the next wider type
    auto wide = [](const Tensor& t) { return cast(t, DType::Complex64); };
    return cast(addcmul(wide(x), wide(a), wide(b), value), DType::Complex32);
  }
  Value operands[] = {x, a, b};
  Tensor y = pointwise_scaled("addcmul", kAddcmul.op, operands, 3, value, options_of(kAddcmul));
  return record<AddcmulBackward>(y, {x, a, b}, [&](auto& n) {
    if (n.needs(2)) n.tensor1 = save(a);
    if (n.needs(1)) n.tensor2 = save(b);
    n.value = value;
  });
}

// addcdiv: y = x + value a / b        dx = dy, da = value dy / conj(b), db = -value dy conj(a / b^2)
struct AddcdivBackward : Node {
  static constexpr const char* kName = "AddcdivBackward0";
  static constexpr bool kStacks = true;
  Saved tensor1, tensor2;
  Scalar value = Scalar(1);
  Grads backward(const Grads& dy) {
    Tensor b = tensor2.unpack(*this);
    Grads dx(3);
    dx[0] = dy[0];
    if (needs(1)) dx[1] = mul(div(dy[0], conj(b)), value);
    if (needs(2)) dx[2] = neg(mul(dy[0], conj(div(mul(tensor1.unpack(*this), value), square(b)))));
    return dx;
  }
  FIELDS(tensor1, tensor2)
};
static constexpr Kernel kAddcdiv{.op = Pointwise::Addcdiv, .operands = 3, .cost = 2};
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
  CHECK(
      is_differentiable(a.dtype()) || is_differentiable(b.dtype()), Runtime,
      "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
      "division of "
      "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
      "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs.");
  Value operands[] = {x, a, b};
  Tensor y = pointwise_scaled("addcdiv", kAddcdiv.op, operands, 3, value, options_of(kAddcdiv));
  return record<AddcdivBackward>(y, {x, a, b}, [&](auto& n) {
    if (n.needs(2)) n.tensor1 = save(a);
    n.tensor2 = save(b);
    n.value = value;
  });
}

// lerp: y = start + w (end - start)        dstart = dy conj(1 - w), dend = dy conj(w), dw = dy conj(end - start)
struct LerpBackward : Node {
  static constexpr const char* kName = "LerpBackward0";
  static constexpr bool kStacks = true;
  Saved self, end;
  SavedValue weight;
  double number = 0;  // the weight, shown
  Grads backward(const Grads& dy) {
    Value w = weight.unpack(*this);
    Tensor wt = w.is_tensor() ? w.tensor : full({}, w.number, dy[0].dtype(), dy[0].device());
    Grads dx(3);
    if (needs(0)) dx[0] = mul(dy[0], conj(add(neg(wt), 1)));
    if (needs(1)) dx[1] = mul(dy[0], conj(wt));
    if (needs(2)) dx[2] = mul(dy[0], conj(sub(end.unpack(*this), self.unpack(*this))));
    return dx;
  }
  // A number is not freed: backward can run again.
  void fields(FieldVisitor& visit) {
    visit("self", self);
    visit("end", end);
    if (weight.is_tensor) visit("weight", weight.tensor);
    else visit("weight", number);
  }
};
struct LerpTensorBackward : LerpBackward {
  static constexpr const char* kName = "LerpBackward1";
};
static constexpr Kernel kLerp{.op = Pointwise::Lerp, .operands = 3, .cost = 2};
Tensor lerp(const Tensor& start, const Tensor& end, const Value& weight) {
  CHECK(start.dtype() == end.dtype(), Runtime, "expected dtype ", info(start.dtype()).name, " for `end` but got dtype ",
        info(end.dtype()).name);
  CHECK(!weight.is_tensor() || weight.tensor.dim() == 0 || weight.tensor.dtype() == start.dtype(), Runtime,
        "expected dtype ", info(start.dtype()).name, " for `weight` but got dtype ",
        weight.is_tensor() ? info(weight.tensor.dtype()).name : "");
  if (!weight.is_tensor() && is_differentiable(start.dtype())) check_computes(weight.number, start.dtype());
  Tensor y;
  if (!weight.is_tensor() && is_half(start.dtype())) {
    // The weight is not rounded to the short type, which holds 3 digits or less.
    Value operands[] = {start, end};
    y = pointwise_scaled("lerp", Pointwise::LerpBy, operands, 2, weight.number, options_of(kLerp));
  } else {
    Value operands[] = {start, end, weight};
    y = pointwise("lerp", kLerp.op, operands, 3, options_of(kLerp));
  }
  auto fill = [&](auto& n) {
    n.weight = save(weight);
    if (!weight.is_tensor() && !weight.number.is_complex()) n.number = weight.number.to_double();
    if (!n.needs(2)) return;
    n.self = save(start);
    n.end = save(end);
  };
  if (weight.is_tensor()) return record<LerpTensorBackward>(y, {start, end, weight}, fill);
  return record<LerpBackward>(y, {start, end, weight}, fill);
}

static Tensor lerp_by_tensor(const Tensor& x, const Tensor& end, const Tensor& weight) { return lerp(x, end, weight); }
using Mix = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Scalar&);
template <Mix F> static Tensor value_first(const Tensor& x, const Scalar& value, const Tensor& a, const Tensor& b) {
  return F(x, a, b, value);
}

static const Register registered([](Ops& ops) {
  ops.def("addcmul", addcmul, "input, tensor1, tensor2, *, value=1", kUnary | kKeepsInput, R"(
    Computes input + value * tensor1 * tensor2.

    Args:
        tensor1: the first factor.
        tensor2: the second factor.
        value: the factor of their product.

    Example:
        >>> torch.addcmul(torch.zeros(2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), value=0.5)
        tensor([1.5000, 4.0000]))",
          kAddcmul);
  ops.def("addcmul", value_first<addcmul>, "input, value, tensor1, tensor2", kUnary | kKeepsInput | kOld);
  ops.def("addcdiv", addcdiv, "input, tensor1, tensor2, *, value=1", kUnary | kKeepsInput, R"(
    Computes input + value * tensor1 / tensor2.

    Args:
        tensor1: the dividend.
        tensor2: the divisor.
        value: the factor of the quotient.

    Raises:
        RuntimeError: tensor1 and tensor2 are both integers, which could be divided in two ways.

    Example:
        >>> torch.addcdiv(torch.zeros(2), torch.tensor([1.0, 3.0]), torch.tensor([2.0, 4.0]), value=10)
        tensor([5.0000, 7.5000]))",
          kAddcdiv);
  ops.def("addcdiv", value_first<addcdiv>, "input, value, tensor1, tensor2", kUnary | kKeepsInput | kOld);
  ops.def("lerp", lerp_by_tensor, "input, end, weight", kUnary | kExactOut, R"(
    Interpolates linearly: input + weight * (end - input).

    Args:
        input: the values at weight 0.
        end: the values at weight 1.
        weight: where between them, a number or one for each element; it may lie outside [0, 1].

    Example:
        >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([1.0, 20.0]), 0.25)
        tensor([ 0.2500, 12.5000]))",
          kLerp);
  ops.def("lerp", lerp, "input, end, weight", kUnary);
});

}  // namespace rl::ops
