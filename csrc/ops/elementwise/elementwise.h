// Elementwise ops as C++ functions, and the frame that their blocks share.
#pragma once
#include <optional>
#include <string>

#include "autograd/record.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/pointwise.h"
#include "ops/elementwise/program.h"
#include "schema/registry.h"

namespace rl::ops {

// Powers, exponentials, logarithms
Tensor exp(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor pow(const Value& a, const Value& b);
// Trigonometry
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor atan2(const Value& y, const Value& x);
// Signs, roundings
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor sgn(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor trunc(const Tensor& x);
Tensor real(const Tensor& x);
Tensor imag(const Tensor& x);
Tensor complex(const Tensor& re, const Tensor& im);
// Special functions
Tensor erf(const Tensor& x);
Tensor erfc(const Tensor& x);
Tensor lgamma(const Tensor& x);
Tensor digamma(const Tensor& x);
Tensor polygamma(int64_t n, const Tensor& x);
// Division
Tensor div_mode(const Value& a, const Value& b, const std::optional<std::string>& rounding_mode);
Tensor floor_divide(const Value& a, const Value& b);
Tensor remainder(const Value& a, const Value& b);
Tensor fmod(const Value& a, const Value& b);
// Comparisons and logic: bool results
Tensor eq(const Value& a, const Value& b);
Tensor ne(const Value& a, const Value& b);
Tensor lt(const Value& a, const Value& b);
Tensor le(const Value& a, const Value& b);
Tensor gt(const Value& a, const Value& b);
Tensor ge(const Value& a, const Value& b);
Tensor logical_and(const Value& a, const Value& b);
Tensor logical_or(const Value& a, const Value& b);
Tensor logical_not(const Tensor& x);
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
// Choices and mixtures
Tensor where(const Tensor& condition, const Value& a, const Value& b);
Tensor maximum(const Value& a, const Value& b);
Tensor minimum(const Value& a, const Value& b);
Tensor clamp(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value = Scalar(1));
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value = Scalar(1));
Tensor lerp(const Tensor& start, const Tensor& end, const Value& weight);
// Activations
Tensor relu(const Tensor& x);
Tensor silu(const Tensor& x);
Tensor gelu(const Tensor& x, const std::string& approximate = "none");
Tensor leaky_relu(const Tensor& x, const Scalar& negative_slope = Scalar(0.01));
Tensor softplus(const Tensor& x, const Scalar& beta = Scalar(1), const Scalar& threshold = Scalar(20));

inline Tensor zeros_like(const Tensor& t) { return zeros(t.sizes(), t.dtype(), t.device()); }
// Where `mask` holds, t, else 0 (also where t is inf or NaN).
inline Tensor keep_where(const Tensor& mask, const Tensor& t) { return where(mask, t, Scalar(0)); }
inline Tensor zero_where(const Tensor& mask, const Tensor& t) { return where(mask, Scalar(0), t); }

// Nodes whose derivative needs the input, or the result, and nothing else.
struct SelfNode : Node {
  static constexpr bool kStacks = true;
  Saved self;
  Tensor x() { return self.unpack(*this); }
  FIELDS(self)
};
struct ResultNode : Node {
  static constexpr bool kStacks = true;
  Saved result;
  Tensor y() { return result.unpack(*this); }
  FIELDS(result)
};
struct PairNode : Node {
  static constexpr bool kStacks = true;
  SavedValue self, other;
  Value a() { return self.unpack(*this); }
  Value b() { return other.unpack(*this); }
  FIELDS(self, other)
};
template <class N> Tensor from_self(Tensor y, const Tensor& x) {
  return record<N>(std::move(y), {x}, [&](auto& n) { n.self = save(x); });
}
template <class N> Tensor from_result(const Tensor& y, const Tensor& x) {
  return record<N>(y, {x}, [&](auto& n) { n.result = save_output(n, y); });
}
template <class N> Tensor from_pair(Tensor y, const Value& a, const Value& b) {
  return record<N>(std::move(y), {a, b}, [&](auto& n) {
    n.self = save(a);
    n.other = save(b);
  });
}
inline PointwiseOptions to_float(int cost = 8) { return {.rule = Rule::Float, .cost = cost}; }
inline PointwiseOptions with_numbers(Rule rule, double d0, double d1 = 0, double d2 = 0, int cost = 2) {
  PointwiseOptions o{.rule = rule, .cost = cost};
  o.params.d0 = d0;
  o.params.d1 = d1;
  o.params.d2 = d2;
  return o;
}
inline PointwiseOptions with_numbers(const Kernel& kernel, double d0, double d1 = 0, double d2 = 0) {
  return with_numbers(kernel.rule, d0, d1, d2, kernel.cost);
}

// f(), or with `inplace` f() written into x: what `inplace=True` means in nn.functional.
template <class F> Tensor maybe_inplace(const char* name, const Tensor& x, bool inplace, F f, bool keeps_input = false,
                                        bool overlap_ok = false) {
  if (!inplace) return f();
  return apply_inplace(
      name, x, InplaceTraits{true, keeps_input, overlap_ok, false}, [](void* c) { return (*static_cast<F*>(c))(); },
      &f);
}

// Which operands Python may give as scalars: the second, none, or the first (a second overload).
using BinaryOp = Tensor (*)(const Value& a, const Value& b);
template <BinaryOp F> Tensor tensor_first(const Tensor& a, const Value& b) { return F(a, b); }
template <BinaryOp F> Tensor two_tensors(const Tensor& a, const Tensor& b) { return F(a, b); }
template <BinaryOp F> Tensor number_first(const Scalar& a, const Tensor& b) { return F(a, b); }

inline constexpr uint32_t kUnary = kMethod | kInplace | kDirect | kElementwise;

}  // namespace rl::ops
