#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

static constexpr double kSqrtPi = 1.77245385090551602730, kSqrtHalf = 0.70710678118654752440;
static Tensor special_i1(const Tensor& x);
static Tensor special_i0e(const Tensor& x);
static Tensor special_i1e(const Tensor& x);

// erf        dx = dy 2 / sqrt(pi) e^-x^2
struct ErfBackward : SelfNode {
  static constexpr const char* kName = "ErfBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], mul(exp(neg(square(x()))), 2 / kSqrtPi))}; }
};
static constexpr Kernel kErf{.op = Pointwise::Erf, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) {
                               return w.mul(w.dy, w.times(2 / kSqrtPi, w.put("exp", w.neg(w.square(w.a)))));
                             }};
Tensor erf(const Tensor& x) { return from_self<ErfBackward>(unary("erf", kErf, x), x); }

// erfc: y = 1 - erf x        dx = -dy 2 / sqrt(pi) e^-x^2
struct ErfcBackward : SelfNode {
  static constexpr const char* kName = "ErfcBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], mul(exp(neg(square(x()))), -2 / kSqrtPi))}; }
};
static constexpr Kernel kErfc{.op = Pointwise::Erfc, .rule = Rule::Float, .cost = 8};
Tensor erfc(const Tensor& x) { return from_self<ErfcBackward>(unary("erfc", kErfc, x), x); }

// erfinv: x = erf y        dx = dy sqrt(pi) / 2 e^y^2
struct ErfinvBackward : ResultNode {
  static constexpr const char* kName = "ErfinvBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], mul(exp(square(y())), kSqrtPi / 2))}; }
};
static constexpr Kernel kErfinv{.op = Pointwise::Erfinv, .rule = Rule::Float, .cost = 64};
static Tensor erfinv(const Tensor& x) { return from_result<ErfinvBackward>(unary("erfinv", kErfinv, x), x); }

// erfcx: y = e^x^2 erfc x        dx = dy (2 x y - 2 / sqrt(pi))
struct ErfcxBackward : Node {
  static constexpr const char* kName = "SpecialErfcxBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Grads backward(const Grads& dy) {
    return {mul(dy[0], sub(mul(mul(self.unpack(*this), result.unpack(*this)), 2), 2 / kSqrtPi))};
  }
  FIELDS(self, result)
};
static constexpr Kernel kErfcx{.op = Pointwise::Erfcx, .rule = Rule::Float, .cost = 64};
static Tensor special_erfcx(const Tensor& x) {
  Tensor y = unary("erfcx", kErfcx, x);
  return record<ErfcxBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.result = save_output(n, y);
  });
}

// ndtri: the quantile of the normal distribution        dx = dy sqrt(2 pi) e^(y^2 / 2)
struct NdtriBackward : ResultNode {
  static constexpr const char* kName = "SpecialNdtriBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], mul(exp(mul(square(y()), 0.5)), 2.50662827463100050242))}; }
};
static constexpr Kernel kNdtri{.op = Pointwise::Ndtri, .rule = Rule::Float, .cost = 64};
static Tensor special_ndtri(const Tensor& x) { return from_result<NdtriBackward>(unary("ndtri", kNdtri, x), x); }

// log_ndtr: the log of the normal distribution function        dx = dy sqrt(2 / pi) / erfcx(-x / sqrt 2)
struct LogNdtrBackward : SelfNode {
  static constexpr const char* kName = "SpecialLogNdtrBackward0";
  Grads backward(const Grads& dy) {
    return {mul(div(dy[0], special_erfcx(mul(x(), -kSqrtHalf))), 0.79788456080286535588)};
  }
};
static constexpr Kernel kLogNdtr{.op = Pointwise::LogNdtr, .rule = Rule::Float, .cost = 64};
static Tensor special_log_ndtr(const Tensor& x) {
  return from_self<LogNdtrBackward>(unary("log_ndtr", kLogNdtr, x), x);
}

// ndtr: the normal distribution function, (1 + erf(x / sqrt 2)) / 2, by erfc in the tails
static Tensor special_ndtr(const Tensor& x) {
  Tensor z = mul(x, kSqrtHalf);
  return mul(erfc(neg(z)), 0.5);
}

// entr: y = -x log x        dx = -dy (1 + log x)
struct EntrBackward : SelfNode {
  static constexpr const char* kName = "SpecialEntrBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], neg(add(log(x()), 1)))}; }
};
static constexpr Kernel kEntr{.op = Pointwise::Entr, .rule = Rule::Float, .cost = 8};
static Tensor special_entr(const Tensor& x) { return from_self<EntrBackward>(unary("entr", kEntr, x), x); }

// logit: y = log(x / (1 - x)), x first brought into [eps, 1 - eps]        dx = dy / (x (1 - x)) inside, 0 outside
struct LogitBackward : Node {
  static constexpr const char* kName = "LogitBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  double eps = -1;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), derivative = div(dy[0], mul(x, add(neg(x), 1)));
    double low = eps < 0 ? 0 : eps, high = 1 - low;
    return {where(logical_and(ge(x, low), le(x, high)), derivative, Scalar(eps < 0 ? __builtin_nan("") : 0.0))};
  }
  FIELDS(self, eps)
};
static constexpr Kernel kLogit{.op = Pointwise::Logit, .rule = Rule::Float, .cost = 8};
static Tensor logit(const Tensor& x, const std::optional<double>& eps) {
  double bound = eps.value_or(-1);
  Tensor y = unary("logit", kLogit.op, x, with_numbers(kLogit, bound));
  return record<LogitBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.eps = bound;
  });
}

// lgamma: y = log |Gamma(x)|        dx = dy digamma(x)
struct LgammaBackward : SelfNode {
  static constexpr const char* kName = "LgammaBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], digamma(x()))}; }
};
static constexpr Kernel kLgamma{.op = Pointwise::Lgamma, .rule = Rule::Float, .cost = 64};
Tensor lgamma(const Tensor& x) { return from_self<LgammaBackward>(unary("lgamma", kLgamma, x), x); }

// digamma: the derivative of lgamma        dx = dy trigamma(x)
struct DigammaBackward : SelfNode {
  static constexpr const char* kName = "DigammaBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], polygamma(1, x()))}; }
};
static constexpr Kernel kDigamma{.op = Pointwise::Digamma, .rule = Rule::Float, .cost = 64};
Tensor digamma(const Tensor& x) { return from_self<DigammaBackward>(unary("digamma", kDigamma, x), x); }

// polygamma: the n-th derivative of digamma        dx = dy polygamma(n + 1, x)
struct PolygammaBackward : Node {
  static constexpr const char* kName = "PolygammaBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  int64_t n = 0;
  Grads backward(const Grads& dy) { return {mul(dy[0], polygamma(n + 1, self.unpack(*this)))}; }
  FIELDS(n, self)
};
Tensor polygamma(int64_t n, const Tensor& x) {
  CHECK(n >= 0, Runtime, "polygamma(n, x) does not support negative n.");
  if (n == 0) return digamma(x);
  PointwiseOptions options = to_float(256);
  options.params.i0 = n;
  Tensor y = unary("polygamma", n == 1 ? Pointwise::Trigamma : Pointwise::Polygamma, x, options);
  return record<PolygammaBackward>(y, {x}, [&](auto& node) {
    node.self = save(x);
    node.n = n;
  });
}
static Tensor polygamma_method(const Tensor& x, int64_t n) { return polygamma(n, x); }

// mvlgamma: log of the multivariate gamma function, sum over j of lgamma(x - j/2)        dx = dy sum digamma(x - j/2)
struct MvlgammaBackward : Node {
  static constexpr const char* kName = "MvlgammaBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  int64_t p = 1;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), sum = digamma(x);
    for (int64_t j = 1; j < p; ++j) sum = add(sum, digamma(sub(x, 0.5 * static_cast<double>(j))));
    return {mul(dy[0], sum)};
  }
  FIELDS(p, self)
};
static Tensor mvlgamma(const Tensor& x, int64_t p) {
  CHECK(p >= 1, Runtime, "p has to be greater than or equal to 1");
  CHECK(p <= 1000000, Runtime, "mvlgamma: p is too large: ", p);
  Tensor base = is_differentiable(x.dtype()) ? x : cast(x, default_dtype());
  Tensor y;
  {
    NoGrad raw;
    y = lgamma(base);
    for (int64_t j = 1; j < p; ++j) y = add(y, lgamma(sub(base, 0.5 * static_cast<double>(j))));
    y = add(y, 0.25 * static_cast<double>(p) * static_cast<double>(p - 1) * 1.14472988584940017414);  // log pi
  }
  return record<MvlgammaBackward>(y, {base}, [&](auto& n) { n.self = save(base), n.p = p; });
}

// i0: modified Bessel function of order 0        dx = dy i1(x)
struct I0Backward : SelfNode {
  static constexpr const char* kName = "I0Backward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], special_i1(x()))}; }
};
static constexpr Kernel kI0{.op = Pointwise::I0, .rule = Rule::Float, .cost = 64};
static Tensor i0(const Tensor& x) { return from_self<I0Backward>(unary("i0", kI0, x), x); }

// i0e: e^-|x| i0(x)        dx = dy (i1e(x) - sgn(x) y)
struct I0eBackward : Node {
  static constexpr const char* kName = "SpecialI0EBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    return {mul(dy[0], sub(special_i1e(x), mul(sgn(x), result.unpack(*this))))};
  }
  FIELDS(self, result)
};
static constexpr Kernel kI0e{.op = Pointwise::I0e, .rule = Rule::Float, .cost = 64};
static Tensor special_i0e(const Tensor& x) {
  Tensor y = unary("i0e", kI0e, x);
  return record<I0eBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.result = save_output(n, y);
  });
}

// So near 0 that 1 / x may overflow; a derivative is there what it is at 0.
static Tensor is_tiny(const Tensor& x) { return le(abs(detach(x)), Scalar(1e-18)); }

// i1: modified Bessel function of order 1        dx = dy (i0(x) - y / x), dy / 2 at 0
struct I1Backward : Node {
  static constexpr const char* kName = "SpecialI1Backward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    Tensor derivative = sub(i0(x), div(result.unpack(*this), x));
    return {mul(dy[0], where(is_tiny(x), Scalar(0.5), derivative))};
  }
  FIELDS(self, result)
};
static constexpr Kernel kI1{.op = Pointwise::I1, .rule = Rule::Float, .cost = 64};
static Tensor special_i1(const Tensor& x) {
  Tensor y = unary("i1", kI1, x);
  return record<I1Backward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.result = save_output(n, y);
  });
}

// i1e: e^-|x| i1(x)        dx = dy (i0e(x) - y (sgn(x) + 1 / x)), dy / 2 at 0
struct I1eBackward : Node {
  static constexpr const char* kName = "SpecialI1EBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    Tensor derivative = sub(special_i0e(x), mul(result.unpack(*this), add(sgn(x), reciprocal(x))));
    return {mul(dy[0], where(is_tiny(x), Scalar(0.5), derivative))};
  }
  FIELDS(self, result)
};
static constexpr Kernel kI1e{.op = Pointwise::I1e, .rule = Rule::Float, .cost = 64};
static Tensor special_i1e(const Tensor& x) {
  Tensor y = unary("i1e", kI1e, x);
  return record<I1eBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.result = save_output(n, y);
  });
}

static const Register registered([](Ops& ops) {
  const uint32_t of_result = kUnary | kKeepsInput;
  ops.def("erf", erf, "input", kUnary, R"(
    Computes the error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.

    Example:
        >>> torch.erf(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5205, 0.8427]))",
          kErf);
  ops.alias("special.erf", "erf");
  ops.def("erfc", erfc, "input", kUnary, R"(
    Computes 1 - erf(x), precisely also where erf(x) is close to 1.

    Example:
        >>> torch.erfc(torch.tensor([0.0, 1.0, 5.0]))
        tensor([1.0000e+00, 1.5730e-01, 1.5375e-12]))",
          kErfc);
  ops.alias("special.erfc", "erfc");
  ops.def("erfinv", erfinv, "input", of_result, R"(
    Inverts the error function: the y with erf(y) = x; infinite at -1 and 1, NaN beyond.

    Example:
        >>> torch.erfinv(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.4769,    inf]))",
          kErfinv);
  ops.alias("special.erfinv", "erfinv");
  ops.def("special.erfcx", special_erfcx, "input", 0, R"(
    Computes e^(x^2) erfc(x), which stays representable for large x.

    Example:
        >>> torch.special.erfcx(torch.tensor([0.0, 10.0]))
        tensor([1.0000, 0.0561]))",
          kErfcx);
  ops.def("special.ndtr", special_ndtr, "input", kFreeOut | kElementwise, R"(
    Computes the probability that a standard normal variable is at most x.

    Example:
        >>> torch.special.ndtr(torch.tensor([-1.96, 0.0, 1.96]))
        tensor([0.0250, 0.5000, 0.9750]))");
  ops.def("special.ndtri", special_ndtri, "input", 0, R"(
    Computes the quantiles of the standard normal distribution: the y with ndtr(y) = x.

    Example:
        >>> torch.special.ndtri(torch.tensor([0.025, 0.975]))
        tensor([-1.9600,  1.9600]))",
          kNdtri);
  ops.def("special.log_ndtr", special_log_ndtr, "input", 0, R"(
    Computes the logarithm of the normal distribution function, precisely far below 0 too.

    Example:
        >>> torch.special.log_ndtr(torch.tensor([-20.0, 0.0]))
        tensor([-203.9172,   -0.6931]))",
          kLogNdtr);
  ops.def("special.entr", special_entr, "input", 0, R"(
    Computes the entropy terms -x log(x): 0 at 0, and -inf below.

    Example:
        >>> torch.special.entr(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.3466, -0.0000]))",
          kEntr);
  ops.def("logit", logit, "input, eps=None", kUnary, R"(
    Inverts the sigmoid: log(x / (1 - x)).

    Args:
        eps: if given, x is first brought into [eps, 1 - eps].

    Gradient:
        Zero where eps changed x.

    Example:
        >>> torch.logit(torch.tensor([0.25, 0.5, 1.0]))
        tensor([-1.0986,  0.0000,     inf])
        >>> torch.logit(torch.tensor([0.25, 0.5, 1.0]), eps=1e-3)
        tensor([-1.0986,  0.0000,  6.9068]))",
          kLogit);
  ops.alias("special.logit", "logit");
  ops.def("lgamma", lgamma, "input", kUnary, R"(
    Computes log(|gamma(x)|), which is log((x - 1)!) for positive integers.

    Example:
        >>> torch.lgamma(torch.tensor([0.5, 1.0, 5.0]))
        tensor([0.5724, 0.0000, 3.1781]))",
          kLgamma);
  ops.alias("special.gammaln", "lgamma");
  ops.def("digamma", digamma, "input", kUnary, R"(
    Computes psi(x), the derivative of log(gamma(x)).

    Example:
        >>> torch.digamma(torch.tensor([1.0, 0.5]))
        tensor([-0.5772, -1.9635]))",
          kDigamma);
  ops.alias("special.digamma", "digamma");
  ops.alias("special.psi", "digamma");
  ops.def("polygamma", polygamma, "n, input", kUnary, R"(
    Computes the n-th derivative of digamma(x).

    Args:
        n: the order, not negative; 0 is digamma itself.

    Example:
        >>> torch.polygamma(1, torch.tensor([1.0, 0.5]))
        tensor([1.6449, 4.9348]))");
  ops.def("special.polygamma", polygamma, "n, input", kElementwise, R"(
    Computes the n-th derivative of digamma(x).

    Args:
        n: the order, not negative; 0 is digamma itself.

    Example:
        >>> torch.special.polygamma(1, torch.tensor([1.0, 0.5]))
        tensor([1.6449, 4.9348]))");
  ops.def("polygamma", polygamma_method, "input, n", kUnary);
  ops.def("mvlgamma", mvlgamma, "input, p", kMethod | kInplace | kFreeOut | kElementwise, R"(
    Computes the logarithm of the multivariate gamma function of dimension p.

    Args:
        p: the dimension, at least 1; the elements are larger than (p - 1) / 2.

    Example:
        >>> torch.mvlgamma(torch.tensor([2.0, 5.0]), p=2)
        tensor([0.4516, 6.2042]))");
  ops.alias("special.multigammaln", "mvlgamma");
  ops.def("i0", i0, "input", kUnary, R"(
    Computes the modified Bessel function of the first kind of order 0.

    Example:
        >>> torch.i0(torch.tensor([0.0, 1.0, 3.0]))
        tensor([1.0000, 1.2661, 4.8808]))",
          kI0);
  ops.alias("special.i0", "i0");
  ops.def("special.i0e", special_i0e, "input", 0, R"(
    Computes e^-|x| i0(x), the modified Bessel function of order 0 without overflow.

    Example:
        >>> torch.special.i0e(torch.tensor([0.0, 1.0, 100.0]))
        tensor([1.0000, 0.4658, 0.0399]))",
          kI0e);
  ops.def("special.i1", special_i1, "input", 0, R"(
    Computes the modified Bessel function of the first kind of order 1.

    Example:
        >>> torch.special.i1(torch.tensor([0.0, 1.0, 3.0]))
        tensor([0.0000, 0.5652, 3.9534]))",
          kI1);
  ops.def("special.i1e", special_i1e, "input", 0, R"(
    Computes e^-|x| i1(x), the modified Bessel function of order 1 without overflow.

    Example:
        >>> torch.special.i1e(torch.tensor([0.0, 1.0, 100.0]))
        tensor([0.0000, 0.2079, 0.0397]))",
          kI1e);
});

}  // namespace rl::ops
