#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

// exp: y = e^x        dx = dy conj(y)
struct ExpBackward : ResultNode {
  static constexpr const char* kName = "ExpBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], conj(y()))}; }
};
static constexpr Kernel kExp{
    .op = Pointwise::Exp, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) { return w.mul(w.dy, w.y); }};
Tensor exp(const Tensor& x) { return from_result<ExpBackward>(unary("exp", kExp, x), x); }

// exp2: y = 2^x        dx = dy conj(y) ln 2
struct Exp2Backward : ResultNode {
  static constexpr const char* kName = "Exp2Backward0";
  Grads backward(const Grads& dy) { return {mul(mul(dy[0], conj(y())), 0.69314718055994530942)}; }
};
static constexpr Kernel kExp2{.op = Pointwise::Exp2, .rule = Rule::Float, .cost = 8};
Tensor exp2(const Tensor& x) { return from_result<Exp2Backward>(unary("exp2", kExp2, x), x); }

// expm1: y = e^x - 1        dx = dy (conj(y) + 1)
struct Expm1Backward : ResultNode {
  static constexpr const char* kName = "Expm1Backward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], add(conj(y()), 1))}; }
};
static constexpr Kernel kExpm1{.op = Pointwise::Expm1, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) {
                                 return w.mul(w.dy, w.add(w.y, w.number(1)));
                               }};
Tensor expm1(const Tensor& x) { return from_result<Expm1Backward>(unary("expm1", kExpm1, x), x); }

// log: y = ln x        dx = dy / conj(x)
struct LogBackward : SelfNode {
  static constexpr const char* kName = "LogBackward0";
  Grads backward(const Grads& dy) { return {div(dy[0], conj(x()))}; }
};
static constexpr Kernel kLog{
    .op = Pointwise::Log, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) { return w.div(w.dy, w.a); }};
Tensor log(const Tensor& x) { return from_self<LogBackward>(unary("log", kLog, x), x); }

// log2: y = ln x / ln 2        dx = dy / (conj(x) ln 2)
struct Log2Backward : SelfNode {
  static constexpr const char* kName = "Log2Backward0";
  Grads backward(const Grads& dy) { return {div(dy[0], mul(conj(x()), 0.69314718055994530942))}; }
};
static constexpr Kernel kLog2{.op = Pointwise::Log2, .rule = Rule::Float, .cost = 8};
Tensor log2(const Tensor& x) { return from_self<Log2Backward>(unary("log2", kLog2, x), x); }

// log10: y = ln x / ln 10        dx = dy / (conj(x) ln 10)
struct Log10Backward : SelfNode {
  static constexpr const char* kName = "Log10Backward0";
  Grads backward(const Grads& dy) { return {div(dy[0], mul(conj(x()), 2.30258509299404568402))}; }
};
static constexpr Kernel kLog10{.op = Pointwise::Log10, .rule = Rule::Float, .cost = 8};
Tensor log10(const Tensor& x) { return from_self<Log10Backward>(unary("log10", kLog10, x), x); }

// log1p: y = ln(1 + x)        dx = dy / (1 + conj(x))
struct Log1pBackward : SelfNode {
  static constexpr const char* kName = "Log1PBackward0";
  Grads backward(const Grads& dy) { return {div(dy[0], add(conj(x()), 1))}; }
};
static constexpr Kernel kLog1p{.op = Pointwise::Log1p, .rule = Rule::Float, .cost = 8, .gradient = [](Writer& w) {
                                 return w.div(w.dy, w.add(w.a, w.number(1)));
                               }};
Tensor log1p(const Tensor& x) { return from_self<Log1pBackward>(unary("log1p", kLog1p, x), x); }

// sqrt: y = x^(1/2)        dx = dy / (2 conj(y))
struct SqrtBackward : ResultNode {
  static constexpr const char* kName = "SqrtBackward0";
  Grads backward(const Grads& dy) { return {div(dy[0], mul(conj(y()), 2))}; }
};
static constexpr Kernel kSqrt{.op = Pointwise::Sqrt,
                              .rule = Rule::Float,
                              .cost = 4,
                              .gradient = [](Writer& w) { return w.div(w.dy, w.times(2, w.y)); },
                              .number = [](double a, double) { return std::sqrt(a); }};
Tensor sqrt(const Tensor& x) { return from_result<SqrtBackward>(unary("sqrt", kSqrt, x), x); }

// rsqrt: y = x^(-1/2)        dx = -dy conj(y)^3 / 2
struct RsqrtBackward : ResultNode {
  static constexpr const char* kName = "RsqrtBackward0";
  Grads backward(const Grads& dy) { return {mul(mul(dy[0], -0.5), pow(conj(y()), 3))}; }
};
static constexpr Kernel kRsqrt{.op = Pointwise::Rsqrt, .rule = Rule::Float, .cost = 4, .gradient = [](Writer& w) {
                                 return w.mul(w.times(-0.5, w.dy), w.mul(w.square(w.y), w.y));
                               }};
Tensor rsqrt(const Tensor& x) { return from_result<RsqrtBackward>(unary("rsqrt", kRsqrt, x), x); }

// square: y = x^2        dx = 2 dy conj(x)
struct SquareBackward : SelfNode {
  static constexpr const char* kName = "PowBackward0";
  Grads backward(const Grads& dy) {
    Tensor derivative = grad_enabled() ? pow(x(), 1) : x();  // see PowBackward
    return {mul(dy[0], mul(conj(derivative), 2))};
  }
};
static constexpr Kernel kSquare{.op = Pointwise::Square,
                                .gradient = [](Writer& w) { return w.mul(w.dy, w.times(2, w.a)); },
                                .number = [](double a, double) { return a * a; }};
Tensor square(const Tensor& x) {
  const Tensor& wide = x.dtype() == DType::Bool ? cast(x, DType::Int64) : x;
  return from_self<SquareBackward>(unary("square", kSquare, wide), x);
}

// reciprocal: y = 1 / x        dx = -dy conj(y)^2
struct ReciprocalBackward : ResultNode {
  static constexpr const char* kName = "ReciprocalBackward0";
  Grads backward(const Grads& dy) { return {mul(neg(dy[0]), square(conj(y())))}; }
};
static constexpr Kernel kReciprocal{
    .op = Pointwise::Reciprocal, .rule = Rule::Float, .cost = 2, .gradient = [](Writer& w) {
      return w.neg(w.mul(w.dy, w.square(w.y)));
    }};
Tensor reciprocal(const Tensor& x) { return from_result<ReciprocalBackward>(unary("reciprocal", kReciprocal, x), x); }

static const Register registered([](Ops& ops) {
  const uint32_t of_result = kUnary | kKeepsInput;
  ops.def("exp", exp, "input", of_result, R"(
    Raises e to each element: y = e^x.

    Example:
        >>> torch.tensor([0.0, 1.0, math.log(2.0)]).exp()
        tensor([1.0000, 2.7183, 2.0000]))",
          kExp);
  ops.def("exp2", exp2, "input", of_result, R"(
    Raises 2 to each element: y = 2^x.

    Example:
        >>> torch.exp2(torch.tensor([-1.0, 0.0, 3.0]))
        tensor([0.5000, 1.0000, 8.0000]))",
          kExp2);
  ops.alias("special.exp2", "exp2");
  ops.def("expm1", expm1, "input", of_result, R"(
    Computes e^x - 1, precisely also for x near 0, where e^x rounds to 1.

    Example:
        >>> x = torch.tensor([1e-9])
        >>> x.exp() - 1
        tensor([0.])
        >>> x.expm1()
        tensor([1.0000e-09]))",
          kExpm1);
  ops.alias("special.expm1", "expm1");
  ops.def("log", log, "input", kUnary, R"(
    Takes the natural logarithm: y = log(x), which is -inf at 0 and NaN below it.

    Example:
        >>> torch.log(torch.tensor([1.0, math.e, 0.0, -1.0]))
        tensor([0., 1., -inf, nan]))",
          kLog);
  ops.def("log2", log2, "input", kUnary, R"(
    Takes the logarithm to base 2.

    Example:
        >>> torch.log2(torch.tensor([0.5, 1.0, 8.0]))
        tensor([-1.,  0.,  3.]))",
          kLog2);
  ops.def("log10", log10, "input", kUnary, R"(
    Takes the logarithm to base 10.

    Example:
        >>> torch.log10(torch.tensor([0.01, 1.0, 1000.0]))
        tensor([-2.,  0.,  3.]))",
          kLog10);
  ops.def("log1p", log1p, "input", kUnary, R"(
    Computes log(1 + x), precisely also for x near 0, where 1 + x rounds to 1.

    Example:
        >>> x = torch.tensor([1e-9])
        >>> (1 + x).log()
        tensor([0.])
        >>> x.log1p()
        tensor([1.0000e-09]))",
          kLog1p);
  ops.alias("special.log1p", "log1p");
  ops.def("sqrt", sqrt, "input", of_result, R"(
    Takes the square root, which is NaN for negative elements.

    Gradient:
        dy / (2 y): infinite at 0. Where 0 occurs, add a small number before taking the root.

    Example:
        >>> torch.sqrt(torch.tensor([4.0, 2.0, -1.0]))
        tensor([2.0000, 1.4142,    nan])
        >>> x = torch.tensor([0.0, 4.0], requires_grad=True)
        >>> x.sqrt().sum().backward()
        >>> x.grad
        tensor([   inf, 0.2500]))",
          kSqrt);
  ops.def("rsqrt", rsqrt, "input", of_result, R"(
    Computes 1 / sqrt(x), which is inf at 0 and NaN below it.

    Example:
        >>> torch.rsqrt(torch.tensor([0.25, 4.0, 0.0]))
        tensor([2.0000, 0.5000,    inf]))",
          kRsqrt);
  ops.def("square", square, "input", kUnary, R"(
    Multiplies each element with itself: y = x * x, of integers too.

    Example:
        >>> torch.square(torch.tensor([-3, 2]))
        tensor([9, 4]))",
          kSquare);
  ops.def("reciprocal", reciprocal, "input", of_result, R"(
    Computes 1 / x.

    Example:
        >>> torch.reciprocal(torch.tensor([2, 4, 0]))
        tensor([0.5000, 0.2500,    inf]))",
          kReciprocal);
});

}  // namespace rl::ops
