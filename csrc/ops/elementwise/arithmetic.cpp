#include "ops/elementwise/arithmetic.h"

#include <cmath>

#include "autograd/destination.h"
#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// The factor of add and sub is of the result's kind or a lower one. Short floats round it, as PyTorch does.
static Tensor with_alpha(const char* name, const Kernel& kernel, const Value& a, const Value& b, const Scalar& alpha) {
  Value operands[] = {a, b};
  return pointwise(
      name, kernel.op, operands, 2, options_of(kernel),
      [](LoopParams& p, DType d, const void* c) {
        const Scalar& alpha = *static_cast<const Scalar*>(c);
        if (!alpha.equals(1) || alpha.kind() != Scalar::Kind::Int) {
          CHECK(alpha.kind() != Scalar::Kind::Bool || d == DType::Bool, Runtime,
                "Boolean alpha only supported for Boolean results.");
          CHECK(is_differentiable(d) || alpha.is_integral(), Runtime,
                "For integral input tensors, argument alpha must not be a floating point number.");
          CHECK(is_complex(d) || !alpha.is_complex(), Runtime,
                "For non-complex input tensors, argument alpha must not be a complex number.");
        }
        check_holds(alpha, d);
        write_compute(p.s0, single_element(alpha, d), d);
      },
      &alpha);
}

// add: y = a + alpha b        da = dy, db = alpha dy
struct AddBackward : Node {
  static constexpr const char* kName = "AddBackward0";
  static constexpr bool kStacks = true;
  Scalar alpha = Scalar(1);
  Grads backward(const Grads& dy) {
    return {dy[0], !needs(1) ? Tensor() : alpha.equals(1) ? dy[0] : mul(dy[0], alpha)};
  }
};
static constexpr Kernel kAdd{.op = Pointwise::Add,
                             .operands = 2,
                             .gradient = [](Writer& w) { return w.dy; },
                             .number = [](double a, double b) { return a + b; }};
Tensor add(const Value& a, const Value& b, const Scalar& alpha) {
  Tensor y = with_alpha("add", kAdd, a, b, alpha);
  return record<AddBackward>(y, {a, b}, [&](auto& n) { n.alpha = alpha; });
}

void add_into(const Tensor& dst, const Tensor& src) {
  if (dst.numel() == 0) return;
  const PointwiseKernels& kernels = *backend(dst.device()).pointwise;
  Loop loop = kernels.loop(Pointwise::Add, dst.dtype());
  if (!loop) no_kernel("add", dst.dtype());
  LoopParams params;
  write_compute(params.s0, Scalar(1), dst.dtype());
  View views[] = {dst.view(), dst.view(), src.view()};
  kernels.run(loop, views, 3, params, 1);
}

// sub: y = a - alpha b        da = dy, db = -alpha dy
struct SubBackward : Node {
  static constexpr const char* kName = "SubBackward0";
  static constexpr bool kStacks = true;
  Scalar alpha = Scalar(1);
  Grads backward(const Grads& dy) {
    return {dy[0], !needs(1) ? Tensor() : alpha.equals(1) ? neg(dy[0]) : neg(mul(dy[0], alpha))};
  }
};
static constexpr Kernel kSub{.op = Pointwise::Sub,
                             .operands = 2,
                             .gradient = [](Writer& w) { return w.operand == 0 ? w.dy : w.neg(w.dy); },
                             .number = [](double a, double b) { return a - b; }};
Tensor sub(const Value& a, const Value& b, const Scalar& alpha) {
  auto is_bool = [](const Value& v) {
    return v.is_tensor() ? v.tensor.dtype() == DType::Bool : v.number.kind() == Scalar::Kind::Bool;
  };
  CHECK(!(is_bool(a) && is_bool(b)), Runtime,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead.");
  CHECK(!is_bool(a) && !is_bool(b), Runtime,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead.");
  Tensor y = with_alpha("sub", kSub, a, b, alpha);
  return record<SubBackward>(y, {a, b}, [&](auto& n) { n.alpha = alpha; });
}

// A short float tensor and a number (or, on its right, a longer 0-dim tensor, which counts as one): the number is not
// to be rounded to the tensor's type, which holds 3 digits or less. -0 + number * t computes in float32 and leaves
// signs of zero alone.
static bool is_short(const Value& v) { return v.is_tensor() && is_half(v.tensor.dtype()); }
static std::optional<double> exact_number(const Value& v, const Value& other) {
  if (!v.is_tensor()) return v.number.is_complex() ? std::nullopt : std::optional(v.number.to_double());
  const Tensor& t = v.tensor;
  bool counts = t.dim() == 0 && other.tensor.dim() > 0 && (t.dtype() == DType::Float32 || t.dtype() == DType::Float64);
  if (!counts || !t.on_host()) return std::nullopt;
  // The call will be recorded, which a loop that sees only the number does not know: the other operand must stay as it
  // is.
  if (grad_enabled() && t.requires_grad()) t_destination.wanted = nullptr;
  return item(t).to_double();
}
static Tensor scale_short(const char* name, const Tensor& t, double factor) {
  Value operands[] = {Scalar(-0.0), t};
  return pointwise_scaled(name, Pointwise::Add, operands, 2, Scalar(static_cast<double>(static_cast<float>(factor))));
}

// mul: y = a b        da = dy conj(b), db = dy conj(a)
static Value conj_value(const Value& v) {
  if (v.is_tensor()) return v.tensor.is_complex() ? Value(conj(v.tensor)) : v;
  return v.number.is_complex() ? Value(Scalar(std::conj(v.number.to_complex128()))) : v;
}
struct MulBackward : Node {
  static constexpr const char* kName = "MulBackward0";
  static constexpr bool kStacks = true;
  SavedValue self, other;
  Grads backward(const Grads& dy) {
    return {needs(0) ? mul(dy[0], conj_value(other.unpack(*this))) : Tensor(),
            needs(1) ? mul(dy[0], conj_value(self.unpack(*this))) : Tensor()};
  }
  FIELDS(self, other)
};
static constexpr Kernel kMul{.op = Pointwise::Mul,
                             .operands = 2,
                             .gradient = [](Writer& w) { return w.mul(w.dy, w.operand == 0 ? w.b : w.a); },
                             .number = [](double a, double b) { return a * b; }};
static Tensor product(const Value& a, const Value& b) {
  if (is_short(a))
    if (auto factor = exact_number(b, a)) return scale_short("mul", a.tensor, *factor);
  if (is_short(b) && !a.is_tensor())
    if (auto factor = exact_number(a, b)) return scale_short("mul", b.tensor, *factor);
  return binary("mul", kMul, a, b);
}
Tensor mul(const Value& a, const Value& b) {
  Tensor y = product(a, b);
  return record<MulBackward>(y, {a, b}, [&](auto& n) {
    if (n.needs(1)) n.self = save(a);
    if (n.needs(0)) n.other = save(b);
  });
}

// div: y = a / b        da = dy / conj(b), db = -dy conj(y / b)
struct DivBackward : Node {
  static constexpr const char* kName = "DivBackward0";
  static constexpr bool kStacks = true;
  SavedValue self, other;
  Grads backward(const Grads& dy) {
    Value b = other.unpack(*this);
    Grads dx(2);
    if (needs(0)) dx[0] = div(dy[0], conj_value(b));
    if (needs(1)) dx[1] = neg(mul(dy[0], conj(div(div(self.unpack(*this), b), b))));
    return dx;
  }
  FIELDS(self, other)
};
static constexpr Kernel kDiv{
    .op = Pointwise::Div,
    .operands = 2,
    .rule = Rule::Float,
    .gradient = [](Writer& w) { return w.operand == 0 ? w.div(w.dy, w.b) : w.neg(w.mul(w.dy, w.div(w.y, w.b))); },
    .number = [](double a, double b) { return a / b; }};
static Tensor quotient(const Value& a, const Value& b) {
  if (is_short(a))
    if (auto divisor = exact_number(b, a)) {
      double factor = 1 / *divisor;
      bool fits = *divisor == 0 || std::isinf(*divisor) || std::isnormal(static_cast<float>(factor));
      if (fits) return scale_short("div", a.tensor, factor);
    }
  if (is_short(b) && !a.is_tensor())
    if (auto dividend = exact_number(a, b))
      return scale_short("div", unary("div", Pointwise::Reciprocal, b.tensor), *dividend);
  return binary("div", kDiv, a, b);
}
Tensor div(const Value& a, const Value& b) {
  Tensor y = quotient(a, b);
  return record<DivBackward>(y, {a, b}, [&](auto& n) {
    if (n.needs(1)) n.self = save(a);
    n.other = save(b);
  });
}

// neg: y = -x        dx = -dy
struct NegBackward : Node {
  static constexpr const char* kName = "NegBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {neg(dy[0])}; }
};
static constexpr Kernel kNeg{.op = Pointwise::Neg,
                             .gradient = [](Writer& w) { return w.neg(w.dy); },
                             .number = [](double a, double) { return -a; }};
Tensor neg(const Tensor& a) {
  CHECK(a.dtype() != DType::Bool, Runtime,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or "
        "`logical_not()` operator instead.");
  return record<NegBackward>(unary("neg", kNeg, a), {a});
}

// conj: y = re - i im        dx = conj(dy)
struct ConjBackward : Node {
  static constexpr const char* kName = "ConjBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {conj(dy[0])}; }
};
Tensor conj(const Tensor& a) {
  if (!a.is_complex()) return a;
  return record<ConjBackward>(unary("conj", Pointwise::Conj, a), {a});
}

static Tensor add_scaled(const Tensor& a, const Scalar& alpha, const Value& b) { return add(a, b, alpha); }
static Tensor sub_scaled(const Tensor& a, const Scalar& alpha, const Value& b) { return sub(a, b, alpha); }
static Tensor radd(const Tensor& a, const Value& b) { return add(b, a); }
static Tensor rsub(const Tensor& a, const Value& b) { return sub(b, a); }
static Tensor rmul(const Tensor& a, const Value& b) { return mul(b, a); }
// 2 / x: PyTorch's, bit by bit, and x itself is not needed for the derivative
static Tensor rdiv(const Tensor& a, const Value& b) {
  if (b.is_tensor()) return div(b, a);
  Tensor y = reciprocal(a);
  return !b.number.is_complex() && b.number.equals(1) ? y : mul(y, b);
}
Tensor divide(const Value& a, const Value& b) { return a.is_tensor() ? div(a, b) : rdiv(b.tensor, a); }

static const Register registered([](Ops& ops) {
  const uint32_t in_place = kMethod | kInplace | kDirect;
  ops.def("add", add, "input, other, *, alpha=1", in_place | kKeepsInput, R"(
    Adds: input + alpha * other.

    Args:
        other: what is added.
        alpha: the factor of other; an integer if the result has integers.

    Example:
        >>> torch.add(torch.tensor([1, 2]), torch.tensor([0.5, 0.5]))
        tensor([1.5000, 2.5000])
        >>> torch.tensor([[1.0], [2.0]]) + torch.tensor([10.0, 20.0])
        tensor([[11., 21.],
                [12., 22.]])
        >>> torch.add(torch.ones(2), torch.ones(2), alpha=10)
        tensor([11., 11.]))",
          kAdd);
  ops.def("sub", sub, "input, other, *, alpha=1", in_place | kKeepsInput, R"(
    Subtracts: input - alpha * other. Bools are refused.

    Args:
        other: what is taken away.
        alpha: the factor of other; an integer if the result has integers.

    Example:
        >>> torch.sub(torch.tensor([5, 7]), 2)
        tensor([3, 5])
        >>> torch.sub(torch.ones(2), torch.ones(2), alpha=3)
        tensor([-2., -2.]))",
          kSub);
  ops.def("add", add_scaled, "input, alpha, other", in_place | kKeepsInput | kOld);
  ops.def("sub", sub_scaled, "input, alpha, other", in_place | kKeepsInput | kOld);
  ops.alias("subtract", "sub");
  ops.def("mul", mul, "input, other", in_place, R"(
    Multiplies element by element: input * other. For matrices see matmul().

    Example:
        >>> torch.mul(torch.tensor([1, 2, 3]), 2.5)
        tensor([2.5000, 5.0000, 7.5000])
        >>> torch.tensor([[1.0], [2.0]]) * torch.tensor([3.0, 4.0])
        tensor([[3., 4.],
                [6., 8.]]))",
          kMul);
  ops.alias("multiply", "mul");
  ops.def("div", div, "input, other", in_place, R"(
    Divides: input / other, rounded if asked.

    Args:
        other: the divisor.
        rounding_mode: None divides exactly, integers too, whose result is a float; 'trunc' rounds
         towards 0, 'floor' down, and both keep integers.

    Returns:
        Tensor: the exact quotient of integers has the default float type.

    Gradient:
        Zero where the result is rounded.

    Example:
        >>> torch.div(torch.tensor([7, -7]), 2)
        tensor([ 3.5000, -3.5000])
        >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="trunc")
        tensor([ 3, -3])
        >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
        tensor([ 3, -4]))",
          kDiv);
  ops.def("neg", neg, "input", in_place | kKeepsInput | kExactOut, R"(
    Changes the sign: -x. Bools are refused.

    Example:
        >>> torch.neg(torch.tensor([1.5, -2.0]))
        tensor([-1.5000,  2.0000]))",
          kNeg);
  ops.alias("negative", "neg");
  ops.def("__radd_op__", radd, "input, other", kMethod | kNoFunction);
  ops.def("__rsub_op__", rsub, "input, other", kMethod | kNoFunction);
  ops.def("__rmul_op__", rmul, "input, other", kMethod | kNoFunction);
  ops.def("__rdiv_op__", rdiv, "input, other", kMethod | kNoFunction);
});

}  // namespace rl::ops
