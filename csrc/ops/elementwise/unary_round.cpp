#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

// Steps and roundings are flat: their derivative is 0.
struct FlatBackward : Node {
  static constexpr const char* kName = "FlatBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {zeros_like(dy[0])}; }
};
struct CeilBackward : FlatBackward {
  static constexpr const char* kName = "CeilBackward0";
};
struct FloorBackward : FlatBackward {
  static constexpr const char* kName = "FloorBackward0";
};
struct RoundBackward : FlatBackward {
  static constexpr const char* kName = "RoundBackward0";
};
struct TruncBackward : FlatBackward {
  static constexpr const char* kName = "TruncBackward0";
};
struct SignBackward : FlatBackward {
  static constexpr const char* kName = "SignBackward0";
};

static constexpr Kernel kCeil{.op = Pointwise::Ceil};
static Tensor ceil(const Tensor& x) { return record<CeilBackward>(unary("ceil", kCeil, x), {x}); }
static constexpr Kernel kFloor{.op = Pointwise::Floor};
Tensor floor(const Tensor& x) { return record<FloorBackward>(unary("floor", kFloor, x), {x}); }
static constexpr Kernel kTrunc{.op = Pointwise::Trunc};
Tensor trunc(const Tensor& x) { return record<TruncBackward>(unary("trunc", kTrunc, x), {x}); }
static constexpr Kernel kRound{.op = Pointwise::Round};
static Tensor round(const Tensor& x, int64_t decimals) {
  PointwiseOptions options = options_of(kRound);
  options.params.i0 = decimals;
  CHECK(decimals == 0 || is_float(x.dtype()), NotImplemented, "\"round_cpu\" not implemented for '",
        info(x.dtype()).legacy, "'");
  return record<RoundBackward>(unary("round", kRound.op, x, options), {x});
}
static constexpr Kernel kSign{.op = Pointwise::Sign, .gradient = [](Writer& w) { return w.number(0); }};
Tensor sign(const Tensor& x) {
  CHECK(!x.is_complex(), Runtime, "Unlike NumPy, torch.sign doesn't allow complex inputs. Use torch.sgn instead.");
  return record<SignBackward>(unary("sign", kSign, x), {x});
}

// frac: y = x - trunc(x)        dx = dy
struct FracBackward : Node {
  static constexpr const char* kName = "FracBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {dy[0]}; }
};
static constexpr Kernel kFrac{.op = Pointwise::Frac};
static Tensor frac(const Tensor& x) { return record<FracBackward>(unary("frac", kFrac, x), {x}); }

// abs: y = |x|        dx = dy sgn(x)
struct AbsBackward : SelfNode {
  static constexpr const char* kName = "AbsBackward0";
  Grads backward(const Grads& dy) { return {mul(dy[0], sgn(x()))}; }
};
static constexpr Kernel kAbs{
    .op = Pointwise::Abs, .rule = Rule::Real, .gradient = [](Writer& w) { return w.mul(w.dy, w.put("sign", w.a)); }};
Tensor abs(const Tensor& x) {
  CHECK(!x.is_complex() || !t_destination.op || t_destination.wanted != x.get(), Runtime,
        "In-place abs is not supported for complex tensors.");
  CHECK(x.dtype() != DType::Bool, NotImplemented, "\"abs_cpu\" not implemented for 'Bool'");
  Tensor y = unary("abs", kAbs, x);
  // Of complex numbers it is laid out as they are, also where strides say nothing, along dimensions of size 1.
  const bool laid_out = x.is_complex() && x.is_contiguous() && !t_destination.wanted;
  if (laid_out && x.strides() != y.strides()) y = alias(y, x.sizes(), x.strides(), 0);
  return from_self<AbsBackward>(y, x);
}

// sgn: y = x / |x|, 0 at 0        dx = (dy - y Re(conj(y) dy)) / |x|, 0 at 0
struct SgnBackward : SelfNode {
  static constexpr const char* kName = "SgnBackward0";
  Grads backward(const Grads& dy) {
    Tensor z = x();
    if (!z.is_complex()) return {zeros_like(dy[0])};
    Tensor s = sgn(z), r = abs(z);
    return {zero_where(eq(r, 0), div(sub(dy[0], mul(s, real(mul(conj(s), dy[0])))), r))};
  }
};
static constexpr Kernel kSgn{.op = Pointwise::Sgn};
Tensor sgn(const Tensor& x) { return from_self<SgnBackward>(unary("sgn", kSgn, x), x); }

static Tensor positive(const Tensor& x) {
  CHECK(x.dtype() != DType::Bool, Runtime, "The `+` operator, on a bool tensor is not supported.");
  return x;
}

// frexp: x = mantissa 2^exponent with 1/2 <= |mantissa| < 1        dx = dmantissa / 2^exponent
struct FrexpBackward : Node {
  static constexpr const char* kName = "FrexpBackward0";
  static constexpr bool kStacks = true;
  Saved exponent;
  Grads backward(const Grads& dy) { return {div(dy[0], exp2(cast(exponent.unpack(*this), dy[0].dtype())))}; }
  FIELDS(exponent)
};
static std::tuple<Tensor, Tensor> frexp(const Tensor& x) {
  CHECK(x.is_float(), Runtime, "torch.frexp() only supports floating-point dtypes");
  Tensor mantissa = unary("frexp", Pointwise::FrexpMantissa, x);
  NoGrad raw;
  Tensor exponent = cast(unary("frexp", Pointwise::FrexpExponent, x), DType::Int32);
  return {mantissa, exponent};
}
static std::tuple<Tensor, Tensor> frexp_op(const Tensor& x) {
  auto [mantissa, exponent] = frexp(x);
  mantissa = record<FrexpBackward>(mantissa, {x}, [&, e = exponent](auto& n) { n.exponent = save(e); });
  return {mantissa, exponent};
}

static const Register registered([](Ops& ops) {
  const uint32_t flat = kUnary | kKeepsInput;
  ops.def("ceil", ceil, "input", flat | kExactOut, R"(
    Rounds up: the smallest integer that is not below x, in the input's type.

    Gradient:
        Zero everywhere.

    Example:
        >>> torch.ceil(torch.tensor([-1.5, 0.2, 2.0]))
        tensor([-1.,  1.,  2.]))",
          kCeil);
  ops.def("floor", floor, "input", flat | kExactOut, R"(
    Rounds down: the largest integer that is not above x, in the input's type.

    Gradient:
        Zero everywhere.

    Example:
        >>> torch.floor(torch.tensor([-1.5, 0.2, 2.0]))
        tensor([-2.,  0.,  2.]))",
          kFloor);
  ops.def("trunc", trunc, "input", flat | kExactOut, R"(
    Drops the part behind the decimal point: rounds towards 0.

    Gradient:
        Zero everywhere.

    Example:
        >>> torch.trunc(torch.tensor([-1.7, 1.7]))
        tensor([-1.,  1.]))",
          kTrunc);
  ops.alias("fix", "trunc");
  ops.def("round", round, "input, *, decimals=0", flat | kExactOut, R"(
    Rounds to the nearest integer, halves to the even one; or to a number of decimals.

    Args:
        decimals: how many digits behind the point are kept; negative ones count before it.

    Gradient:
        Zero everywhere.

    Example:
        >>> torch.round(torch.tensor([0.5, 1.5, -2.6]))
        tensor([ 0.,  2., -3.])
        >>> torch.round(torch.tensor([3.14159]), decimals=2)
        tensor([3.1400])
        >>> torch.round(torch.tensor([1234.0]), decimals=-2)
        tensor([1200.]))",
          kRound);
  ops.alias("special.round", "round");
  ops.def("frac", frac, "input", flat | kExactOut, R"(
    Takes the part behind the decimal point, with the sign of x: x - trunc(x).

    Gradient:
        That of the identity.

    Example:
        >>> torch.frac(torch.tensor([2.25, -2.25]))
        tensor([ 0.2500, -0.2500]))",
          kFrac);
  ops.def("sign", sign, "input", flat | kExactOut, R"(
    Takes the sign: -1, 0 or 1, in the input's type.

    Gradient:
        Zero everywhere.

    Example:
        >>> torch.sign(torch.tensor([-0.3, 0.0, 7.0]))
        tensor([-1.,  0.,  1.]))",
          kSign);
  ops.def("sgn", sgn, "input", kUnary | kExactOut, R"(
    Takes the direction: x / |x|, and 0 at 0; for real numbers that is sign().

    Gradient:
        Zero for real elements; of complex ones the part along the circle alone.

    Example:
        >>> torch.sgn(torch.tensor([3 + 4j, 0j]))
        tensor([0.6000+0.8000j, 0.0000+0.0000j]))",
          kSgn);
  ops.def("abs", abs, "input", kUnary | kExactOut, R"(
    Takes the absolute value: |x|, for complex input the real modulus.

    Gradient:
        dy * sign(x), which is 0 at 0.

    Example:
        >>> torch.abs(torch.tensor([-2.5, 0.0, 1.0]))
        tensor([2.5000, 0.0000, 1.0000])
        >>> torch.abs(torch.tensor([3 + 4j]))
        tensor([5.]))",
          kAbs);
  ops.alias("absolute", "abs");
  ops.def("positive", positive, "input", kMethod | kNoOut | kAnyType | kElementwise, R"(
    Returns the input itself, as +x does; bools are refused.

    Example:
        >>> x = torch.tensor([1.0, -2.0])
        >>> torch.positive(x) is x
        True)");
  ops.def("frexp", frexp_op, "input", kMethod | kExactOut | kElementwise, R"(
    Splits each element into mantissa and exponent: x = mantissa * 2**exponent, with 0.5 <= |mantissa| < 1.

    Returns:
        A named tuple: mantissa, of the input's type, and exponent, of type int32.

    Gradient:
        Through the mantissa: dy / 2**exponent. The exponent has none.

    Example:
        >>> torch.frexp(torch.tensor([1.0, 6.0]))
        torch.return_types.frexp(
        mantissa=tensor([0.5000, 0.7500]),
        exponent=tensor([1, 3], dtype=torch.int32)))",
          "mantissa, exponent");
});

}  // namespace rl::ops
