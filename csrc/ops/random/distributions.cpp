// Samples whose distribution is given element by element or row by row.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/backend.h"
#include "base/interrupt.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "ops/random/random.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

template <class F> void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float16: return f(type_tag<float16>{});
    case DType::BFloat16: return f(type_tag<bfloat16>{});
    case DType::Float32: return f(type_tag<float>{});
    default: return f(type_tag<double>{});
  }
}

// A sample that does not follow its parameters: their gradient is zero.
struct SampleBackward : Node {
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {zeros(dy[0].sizes(), dy[0].dtype(), dy[0].device())}; }
};
struct BernoulliBackward : SampleBackward {
  static constexpr const char* kName = "BernoulliBackward0";
};
struct BernoulliScalarBackward : SampleBackward {
  static constexpr const char* kName = "BernoulliBackward1";
};
struct PoissonBackward : SampleBackward {
  static constexpr const char* kName = "PoissonBackward0";
};

const RandomKernels& kernels_of(const Tensor& t) { return *backend(t.device()).random; }
bool computes(const Tensor& t) { return t.numel() > 0; }

}  // namespace

static Tensor bernoulli(const Tensor& input, Generator* generator) {
  if (!input.is_float()) no_kernel("bernoulli_tensor", input.dtype());
  Tensor y = empty(input.sizes(), input.dtype(), input.device());
  if (computes(y)) kernels_of(y).bernoulli_each(y.view(), input.view(), generator_or_default(generator, y.device()));
  return record<BernoulliBackward>(y, {input});
}
static Tensor bernoulli_scalar(const Tensor& input, double p, Generator* generator) {
  Tensor y = empty(input.sizes(), input.dtype(), input.device());
  return record<BernoulliScalarBackward>(bernoulli_(y, p, generator), {input});
}

static Tensor poisson(const Tensor& input, Generator* generator) {
  if (!input.is_float()) no_kernel("poisson", input.dtype());
  Tensor y = empty(input.sizes(), input.dtype(), input.device());
  if (computes(y)) {
    NoGrad raw;
    kernels_of(y).poisson(y.view(), contiguous(input).view(), generator_or_default(generator, y.device()));
  }
  return record<PoissonBackward>(y, {input});
}

static Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator) {
  CHECK(count.is_float(), Value,
        "binomial only supports floating-point dtypes for count, got: ", to_text(count.dtype()));
  CHECK(prob.is_float(), Value, "binomial only supports floating-point dtypes for prob, got: ", to_text(prob.dtype()));
  CHECK(count.dtype() == prob.dtype(), Runtime, "Found dtype ", to_text(prob.dtype()), " but expected ",
        to_text(count.dtype()));
  Ints sizes = broadcast_sizes(count.sizes(), prob.sizes());
  Tensor y = empty(sizes, count.dtype(), count.device());
  if (computes(y)) {
    NoGrad raw;
    kernels_of(y).binomial(y.view(), contiguous(expand(count, sizes)).view(), contiguous(expand(prob, sizes)).view(),
                           generator_or_default(generator, y.device()));
  }
  return record_not_differentiable("binomial", y, {count, prob});
}

// _standard_gamma_grad: how Gamma(alpha) samples y move with alpha, -(d cdf / d alpha) / pdf
static Tensor standard_gamma_grad(const Tensor& input, const Tensor& output) {
  CHECK(input.sizes() == output.sizes() && input.dtype() == output.dtype(), Runtime,
        "_standard_gamma_grad: expected two tensors alike, got ", to_text(input.dtype()), to_text(input.sizes()),
        " and ", to_text(output.dtype()), to_text(output.sizes()));
  Tensor y = empty(input.sizes(), input.dtype(), input.device());
  if (computes(y)) {
    NoGrad raw;
    kernels_of(y).gamma_grad(y.view(), contiguous(input).view(), contiguous(output).view());
  }
  return record_not_differentiable("_standard_gamma_grad", y, {input, output});
}

// _standard_gamma: y ~ Gamma(alpha, 1)        dalpha = dy * _standard_gamma_grad(alpha, y)
struct StandardGammaBackward : Node {
  static constexpr const char* kName = "StandardGammaBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Grads backward(const Grads& dy) {
    return {mul(dy[0], standard_gamma_grad(self.unpack(*this), result.unpack(*this)))};
  }
  FIELDS(self, result)
};
static Tensor standard_gamma(const Tensor& input, Generator* generator) {
  if (input.dtype() != DType::Float32 && input.dtype() != DType::Float64) no_kernel("gamma", input.dtype());
  Tensor y = empty(input.sizes(), input.dtype(), input.device());
  if (computes(y)) {
    NoGrad raw;
    kernels_of(y).gamma(y.view(), contiguous(input).view(), generator_or_default(generator, y.device()));
  }
  return record<StandardGammaBackward>(y, {input}, [&](auto& n) {
    n.self = save(input);
    n.result = save_output(n, y);
  });
}

static Tensor dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  CHECK(x.dtype() == alpha.dtype() && x.dtype() == total.dtype(), Runtime, "_dirichlet_grad: expected one dtype, got ",
        to_text(x.dtype()), ", ", to_text(alpha.dtype()), " and ", to_text(total.dtype()));
  Ints sizes = broadcast_sizes(broadcast_sizes(x.sizes(), alpha.sizes()), total.sizes());
  Tensor y = empty(sizes, x.dtype(), x.device());
  if (computes(y)) {
    NoGrad raw;
    auto whole = [&](const Tensor& t) { return contiguous(expand(t, sizes)); };
    Tensor a = whole(x), b = whole(alpha), c = whole(total);
    kernels_of(y).dirichlet_grad(y.view(), a.view(), b.view(), c.view());
  }
  return record_not_differentiable("_dirichlet_grad", y, {x, alpha, total});
}

// _sample_dirichlet: gamma samples of the last dimension divided by their sum, kept inside the open interval (0, 1)
static Tensor sample_dirichlet(const Tensor& input, Generator* generator) {
  if (input.dtype() != DType::Float32 && input.dtype() != DType::Float64) no_kernel("dirichlet", input.dtype());
  CHECK(input.dim() > 0, Runtime, "_sample_dirichlet: expected at least one dimension, got a 0-dim tensor");
  Tensor y = empty(input.sizes(), input.dtype(), input.device());
  if (computes(y)) {
    NoGrad raw;
    Tensor gamma = empty(input.sizes(), DType::Float64, input.device());
    kernels_of(y).gamma(gamma.view(), contiguous(input).view(), generator_or_default(generator, y.device()));
    if (!y.has_values()) return y;
    gamma = to_host(gamma);
    Tensor own = to_host(y);
    int64_t n = input.size(-1);
    visit_floating(y.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!is_half_v<T>) {
        const T least = std::numeric_limits<T>::min(), most = std::nextafter(T(1), T(0));
        for (int64_t row = 0; row < y.numel(); row += n) {
          const double* from = gamma.data<double>() + row;
          double sum = 0;
          for (int64_t i = 0; i < n; ++i) sum += from[i];
          for (int64_t i = 0; i < n; ++i)
            own.data<T>()[row + i] = std::min(most, std::max(least, static_cast<T>(from[i] / sum)));
        }
      }
    });
    if (!own.is(y)) copy_into(y, own);
  }
  return record_not_differentiable("_sample_dirichlet", y, {input});
}

namespace {

// Sampling without replacement keeps the n largest of weight / Exp(1); a single sample is drawn the same way.
template <class T> void largest_ratios(const Tensor& weights, const Tensor& noise, int64_t samples, int64_t* to) {
  using C = compute_t<T>;
  bool matrix = weights.dim() == 2;
  int64_t rows = matrix ? weights.size(0) : 1, categories = weights.size(-1);
  int64_t step = weights.stride(-1), row_step = matrix ? weights.stride(0) : 0;
  int64_t noise_step = noise.stride(-1), noise_row_step = matrix ? noise.stride(0) : 0;
  struct Ratio {
    C value;
    int64_t index;
  };
  AsksSeldom asks;
  auto before = [&asks](const Ratio& a, const Ratio& b) {
    asks();
    return (std::isnan(a.value) && !std::isnan(b.value)) || a.value > b.value;
  };
  std::vector<Ratio> ratios(static_cast<size_t>(categories));
  for (int64_t row = 0; row < rows; ++row, to += samples) {
    const T* w = weights.data<T>() + row * row_step;
    const T* q = noise.data<T>() + row * noise_row_step;
    for (int64_t i = 0; i < categories; ++i)
      ratios[static_cast<size_t>(i)] = {
          static_cast<C>(T(static_cast<C>(w[i * step]) / static_cast<C>(q[i * noise_step]))), i};
    if (samples == 1) {
      size_t best = 0;
      for (size_t i = 1; i < ratios.size(); ++i)
        if (before(ratios[i], ratios[best])) best = i;
      *to = ratios[best].index;
      continue;
    }
    // Equal ratios (weights of zero) come in the order in which these two algorithms leave them.
    if (samples * 64 <= categories) {
      std::partial_sort(ratios.begin(), ratios.begin() + samples, ratios.end(), before);
    } else {
      std::nth_element(ratios.begin(), ratios.begin() + samples - 1, ratios.end(), before);
      std::sort(ratios.begin(), ratios.begin() + samples - 1, before);
    }
    for (int64_t i = 0; i < samples; ++i) to[i] = ratios[static_cast<size_t>(i)].index;
  }
}

// Finite, not negative, and something positive in each row.
template <class T> void check_weights(const Tensor& weights) {
  bool matrix = weights.dim() == 2;
  int64_t rows = matrix ? weights.size(0) : 1, categories = weights.size(-1);
  AsksSeldom asks;
  for (int64_t row = 0; row < rows; ++row) {
    const T* w = weights.data<T>() + (matrix ? row * weights.stride(0) : 0);
    bool positive = false;
    for (int64_t i = 0; i < categories; ++i, asks()) {
      auto weight = static_cast<compute_t<T>>(w[i * weights.stride(-1)]);
      CHECK(weight >= 0 && std::isfinite(weight), Runtime,
            "probability tensor contains either `inf`, `nan` or element < 0");
      positive = positive || weight > 0;
    }
    CHECK(positive, Runtime, "invalid multinomial distribution (sum of probabilities <= 0)");
  }
}

}  // namespace

static Tensor multinomial(const Tensor& input, int64_t num_samples, bool replacement, Generator* generator) {
  CHECK(input.dim() == 1 || input.dim() == 2, Runtime, "prob_dist must be 1 or 2 dim");
  CHECK(input.is_float(), Runtime,
        "multinomial only supports floating-point dtypes for input, got: ", to_text(input.dtype()));
  CHECK(num_samples > 0, Runtime, "cannot sample n_sample <= 0 samples");
  int64_t categories = input.size(-1);
  CHECK(replacement || num_samples <= categories, Runtime,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  CHECK(categories <= int64_t{1} << 24, Runtime, "number of categories cannot exceed 2^24");
  Ints sizes = input.dim() == 1 ? Ints{num_samples} : Ints{input.size(0), num_samples};
  Tensor y = empty(sizes, DType::Int64, input.device());
  if (!computes(y)) return y;
  CHECK(categories > 0, Runtime, "invalid multinomial distribution (no categories to sample from)");
  NoGrad raw;
  if (!y.has_values()) return y;
  if (!replacement || num_samples == 1) {
    const Tensor probabilities = to_host(input), own = to_host(y);
    visit_floating(input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      check_weights<T>(probabilities);
      Tensor noise = to_host(exponential_(empty_like(input), 1, generator));
      largest_ratios<T>(probabilities, noise, num_samples, own.data<int64_t>());
    });
    if (!own.is(y)) copy_into(y, own);
  } else {
    View out = y.view(), weights = input.view();
    int64_t out_sizes[] = {1, num_samples}, out_strides[] = {num_samples, 1};
    int64_t weight_sizes[] = {1, categories}, weight_strides[] = {0, input.stride(-1)};
    if (input.dim() == 1) {
      out = {y.memory(), out_sizes, out_strides, 2, DType::Int64};
      weights = {input.memory(), weight_sizes, weight_strides, 2, input.dtype()};
    }
    kernels_of(y).multinomial(out, weights, generator_or_default(generator, y.device()));
  }
  return y;
}

static const Register registered([](Ops& ops) {
  ops.def("bernoulli", bernoulli, "input, *, generator=None", kMethod | kRandom | kOutType | kElementwise, R"(
    Draws 0 or 1, with probabilities given for 1.

    Args:
        input: the probabilities of 1, in [0, 1]; with p, only the shape and type count.
        p: one probability for all.

    Gradient:
        Zero: the draw does not pass it on.

    Example:
        >>> torch.bernoulli(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0., 0., 1.]))");
  ops.def("bernoulli", bernoulli_scalar, "input, p, *, generator=None", kMethod | kRandom | kNoOut);
  ops.def("poisson", poisson, "input, generator=None", kRandom | kNoOut, R"(
    Draws from the Poisson distribution with the given rates.

    Args:
        input: the rates, not negative.

    Gradient:
        Zero: the draw does not pass it on.

    Example:
        >>> torch.poisson(torch.tensor([0.0, 4.0, 100.0]))
        tensor([  0.,   7., 102.]))");
  ops.def("binomial", binomial, "count, prob, generator=None", kRandom | kNoOut, R"(
    Draws how many of count trials succeed, each with probability prob.

    Args:
        count: the numbers of trials, as floats.
        prob: the probabilities; of the same shape, or one that broadcasts.

    Example:
        >>> torch.binomial(torch.tensor([10.0, 10.0]), torch.tensor([0.0, 1.0]))
        tensor([ 0., 10.]))");
  ops.def("multinomial", multinomial, "input, num_samples, replacement=False, *, generator=None",
          kMethod | kRandom | kNotDifferentiable | kExactOut, R"(
    Draws indices with the weights in each row of input.

    Args:
        input: a vector, or rows, of weights: not negative, not all 0; they need not sum to 1.
        num_samples: how many indices for each row.
        replacement: whether an index may be drawn again.

    Example:
        >>> torch.multinomial(torch.tensor([0.0, 1.0, 3.0]), num_samples=2)
        tensor([2, 1]))");
  ops.def("_standard_gamma", standard_gamma, "input, generator=None", kRandom | kNoOut,
          "Samples of the gamma distribution with shape `input` and rate 1.");
  ops.def("_standard_gamma_grad", standard_gamma_grad, "input, output", kNoOut,
          "How gamma samples move with their shape parameter.");
  ops.def("_sample_dirichlet", sample_dirichlet, "input, generator=None", kRandom | kNoOut,
          "Dirichlet samples along the last dimension.");
  ops.def("_dirichlet_grad", dirichlet_grad, "x, alpha, total", kNoOut,
          "How Dirichlet samples move with their concentrations.");
});

}  // namespace rl::ops
