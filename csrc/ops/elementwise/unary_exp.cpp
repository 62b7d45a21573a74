#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

// exp: y = e^x        dx = dy conj(y)
struct ExpBackward : ResultNode {
  static constexpr const char* kName = "ExpBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], conj(y()))}; }
};
Tensor exp(const Tensor& x) { return from_result<ExpBackward>(unary("exp", Pointwise::Exp, x, to_float()), x); }

// exp2: y = 2^x        dx = dy conj(y) ln 2
struct Exp2Backward : ResultNode {
  static constexpr const char* kName = "Exp2Backward0";
  Grads backward(const Grads& dy) { return {mul(mul(dy[0], conj(y())), 0.69314718055994530942)}; }
};
Tensor exp2(const Tensor& x) { return from_result<Exp2Backward>(unary("exp2", Pointwise::Exp2, x, to_float()), x); }

// expm1: y = e^x - 1        dx = dy (conj(y) + 1)
struct Expm1Backward : ResultNode {
  static constexpr const char* kName = "Expm1Backward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], add(conj(y()), 1))}; }
};
Tensor expm1(const Tensor& x) { return from_result<Expm1Backward>(unary("expm1", Pointwise::Expm1, x, to_float()), x); }

// log: y = ln x        dx = dy / conj(x)
struct LogBackward : SelfNode {
  static constexpr const char* kName = "LogBackward0";
  Grads backward(const Grads& dy) { return {div(dy[0], conj(x()))}; }
};
Tensor log(const Tensor& x) { return from_self<LogBackward>(unary("log", Pointwise::Log, x, to_float()), x); }

// log2: y = ln x / ln 2        dx = dy / (conj(x) ln 2)
struct Log2Backward : SelfNode {
  static constexpr const char* kName = "Log2Backward0";
  Grads backward(const Grads& dy) { return {div(dy[0], mul(conj(x()), 0.69314718055994530942))}; }
};
Tensor log2(const Tensor& x) { return from_self<Log2Backward>(unary("log2", Pointwise::Log2, x, to_float()), x); }

// log10: y = ln x / ln 10        dx = dy / (conj(x) ln 10)
struct Log10Backward : SelfNode {
  static constexpr const char* kName = "Log10Backward0";
  Grads backward(const Grads& dy) { return {div(dy[0], mul(conj(x()), 2.30258509299404568402))}; }
};
Tensor log10(const Tensor& x) { return from_self<Log10Backward>(unary("log10", Pointwise::Log10, x, to_float()), x); }

// log1p: y = ln(1 + x)        dx = dy / (1 + conj(x))
struct Log1pBackward : SelfNode {
  static constexpr const char* kName = "Log1PBackward0";
  Grads backward(const Grads& dy) { return {div(dy[0], add(conj(x()), 1))}; }
};
Tensor log1p(const Tensor& x) { return from_self<Log1pBackward>(unary("log1p", Pointwise::Log1p, x, to_float()), x); }

// sqrt: y = x^(1/2)        dx = dy / (2 conj(y))
struct SqrtBackward : ResultNode {
  static constexpr const char* kName = "SqrtBackward0";
  Grads backward(const Grads& dy) { return {div(dy[0], mul(conj(y()), 2))}; }
};
Tensor sqrt(const Tensor& x) { return from_result<SqrtBackward>(unary("sqrt", Pointwise::Sqrt, x, to_float(4)), x); }

// rsqrt: y = x^(-1/2)        dx = -dy conj(y)^3 / 2
struct RsqrtBackward : ResultNode {
  static constexpr const char* kName = "RsqrtBackward0";
  Grads backward(const Grads& dy) { return {mul(mul(dy[0], -0.5), pow(conj(y()), 3))}; }
};
Tensor rsqrt(const Tensor& x) {
  return from_result<RsqrtBackward>(unary("rsqrt", Pointwise::Rsqrt, x, to_float(4)), x);
}

// square: y = x^2        dx = 2 dy conj(x)
struct SquareBackward : SelfNode {
  static constexpr const char* kName = "PowBackward0";
  Grads backward(const Grads& dy) {
    Tensor slope = grad_enabled() ? pow(x(), 1) : x();  // see PowBackward
    return {mul(dy[0], mul(conj(slope), 2))};
  }
};
Tensor square(const Tensor& x) {
  const Tensor& wide = x.dtype() == DType::Bool ? cast(x, DType::Int64) : x;
  return from_self<SquareBackward>(unary("square", Pointwise::Square, wide), x);
}

// reciprocal: y = 1 / x        dx = -dy conj(y)^2
struct ReciprocalBackward : ResultNode {
  static constexpr const char* kName = "ReciprocalBackward0";
  Grads backward(const Grads& dy) { return {mul(neg(dy[0]), square(conj(y())))}; }
};
Tensor reciprocal(const Tensor& x) {
  return from_result<ReciprocalBackward>(unary("reciprocal", Pointwise::Reciprocal, x, to_float(2)), x);
}

static const Register registered([](Ops& ops) {
  const uint32_t of_result = kUnary | kKeepsInput;
  ops.def("exp", exp, "input", of_result, "e raised to each element.");
  ops.def("exp2", exp2, "input", of_result, "2 raised to each element.");
  ops.alias("special.exp2", "exp2");
  ops.def("expm1", expm1, "input", of_result, "e^input - 1, precise near 0.");
  ops.alias("special.expm1", "expm1");
  ops.def("log", log, "input", kUnary, "The natural logarithm.");
  ops.def("log2", log2, "input", kUnary, "The logarithm to base 2.");
  ops.def("log10", log10, "input", kUnary, "The logarithm to base 10.");
  ops.def("log1p", log1p, "input", kUnary, "log(1 + input), precise near 0.");
  ops.alias("special.log1p", "log1p");
  ops.def("sqrt", sqrt, "input", of_result, "The square root.");
  ops.def("rsqrt", rsqrt, "input", of_result, "1 / sqrt(input).");
  ops.def("square", square, "input", kUnary, "input * input.");
  ops.def("reciprocal", reciprocal, "input", of_result, "1 / input.");
});

}  // namespace rl::ops
