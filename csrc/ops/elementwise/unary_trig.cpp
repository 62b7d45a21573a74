#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

// sin        dx = dy conj(cos x)
struct SinBackward : SelfNode {
  static constexpr const char* kName = "SinBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], conj(cos(x())))}; }
};
static constexpr Kernel kSin{.op = Pointwise::Sin, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) {
                               return w.mul(w.dy, w.put("cos", w.a));
                             }};
Tensor sin(const Tensor& x) { return from_self<SinBackward>(unary("sin", kSin, x), x); }

// cos        dx = -dy conj(sin x)
struct CosBackward : SelfNode {
  static constexpr const char* kName = "CosBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], neg(conj(sin(x()))))}; }
};
static constexpr Kernel kCos{.op = Pointwise::Cos, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) {
                               return w.neg(w.mul(w.dy, w.put("sin", w.a)));
                             }};
Tensor cos(const Tensor& x) { return from_self<CosBackward>(unary("cos", kCos, x), x); }

// tan        dx = dy (1 + conj(y)^2)
struct TanBackward : ResultNode {
  static constexpr const char* kName = "TanBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], add(square(conj(y())), 1))}; }
};
static constexpr Kernel kTan{.op = Pointwise::Tan, .rule = Rule::Float, .cost = 8};
Tensor tan(const Tensor& x) { return from_result<TanBackward>(unary("tan", kTan, x), x); }

// asin        dx = dy conj((1 - x^2)^(-1/2))
struct AsinBackward : SelfNode {
  static constexpr const char* kName = "AsinBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], conj(rsqrt(add(neg(square(x())), 1))))}; }
};
static constexpr Kernel kAsin{.op = Pointwise::Asin, .rule = Rule::Float, .cost = 8};
Tensor asin(const Tensor& x) { return from_self<AsinBackward>(unary("asin", kAsin, x), x); }

// acos        dx = -dy conj((1 - x^2)^(-1/2))
struct AcosBackward : SelfNode {
  static constexpr const char* kName = "AcosBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], neg(conj(rsqrt(add(neg(square(x())), 1)))))}; }
};
static constexpr Kernel kAcos{.op = Pointwise::Acos, .rule = Rule::Float, .cost = 8};
Tensor acos(const Tensor& x) { return from_self<AcosBackward>(unary("acos", kAcos, x), x); }

// atan        dx = dy / conj(1 + x^2)
struct AtanBackward : SelfNode {
  static constexpr const char* kName = "AtanBackward0";
  Grads backward(const Grads& dy) { return {div(dy[0], conj(add(square(x()), 1)))}; }
};
static constexpr Kernel kAtan{.op = Pointwise::Atan, .rule = Rule::Float, .cost = 8};
Tensor atan(const Tensor& x) { return from_self<AtanBackward>(unary("atan", kAtan, x), x); }

// sinh        dx = dy conj(cosh x)
struct SinhBackward : SelfNode {
  static constexpr const char* kName = "SinhBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], conj(cosh(x())))}; }
};
static constexpr Kernel kSinh{.op = Pointwise::Sinh, .rule = Rule::Float, .cost = 8};
Tensor sinh(const Tensor& x) { return from_self<SinhBackward>(unary("sinh", kSinh, x), x); }

// cosh        dx = dy conj(sinh x)
struct CoshBackward : SelfNode {
  static constexpr const char* kName = "CoshBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], conj(sinh(x())))}; }
};
static constexpr Kernel kCosh{.op = Pointwise::Cosh, .rule = Rule::Float, .cost = 8};
Tensor cosh(const Tensor& x) { return from_self<CoshBackward>(unary("cosh", kCosh, x), x); }

// asinh        dx = dy conj((x^2 + 1)^(-1/2))
struct AsinhBackward : SelfNode {
  static constexpr const char* kName = "AsinhBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], conj(rsqrt(add(square(x()), 1))))}; }
};
static constexpr Kernel kAsinh{.op = Pointwise::Asinh, .rule = Rule::Float, .cost = 8};
Tensor asinh(const Tensor& x) { return from_self<AsinhBackward>(unary("asinh", kAsinh, x), x); }

// acosh        dx = dy conj((x - 1)^(-1/2) (x + 1)^(-1/2)), two roots so that the complex branch is acosh's own
struct AcoshBackward : SelfNode {
  static constexpr const char* kName = "AcoshBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x();
    if (!z.is_complex()) return {mul(dy[0], rsqrt(sub(square(z), 1)))};
    return {mul(dy[0], conj(mul(rsqrt(sub(z, 1)), rsqrt(add(z, 1)))))};
  }
};
static constexpr Kernel kAcosh{.op = Pointwise::Acosh, .rule = Rule::Float, .cost = 8};
Tensor acosh(const Tensor& x) { return from_self<AcoshBackward>(unary("acosh", kAcosh, x), x); }

// atanh        dx = dy / conj(1 - x^2)
struct AtanhBackward : SelfNode {
  static constexpr const char* kName = "AtanhBackward0";
  Grads backward(const Grads& dy) { return {div(dy[0], conj(add(neg(square(x())), 1)))}; }
};
static constexpr Kernel kAtanh{.op = Pointwise::Atanh, .rule = Rule::Float, .cost = 8};
Tensor atanh(const Tensor& x) { return from_self<AtanhBackward>(unary("atanh", kAtanh, x), x); }

// tanh_backward: dx = dy conj(1 - y^2)        ddy = g (1 - y^2), d'y = -2 conj(g y) dy
struct TanhBackwardBackward : Node {
  static constexpr const char* kName = "TanhBackwardBackward0";
  static constexpr bool kStacks = true;
  Saved grad_output, output;
  Grads backward(const Grads& g);
  FIELDS(grad_output, output)
};
static Tensor tanh_backward(const Tensor& grad_output, const Tensor& output) {
  Tensor dx = binary("tanh_backward", Pointwise::TanhGrad, grad_output, output, {.cost = 2});
  return record<TanhBackwardBackward>(dx, {grad_output, output}, [&](auto& n) {
    n.grad_output = save(grad_output);
    n.output = save(output);
  });
}
Grads TanhBackwardBackward::backward(const Grads& g) {
  Tensor y = conj(output.unpack(*this));
  Grads dx(2);
  if (needs(0)) dx[0] = tanh_backward(g[0], y);
  if (needs(1)) dx[1] = mul(mul(conj(g[0]), grad_output.unpack(*this)), mul(y, -2));
  return dx;
}

// tanh        dx = dy conj(1 - y^2)
struct TanhBackward : ResultNode {
  static constexpr const char* kName = "TanhBackward0";
  Grads backward(const Grads& dy) { return {tanh_backward(dy[0], y())}; }
};
static constexpr Kernel kTanh{.op = Pointwise::Tanh, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) {
                                return w.mul(w.dy, w.sub(w.number(1), w.square(w.y)));
                              }};
Tensor tanh(const Tensor& x) { return from_result<TanhBackward>(unary("tanh", kTanh, x), x); }

// sigmoid_backward: dx = dy conj(y (1 - y))        ddy = g y (1 - y), d'y = conj(g (1 - 2y)) dy
struct SigmoidBackwardBackward : Node {
  static constexpr const char* kName = "SigmoidBackwardBackward0";
  static constexpr bool kStacks = true;
  Saved grad_output, output;
  Grads backward(const Grads& g);
  FIELDS(grad_output, output)
};
static Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output) {
  Tensor dx = binary("sigmoid_backward", Pointwise::SigmoidGrad, grad_output, output, {.cost = 2});
  return record<SigmoidBackwardBackward>(dx, {grad_output, output}, [&](auto& n) {
    n.grad_output = save(grad_output);
    n.output = save(output);
  });
}
Grads SigmoidBackwardBackward::backward(const Grads& g) {
  Tensor y = conj(output.unpack(*this));
  Grads dx(2);
  if (needs(0)) dx[0] = sigmoid_backward(g[0], y);
  if (needs(1)) dx[1] = mul(mul(conj(g[0]), grad_output.unpack(*this)), add(mul(y, -2), 1));
  return dx;
}

// sigmoid: y = 1 / (1 + e^-x)        dx = dy conj(y (1 - y))
struct SigmoidBackward : ResultNode {
  static constexpr const char* kName = "SigmoidBackward0";
  Grads backward(const Grads& dy) { return {sigmoid_backward(dy[0], y())}; }
};
static constexpr Kernel kSigmoid{.op = Pointwise::Sigmoid, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) {
                                   return w.mul(w.dy, w.mul(w.y, w.sub(w.number(1), w.y)));
                                 }};
Tensor sigmoid(const Tensor& x) { return from_result<SigmoidBackward>(unary("sigmoid", kSigmoid, x), x); }

// sinc: y = sin(pi x) / (pi x)        dx = dy (cos(pi x) pi x - sin(pi x)) / (pi x^2), 0 where x^2 is none
struct SincBackward : SelfNode {
  static constexpr const char* kName = "SincBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x(), p = mul(z, 3.14159265358979323846);
    Tensor derivative = div(sub(mul(cos(p), p), sin(p)), mul(p, z));
    return {mul(dy[0], zero_where(le(abs(detach(z)), Scalar(1e-18)), conj(derivative)))};
  }
};
static constexpr Kernel kSinc{.op = Pointwise::Sinc, .rule = Rule::Float, .cost = 8};
static Tensor sinc(const Tensor& x) { return from_self<SincBackward>(unary("sinc", kSinc, x), x); }

static Tensor deg2rad(const Tensor& x) { return mul(x, 3.14159265358979323846 / 180); }
static Tensor rad2deg(const Tensor& x) { return mul(x, 180 / 3.14159265358979323846); }

static const Register registered([](Ops& ops) {
  const uint32_t of_result = kUnary | kKeepsInput;
  ops.def("sin", sin, "input", kUnary, R"(
    Takes the sine of angles in radians.

    Example:
        >>> torch.sin(torch.tensor([0.0, math.pi / 2]))
        tensor([0., 1.]))",
          kSin);
  ops.def("cos", cos, "input", kUnary, R"(
    Takes the cosine of angles in radians.

    Example:
        >>> torch.cos(torch.tensor([0.0, math.pi]))
        tensor([ 1., -1.]))",
          kCos);
  ops.def("tan", tan, "input", of_result, R"(
    Takes the tangent of angles in radians.

    Example:
        >>> torch.tan(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.5574]))",
          kTan);
  ops.def("asin", asin, "input", kUnary, R"(
    Takes the arc sine, in radians from -pi/2 to pi/2; NaN outside [-1, 1].

    Example:
        >>> torch.asin(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5236, 1.5708]))",
          kAsin);
  ops.alias("arcsin", "asin");
  ops.def("acos", acos, "input", kUnary, R"(
    Takes the arc cosine, in radians from 0 to pi; NaN outside [-1, 1].

    Example:
        >>> torch.acos(torch.tensor([1.0, 0.0, -1.0, 2.0]))
        tensor([0.0000, 1.5708, 3.1416,    nan]))",
          kAcos);
  ops.alias("arccos", "acos");
  ops.def("atan", atan, "input", kUnary, R"(
    Takes the arc tangent, in radians from -pi/2 to pi/2; atan2() knows all four quadrants.

    Example:
        >>> torch.atan(torch.tensor([0.0, 1.0, math.inf]))
        tensor([0.0000, 0.7854, 1.5708]))",
          kAtan);
  ops.alias("arctan", "atan");
  ops.def("sinh", sinh, "input", kUnary, R"(
    Takes the hyperbolic sine: (e^x - e^-x) / 2.

    Example:
        >>> torch.sinh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.1752]))",
          kSinh);
  ops.def("cosh", cosh, "input", kUnary, R"(
    Takes the hyperbolic cosine: (e^x + e^-x) / 2.

    Example:
        >>> torch.cosh(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 1.5431]))",
          kCosh);
  ops.def("tanh", tanh, "input", of_result, R"(
    Takes the hyperbolic tangent, which lies between -1 and 1.

    Gradient:
        dy * (1 - y^2).

    Example:
        >>> torch.tanh(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616]))",
          kTanh);
  ops.def("asinh", asinh, "input", kUnary, R"(
    Takes the inverse hyperbolic sine: log(x + sqrt(x^2 + 1)).

    Example:
        >>> torch.asinh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8814]))",
          kAsinh);
  ops.alias("arcsinh", "asinh");
  ops.def("acosh", acosh, "input", kUnary, R"(
    Takes the inverse hyperbolic cosine; NaN below 1.

    Example:
        >>> torch.acosh(torch.tensor([1.0, 2.0, 0.5]))
        tensor([0.0000, 1.3170,    nan]))",
          kAcosh);
  ops.alias("arccosh", "acosh");
  ops.def("atanh", atanh, "input", kUnary, R"(
    Takes the inverse hyperbolic tangent: infinite at -1 and 1, NaN beyond.

    Example:
        >>> torch.atanh(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5493,    inf]))",
          kAtanh);
  ops.alias("arctanh", "atanh");
  ops.def("sigmoid", sigmoid, "input", of_result, R"(
    Computes the logistic function, 1 / (1 + e^-x), which lies between 0 and 1.

    Gradient:
        dy * y * (1 - y). For a loss on top, binary_cross_entropy_with_logits() is more precise.

    Example:
        >>> torch.sigmoid(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1192, 0.5000, 0.8808]))",
          kSigmoid);
  ops.alias("special.expit", "sigmoid");
  ops.def("sinc", sinc, "input", kUnary, R"(
    Computes sin(pi x) / (pi x), and 1 at 0.

    Example:
        >>> torch.sinc(torch.tensor([0.0, 0.5, 1.5]))
        tensor([ 1.0000,  0.6366, -0.2122]))",
          kSinc);
  ops.alias("special.sinc", "sinc");
  ops.def("deg2rad", deg2rad, "input", kUnary | kKeepsInput, R"(
    Converts degrees to radians: x * pi / 180.

    Example:
        >>> torch.deg2rad(torch.tensor([90, 180]))
        tensor([1.5708, 3.1416]))");
  ops.def("rad2deg", rad2deg, "input", kUnary | kKeepsInput, R"(
    Converts radians to degrees: x * 180 / pi.

    Example:
        >>> torch.rad2deg(torch.tensor([math.pi, math.pi / 2]))
        tensor([180.,  90.]))");
});

}  // namespace rl::ops
