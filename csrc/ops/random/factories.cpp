// New tensors of random numbers: rand, randn, randint, randperm, normal, and their *_like forms.
#include "autograd/grad_mode.h"
#include "backend/backend.h"
#include "base/interrupt.h"
#include "ops/copy/factory.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "ops/random/random.h"
#include "schema/registry.h"
#include "tensor/default_device.h"

namespace rl::ops {
namespace {

// The keywords that all factories share.
struct Make {
  const OptTensor& out;
  std::optional<DType> dtype;
  std::optional<Layout> layout;
  std::optional<Device> device;
};

// The tensor to fill: a new one, or `out` brought to the size asked for.
Tensor target(const char* name, IntSpan size, const Make& make, DType fallback) {
  check_factory(make.layout, make.device);
  const Tensor& out = make.out;
  if (!out.defined()) return empty(size, make.dtype.value_or(fallback), device_or_default(make.device));
  CHECK(!out.requires_grad() || !grad_enabled(), Runtime, name,
        "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.\n  Write out=x.detach(), or run it under no_grad().");
  CHECK(!make.dtype || *make.dtype == out.dtype(), Runtime, name, ": dtype ", to_text(make.dtype.value_or(fallback)),
        " does not match dtype of out parameter (", to_text(out.dtype()), ")");
  CHECK(!make.device || make.device->type == out.device().type, Runtime, name, ": device ",
        to_text(device_or_default(make.device)), " does not match device of out parameter (", to_text(out.device()),
        ")");
  checked_numel(size);
  if (!(out.sizes() == size)) {
    int64_t bytes = checked_mul(checked_numel(size) + out->offset, out.item_size());
    if (out.storage()->bytes < bytes) out.storage()->resize(bytes);
    set_geometry(out.get(), size, contiguous_strides(size), out->offset);
  }
  return out;
}

// The tensor to fill, with the sizes of `like` and, unless told otherwise, its order of dimensions.
Tensor target_like(const Tensor& like, const Make& make, std::optional<MemoryFormat> format) {
  check_factory(make.layout, make.device);
  return empty_strided(like.sizes(), strides_for(like, format.value_or(MemoryFormat::Preserve)),
                       make.dtype.value_or(like.dtype()), make.device.value_or(like.device()));
}

// A new tensor, whose first values are no write.
Tensor filled(Tensor y, bool requires_grad, bool is_new = true) {
  if (is_new) y->version->value = 0;
  return with_grad_flag(y, requires_grad);
}

}  // namespace

using Format = std::optional<MemoryFormat>;
using Type = std::optional<DType>;
using OptDevice = std::optional<Device>;
using Order = std::optional<Layout>;
using Pin = std::optional<bool>;  // there is no memory to pin: accepted and ignored

static Tensor rand(const Ints& size, Generator* generator, const OptTensor& out, Type dtype, Order layout,
                   OptDevice device, Pin, bool requires_grad) {
  Tensor y = target("rand", size, {out, dtype, layout, device}, default_dtype());
  return filled(uniform_(y, 0, 1, generator), requires_grad, !out.defined());
}
static Tensor randn(const Ints& size, Generator* generator, const OptTensor& out, Type dtype, Order layout,
                    OptDevice device, Pin, bool requires_grad) {
  Tensor y = target("randn", size, {out, dtype, layout, device}, default_dtype());
  return filled(normal_(y, 0, 1, generator), requires_grad, !out.defined());
}
static Tensor randint(int64_t low, int64_t high, const Ints& size, Generator* generator, const OptTensor& out,
                      Type dtype, Order layout, OptDevice device, Pin, bool requires_grad) {
  Tensor y = target("randint", size, {out, dtype, layout, device}, DType::Int64);
  return filled(random_from_to_(y, low, high, generator), requires_grad, !out.defined());
}
static Tensor randint_below(int64_t high, const Ints& size, Generator* generator, const OptTensor& out, Type dtype,
                            Order layout, OptDevice device, Pin, bool requires_grad) {
  return randint(0, high, size, generator, out, dtype, layout, device, {}, requires_grad);
}

static Tensor rand_like(const Tensor& input, Generator* generator, Type dtype, Order layout, OptDevice device, Pin,
                        bool requires_grad, Format format) {
  Make make = {OptTensor(), dtype, layout, device};
  return filled(uniform_(target_like(input, make, format), 0, 1, generator), requires_grad);
}
static Tensor randn_like(const Tensor& input, Generator* generator, Type dtype, Order layout, OptDevice device, Pin,
                         bool requires_grad, Format format) {
  Make make = {OptTensor(), dtype, layout, device};
  return filled(normal_(target_like(input, make, format), 0, 1, generator), requires_grad);
}
static Tensor randint_like(const Tensor& input, int64_t low, int64_t high, Generator* generator, Type dtype,
                           Order layout, OptDevice device, Pin, bool requires_grad, Format format) {
  Make make = {OptTensor(), dtype, layout, device};
  return filled(random_from_to_(target_like(input, make, format), low, high, generator), requires_grad);
}
static Tensor randint_like_below(const Tensor& input, int64_t high, Generator* generator, Type dtype, Order layout,
                                 OptDevice device, Pin, bool requires_grad, Format format) {
  return randint_like(input, 0, high, generator, dtype, layout, device, {}, requires_grad, format);
}

static Tensor randperm(int64_t n, Generator* generator, const OptTensor& out, Type dtype, Order layout,
                       OptDevice device, Pin, bool requires_grad) {
  CHECK(n >= 0, Runtime, "randperm: n must be non-negative, got ", n);
  Tensor y = target("randperm", {n}, {out, dtype, layout, device}, DType::Int64);
  if (y.is_complex() || y.dtype() == DType::Bool) no_kernel("randperm", y.dtype());
  // Every index must be a number of the type: integers up to the largest, floating types up to 2^digits.
  int64_t most = INT64_MAX;
  switch (y.dtype()) {
    case DType::UInt8: most = 256; break;
    case DType::Int8: most = 128; break;
    case DType::UInt16: most = 65536; break;
    case DType::Int16: most = 32768; break;
    case DType::UInt32: most = int64_t{1} << 32; break;
    case DType::Int32: most = int64_t{1} << 31; break;
    case DType::Float16: most = 2049; break;
    case DType::BFloat16: most = 257; break;
    case DType::Float32: most = (int64_t{1} << 24) + 1; break;
    case DType::Float64: most = (int64_t{1} << 53) + 1; break;
    default: break;
  }
  CHECK(n <= most, Runtime, "randperm: n cannot be greater than ", most, " for ", info(y.dtype()).name, ", got ", n);
  const bool interruptible = t_interruptible && !out.defined();
  check_inplace(y);
  t_interruptible = interruptible;
  if (n > 0) backend(y.device()).random->permutation(y.view(), generator_or_default(generator, y.device()));
  bump_version(y);
  return filled(y, requires_grad, !out.defined());
}

// normal with parameters per element: y = mean + std * n, n ~ N(0, 1)        no gradient passes through the sample
struct NormalBackward : Node {
  static constexpr const char* kName = "NormalBackward3";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) {
    Grads dx(edges.size());
    for (int64_t i = 0; i < dx.size(); ++i)
      if (needs(i)) dx[i] = zeros(dy[0].sizes(), dy[0].dtype(), dy[0].device());
    return dx;
  }
};

static void check_deviation(const Tensor& std) {
  CHECK(!std.is_complex(), Runtime, "normal expects standard deviation to be non-complex");
  if (!std.has_values() || !std.is_float()) return;
  NoGrad raw;
  Tensor values = to_host(contiguous(cast(std, DType::Float64)));
  const double* data = values.data<double>();
  for (int64_t i = 0; i < values.numel(); ++i)
    CHECK(data[i] >= 0, Runtime, "normal expects all elements of std >= 0.0, but found ", data[i]);
}
static Tensor normal_of_tensors(const Tensor& mean, const Value& std, Generator* generator) {
  Tensor y;
  {
    NoGrad raw;
    if (std.is_tensor()) {
      check_deviation(std.tensor);
      y = empty(broadcast_sizes(mean.sizes(), std.tensor.sizes()), mean.dtype(), mean.device());
      y = cast(mul(normal_(y, 0, 1, generator), std), mean.dtype());
    } else {
      y = normal_(empty(mean.sizes(), mean.dtype(), mean.device()), 0, std.number.to_double(), generator);
    }
    y = cast(add(y, mean), mean.dtype());
  }
  return record<NormalBackward>(y, {mean, std});
}
static Tensor normal_of_deviations(double mean, const Tensor& std, Generator* generator) {
  check_deviation(std);
  Tensor y;
  {
    NoGrad raw;
    y = normal_(empty(std.sizes(), std.dtype(), std.device()), 0, 1, generator);
    y = add(mul(y, std), Scalar(mean));
  }
  return record<NormalBackward>(y, {std});
}
static Tensor normal_of_size(double mean, double std, const Ints& size, Generator* generator, const OptTensor& out,
                             Type dtype, Order layout, OptDevice device, Pin, bool requires_grad) {
  Tensor y = target("normal", size, {out, dtype, layout, device}, default_dtype());
  return filled(normal_(y, mean, std, generator), requires_grad, !out.defined());
}

#define MAKE "out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"
#define MAKE_LIKE \
  "generator=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None"
static const Register registered([](Ops& ops) {
  const uint32_t factory = kNoOut | kRandom | kFactory;
  ops.def("rand", rand, "size..., *, generator=None, " MAKE, factory, R"(
    Draws uniformly from [0, 1).

    Example:
        >>> torch.rand(2, 3)
        tensor([[0.4963, 0.7682, 0.0885],
                [0.1320, 0.3074, 0.6341]]))");
  ops.def("randn", randn, "size..., *, generator=None, " MAKE, factory, R"(
    Draws from the standard normal distribution: mean 0, variance 1.

    Example:
        >>> torch.randn(2, 3)
        tensor([[ 1.5410, -0.2934, -2.1788],
                [ 0.5684, -1.0845, -1.3986]]))");
  ops.def("randint", randint_below, "high, size, *, generator=None, " MAKE, factory, R"(
    Draws integers uniformly from low to high - 1.

    Args:
        low: the least integer; 0 if only high is given.
        high: the bound, which is not drawn.
        size: the sizes, as a sequence.
        dtype: the element type; None takes int64.

    Example:
        >>> torch.randint(10, (4,))
        tensor([4, 9, 3, 0])
        >>> torch.randint(5, 8, (2, 2))
        tensor([[6, 5],
                [6, 6]]))");
  ops.def("randint", randint, "low, high, size, *, generator=None, " MAKE, factory);
  ops.def("randperm", randperm, "n, *, generator=None, " MAKE, factory, R"(
    Puts the integers from 0 to n - 1 in random order.

    Args:
        n: how many.
        dtype: the element type; None takes int64.

    Example:
        >>> torch.randperm(5)
        tensor([4, 0, 1, 3, 2]))");
  ops.def("rand_like", rand_like, "input, *, " MAKE_LIKE, factory | kElementwise, R"(
    Draws uniformly from [0, 1), with the shape and type of input.

    Example:
        >>> torch.rand_like(torch.zeros(3))
        tensor([0.4963, 0.7682, 0.0885]))");
  ops.def("randn_like", randn_like, "input, *, " MAKE_LIKE, factory | kElementwise, R"(
    Draws from the standard normal distribution, with the shape and type of input.

    Example:
        >>> torch.randn_like(torch.zeros(3))
        tensor([ 1.5410, -0.2934, -2.1788]))");
  ops.def("randint_like", randint_like_below, "input, high, *, " MAKE_LIKE, factory | kElementwise, R"(
    Draws integers uniformly from low to high - 1, with the shape and type of input.

    Args:
        low: the least integer; 0 if only high is given.
        high: the bound, which is not drawn.

    Example:
        >>> torch.randint_like(torch.zeros(4), 10)
        tensor([4., 9., 3., 0.]))");
  ops.def("randint_like", randint_like, "input, low, high, *, " MAKE_LIKE, factory);
  ops.def("normal", normal_of_tensors, "mean, std=1.0, *, generator=None", kRandom, R"(
    Draws from normal distributions: one for each mean and deviation, or `size` of one.

    Args:
        mean: the mean, or means.
        std: the standard deviation, or deviations, not negative.

    Gradient:
        Zero: for a gradient by mean and std write mean + std * torch.randn(...).

    Example:
        >>> torch.normal(torch.tensor([0.0, 100.0]), torch.tensor([1.0, 10.0]))
        tensor([ 1.5410, 97.0657])
        >>> torch.normal(5.0, 0.1, size=(2,))
        tensor([4.7821, 5.0568]))");
  ops.def("normal", normal_of_deviations, "mean, std, *, generator=None", kRandom);
  ops.def("normal", normal_of_size, "mean, std, size, *, generator=None, " MAKE, factory);
});
#undef MAKE
#undef MAKE_LIKE

}  // namespace rl::ops
