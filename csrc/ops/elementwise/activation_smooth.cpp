// Smooth activations. As in activation.cpp, derivatives are one kernel unless backward itself is recorded.
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

// The derivative of elu at 0, where two pieces meet, is that of the lower one, and constant: PyTorch's second
// derivative is 0 there. What lies outside of the lower piece, NaN and infinities too, is kept out of its formula.
static Tensor elu_derivative(const Tensor& at, const Tensor& below, double above) {
  return where(le(at, 0), below, Scalar(above));
}

// elu: y = scale x, or scale alpha (e^(input_scale x) - 1) below 0
//      dx = scale dy, or dy scale alpha input_scale e^(input_scale x)
struct EluBackward : Node {
  static constexpr const char* kName = "EluBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  double alpha = 1, scale = 1, input_scale = 1;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    if (!grad_enabled()) {
      PointwiseOptions options = with_numbers(Rule::Same, alpha, scale, input_scale, 8);
      return {binary("elu_backward", Pointwise::EluGrad, dy[0], x, options)};
    }
    Tensor below = mul(exp(mul(keep_where(lt(x, 0), x), input_scale)), alpha * scale * input_scale);
    return {mul(dy[0], elu_derivative(x, below, scale))};
  }
  FIELDS(self, alpha, scale, input_scale)
};
// In place, of the result: below 0 it is y = scale alpha (e^(input_scale x) - 1), so dx = dy input_scale (y + scale
// alpha).
struct EluResultBackward : Node {
  static constexpr const char* kName = "EluBackward1";
  static constexpr bool kStacks = true;
  Saved result;
  double alpha = 1, scale = 1, input_scale = 1;
  Grads backward(const Grads& dy) {
    CHECK(
        alpha >= 0, Runtime,
        "In-place elu backward calculation is triggered with a negative slope which is not supported. The result does ",
        "not tell on which side of 0 the input was: call out-of-place version, elu(x, alpha), instead.");
    Tensor y = result.unpack(*this);
    if (!grad_enabled()) {
      PointwiseOptions options = with_numbers(Rule::Same, alpha, scale, input_scale, 2);
      return {binary("elu_backward", Pointwise::EluResultGrad, dy[0], y, options)};
    }
    Tensor below = mul(add(keep_where(lt(y, 0), y), alpha * scale), input_scale);
    return {mul(dy[0], elu_derivative(y, below, scale))};
  }
  FIELDS(result, alpha, scale, input_scale)
};
struct CeluResultBackward : EluResultBackward {
  static constexpr const char* kName = "CeluBackward1";
};
static constexpr Kernel kElu{.op = Pointwise::Elu, .cost = 8};
template <class N> static Tensor elu_inplace_of(const char* name, const Tensor& x, double a, double s, double i) {
  auto compute = [&] {
    for (double v : {a, s, i}) float_number(v, x.dtype());
    Tensor y = unary("elu", kElu.op, x, with_numbers(kElu, a, s, i));
    return record<N>(y, {x}, [&](auto& n) {
      n.result = save_output(n, y);
      n.alpha = a;
      n.scale = s;
      n.input_scale = i;
    });
  };
  return maybe_inplace(name, x, true, compute, true);
}
static Tensor elu_of(const Tensor& x, double alpha, double scale, double input_scale) {
  for (double v : {alpha, scale, input_scale}) float_number(v, x.dtype());
  Tensor y = unary("elu", kElu.op, x, with_numbers(kElu, alpha, scale, input_scale));
  return record<EluBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.alpha = alpha;
    n.scale = scale;
    n.input_scale = input_scale;
  });
}
constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;
static Tensor selu(const Tensor& x) { return elu_of(x, kSeluAlpha, kSeluScale, 1); }
static double celu_alpha(const Scalar& alpha) {
  CHECK(!alpha.equals(0), Runtime, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return float_number(alpha, DType::Float64);
}
static Tensor celu(const Tensor& x, const Scalar& alpha) {
  double a = celu_alpha(alpha);
  return elu_of(x, a, 1, 1 / a);
}

// gelu: y = x cdf(x), the normal distribution's        dx = dy (cdf(x) + x pdf(x))
// with "tanh": cdf(x) = (1 + tanh(k (x + 0.044715 x^3))) / 2, k = sqrt(2 / pi)
struct GeluBackward : Node {
  static constexpr const char* kName = "GeluBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  bool tanh_form = false;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    if (!grad_enabled()) {
      return {
          binary("gelu_backward", tanh_form ? Pointwise::GeluTanhGrad : Pointwise::GeluGrad, dy[0], x, {.cost = 16})};
    }
    if (tanh_form) {
      constexpr double kScale = 0.79788456080286535588, kCubic = 0.044715;
      Tensor x2 = square(x), t = tanh(mul(mul(x, add(mul(x2, kCubic), 1)), kScale));
      Tensor inner = mul(add(mul(x2, 3 * kCubic), 1), kScale);
      Tensor derivative = add(mul(add(t, 1), 0.5), mul(mul(mul(x, 0.5), add(neg(square(t)), 1)), inner));
      return {mul(dy[0], derivative)};
    }
    Tensor cdf = mul(add(erf(mul(x, 0.70710678118654752440)), 1), 0.5);
    Tensor pdf = mul(exp(mul(square(x), -0.5)), 0.39894228040143267794);
    return {mul(dy[0], add(cdf, mul(x, pdf)))};
  }
  FIELDS(self)
};
static constexpr Kernel kGelu{
    .op = Pointwise::Gelu, .cost = 16, .gradient = [](Writer& w) {
      const int cdf = w.times(0.5, w.add(w.put("erf", w.times(0.70710678118654752440, w.a)), w.number(1)));
      const int pdf = w.times(0.39894228040143267794, w.put("exp", w.times(-0.5, w.square(w.a))));
      return w.mul(w.dy, w.add(cdf, w.mul(w.a, pdf)));
    }};
Tensor gelu(const Tensor& x, const std::string& approximate) {
  CHECK(approximate == "none" || approximate == "tanh", Runtime, "approximate argument must be either none or tanh.");
  bool tanh_form = approximate == "tanh";
  Tensor y = unary("gelu", tanh_form ? Pointwise::GeluTanh : kGelu.op, x, options_of(kGelu));
  return record<GeluBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.tanh_form = tanh_form;
  });
}

// silu: y = x s, s = sigmoid(x)        dx = dy conj(s (1 + x (1 - s)))
struct SiluBackward : SelfNode {
  static constexpr const char* kName = "SiluBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x();
    if (!grad_enabled()) return {binary("silu_backward", Pointwise::SiluGrad, dy[0], z, {.cost = 8})};
    Tensor s = sigmoid(z);
    return {mul(dy[0], conj(mul(s, add(mul(z, add(neg(s), 1)), 1))))};
  }
};
static constexpr Kernel kSilu{.op = Pointwise::Silu, .cost = 8, .gradient = [](Writer& w) {  // s (1 + a (1 - s))
                                const int s = w.put("sigmoid", w.a), rest = w.sub(w.number(1), s);
                                return w.mul(w.dy, w.mul(s, w.add(w.mul(w.a, rest), w.number(1))));
                              }};
Tensor silu(const Tensor& x) { return from_self<SiluBackward>(unary("silu", kSilu, x), x); }

// softplus: y = log(1 + e^(beta x)) / beta, x where beta x > threshold        dx = dy sigmoid(beta x), or dy
struct SoftplusBackward : Node {
  static constexpr const char* kName = "SoftplusBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  double beta = 1, threshold = 20;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    if (!grad_enabled()) {
      return {binary("softplus_backward", Pointwise::SoftplusGrad, dy[0], x,
                     with_numbers(Rule::Same, beta, threshold, 0, 8))};
    }
    Tensor z = mul(x, beta);
    return {where(gt(z, threshold), dy[0], mul(dy[0], sigmoid(z)))};
  }
  FIELDS(self, beta, threshold)
};
static constexpr Kernel kSoftplus{.op = Pointwise::Softplus, .cost = 16};
Tensor softplus(const Tensor& x, const Scalar& beta, const Scalar& threshold) {
  double b = float_number(beta, x.dtype()), t = float_number(threshold, x.dtype());
  Tensor y = unary("softplus", kSoftplus.op, x, with_numbers(kSoftplus, b, t));
  return record<SoftplusBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.beta = b;
    n.threshold = t;
  });
}

// mish: y = x t, t = tanh(softplus(x))        dx = dy (t + x sigmoid(x) (1 - t^2))
struct MishBackward : SelfNode {
  static constexpr const char* kName = "MishBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x();
    if (!grad_enabled()) return {binary("mish_backward", Pointwise::MishGrad, dy[0], z, {.cost = 16})};
    Tensor t = tanh(softplus(z));
    return {mul(dy[0], add(t, mul(mul(z, sigmoid(z)), add(neg(square(t)), 1))))};
  }
};
static constexpr Kernel kMish{.op = Pointwise::Mish, .cost = 16};
static Tensor mish(const Tensor& x) { return from_self<MishBackward>(unary("mish", kMish, x), x); }

// logsigmoid: y = -log(1 + e^-x)        dx = dy sigmoid(-x)
struct LogSigmoidBackward : SelfNode {
  static constexpr const char* kName = "LogSigmoidBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x();
    if (!grad_enabled()) return {binary("log_sigmoid_backward", Pointwise::LogSigmoidGrad, dy[0], z, {.cost = 8})};
    return {mul(dy[0], sigmoid(neg(z)))};
  }
};
static constexpr Kernel kLogSigmoid{.op = Pointwise::LogSigmoid, .cost = 16};
static Tensor logsigmoid(const Tensor& x) {
  return from_self<LogSigmoidBackward>(unary("log_sigmoid", kLogSigmoid, x), x);
}

static Tensor softsign(const Tensor& x) { return div(x, add(abs(x), 1)); }
static Tensor tanhshrink(const Tensor& x) { return sub(x, tanh(x)); }

// glu: y = a sigmoid(b), a and b the halves of x along dim
static Tensor glu(const Tensor& x, int64_t dim) {
  CHECK(x.dim() > 0, Runtime, "glu does not support 0-dimensional tensors");
  int64_t d = wrap_dim(dim, x.dim()), n = x.sizes()[d];
  CHECK(n % 2 == 0, Runtime, "Halving dimension must be even, but dimension ", d, " is size ", n);
  const int64_t halves[] = {n / 2, n / 2};
  if (x.dtype() == DType::Float16) return cast(glu(cast(x, DType::Float32), dim), x.dtype());  // dy a may overflow
  Tensors parts = split_with_sizes(x, {halves, 2}, d);  // one node, whose gradient is one cat
  return mul(parts[0], sigmoid(parts[1]));
}

static Tensor elu_f(const Tensor& x, double alpha, bool inplace) {
  return inplace ? elu_inplace_of<EluResultBackward>("elu_", x, alpha, 1, 1) : elu_of(x, alpha, 1, 1);
}
static Tensor elu_inplace(const Tensor& x, double alpha) { return elu_f(x, alpha, true); }
static Tensor selu_f(const Tensor& x, bool inplace) {
  return inplace ? elu_inplace_of<EluResultBackward>("selu_", x, kSeluAlpha, kSeluScale, 1) : selu(x);
}
static Tensor selu_inplace(const Tensor& x) { return selu_f(x, true); }
static Tensor celu_f(const Tensor& x, const Scalar& alpha, bool inplace) {
  if (!inplace) return celu(x, alpha);
  double a = celu_alpha(alpha);
  return elu_inplace_of<CeluResultBackward>("celu_", x, a, 1, 1 / a);
}
static Tensor celu_inplace(const Tensor& x, const Scalar& alpha) { return celu_f(x, alpha, true); }
static Tensor silu_f(const Tensor& x, bool inplace) {
  return maybe_inplace("silu_", x, inplace, [&] { return silu(x); });
}
static Tensor mish_f(const Tensor& x, bool inplace) {
  return maybe_inplace("mish_", x, inplace, [&] { return mish(x); });
}

static const Register registered([](Ops& ops) {
  ops.def("nn.functional.elu", elu_f, "input, alpha=1.0, inplace=False", 0, R"(
    Keeps positive elements, and gives alpha * (e^x - 1) for the others.

    Args:
        alpha: the value approached far below 0, with its sign changed.

    Example:
        >>> F.elu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.6321,  0.0000,  1.0000]))",
          kElu);
  ops.def("nn.functional.elu_", elu_inplace, "input, alpha=1.0", kNoOut | kElementwise, R"(
    Writes elu() into the tensor itself.

    Args:
        alpha: the value approached far below 0, with its sign changed.

    Example:
        >>> F.elu_(torch.tensor([-1.0, 1.0]))
        tensor([-0.6321,  1.0000]))");
  ops.def("selu", selu, "input", kNoOut | kElementwise, R"(
    Computes scale * elu(x, alpha), with the constants of self-normalizing networks.

    Example:
        >>> torch.selu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-1.1113,  0.0000,  1.0507]))");
  ops.def("selu_", selu_inplace, "input", kNoOut | kElementwise, R"(
    Writes selu() into the tensor itself.

    Example:
        >>> torch.selu_(torch.tensor([-1.0, 1.0]))
        tensor([-1.1113,  1.0507]))");
  ops.alias("nn.functional.selu_", "selu_");
  ops.def("nn.functional.selu", selu_f, "input, inplace=False", kNoOut | kElementwise, R"(
    Computes scale * elu(x, alpha), with the constants that keep mean 0 and variance 1 through layers.

    scale is 1.0507, alpha 1.6733, as self-normalizing networks want them.

    Example:
        >>> F.selu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-1.1113,  0.0000,  1.0507]))");
  ops.def("celu", celu, "input, alpha=1.0", kNoOut | kElementwise, R"(
    Computes max(0, x) + min(0, alpha * (e^(x / alpha) - 1)).

    Args:
        alpha: the value approached far below 0, with its sign changed.

    Example:
        >>> torch.celu(torch.tensor([-1.0, 0.0, 1.0]), alpha=2.0)
        tensor([-0.7869,  0.0000,  1.0000]))");
  ops.def("celu_", celu_inplace, "input, alpha=1.0", kNoOut | kElementwise, R"(
    Writes celu() into the tensor itself.

    Args:
        alpha: the value approached far below 0, with its sign changed.

    Example:
        >>> torch.celu_(torch.tensor([-1.0, 1.0]))
        tensor([-0.6321,  1.0000]))");
  ops.alias("nn.functional.celu_", "celu_");
  ops.def("nn.functional.celu", celu_f, "input, alpha=1.0, inplace=False", kNoOut | kElementwise, R"(
    Computes max(0, x) + min(0, alpha * (e^(x / alpha) - 1)), whose derivative has no step for any alpha.

    Args:
        alpha: the value approached far below 0, with its sign changed.

    Example:
        >>> F.celu(torch.tensor([-1.0, 0.0, 1.0]), alpha=2.0)
        tensor([-0.7869,  0.0000,  1.0000]))");
  ops.def("nn.functional.gelu", gelu, "input, *, approximate='none'", kExactOut, R"(
    Weighs each element by a normal probability: x * P(X <= x) for a standard normal X.

    Args:
        approximate: 'none' takes the error function, 'tanh' the usual approximation by tanh.

    Example:
        >>> F.gelu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1587,  0.0000,  0.8413])
        >>> F.gelu(torch.tensor([-1.0, 0.0, 1.0]), approximate="tanh")
        tensor([-0.1588,  0.0000,  0.8412]))",
          kGelu);
  ops.def("nn.functional.silu", silu_f, "input, inplace=False", 0, R"(
    Computes x * sigmoid(x), which is also called swish.

    Example:
        >>> F.silu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.2689,  0.0000,  0.7311]))",
          kSilu);
  ops.def("nn.functional.mish", mish_f, "input, inplace=False", 0, R"(
    Computes x * tanh(log(1 + e^x)).

    Example:
        >>> F.mish(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.3034,  0.0000,  0.8651]))",
          kMish);
  ops.def("nn.functional.softplus", softplus, "input, beta=1.0, threshold=20.0", kExactOut, R"(
    Computes log(1 + e^(beta * x)) / beta, a smooth relu().

    Args:
        beta: how sharply it bends.
        threshold: where beta * x is larger, x itself is returned.

    Example:
        >>> F.softplus(torch.tensor([-1.0, 0.0, 30.0]))
        tensor([ 0.3133,  0.6931, 30.0000]))",
          kSoftplus);
  ops.def("nn.functional.logsigmoid", logsigmoid, "input", kExactOut | kFreeOut, R"(
    Computes log(1 / (1 + e^-x)), without underflow.

    Example:
        >>> F.logsigmoid(torch.tensor([-200.0, 0.0, 5.0]))
        tensor([-2.0000e+02, -6.9315e-01, -6.7153e-03]))",
          kLogSigmoid);
  ops.def("nn.functional.softsign", softsign, "input", kNoOut | kElementwise, R"(
    Computes x / (1 + |x|).

    Example:
        >>> F.softsign(torch.tensor([-3.0, 0.0, 1.0]))
        tensor([-0.7500,  0.0000,  0.5000]))");
  ops.def("nn.functional.tanhshrink", tanhshrink, "input", kNoOut | kElementwise, R"(
    Computes x - tanh(x).

    Example:
        >>> F.tanhshrink(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.0360,  0.0000,  1.0360]))");
  ops.def("nn.functional.glu", glu, "input, dim=-1", 0, R"(
    Gates: the first half of a dimension times the sigmoid of its second half.

    Args:
        dim: the dimension that is halved; its size is even.

    Example:
        >>> F.glu(torch.tensor([[1.0, 2.0, 0.0, 100.0]]))
        tensor([[0.5000, 2.0000]]))");
  ops.alias("nn.functional.tanh", "tanh");
  ops.alias("nn.functional.sigmoid", "sigmoid");
});

}  // namespace rl::ops
