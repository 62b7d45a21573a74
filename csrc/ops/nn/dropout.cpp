#include <cmath>

#include "backend/backend.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "ops/random/random.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

void check_probability(const char* name, double p) {
  CHECK(p >= 0 && p <= 1, Runtime, name, " probability has to be between 0 and 1, but got ", p);
}

// What the kept elements are multiplied by is itself an element: rounded to the type.
double rounded(double value, DType dtype) {
  if (dtype == DType::Float64) return value;
  float single = static_cast<float>(value);
  return dtype == DType::Float16    ? static_cast<float>(float16(single))
         : dtype == DType::BFloat16 ? static_cast<float>(bfloat16(single))
                                    : single;
}
double kept_factor(double keep, DType dtype) {
  return dtype == DType::Float64 ? 1 / keep : rounded(1.0f / static_cast<float>(keep), dtype);
}

// y = x * scale where the mask is drawn true, x * 0 elsewhere. Both take x's order of dimensions in memory.
void draw_dropout(const Tensor& input, double keep, double scale, Tensor& y, Tensor& mask) {
  y = empty_like(input);
  mask = empty_strided(y.sizes(), y.strides(), DType::Bool, y.device());
  if (y.numel() == 0) return;
  Tensor x = input;
  if (!(x.strides() == y.strides())) {
    x = empty_strided(y.sizes(), y.strides(), y.dtype(), y.device());
    copy_into(x, input);
  }
  backend(y.device()).random->dropout(y.view(), mask.view(), x.view(), keep, scale, default_generator(y.device()));
}

// dy * mask * scale, in one pass where nobody asks for its own gradient and all lie alike.
Tensor dropout_grad(const Tensor& dy, const Tensor& mask, double scale) {
  const bool alike = dy.is_float() && mask.dtype() == DType::Bool && dy.sizes() == mask.sizes() &&
                     dy.strides() == mask.strides() && non_overlapping_and_dense(dy.sizes(), dy.strides());
  if (grad_enabled() || !alike || dy.numel() == 0) return mul(mul(dy, mask), Scalar(scale));
  Tensor dx = empty_strided(dy.sizes(), dy.strides(), dy.dtype(), dy.device());
  backend(dy.device()).random->dropout_grad(dx.view(), dy.view(), mask.view(), scale);
  return dx;
}

}  // namespace

// dropout: y = x * mask / (1 - p), mask = 1 with probability 1 - p        dx = dy * mask / (1 - p)
struct DropoutBackward : Node {
  static constexpr const char* kName = "DropoutBackward0";
  static constexpr bool kStacks = true;
  Saved mask;
  double scale = 1;
  Grads backward(const Grads& dy) { return {dropout_grad(dy[0], mask.unpack(*this), scale)}; }
  FIELDS(mask, scale)
};
struct NativeDropoutBackward : DropoutBackward {
  static constexpr const char* kName = "NativeDropoutBackward0";
};

Tensor dropout(const Tensor& input, double p, bool train) {
  check_probability("dropout", p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return mul(input, zeros({}, input.dtype(), input.device()));
  if (!input.is_float()) {
    CHECK(!is_integral(input.dtype(), true), Runtime, "result type Float can't be cast to the desired output type ",
          to_text(input.dtype()));
    no_kernel("bernoulli_scalar", input.dtype());
  }
  double scale = kept_factor(1 - p, input.dtype());
  Tensor y, mask;
  draw_dropout(input, 1 - p, scale, y, mask);
  return record<DropoutBackward>(y, {input}, [&](auto& n) {
    n.mask = save(mask);
    n.scale = scale;
  });
}

static std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  check_probability("dropout", p);
  if (!train.value_or(true)) return {clone(input), full(input.sizes(), Scalar(true), DType::Bool, input.device())};
  if (!input.is_float()) no_kernel("native_dropout", input.dtype());
  double scale = p == 1 ? 0 : rounded(1 / (1 - p), input.dtype());
  Tensor y, mask;
  draw_dropout(input, 1 - p, scale, y, mask);
  y = record<NativeDropoutBackward>(y, {input}, [&](auto& n) {
    n.mask = save(mask);
    n.scale = scale;
  });
  return {y, mask};
}
static Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  return mul(mul(grad_output, mask), Scalar(scale));
}

namespace {

// Composed of recorded ops: feature forms drop whole channels, alpha forms keep mean and variance of SELU's output.
Tensor noisy(const char* name, const Tensor& input, double p, bool train, bool feature, bool alpha) {
  check_probability("dropout", p);
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return mul(input, zeros({}, input.dtype(), input.device()));
  if (!input.is_float()) no_kernel(name, input.dtype());
  Tensor noise, shift;
  {
    NoGrad raw;
    if (feature) {
      CHECK(input.dim() >= 2, Runtime, "Feature dropout requires at least 2 dimensions in the input");
      Ints sizes(input.dim(), 1);
      sizes[0] = input.size(0);
      sizes[1] = input.size(1);
      noise = empty(sizes, input.dtype(), input.device());
    } else {
      noise = empty_like(input);
    }
    noise = bernoulli_(noise, 1 - p);
    if (alpha) {
      constexpr double kAlpha = 1.7580993408473766;  // of SELU, times its scale
      double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
      shift = add(mul(add(noise, Scalar(-1)), Scalar(kAlpha * a)), Scalar(kAlpha * a * p));
      noise = mul(noise, Scalar(a));
    } else {
      noise = mul(noise, Scalar(kept_factor(1 - p, input.dtype())));
    }
  }
  Tensor y = mul(input, noise);
  return alpha ? add(y, shift) : y;
}

}  // namespace

static Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return noisy("feature_dropout", input, p, train, true, false);
}
static Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return noisy("alpha_dropout", input, p, train, false, true);
}
static Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return noisy("feature_alpha_dropout", input, p, train, true, true);
}

// x.dropout_(...): outside training the tensor is not written to, and not counted as written.
using Dropout = Tensor (*)(const Tensor&, double, bool);
template <Dropout f> static Tensor in_place(const Tensor& input, double p, bool train) {
  check_probability("dropout", p);
  if (p == 0 || !train || input.numel() == 0) return input;
  struct Call {
    const Tensor& input;
    double p;
  } call{input, p};
  auto compute = [](void* context) {
    auto& [input, p] = *static_cast<Call*>(context);
    return f(input, p, true);
  };
  return apply_inplace("dropout_", input, false, false, compute, &call);
}

static const Register registered([](Ops& ops) {
  const uint32_t flags = kNoOut | kRandom;
  ops.def("dropout", dropout, "input, p, train", flags | kElementwise, R"(
    Sets elements to 0 at random while training, and divides the others by 1 - p.

    Args:
        p: the probability that an element is dropped.
        train: whether to do it at all.

    Gradient:
        dy / (1 - p) for what was kept, 0 for the others.

    Example:
        >>> torch.dropout(torch.ones(6), 0.5, train=True)
        tensor([0., 0., 2., 0., 0., 0.]))");
  ops.def("dropout_", in_place<dropout>, "input, p, train", flags | kElementwise, R"(
    Writes dropout() into the tensor itself.

    Args:
        p: the probability that an element is dropped.
        train: whether to do it at all.

    Example:
        >>> torch.dropout_(torch.ones(4), 0.5, train=True)
        tensor([0., 0., 2., 0.]))");
  ops.def("feature_dropout", feature_dropout, "input, p, train", flags, R"(
    Sets whole channels to 0 at random while training, and divides the others by 1 - p.

    Args:
        p: the probability that a channel, (N, C) of (N, C, ...), is dropped.
        train: whether to do it at all.

    Example:
        >>> torch.feature_dropout(torch.ones(1, 4, 2), 0.5, train=True)
        tensor([[[0., 0.],
                 [0., 0.],
                 [2., 2.],
                 [0., 0.]]]))");
  ops.def("feature_dropout_", in_place<feature_dropout>, "input, p, train", flags, R"(
    Writes feature_dropout() into the tensor itself.

    Args:
        p: the probability that a channel is dropped.
        train: whether to do it at all.

    Example:
        >>> torch.feature_dropout_(torch.ones(1, 4, 2), 0.5, train=True)
        tensor([[[0., 0.],
                 [0., 0.],
                 [2., 2.],
                 [0., 0.]]]))");
  ops.def("alpha_dropout", alpha_dropout, "input, p, train", flags | kElementwise, R"(
    Drops elements at random so that mean and variance stay: for networks with selu().

    Args:
        p: the probability that an element is dropped: it becomes SELU's lower limit.
        train: whether to do it at all.

    Example:
        >>> torch.alpha_dropout(torch.zeros(3), 0.5, train=False)
        tensor([0., 0., 0.]))");
  ops.def("alpha_dropout_", in_place<alpha_dropout>, "input, p, train", flags | kElementwise, R"(
    Writes alpha_dropout() into the tensor itself.

    Args:
        p: the probability that an element is dropped.
        train: whether to do it at all.

    Example:
        >>> torch.alpha_dropout_(torch.zeros(3), 0.5, train=False)
        tensor([0., 0., 0.]))");
  ops.def("feature_alpha_dropout", feature_alpha_dropout, "input, p, train", flags, R"(
    Drops whole channels as alpha_dropout() drops elements.

    Args:
        p: the probability that a channel, (N, C) of (N, C, ...), is dropped.
        train: whether to do it at all.

    Example:
        >>> torch.feature_alpha_dropout(torch.zeros(1, 2, 2), 0.5, train=False)
        tensor([[[0., 0.],
                 [0., 0.]]]))");
  ops.def("feature_alpha_dropout_", in_place<feature_alpha_dropout>, "input, p, train", flags, R"(
    Writes feature_alpha_dropout() into the tensor itself.

    Args:
        p: the probability that a channel is dropped.
        train: whether to do it at all.

    Example:
        >>> torch.feature_alpha_dropout_(torch.zeros(1, 2, 2), 0.5, train=False)
        tensor([[[0., 0.],
                 [0., 0.]]]))");
  ops.def("native_dropout", native_dropout, "input, p, train", flags | kElementwise, R"(
    Drops elements as dropout(), and returns the mask too.

    Args:
        p: the probability that an element is dropped.
        train: whether to do it at all; None means yes.

    Returns:
        A tuple (result, mask): the mask is True where the element was kept.

    Example:
        >>> torch.native_dropout(torch.ones(4), 0.5, True)
        (tensor([0., 0., 2., 0.]), tensor([False, False,  True, False])))");
  ops.def("native_dropout_backward", native_dropout_backward, "grad_output, mask, scale", kNoOut, R"(
    Computes the gradient of native_dropout(): grad_output * mask * scale.

    Args:
        grad_output: the gradient of the result.
        mask: True where the element was kept.
        scale: 1 / (1 - p).

    Example:
        >>> torch.native_dropout_backward(torch.ones(2), torch.tensor([True, False]), 2.0)
        tensor([2., 0.]))");
});

}  // namespace rl::ops
