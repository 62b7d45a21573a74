#include <utility>

#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "tensor/promote.h"

namespace rl::ops {

static DType type_of(const Value& a, const Value& b) {
  ResultType types;
  a.is_tensor() ? types.add(a.tensor) : types.add(a.number);
  b.is_tensor() ? types.add(b.tensor) : types.add(b.number);
  return types.get();
}

// pow: y = a^b        da = dy conj(b a^(b-1)), 0 where b = 0;  db = dy conj(y log a), 0 where a = 0 and b >= 0
struct PowBackward : Node {
  static constexpr const char* kName = "PowBackward0";
  static constexpr bool kStacks = true;
  SavedValue self, exponent;
  Saved result;
  Grads backward(const Grads& dy) {
    Value a = self.unpack(*this), b = exponent.unpack(*this);
    Tensor y = result.unpack(*this);  // must be what it was, needed or not
    Grads dx(2);
    if (needs(0)) {
      if (b.is_tensor()) {
        Tensor derivative = mul(b, pow(a, sub(b, 1)));
        dx[0] = zero_where(eq(b, 0), mul(dy[0], conj(derivative)));
      } else if (b.number.equals(0)) {
        dx[0] = zeros_like(dy[0]);
      } else {
        Scalar lower = b.number.is_complex()    ? Scalar(b.number.to_complex128() - 1.0)
                       : b.number.is_integral() ? Scalar(b.number.to_int() - 1)
                                                : Scalar(b.number.to_double() - 1);
        // Powers of 1 and 0 are left out, but not where they would be recorded: PyTorch's keep their operand, needed or
        // not, and refuse a second backward after a write to it.
        const bool plain = !grad_enabled() && a.is_tensor() && is_differentiable(a.tensor.dtype());
        if (plain && lower.equals(0)) dx[0] = dy[0];
        else dx[0] = mul(dy[0], conj(mul(plain && lower.equals(1) ? a.tensor : pow(a, lower), b)));
      }
    }
    if (needs(1)) {
      Tensor base = a.is_tensor() ? a.tensor : full({}, a.number, y.dtype(), y.device());
      Tensor derivative = mul(y, log(cast(base, y.dtype())));
      Tensor rising = b.tensor.is_complex() ? ge(real(b.tensor), 0) : ge(b, 0);
      dx[1] = mul(dy[0], zero_where(logical_and(eq(base, 0), rising), conj(derivative)));
    }
    return dx;
  }
  FIELDS(self, exponent, result)
};
struct PowScalarBackward : PowBackward {
  static constexpr const char* kName = "PowBackward0";
};
struct PowTensorBackward : PowBackward {
  static constexpr const char* kName = "PowBackward1";
};
// Exponents that have a loop of their own. Rules of result types are those of pow: a number that is not an integer
// makes floats of integers.
static bool simple_power(const Value& a, const Value& b, Pointwise& op) {
  if (!a.is_tensor() || b.is_tensor() || b.number.is_complex()) return false;
  if (a.tensor.is_complex()) {
    op = Pointwise::Square;
    return b.number.to_double() == 2;
  }
  if (!is_float(a.tensor.dtype()) && b.number.is_integral()) {
    op = Pointwise::Square;
    return b.number.to_double() == 2 && a.tensor.dtype() != DType::Bool;
  }
  const double e = b.number.to_double();
  op = e == 2      ? Pointwise::Square
       : e == 0.5  ? Pointwise::Sqrt
       : e == -0.5 ? Pointwise::Rsqrt
       : e == 1    ? Pointwise::Copy
                   : Pointwise::Reciprocal;
  return e == 2 || e == 0.5 || e == -0.5 || e == 1 || e == -1;
}
// A number to the power of a tensor is laid out in order, whatever the tensor's own order.
static Value in_order(const Value& b) {
  NoGrad raw;
  return b.is_tensor() ? Value(contiguous(b.tensor)) : b;
}
static constexpr Kernel kPow{.op = Pointwise::Pow,
                             .operands = 2,
                             .cost = 16,
                             .gradient =
                                 [](Writer& w) {  // the exponent is a number
                                   const double n = w.number_of(w.b);
                                   return n == 0 ? w.number(0) : w.mul(w.dy, w.times(n, w.power(w.a, n - 1)));
                                 },
                             .wrt = 0b001,
                             .number = [](double a, double b) { return std::pow(a, b); }};
Tensor pow(const Value& a, const Value& b) {
  if (!b.is_tensor() && b.number.is_integral() && is_integral(type_of(a, b), true)) {
    CHECK(b.number.to_double() >= 0, Runtime, "Integers to negative integer powers are not allowed.");
    check_holds(b.number, type_of(a, b));
  } else if (!b.is_tensor() && is_half(type_of(a, b))) {
    check_holds(b.number, type_of(a, b));
  }
  if (!b.is_tensor() && a.is_tensor() && type_of(a, b) == DType::Bool)
    return b.number.to_bool() ? clone(a.tensor) : eq(a.tensor, a.tensor);  // x^1 and x^0
  Pointwise simple;
  Tensor y = simple_power(a, b, simple) ? unary("pow", simple, a.tensor,
                                                {.rule = b.number.is_integral() ? Rule::Same : Rule::Float, .cost = 2})
                                        : binary("pow", kPow, a, a.is_tensor() ? b : in_order(b));
  auto fill = [&](auto& n) {
    n.self = save(a);
    n.exponent = save(b);
    if (b.is_tensor()) n.result = save_output(n, y);
  };
  if (!b.is_tensor()) return record<PowScalarBackward>(y, {a, b}, fill);
  return record<PowTensorBackward>(y, {a, b}, fill);
}
static Tensor rpow(const Tensor& b, const Value& a) { return pow(a, b); }

// float_power: pow in double (or complex double) whatever the types
static Tensor float_power(const Value& a, const Value& b) {
  DType wide = is_complex(type_of(a, b)) ? DType::Complex128 : DType::Float64;
  auto widen = [&](const Value& v) { return v.is_tensor() ? Value(cast(v.tensor, wide)) : v; };
  Value x = widen(a), n = widen(b);
  auto as_tensor_of_type = [&](const Value& v) {  // a number must not decide the type, nor be an integer
    if (v.is_tensor() || v.number.is_complex()) return v;
    return Value(Scalar(v.number.to_double()));
  };
  return pow(as_tensor_of_type(x), as_tensor_of_type(n));
}

static Tensor float_power_inplace(const Tensor& x, const Value& exponent) {
  DType wide = is_complex(type_of(x, exponent)) ? DType::Complex128 : DType::Float64;
  CHECK(x.dtype() == wide, Runtime, "the base given to float_power_ has dtype ", info(x.dtype()).legacy,
        " but the operation's result requires dtype ", info(wide).legacy);
  return maybe_inplace("float_power_", x, true, [&] { return float_power(x, exponent); });
}

// atan2: the angle of (x, y)        dy' = g x / (x^2 + y^2), dx = -g y / (x^2 + y^2), 0 at the origin
struct Atan2Backward : PairNode {
  static constexpr const char* kName = "Atan2Backward0";
  Grads backward(const Grads& dy) {
    Value y = a(), x = b();
    Tensor r2 = add(mul(x, x), mul(y, y));
    Tensor scale = zero_where(eq(r2, 0), div(dy[0], r2));
    return {needs(0) ? mul(scale, x) : Tensor(), needs(1) ? neg(mul(scale, y)) : Tensor()};
  }
};
static constexpr Kernel kAtan2{.op = Pointwise::Atan2, .operands = 2, .rule = Rule::Float, .cost = 8};
Tensor atan2(const Value& y, const Value& x) { return from_pair<Atan2Backward>(binary("atan2", kAtan2, y, x), y, x); }

// hypot: y = sqrt(a^2 + b^2)        da = dy a / y, db = dy b / y
struct HypotBackward : Node {
  static constexpr const char* kName = "HypotBackward0";
  static constexpr bool kStacks = true;
  SavedValue self, other;
  Saved result;
  Grads backward(const Grads& dy) {
    Tensor scaled = div(dy[0], result.unpack(*this));
    return {needs(0) ? mul(scaled, self.unpack(*this)) : Tensor(),
            needs(1) ? mul(scaled, other.unpack(*this)) : Tensor()};
  }
  FIELDS(self, other, result)
};
static constexpr Kernel kHypot{.op = Pointwise::Hypot, .operands = 2, .cost = 4};
static Tensor hypot(const Value& a, const Value& b) {
  Tensor y = binary("hypot", kHypot, a, b);
  return record<HypotBackward>(y, {a, b}, [&](auto& n) {
    if (n.needs(0)) n.self = save(a);
    if (n.needs(1)) n.other = save(b);
    n.result = save_output(n, y);
  });
}

// copysign: |a| with the sign of b        da = dy y / a, 0 at 0; db = 0
struct CopysignBackward : Node {
  static constexpr const char* kName = "CopysignBackward0";
  static constexpr bool kStacks = true;
  SavedValue self;
  Saved result;
  Grads backward(const Grads& dy) {
    Grads dx(2);
    Tensor y = result.unpack(*this);
    if (needs(0)) {
      Value a = self.unpack(*this);
      dx[0] = mul(dy[0], zero_where(eq(a, 0), div(y, a)));
    }
    if (needs(1)) dx[1] = zeros_like(dy[0]);
    return dx;
  }
  FIELDS(self, result)
};
static constexpr Kernel kCopysign{.op = Pointwise::Copysign, .operands = 2, .rule = Rule::Float};
static Tensor copysign(const Value& a, const Value& b) {
  Tensor y = binary("copysign", kCopysign, a, b);
  return record<CopysignBackward>(y, {a, b}, [&](auto& n) {
    if (n.needs(0)) n.self = save(a);
    n.result = save_output(n, y);
  });
}

// nextafter: the number next to a towards b        da = dy, 0 where they are equal; db = 0
struct NextafterBackward : PairNode {
  static constexpr const char* kName = "NextafterBackward0";
  Grads backward(const Grads& dy) {
    return {needs(0) ? zero_where(eq(a(), b()), dy[0]) : Tensor(), needs(1) ? zeros_like(dy[0]) : Tensor()};
  }
};
static constexpr Kernel kNextafter{.op = Pointwise::Nextafter, .operands = 2};
static Tensor nextafter(const Tensor& a, const Tensor& b) {
  return from_pair<NextafterBackward>(binary("nextafter", kNextafter, a, b), a, b);
}
static constexpr Kernel kHeaviside{.op = Pointwise::Heaviside, .operands = 2};
static Tensor heaviside(const Tensor& a, const Tensor& b) {
  CHECK(!a.is_complex() && !b.is_complex(), Runtime, "heaviside is not yet implemented for complex tensors.");
  CHECK(a.dtype() == b.dtype(), Runtime, "heaviside is not yet implemented for tensors with different dtypes.");
  return record_not_differentiable("heaviside", binary("heaviside", kHeaviside, a, b), {a, b});
}

// a - b, and 0 where both are the same infinity, so that a log of a sum of two zeros has a derivative.
static Tensor distance(const Tensor& a, const Tensor& b) { return where(eq(a, b), Scalar(0), sub(a, b)); }

// logaddexp: y = log(e^a + e^b)        da = dy sigmoid(a - b), db = dy sigmoid(b - a)
struct LogaddexpBackward : Node {
  static constexpr const char* kName = "LogaddexpBackward0";
  static constexpr bool kStacks = true;
  Saved self, other;
  Grads backward(const Grads& dy) {
    Tensor a = self.unpack(*this), b = other.unpack(*this);
    Grads dx(2);
    if (a.is_complex() || b.is_complex()) {
      if (needs(0)) dx[0] = div(dy[0], conj(add(exp(sub(b, a)), 1)));
      if (needs(1)) dx[1] = div(dy[0], conj(add(exp(sub(a, b)), 1)));
      return dx;
    }
    if (needs(0)) dx[0] = mul(dy[0], sigmoid(distance(a, b)));
    if (needs(1)) dx[1] = mul(dy[0], sigmoid(distance(b, a)));
    return dx;
  }
  FIELDS(self, other)
};
static constexpr Kernel kLogaddexp{.op = Pointwise::Logaddexp, .operands = 2, .cost = 16};
static Tensor logaddexp(const Tensor& a, const Tensor& b) {
  Tensor y = binary("logaddexp", kLogaddexp, a, b);
  return record<LogaddexpBackward>(y, {a, b}, [&](auto& n) {
    n.self = save(a);
    n.other = save(b);
  });
}

// logaddexp2: y = log2(2^a + 2^b)        da = dy sigmoid((a - b) log 2), db = dy sigmoid((b - a) log 2)
struct Logaddexp2Backward : Node {
  static constexpr const char* kName = "Logaddexp2Backward0";
  static constexpr bool kStacks = true;
  Saved self, other;
  Grads backward(const Grads& dy) {
    Tensor a = self.unpack(*this), b = other.unpack(*this);
    Grads dx(2);
    if (needs(0)) dx[0] = mul(dy[0], sigmoid(mul(distance(a, b), M_LN2)));
    if (needs(1)) dx[1] = mul(dy[0], sigmoid(mul(distance(b, a), M_LN2)));
    return dx;
  }
  FIELDS(self, other)
};
static constexpr Kernel kLogaddexp2{.op = Pointwise::Logaddexp2, .operands = 2, .cost = 16};
static Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  Tensor y = binary("logaddexp2", kLogaddexp2, a, b);
  return record<Logaddexp2Backward>(y, {a, b}, [&](auto& n) {
    n.self = save(a);
    n.other = save(b);
  });
}

// xlogy: y = a log b, 0 where a = 0        da = dy log b (0 where a = 0 and b <= 0), db = dy a / b
static Tensor tensor_of(const Value& v, const Tensor& like) {
  return v.is_tensor() ? v.tensor : full({}, v.number, like.dtype(), like.device());
}
static Tensor xlogy(const Value& a, const Value& b);
struct XlogyBackward : PairNode {
  static constexpr const char* kName = "XlogyBackward0";
  Grads backward(const Grads& dy) {
    Value x = a(), y = b();
    Grads dx(2);
    // xlogy: also where dy is 0 the logarithm is not asked for
    if (needs(0)) dx[0] = zero_where(logical_and(eq(x, 0), le(y, 0)), xlogy(dy[0], y));
    if (needs(1)) dx[1] = div(mul(dy[0], x), y);
    return dx;
  }
};
static constexpr Kernel kXlogy{.op = Pointwise::Xlogy, .operands = 2, .rule = Rule::Float, .cost = 8};
static Tensor xlogy(const Value& a, const Value& b) {
  return from_pair<XlogyBackward>(binary("xlogy", kXlogy, a, b), a, b);
}

// xlog1py: y = a log(1 + b), 0 where a = 0        da = dy log(1 + b) (0 where a = 0 and b <= -1), db = dy a / (1 + b)
static Tensor xlog1py(const Value& a, const Value& b);
struct Xlog1pyBackward : PairNode {
  static constexpr const char* kName = "SpecialXlog1PyBackward0";
  Grads backward(const Grads& dy) {
    Value x = a(), y = b();
    Grads dx(2);
    if (needs(0)) dx[0] = zero_where(logical_and(eq(x, 0), le(y, -1)), xlog1py(dy[0], y));
    if (needs(1)) dx[1] = div(mul(dy[0], x), add(y, 1));
    return dx;
  }
};
static constexpr Kernel kXlog1py{.op = Pointwise::Xlog1py, .operands = 2, .rule = Rule::Float, .cost = 8};
static Tensor xlog1py(const Value& a, const Value& b) {
  return from_pair<Xlog1pyBackward>(binary("xlog1py", kXlog1py, a, b), a, b);
}

[[noreturn]] static void no_derivative(const char* op, const char* argument) {
  fail(ErrorKind::NotImplemented, "the derivative for '", argument, "' of '", op, "' is not implemented");
}
// zeta (Hurwitz): y = sum (k + b)^-a        db = -dy a zeta(a + 1, b)
static Tensor zeta(const Value& a, const Value& b);
struct ZetaBackward : PairNode {
  static constexpr const char* kName = "SpecialZetaBackward0";
  Grads backward(const Grads& dy) {
    if (needs(0)) no_derivative("zeta", "self");
    Value s = a(), q = b();
    return {Tensor(), needs(1) ? mul(dy[0], neg(mul(s, zeta(add(tensor_of(s, dy[0]), 1), q)))) : Tensor()};
  }
};
static constexpr Kernel kZeta{.op = Pointwise::Zeta, .operands = 2, .rule = Rule::Float, .cost = 256};
static Tensor zeta(const Value& a, const Value& b) {
  return from_pair<ZetaBackward>(binary("zeta", kZeta, a, b), a, b);
}

// igamma: the regularized lower incomplete gamma P(a, x)        dx = dy e^((a - 1) log x - x - lgamma(a))
struct IgammaBackward : Node {
  static constexpr const char* kName = "IgammaBackward0";
  static constexpr bool kStacks = true;
  Saved self, other;
  Tensor derivative(const Grads& dy) {
    if (needs(0)) no_derivative("igamma", "self");
    Tensor a = self.unpack(*this), x = other.unpack(*this);
    return mul(dy[0], exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a))));
  }
  Grads backward(const Grads& dy) { return {Tensor(), derivative(dy)}; }
  FIELDS(self, other)
};
struct IgammacBackward : IgammaBackward {
  static constexpr const char* kName = "IgammacBackward0";
  Grads backward(const Grads& dy) { return {Tensor(), neg(derivative(dy))}; }
};
template <class N> static Tensor incomplete(const char* name, const Kernel& kernel, const Tensor& a, const Tensor& x) {
  return record<N>(binary(name, kernel, a, x), {a, x}, [&](auto& n) {
    n.self = save(a);
    n.other = save(x);
  });
}
static constexpr Kernel kIgamma{.op = Pointwise::Igamma, .operands = 2, .cost = 256};
static Tensor igamma(const Tensor& a, const Tensor& x) { return incomplete<IgammaBackward>("igamma", kIgamma, a, x); }
static constexpr Kernel kIgammac{.op = Pointwise::Igammac, .operands = 2, .cost = 256};
static Tensor igammac(const Tensor& a, const Tensor& x) {
  return incomplete<IgammacBackward>("igammac", kIgammac, a, x);
}

// ldexp: y = a 2^b, of a's type if b is an integer
static Tensor ldexp(const Tensor& a, const Tensor& b) {
  if (!is_integral(b.dtype(), true)) return mul(a, pow(2.0, b));
  // In double, so that no power of two is out of range, and without widening the result.
  Tensor power = pow(Value(full({}, Scalar(2.0), DType::Float64, b.device())), b);
  DType type = a.is_float() || a.is_complex() ? a.dtype() : default_dtype();
  return cast(mul(a, power), type);
}

static const Register registered([](Ops& ops) {
  ops.def("pow", tensor_first<pow>, "input, exponent", kUnary, R"(
    Raises input to exponent: input ** exponent, element by element.

    Args:
        input: the base, or bases.
        exponent: the power, or powers; integers may not be raised to negative integers.

    Gradient:
        For both. That of the exponent is 0 where the base is 0 and the exponent is not negative.

    Example:
        >>> torch.pow(torch.tensor([1, 2, 3]), 2)
        tensor([1, 4, 9])
        >>> torch.pow(2, torch.tensor([0.5, -1.0]))
        tensor([1.4142, 0.5000])
        >>> torch.tensor([4.0, 27.0]) ** torch.tensor([0.5, 1 / 3])
        tensor([2., 3.]))",
          kPow);
  ops.def("pow", number_first<pow>, "input, exponent");
  ops.def("__rpow_op__", rpow, "input, other", kMethod | kNoFunction);
  ops.def("float_power", tensor_first<float_power>, "input, exponent", kMethod | kExactOut | kElementwise, R"(
    Raises input to exponent in double precision, whatever the types.

    Args:
        input: the base, or bases.
        exponent: the power, or powers.

    Example:
        >>> torch.float_power(torch.tensor([2, 4]), 0.5)
        tensor([1.4142, 2.0000], dtype=torch.float64))");
  ops.def("float_power", number_first<float_power>, "input, exponent");
  ops.def("float_power_", float_power_inplace, "input, exponent", kMethod | kNoFunction | kNoOut | kElementwise, R"(
    Raises the tensor to exponent in double precision; it must be of type float64 or complex128.

    Args:
        exponent: the power, or powers.

    Example:
        >>> torch.tensor([2.0, 4.0], dtype=torch.float64).float_power_(0.5)
        tensor([1.4142, 2.0000], dtype=torch.float64))");
  ops.def("atan2", two_tensors<atan2>, "input, other", kUnary, R"(
    Takes the angle of the point (other, input), in radians from -pi to pi.

    Args:
        input: the y of the points.
        other: the x of the points.

    Example:
        >>> torch.atan2(torch.tensor([1.0, 1.0, -1.0]), torch.tensor([1.0, -1.0, 0.0]))
        tensor([ 0.7854,  2.3562, -1.5708]))",
          kAtan2);
  ops.alias("arctan2", "atan2");
  ops.def("hypot", two_tensors<hypot>, "input, other", kUnary, R"(
    Computes the length of (input, other): sqrt(input^2 + other^2), without overflow on the way.

    Example:
        >>> torch.hypot(torch.tensor([3.0, 1e30]), torch.tensor([4.0, 1e30]))
        tensor([5.0000e+00, 1.4142e+30]))",
          kHypot);
  ops.def("copysign", tensor_first<copysign>, "input, other", kUnary, R"(
    Gives |input| the sign of other; -0.0 counts as negative.

    Args:
        other: where the signs come from.

    Gradient:
        dy times the factor 1 or -1 that changed the sign, and 0 where input is 0. other gets 0.

    Example:
        >>> torch.copysign(torch.tensor([1.0, -2.0]), torch.tensor([-0.0, 3.0]))
        tensor([-1.,  2.]))",
          kCopysign);
  ops.def("nextafter", nextafter, "input, other", kUnary, R"(
    Takes the next floating point number after input in the direction of other.

    Args:
        other: the direction; where it equals input, input is returned.

    Gradient:
        That of the identity for input; other gets 0.

    Example:
        >>> eps = torch.finfo(torch.float32).eps
        >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) == 1 + eps
        tensor([True]))",
          kNextafter);
  ops.def("heaviside", heaviside, "input, values", kUnary | kExactOut, R"(
    Computes the step function: 0 below 0, 1 above it, and values at 0.

    Args:
        values: the result where input is 0; of the input's type.

    Gradient:
        Not differentiable: backward() raises.

    Example:
        >>> torch.heaviside(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor(0.5))
        tensor([0.0000, 0.5000, 1.0000]))",
          kHeaviside);
  ops.def("logaddexp", logaddexp, "input, other", kMethod, R"(
    Adds numbers that are given by their logarithms: log(e^input + e^other), without overflow.

    Example:
        >>> torch.logaddexp(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
        tensor([6.9315e-01, 1.0007e+03]))",
          kLogaddexp);
  ops.def("logaddexp2", logaddexp2, "input, other", kMethod, R"(
    Adds numbers that are given by their logarithms to base 2: log2(2^input + 2^other), without overflow.

    Example:
        >>> torch.logaddexp2(torch.tensor([1.0, 500.0]), torch.tensor([1.0, 500.0]))
        tensor([  2., 501.]))",
          kLogaddexp2);
  ops.def("xlogy", tensor_first<xlogy>, "input, other", kUnary, R"(
    Computes input * log(other), and 0 where input is 0, whatever the logarithm, if other is no NaN.

    Example:
        >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 10.0]))
        tensor([0.0000, 4.6052]))",
          kXlogy);
  ops.def("xlogy", number_first<xlogy>, "input, other");
  ops.alias("special.xlogy", "xlogy");
  ops.def("special.xlog1py", tensor_first<xlog1py>, "input, other", 0, R"(
    Computes input * log(1 + other), and 0 where input is 0, whatever the logarithm, if other is no NaN.

    Example:
        >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1.0]))
        tensor([0.0000, 1.3863]))",
          kXlog1py);
  ops.def("special.xlog1py", number_first<xlog1py>, "input, other");
  ops.def("special.zeta", tensor_first<zeta>, "input, other", 0, R"(
    Computes the Hurwitz zeta function: the sum of 1 / (k + other)^input over k = 0, 1, 2 ...

    Args:
        input: the exponents, larger than 1.
        other: the offsets q; q = 1 gives Riemann's zeta.

    Gradient:
        For other only; that of input raises.

    Example:
        >>> torch.special.zeta(torch.tensor([2.0, 4.0]), 1)
        tensor([1.6449, 1.0823]))",
          kZeta);
  ops.def("special.zeta", number_first<zeta>, "input, other");
  ops.def("igamma", igamma, "input, other", kUnary, R"(
    Computes the regularized lower incomplete gamma function P(a, x).

    It is the integral of t^(a - 1) e^-t from 0 to x, divided by gamma(a).

    Args:
        input: a, positive.
        other: x, not negative.

    Gradient:
        For other only; that of input raises.

    Example:
        >>> torch.igamma(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 4.0]))
        tensor([0.6321, 0.5665]))",
          kIgamma);
  ops.alias("special.gammainc", "igamma");
  ops.def("igammac", igammac, "input, other", kUnary, R"(
    Computes the regularized upper incomplete gamma function, 1 - igamma(input, other).

    Args:
        input: a, positive.
        other: x, not negative.

    Gradient:
        For other only; that of input raises.

    Example:
        >>> torch.igammac(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 4.0]))
        tensor([0.3679, 0.4335]))",
          kIgammac);
  ops.alias("special.gammaincc", "igammac");
  ops.def("ldexp", ldexp, "input, other", kMethod | kInplace | kExactOut | kElementwise | kOwnType, R"(
    Multiplies with a power of 2: input * 2**other.

    Args:
        other: the exponents.

    Example:
        >>> torch.ldexp(torch.tensor([1.0, 3.0]), torch.tensor([4, -1]))
        tensor([16.0000,  1.5000]))");
});

}  // namespace rl::ops
