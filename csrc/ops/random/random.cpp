#include "ops/random/random.h"

#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "base/interrupt.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

// What a fill leaves of the tensor's old contents: nothing.
struct RandomFill : Node {
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {zeros(dy[0].sizes(), dy[0].dtype(), dy[0].device())}; }
};
struct UniformBackward : RandomFill {
  static constexpr const char* kName = "UniformBackward0";
};
struct NormalFillBackward : RandomFill {
  static constexpr const char* kName = "NormalBackward0";
};
struct LogNormalBackward : RandomFill {
  static constexpr const char* kName = "LogNormalBackward0";
};
struct CauchyBackward : RandomFill {
  static constexpr const char* kName = "CauchyBackward0";
};
struct ExponentialBackward : RandomFill {
  static constexpr const char* kName = "ExponentialBackward0";
};
struct GeometricBackward : RandomFill {
  static constexpr const char* kName = "GeometricBackward0";
};
struct RandomBackward : RandomFill {
  static constexpr const char* kName = "RandomBackward0";
};
struct BernoulliFillBackward : RandomFill {
  static constexpr const char* kName = "BernoulliBackward2";
};

using Fill = FunctionRef<void(const View&, const RandomKernels&)>;

template <class N> Tensor fill_in_place(const char* name, const Tensor& self, Fill fill) {
  struct Call {
    const Tensor& self;
    Fill& fill;
    bool interruptible;
  } call{self, fill, t_interruptible && Py_REFCNT(self.object()) == 1};  // a factory's: nobody sees it half filled
  auto compute = [](void* context) {
    auto& [self, fill, interruptible] = *static_cast<Call*>(context);
    t_interruptible = interruptible;
    Tensor y = take_destination(self.sizes(), self.dtype(), will_record({self}));
    if (y.numel()) fill(y.view(), *backend(y.device()).random);
    return record<N>(y, {self});
  };
  return apply_inplace(name, self, true, true, compute, &call);
}

// The real and imaginary parts of a complex tensor as a last dimension of two.
struct RealParts {
  Ints sizes, strides;
  View view;
  explicit RealParts(const View& complex) : sizes(complex.ndim + 1), strides(complex.ndim + 1) {
    for (int i = 0; i < complex.ndim; ++i) {
      sizes[i] = complex.sizes[i];
      strides[i] = 2 * complex.strides[i];
    }
    sizes[complex.ndim] = 2;
    strides[complex.ndim] = 1;
    view = {complex.data, sizes.data(), strides.data(), complex.ndim + 1, to_real(complex.dtype)};
  }
};

struct FloatRange {
  double max;
  int digits;
};
FloatRange float_range(DType dtype) {
  switch (dtype) {
    case DType::Float16: return {65504, 11};
    case DType::BFloat16: return {0x1.fep127, 8};
    case DType::Float32: return {std::numeric_limits<float>::max(), 24};
    default: return {std::numeric_limits<double>::max(), 53};
  }
}

}  // namespace

Tensor uniform_(const Tensor& self, double from, double to, Generator* generator) {
  DType real = to_real(self.dtype());
  if (!is_float(real)) no_kernel("uniform", self.dtype());
  double max = float_range(real).max;
  CHECK(std::fabs(from) <= max, Runtime, "uniform_: from = ", from, " is out of bounds for ", info(real).name);
  CHECK(std::fabs(to) <= max, Runtime, "uniform_: to = ", to, " is out of bounds for ", info(real).name);
  CHECK(from <= to, Runtime, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  CHECK(to - from <= max, Runtime, "uniform_ expects to-from to fit in ", info(real).name, ", but found from=", from,
        " and to=", to);
  return fill_in_place<UniformBackward>("uniform_", self, [&](const View& out, const RandomKernels& kernels) {
    Generator& g = generator_or_default(generator, self.device());
    if (is_complex(out.dtype)) kernels.uniform(RealParts(out).view, from, to, g);
    else kernels.uniform(out, from, to, g);
  });
}

Tensor normal_(const Tensor& self, double mean, double std, Generator* generator) {
  if (!is_float(to_real(self.dtype()))) no_kernel("normal_kernel", self.dtype());
  CHECK(std >= 0, Runtime, "normal expects std >= 0.0, but found std ", std);
  return fill_in_place<NormalFillBackward>("normal_", self, [&](const View& out, const RandomKernels& kernels) {
    Generator& g = generator_or_default(generator, self.device());
    // The variance is shared by the two parts of a complex number.
    if (is_complex(out.dtype)) kernels.normal(RealParts(out).view, mean, std / std::sqrt(2.0), g);
    else kernels.normal(out, mean, std, g);
  });
}

static Tensor log_normal_(const Tensor& self, double mean, double std, Generator* generator) {
  CHECK(std > 0, Runtime, "log_normal_ expects std > 0.0, but found std=", std);
  if (!self.is_float()) no_kernel("log_normal", self.dtype());
  return fill_in_place<LogNormalBackward>("log_normal_", self, [&](const View& out, const RandomKernels& kernels) {
    kernels.log_normal(out, mean, std, generator_or_default(generator, self.device()));
  });
}

static Tensor cauchy_(const Tensor& self, double median, double sigma, Generator* generator) {
  CHECK(sigma > 0, Runtime, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  CHECK(self.is_float(), Runtime,
        "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
        "specified ",
        info(self.dtype()).name);
  return fill_in_place<CauchyBackward>("cauchy_", self, [&](const View& out, const RandomKernels& kernels) {
    kernels.cauchy(out, median, sigma, generator_or_default(generator, self.device()));
  });
}

Tensor exponential_(const Tensor& self, double lambda, Generator* generator) {
  CHECK(lambda > 0, Runtime, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  CHECK(self.is_float(), Runtime,
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
        "specified ",
        info(self.dtype()).legacy);
  return fill_in_place<ExponentialBackward>("exponential_", self, [&](const View& out, const RandomKernels& kernels) {
    kernels.exponential(out, lambda, generator_or_default(generator, self.device()));
  });
}

static Tensor geometric_(const Tensor& self, double p, Generator* generator) {
  CHECK(p > 0 && p < 1, Runtime, "geometric_ expects p to be in (0, 1), but got p=", p);
  if (self.is_complex() || self.dtype() == DType::Bool) no_kernel("geometric", self.dtype());
  return fill_in_place<GeometricBackward>("geometric_", self, [&](const View& out, const RandomKernels& kernels) {
    kernels.geometric(out, p, generator_or_default(generator, self.device()));
  });
}

Tensor bernoulli_(const Tensor& self, double p, Generator* generator) {
  CHECK(p >= 0 && p <= 1, Runtime, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (self.is_complex()) no_kernel("bernoulli_scalar", self.dtype());
  return fill_in_place<BernoulliFillBackward>("bernoulli_", self, [&](const View& out, const RandomKernels& kernels) {
    kernels.bernoulli(out, p, generator_or_default(generator, self.device()));
  });
}

static Tensor bernoulli_each_(const Tensor& self, const Tensor& p, Generator* generator) {
  if (!p.is_float()) no_kernel("bernoulli_tensor", p.dtype());
  if (self.is_complex()) no_kernel("bernoulli_tensor", self.dtype());
  CHECK(IntSpan(broadcast_sizes(self.sizes(), p.sizes())) == self.sizes(), Runtime,
        "bernoulli_: probabilities of shape ", to_text(p.sizes()), " do not broadcast to the tensor's shape ",
        to_text(self.sizes()));
  return fill_in_place<BernoulliFillBackward>("bernoulli_", self, [&](const View& out, const RandomKernels& kernels) {
    Ints strides = broadcast_strides(p, self.sizes());
    View each = {p.memory(), out.sizes, strides.data(), out.ndim, p.dtype()};
    kernels.bernoulli_each(out, each, generator_or_default(generator, self.device()));
  });
}

namespace {

// The nearest integers inside [from, to) that survive the cast to a type of so many digits: a number is cast after it
// is drawn, and must not round up to `to` or down below `from`.
int64_t cast_to(DType dtype, int64_t value) {
  double cast = dtype == DType::Float64   ? static_cast<double>(value)
                : dtype == DType::Float32 ? static_cast<double>(static_cast<float>(value))
                : dtype == DType::Float16
                    ? static_cast<double>(static_cast<float>(float16(static_cast<float>(value))))
                    : static_cast<double>(static_cast<float>(bfloat16(static_cast<float>(value))));
  return std::fabs(cast) < 0x1p63 ? static_cast<int64_t>(cast) : std::numeric_limits<int64_t>::min();
}
int64_t spacing(int64_t value, int digits) {
  uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int octave = magnitude ? 63 - __builtin_clzll(magnitude) : 0;
  return octave >= digits ? int64_t{1} << (octave - digits + 1) : 1;
}
int64_t first_castable(DType dtype, int64_t from) {
  int64_t next = cast_to(dtype, from + 1);
  return next < from ? next + spacing(from + 1, float_range(dtype).digits) : from;
}
int64_t end_castable(DType dtype, int64_t to) {
  int64_t last = cast_to(dtype, to - 1);
  return last >= to ? last - spacing(to - 1, float_range(dtype).digits) : to;
}

void check_bound(const char* name, int64_t value, DType dtype) {
  if (is_float(dtype)) {
    FloatRange range = float_range(dtype);
    CHECK(std::fabs(static_cast<double>(value)) <= range.max, Runtime, name, " is out of bounds for ", info(dtype).name,
          ": random_ got ", value);
    int64_t exact = int64_t{1} << range.digits;
    if ((value < -exact || value > exact) &&
        PyErr_WarnFormat(PyExc_UserWarning, 1,
                         "%s is out of bounds [-(2^%d), 2^%d], between which %s can tell all integers apart: random_ "
                         "got %lld",
                         name, range.digits, range.digits, info(dtype).name, static_cast<long long>(value)) < 0)
      python_error();
    return;
  }
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      bool fits = value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                  (sizeof(T) == 8 || value <= static_cast<int64_t>(std::numeric_limits<T>::max()));
      CHECK(fits, Runtime, name, " is out of bounds for ", info(dtype).name, ": random_ got ", value);
    } else {
      fail(ErrorKind::Runtime, "random_ handles only integral, floating-point and boolean types, not ",
           info(dtype).name);
    }
  });
}

int64_t largest_integer(DType dtype) {
  if (is_float(dtype)) return int64_t{1} << float_range(dtype).digits;
  int64_t largest = 0;
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      largest =
          sizeof(T) == 8 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(std::numeric_limits<T>::max());
  });
  return largest;
}

}  // namespace

Tensor random_from_to_(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* generator) {
  DType dtype = self.dtype();
  bool everything = !to && from == std::numeric_limits<int64_t>::min();
  uint64_t range = 0;
  if (everything) {
    CHECK(dtype == DType::Int64 || (is_float(dtype) && dtype != DType::Float16), Runtime,
          "random_ over all 64-bit integers handles only int64, float64, float32 and bfloat16, not ", info(dtype).name);
  } else if (to) {
    CHECK(from < *to, Runtime, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
    int64_t end = *to;
    if (is_float(dtype)) {
      from = first_castable(dtype, from);
      end = end_castable(dtype, end);
      CHECK(from < end, Runtime,
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=", from,
            " >= to=", end);
    }
    check_bound("from", from, dtype);
    check_bound("to - 1", end - 1, dtype);
    range = static_cast<uint64_t>(end) - static_cast<uint64_t>(from);
  } else {
    int64_t last = largest_integer(dtype);
    if (is_float(dtype)) from = first_castable(dtype, from);
    check_bound("from", from, dtype);
    CHECK(from <= last, Runtime, "random_ expects 'from' to be at most ", last, " for ", info(dtype).name, ", got ",
          from);
    range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;
  }
  return fill_in_place<RandomBackward>("random_", self, [&](const View& out, const RandomKernels& kernels) {
    Generator& g = generator_or_default(generator, self.device());
    if (everything) kernels.random_bits(out, g);
    else kernels.random_range(out, range, from, g);
  });
}
static Tensor random_to_(const Tensor& self, int64_t to, Generator* generator) {
  return random_from_to_(self, 0, to, generator);
}
static Tensor random_(const Tensor& self, Generator* generator) {
  if (self.is_complex() || self.dtype() == DType::UInt16 || self.dtype() == DType::UInt32 ||
      self.dtype() == DType::UInt64)
    no_kernel("random_kernel", self.dtype());
  return fill_in_place<RandomBackward>("random_", self, [&](const View& out, const RandomKernels& kernels) {
    kernels.random_any(out, generator_or_default(generator, self.device()));
  });
}

static const Register registered([](Ops& ops) {
  const uint32_t in_place = kMethod | kNoFunction | kNoOut | kRandom | kElementwise;
  ops.def("uniform_", uniform_, "input, from=0.0, to=1.0, *, generator=None", in_place, R"(
    Fills the tensor with values drawn uniformly from [from, to).

    Args:
        from: the lower bound.
        to: the upper bound.

    Gradient:
        0 for the old values.

    Example:
        >>> torch.empty(3).uniform_(-1, 1)
        tensor([-0.0075,  0.5364, -0.8230]))");
  ops.def("normal_", normal_, "input, mean=0.0, std=1.0, *, generator=None", in_place, R"(
    Fills the tensor with values drawn from a normal distribution.

    Args:
        mean: its mean.
        std: its standard deviation, not negative.

    Gradient:
        0 for the old values.

    Example:
        >>> torch.empty(3).normal_(mean=10.0, std=0.1)
        tensor([10.1541,  9.9707,  9.7821]))");
  ops.def("log_normal_", log_normal_, "input, mean=1.0, std=2.0, *, generator=None", in_place, R"(
    Fills the tensor with e^x of values x drawn from a normal distribution.

    Args:
        mean: the mean of x.
        std: the standard deviation of x, positive.

    Gradient:
        0 for the old values.

    Example:
        >>> torch.empty(3).log_normal_()
        tensor([5.9263e+01, 1.5116e+00, 3.4819e-02]))");
  ops.def("cauchy_", cauchy_, "input, median=0.0, sigma=1.0, *, generator=None", in_place, R"(
    Fills the tensor with values drawn from a Cauchy distribution.

    Args:
        median: its median.
        sigma: half the distance of its quartiles.

    Gradient:
        0 for the old values.

    Example:
        >>> torch.empty(3).cauchy_()
        tensor([10.5977,  0.7648, -0.1283]))");
  ops.def("exponential_", exponential_, "input, lambd=1.0, *, generator=None", in_place, R"(
    Fills the tensor with values drawn from an exponential distribution: density lambd * e^(-lambd x).

    Args:
        lambd: the rate, positive; the mean is 1 / lambd.

    Gradient:
        0 for the old values.

    Example:
        >>> torch.empty(3).exponential_(lambd=0.5)
        tensor([7.0167, 2.4608, 1.2301]))");
  ops.def("geometric_", geometric_, "input, p, *, generator=None", in_place, R"(
    Fills the tensor with numbers of trials up to the first success.

    Args:
        p: the probability of success, in (0, 1).

    Gradient:
        0 for the old values.

    Example:
        >>> torch.empty(5).geometric_(0.3)
        tensor([1., 1., 3., 1., 2.]))");
  ops.def("bernoulli_", bernoulli_each_, "input, p, *, generator=None", in_place, R"(
    Fills the tensor with zeros and ones drawn at random.

    Args:
        p: the probability of 1: a number, or a tensor with one for each element.

    Gradient:
        0 for the old values.

    Example:
        >>> torch.empty(6).bernoulli_(0.5)
        tensor([0., 0., 1., 0., 0., 0.]))");
  ops.def("bernoulli_", bernoulli_, "input, p=0.5, *, generator=None", in_place);
  ops.def("random_", random_, "input, *, generator=None", in_place, R"(
    Fills the tensor with integers drawn uniformly from [from, to).

    Args:
        from: the lower bound; 0 if only one bound is given.
        to: the upper bound; without any, all integers that the type can hold may come.

    Gradient:
        0 for the old values.

    Example:
        >>> torch.empty(6).random_(10)
        tensor([4., 9., 3., 0., 3., 9.]))");
  ops.def("random_", random_from_to_, "input, from, to, *, generator=None", in_place);
  ops.def("random_", random_to_, "input, to, *, generator=None", in_place);
});

}  // namespace rl::ops
