// Activations made of straight pieces. When backward is itself recorded (create_graph), derivatives are composed of
// differentiable ops; otherwise one kernel computes them.
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

// A derivative that is constant around every x is still computed from x: its derivative is 0, not nothing.
struct ConstantSlopeBackward : Node {
  static constexpr const char* kName = "ConstantSlopeBackward";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {dy[0], needs(1) ? zeros_like(dy[0]) : Tensor()}; }
};
static Tensor flat_in(const Tensor& x, const Tensor& dx) {
  return x.requires_grad() ? record<ConstantSlopeBackward>(alias(dx), {dx, x}) : dx;
}

static constexpr Kernel kReluGrad{.op = Pointwise::ReluGrad, .operands = 2, .gradient = [](Writer& w) {
                                    return w.operand == 0 ? w.put(kReluGrad, w.dy, w.b) : w.number(0);
                                  }};

// relu: y = max(x, 0)        dx = dy where y > 0
struct ReluBackward : ResultNode {
  static constexpr const char* kName = "ReluBackward0";
  Grads backward(const Grads& dy) {
    const Tensor y = this->y();
    if (grad_enabled()) return {flat_in(y, zero_where(le(y, 0), dy[0]))};
    return {binary("relu_backward", kReluGrad, dy[0], y)};
  }
};
static constexpr Kernel kRelu{.op = Pointwise::Relu, .gradient = [](Writer& w) { return w.put(kReluGrad, w.dy, w.y); }};
Tensor relu(const Tensor& x) {
  CHECK(x.dtype() != DType::Bool, Runtime, "Boolean inputs not supported for relu");
  return from_result<ReluBackward>(unary("relu", kRelu, x), x);
}

// leaky_relu: y = x, or negative_slope x below 0        dx = dy, or negative_slope dy
struct LeakyReluBackward : Node {
  static constexpr const char* kName = "LeakyReluBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  double negative_slope = 0;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    return {negative_slope_at(x, dy[0])};
  }
  Tensor negative_slope_at(const Tensor& x, const Tensor& dy) const {
    if (grad_enabled()) return flat_in(x, where(gt(x, 0), dy, mul(dy, negative_slope)));
    return binary("leaky_relu_backward", Pointwise::LeakyReluGrad, dy, x, with_numbers(Rule::Same, negative_slope));
  }
  FIELDS(self, negative_slope)
};
// In place, of the result, whose sign is x's unless negative_slope is negative.
struct LeakyReluResultBackward : LeakyReluBackward {
  static constexpr const char* kName = "LeakyReluBackward1";
  Saved result;
  Grads backward(const Grads& dy) {
    CHECK(negative_slope >= 0, Runtime,
          "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. "
          "The "
          "result ",
          "does not tell on which side of 0 the input was: call out-of-place version, leaky_relu(x, negative_slope), "
          "instead.");
    return {negative_slope_at(result.unpack(*this), dy[0])};
  }
  FIELDS(result, negative_slope)
};
static constexpr Kernel kLeakyRelu{.op = Pointwise::LeakyRelu, .cost = 2};
Tensor leaky_relu(const Tensor& x, const Scalar& negative_slope) {
  const double factor = float_number(negative_slope, x.dtype());
  Tensor y = unary("leaky_relu", kLeakyRelu.op, x, with_numbers(kLeakyRelu, factor));
  return record<LeakyReluBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.negative_slope = factor;
  });
}
static Tensor leaky_relu_from_result(const Tensor& x, double negative_slope) {
  Tensor y = unary("leaky_relu", kLeakyRelu.op, x, with_numbers(kLeakyRelu, negative_slope));
  return record<LeakyReluResultBackward>(y, {x}, [&](auto& n) {
    n.result = save_output(n, y);
    n.negative_slope = negative_slope;
  });
}

// hardtanh: y = x brought into [min, max]        dx = dy strictly inside
struct HardtanhBackward : Node {
  static constexpr const char* kName = "HardtanhBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  double min_val = 0, max_val = 0;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    if (grad_enabled()) return {flat_in(x, zero_where(logical_or(le(x, min_val), ge(x, max_val)), dy[0]))};
    return {binary("hardtanh_backward", Pointwise::HardtanhGrad, dy[0], x, with_numbers(Rule::Same, min_val, max_val))};
  }
  FIELDS(self, min_val, max_val)
};
static constexpr Kernel kHardtanh{.op = Pointwise::Hardtanh, .cost = 2};
static Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  CHECK(x.dtype() != DType::Bool, Runtime, "Bool inputs not supported for hardtanh");
  if (is_integral(x.dtype()))
    for (double limit : {min_val, max_val}) check_holds(limit, DType::Int64);
  CHECK(x.dtype() != DType::UInt8 || (min_val >= 0 && max_val >= 0), Runtime,
        "cannot do hardtanh on an unsigned type with negative limits");
  CHECK(!(min_val > max_val), Value, "min_val cannot be greater than max_val");
  if (!x.is_complex())
    for (double limit : {min_val, max_val}) check_holds(limit, x.dtype());
  Tensor y = unary("hardtanh", kHardtanh.op, x, with_numbers(kHardtanh, min_val, max_val));
  return record<HardtanhBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.min_val = min_val;
    n.max_val = max_val;
  });
}

// hardsigmoid: y = min(max(x + 3, 0), 6) / 6        dx = dy / 6 strictly inside
struct HardsigmoidBackward : SelfNode {
  static constexpr const char* kName = "HardsigmoidBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x();
    if (grad_enabled()) return {flat_in(z, keep_where(logical_and(gt(z, -3), lt(z, 3)), mul(dy[0], 1.0 / 6)))};
    return {binary("hardsigmoid_backward", Pointwise::HardsigmoidGrad, dy[0], z)};
  }
};
static constexpr Kernel kHardsigmoid{.op = Pointwise::Hardsigmoid};
static Tensor hardsigmoid(const Tensor& x) {
  return from_self<HardsigmoidBackward>(unary("hardsigmoid", kHardsigmoid, x), x);
}

// hardswish: y = x hardsigmoid(x)        dx = 0 up to -3, dy (x / 3 + 1/2) up to 3, dy above
struct HardswishBackward : SelfNode {
  static constexpr const char* kName = "HardswishBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x();
    if (!grad_enabled()) return {binary("hardswish_backward", Pointwise::HardswishGrad, dy[0], z)};
    // What lies outside, infinities and NaN too, is kept out of the formula.
    Tensor inside = add(div(keep_where(logical_and(gt(z, -3), lt(z, 3)), z), 3), 0.5);
    return {zero_where(le(z, -3), mul(dy[0], where(lt(z, 3), inside, Scalar(1))))};
  }
};
static constexpr Kernel kHardswish{.op = Pointwise::Hardswish};
static Tensor hardswish(const Tensor& x) { return from_self<HardswishBackward>(unary("hardswish", kHardswish, x), x); }

// A limit as a number of the tensor's type, with which its elements are compared.
static double rounded(const Scalar& limit, DType dtype) {
  if (!is_float(dtype)) return limit.to_double();
  check_holds(limit, dtype);
  return is_half(dtype) ? *cast(full({}, limit, dtype), DType::Float64).data<double>() : limit.to_double();
}

// hardshrink: y = x, 0 where |x| <= lambda        dx = dy where |x| > lambda
struct HardshrinkBackward : Node {
  static constexpr const char* kName = "HardshrinkBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  double lambd = 0;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    if (grad_enabled()) return {flat_in(x, zero_where(le(abs(x), lambd), dy[0]))};
    return {binary("hardshrink_backward", Pointwise::HardshrinkGrad, dy[0], x, with_numbers(Rule::Same, lambd))};
  }
  FIELDS(self, lambd)
};
static constexpr Kernel kHardshrink{.op = Pointwise::Hardshrink, .cost = 2};
static Tensor hardshrink(const Tensor& x, const Scalar& lambd) {
  double l = rounded(lambd, x.dtype());
  Tensor y = unary("hardshrink", kHardshrink.op, x, with_numbers(kHardshrink, l));
  return record<HardshrinkBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.lambd = l;
  });
}

// softshrink: y = x -/+ lambda, 0 where |x| <= lambda        dx = dy where |x| > lambda
struct SoftshrinkBackward : HardshrinkBackward {
  static constexpr const char* kName = "SoftshrinkBackward0";
};
static constexpr Kernel kSoftshrink{.op = Pointwise::Softshrink, .cost = 2};
static Tensor softshrink(const Tensor& x, const Scalar& lambd) {
  check_holds(lambd, DType::Float64);
  double l = lambd.to_double();
  CHECK(l >= 0, Runtime, "lambda must be greater or equal to 0, but found to be ", l, ".");
  Tensor y = unary("softshrink", kSoftshrink.op, x, with_numbers(kSoftshrink, l));
  return record<SoftshrinkBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.lambd = l;
  });
}

// threshold: y = x, or value where x <= threshold        dx = dy where x > threshold
struct ThresholdBackward : Node {
  static constexpr const char* kName = "ThresholdBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  double threshold = 0;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    if (grad_enabled()) return {flat_in(x, zero_where(le(x, threshold), dy[0]))};
    return {binary("threshold_backward", Pointwise::ThresholdGrad, dy[0], x, with_numbers(Rule::Same, threshold))};
  }
  FIELDS(self, threshold)
};
static constexpr Kernel kThreshold{.op = Pointwise::Threshold, .cost = 2};
static Tensor threshold(const Tensor& x, const Scalar& threshold, const Scalar& value) {
  if (!x.is_complex()) {
    check_computes(threshold, x.dtype());
    check_holds(value, x.dtype());
  }
  Tensor y = unary("threshold", kThreshold.op, x, with_numbers(kThreshold, threshold.to_double(), value.to_double()));
  return record<ThresholdBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.threshold = threshold.to_double();
  });
}

// prelu: y = x, or weight x below 0, one weight for all or one per channel (dimension 1)
//   dx = dy where x > 0, else weight dy; dweight = x dy where x <= 0
struct PreluBackward : Node {
  static constexpr const char* kName = "PreluKernelBackward0";
  static constexpr bool kStacks = true;
  Saved self, weight;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), w = weight.unpack(*this), above = gt(x, 0);
    return {needs(0) ? flat_in(x, where(above, dy[0], mul(w, dy[0]))) : Tensor(),
            needs(1) ? zero_where(above, mul(x, dy[0])) : Tensor()};
  }
  FIELDS(self, weight)
};
static Tensor prelu(const Tensor& x, const Tensor& weight) {
  CHECK(x.dtype() == weight.dtype(), Runtime, "prelu: Type promoting not supported. Got ", info(x.dtype()).legacy,
        " and ", info(weight.dtype()).legacy);
  CHECK(weight.dim() <= 1, Runtime,
        "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
  if (weight.numel() != 1) {
    CHECK(x.dim() > 0, Runtime, "Not allow zero-dim input tensor.");
    int64_t channels = x.dim() >= 2 ? x.size(1) : 1;
    CHECK(channels == weight.numel(), Runtime,
          "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.numel(),
          " and channel size = ", channels, ".");
  }
  Ints shape(x.dim(), 1);
  if (x.dim() >= 2) shape[1] = weight.numel();
  Tensor w = weight.dim() == 1 || x.dim() > 0 ? reshape(weight, shape) : weight;
  Tensor y = binary("prelu", Pointwise::Prelu, x, w);
  return record<PreluBackward>(y, {x, w}, [&](auto& n) {
    n.self = save(x);
    n.weight = save(w);
  });
}

static Tensor relu_f(const Tensor& x, bool inplace) {
  return maybe_inplace("relu_", x, inplace, [&] { return relu(x); }, true);
}
static Tensor relu_inplace(const Tensor& x) { return relu_f(x, true); }
static Tensor leaky_relu_f(const Tensor& x, const Scalar& negative_slope, bool inplace) {
  if (!inplace) return leaky_relu(x, negative_slope);
  return maybe_inplace(
      "leaky_relu_", x, true, [&] { return leaky_relu_from_result(x, negative_slope.to_double()); }, true);
}
static Tensor hardtanh_f(const Tensor& x, double min_val, double max_val, bool inplace) {
  return maybe_inplace("hardtanh_", x, inplace, [&] { return hardtanh(x, min_val, max_val); });
}
static Tensor relu6_f(const Tensor& x, bool inplace) { return hardtanh_f(x, 0, 6, inplace); }
static Tensor hardsigmoid_f(const Tensor& x, bool inplace) {
  return maybe_inplace("hardsigmoid_", x, inplace, [&] { return hardsigmoid(x); });
}
static Tensor hardswish_f(const Tensor& x, bool inplace) {
  return maybe_inplace("hardswish_", x, inplace, [&] { return hardswish(x); });
}
static Tensor threshold_f(const Tensor& x, const Scalar& t, const Scalar& value, bool inplace) {
  return maybe_inplace("threshold_", x, inplace, [&] { return threshold(x, t, value); }, false, true);
}
static Tensor threshold_inplace(const Tensor& x, const Scalar& t, const Scalar& value) {
  return threshold_f(x, t, value, true);
}
static Tensor leaky_relu_inplace(const Tensor& x, const Scalar& negative_slope) {
  return leaky_relu_f(x, negative_slope, true);
}
static Tensor hardtanh_inplace(const Tensor& x, double min_val, double max_val) {
  return hardtanh_f(x, min_val, max_val, true);
}

static const Register registered([](Ops& ops) {
  ops.def("relu", relu, "input", kUnary | kKeepsInput, R"(
    Replaces negative elements by 0: max(x, 0).

    Gradient:
        dy above 0; 0 at 0 and below.

    Example:
        >>> torch.relu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.]))",
          kRelu);
  ops.def("nn.functional.relu", relu_f, "input, inplace=False", kNoOut, R"(
    Replaces negative elements by 0: max(x, 0).

    Gradient:
        dy above 0; 0 at 0 and below.

    Example:
        >>> F.relu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.]))",
          kRelu);
  ops.def("nn.functional.relu_", relu_inplace, "input", kNoOut | kElementwise, R"(
    Writes relu() into the tensor itself.

    Example:
        >>> F.relu_(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.]))");
  ops.def("nn.functional.relu6", relu6_f, "input, inplace=False", kNoOut | kElementwise, R"(
    Brings each element into [0, 6].

    Gradient:
        dy inside the bounds; 0 outside and on them.

    Example:
        >>> F.relu6(torch.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.]))");
  ops.def("nn.functional.leaky_relu", leaky_relu_f, "input, negative_slope=0.01, inplace=False", 0, R"(
    Keeps positive elements and multiplies the others by negative_slope.

    Args:
        negative_slope: the factor below 0.

    Gradient:
        dy above 0; negative_slope * dy at 0 and below.

    Example:
        >>> F.leaky_relu(torch.tensor([-2.0, 3.0]), 0.1)
        tensor([-0.2000,  3.0000]))",
          kLeakyRelu);
  ops.def("nn.functional.leaky_relu_", leaky_relu_inplace, "input, negative_slope=0.01", kNoOut | kElementwise, R"(
    Writes leaky_relu() into the tensor itself.

    Args:
        negative_slope: the factor below 0, positive if gradients are wanted.

    Example:
        >>> F.leaky_relu_(torch.tensor([-2.0, 3.0]), 0.1)
        tensor([-0.2000,  3.0000]))");
  ops.def("nn.functional.hardtanh", hardtanh_f, "input, min_val=-1.0, max_val=1.0, inplace=False", 0, R"(
    Brings each element into [min_val, max_val].

    Args:
        min_val: the lower bound.
        max_val: the upper bound.

    Gradient:
        dy inside the bounds; 0 outside and on them, unlike clamp().

    Example:
        >>> F.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000]))",
          kHardtanh);
  ops.def("nn.functional.hardtanh_", hardtanh_inplace, "input, min_val=-1.0, max_val=1.0", kNoOut | kElementwise, R"(
    Writes hardtanh() into the tensor itself.

    Args:
        min_val: the lower bound.
        max_val: the upper bound.

    Example:
        >>> F.hardtanh_(torch.tensor([-2.0, 0.5]))
        tensor([-1.0000,  0.5000]))");
  ops.def("nn.functional.hardsigmoid", hardsigmoid_f, "input, inplace=False", 0, R"(
    Computes a sigmoid of straight lines: min(max(x + 3, 0), 6) / 6.

    Gradient:
        dy / 6 inside (-3, 3), else 0.

    Example:
        >>> F.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500]))",
          kHardsigmoid);
  ops.def("nn.functional.hardswish", hardswish_f, "input, inplace=False", 0, R"(
    Computes x * hardsigmoid(x): x * min(max(x + 3, 0), 6) / 6.

    Example:
        >>> F.hardswish(torch.tensor([-4.0, -1.0, 4.0]))
        tensor([-0.0000, -0.3333,  4.0000]))",
          kHardswish);
  ops.def("hardshrink", hardshrink, "input, lambd=0.5", kMethod | kExactOut, R"(
    Keeps elements with |x| > lambd, and sets the others to 0.

    Args:
        lambd: the threshold, not negative.

    Example:
        >>> torch.hardshrink(torch.tensor([-1.0, 0.3, 0.5, 2.0]))
        tensor([-1.,  0.,  0.,  2.]))",
          kHardshrink);
  ops.alias("nn.functional.hardshrink", "hardshrink");
  ops.def("nn.functional.softshrink", softshrink, "input, lambd=0.5", kExactOut, R"(
    Moves each element towards 0 by lambd, and stops at 0.

    Args:
        lambd: by how much, not negative.

    Example:
        >>> F.softshrink(torch.tensor([-2.0, 0.3, 1.0]))
        tensor([-1.5000,  0.0000,  0.5000]))",
          kSoftshrink);
  ops.def("threshold", threshold, "input, threshold, value", kNoOut, R"(
    Keeps elements larger than threshold, and replaces the others by value.

    Args:
        threshold: the bound.
        value: what stands for elements up to it.

    Example:
        >>> torch.threshold(torch.tensor([0.5, 1.0, 2.0]), 1.0, -7.0)
        tensor([-7., -7.,  2.]))",
          kThreshold);
  ops.def("threshold_", threshold_inplace, "input, threshold, value", kNoOut | kElementwise, R"(
    Replaces elements up to threshold by value, in the tensor itself.

    Args:
        threshold: the bound.
        value: what stands for elements up to it.

    Example:
        >>> torch.threshold_(torch.tensor([0.5, 1.0, 2.0]), 1.0, -7.0)
        tensor([-7., -7.,  2.]))");
  ops.alias("nn.functional.threshold_", "threshold_");
  ops.def("nn.functional.threshold", threshold_f, "input, threshold, value, inplace=False", 0, R"(
    Keeps elements larger than threshold, and replaces the others by value.

    Args:
        threshold: the bound.
        value: what stands for elements up to it.

    Example:
        >>> F.threshold(torch.tensor([0.5, 1.0, 2.0]), 1.0, -7.0)
        tensor([-7., -7.,  2.]))",
          kThreshold);
  ops.def("prelu", prelu, "input, weight", kMethod | kNoOut | kCastLow, R"(
    Keeps positive elements and multiplies the others by a learnt weight.

    Args:
        weight: the factor below 0: a single one, or one for each channel (dimension 1).

    Example:
        >>> torch.prelu(torch.tensor([[-1.0, -1.0], [2.0, -2.0]]), torch.tensor([0.1, 0.5]))
        tensor([[-0.1000, -0.5000],
                [ 2.0000, -1.0000]]))");
  ops.alias("nn.functional.prelu", "prelu");
});

}  // namespace rl::ops
