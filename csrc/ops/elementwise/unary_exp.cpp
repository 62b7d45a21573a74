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
  ops.def("exp", exp, "input", of_result, "e raised to each element.", kExp);
  ops.def("exp2", exp2, "input", of_result, "2 raised to each element.", kExp2);
  ops.alias("special.exp2", "exp2");
  ops.def("expm1", expm1, "input", of_result, "e^input - 1, precise near 0.", kExpm1);
  ops.alias("special.expm1", "expm1");
  ops.def("log", log, "input", kUnary, "The natural logarithm.", kLog);
  ops.def("log2", log2, "input", kUnary, "The logarithm to base 2.", kLog2);
  ops.def("log10", log10, "input", kUnary, "The logarithm to base 10.", kLog10);
  ops.def("log1p", log1p, "input", kUnary, "log(1 + input), precise near 0.", kLog1p);
  ops.alias("special.log1p", "log1p");
  ops.def("sqrt", sqrt, "input", of_result, "The square root.", kSqrt);
  ops.def("rsqrt", rsqrt, "input", of_result, "1 / sqrt(input).", kRsqrt);
  ops.def("square", square, "input", kUnary, "input * input.", kSquare);
  ops.def("reciprocal", reciprocal, "input", of_result, "1 / input.", kReciprocal);
});

}  // namespace rl::ops
