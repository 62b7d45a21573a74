#include <cmath>
#include <limits>

#include "ops/elementwise/elementwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "tensor/promote.h"

namespace rl::ops {

// where: y = a where the condition holds, else b        da = dy there, db = dy elsewhere
struct WhereBackward : Node {
  static constexpr const char* kName = "WhereBackward0";
  static constexpr bool kStacks = true;
  Saved condition;
  Grads backward(const Grads& dy) {
    Tensor c = condition.unpack(*this);
    return {Tensor(), needs(1) ? keep_where(c, dy[0]) : Tensor(), needs(2) ? zero_where(c, dy[0]) : Tensor()};
  }
  FIELDS(condition)
};
static constexpr Kernel kWhere{
    .op = Pointwise::Where,
    .operands = 3,
    .gradient = [](Writer& w) { return w.operand == 1 ? w.only_where(w.a, w.dy) : w.except_where(w.a, w.dy); },
    .wrt = 0b110};
Tensor where(const Tensor& condition, const Value& a, const Value& b) {
  CHECK(condition.dtype() == DType::Bool || condition.dtype() == DType::UInt8, Runtime,
        "where expected condition to be a boolean tensor, but got a tensor with dtype ",
        info(condition.dtype()).legacy);
  Value operands[] = {condition, a, b};
  Tensor y = pointwise("where", kWhere.op, operands, 3, options_of(kWhere));
  return record<WhereBackward>(y, {condition, a, b}, [&](auto& n) { n.condition = save(condition); });
}
// where(condition): the coordinates at which it holds, one tensor for each dimension
static Tensors where_indices(const Tensor& condition) {
  Tensor lifted = condition.dim() ? condition : unsqueeze(condition, 0), indices = nonzero(lifted);
  Tensors columns;
  for (int64_t d = 0; d < lifted.dim(); ++d) columns.push_back(select(indices, 1, d));
  return columns;
}
static Tensor where_method(const Tensor& a, const Tensor& condition, const Value& b) { return where(condition, a, b); }

// maximum: y = max(a, b), NaN wins        equal operands share dy
template <bool kLarger> struct ExtremeBackward : PairNode {
  Grads backward(const Grads& dy) {
    Value x = a(), y = b();
    Tensor half = where(eq(x, y), mul(dy[0], 0.5), dy[0]);
    Grads dx(2);
    if (needs(0)) dx[0] = zero_where(kLarger ? lt(x, y) : gt(x, y), half);
    if (needs(1)) dx[1] = zero_where(kLarger ? gt(x, y) : lt(x, y), half);
    return dx;
  }
};
struct MaximumBackward : ExtremeBackward<true> {
  static constexpr const char* kName = "MaximumBackward0";
};
struct MinimumBackward : ExtremeBackward<false> {
  static constexpr const char* kName = "MinimumBackward0";
};
// In terms of a program: dy where the operand is not on the other side, half of it where both are equal.
static int extreme_gradient(Writer& w, const char* first_loses, const char* second_loses) {
  const int shared = w.put("where", w.put("eq", w.a, w.b), w.times(0.5, w.dy), w.dy);
  return w.except_where(w.put(w.operand == 0 ? first_loses : second_loses, w.a, w.b), shared);
}
static void no_complex(const char* name, const Value& a, const Value& b) {
  bool complex = (a.is_tensor() ? a.tensor.is_complex() : a.number.is_complex()) ||
                 (b.is_tensor() ? b.tensor.is_complex() : b.number.is_complex());
  CHECK(!complex, Runtime, name, " not implemented for complex tensors.");
}
static constexpr Kernel kMaximum{
    .op = Pointwise::Maximum, .operands = 2, .gradient = [](Writer& w) { return extreme_gradient(w, "lt", "gt"); }};
Tensor maximum(const Value& a, const Value& b) {
  no_complex("maximum", a, b);
  return from_pair<MaximumBackward>(binary("maximum", kMaximum, a, b), a, b);
}
static constexpr Kernel kMinimum{
    .op = Pointwise::Minimum, .operands = 2, .gradient = [](Writer& w) { return extreme_gradient(w, "gt", "lt"); }};
Tensor minimum(const Value& a, const Value& b) {
  no_complex("minimum", a, b);
  return from_pair<MinimumBackward>(binary("minimum", kMinimum, a, b), a, b);
}
static Tensor maximum_op(const Tensor& a, const Tensor& b) { return maximum(a, b); }
static Tensor minimum_op(const Tensor& a, const Tensor& b) { return minimum(a, b); }

// fmax: y = max(a, b), NaN loses        dy goes to the operand chosen, to a where they are equal
template <bool kLarger> struct FextremeBackward : PairNode {
  Grads backward(const Grads& dy) {
    Tensor x = a().tensor, y = b().tensor;
    Tensor first = logical_or(kLarger ? ge(x, y) : le(x, y), isnan(y));
    return {needs(0) ? keep_where(first, dy[0]) : Tensor(), needs(1) ? zero_where(first, dy[0]) : Tensor()};
  }
};
struct FmaxBackward : FextremeBackward<true> {
  static constexpr const char* kName = "FmaxBackward0";
};
struct FminBackward : FextremeBackward<false> {
  static constexpr const char* kName = "FminBackward0";
};
static constexpr Kernel kFmax{.op = Pointwise::Fmax, .operands = 2};
static Tensor fmax(const Tensor& a, const Tensor& b) {
  return from_pair<FmaxBackward>(binary("fmax", kFmax, a, b), a, b);
}
static constexpr Kernel kFmin{.op = Pointwise::Fmin, .operands = 2};
static Tensor fmin(const Tensor& a, const Tensor& b) {
  return from_pair<FminBackward>(binary("fmin", kFmin, a, b), a, b);
}

// clamp: y = min(max(x, low), high)        dx = dy inside the bounds, ends included
struct ClampBackward : Node {
  static constexpr const char* kName = "ClampBackward1";
  static constexpr bool kStacks = true;
  Saved self;
  std::optional<Scalar> min, max;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    Tensor inside = min ? ge(x, *min) : le(x, *max);
    if (min && max) inside = logical_and(inside, le(x, *max));
    return {keep_where(inside, dy[0])};
  }
  FIELDS(self)
};
// The bounds are scalars.
static constexpr Kernel kClamp{
    .op = Pointwise::Clamp,
    .operands = 3,
    .gradient =
        [](Writer& w) { return w.only_where(w.put("ge", w.a, w.b), w.only_where(w.put("le", w.a, w.c), w.dy)); },
    .wrt = 0b001};
struct ClampContext {
  const std::optional<Scalar>&min, &max;
};
Tensor clamp(const Tensor& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max) {
  CHECK(min || max, Runtime, "torch.clamp: At least one of 'min' or 'max' must not be None");
  CHECK(!x.is_complex(), Runtime, "clamp is not supported for complex types");
  // A bound of a higher kind lifts the type: clamp of integers by 0.5 gives floats.
  ResultType types;
  types.add(x);
  if (min) types.add(*min);
  if (max) types.add(*max);
  ClampContext context{min, max};
  Tensor same = cast(x, types.get());
  auto is_nan = [](const std::optional<Scalar>& v) { return v && v->to_double() != v->to_double(); };
  if (is_nan(min) || is_nan(max)) return mul(same, Scalar(NAN));  // as torch: a bound that is no number leaves none
  Value operands[] = {same};
  Tensor y = pointwise(
      "clamp", kClamp.op, operands, 1, options_of(kClamp),
      [](LoopParams& p, DType d, const void* c) {
        auto& bounds = *static_cast<const ClampContext*>(c);
        // A bound that is not given is one that nothing passes.
        visit_compute(d, [&](auto tag) {
          using T = compute_t<typename decltype(tag)::type>;
          if constexpr (!is_complex_v<T>) {
            constexpr bool open = std::numeric_limits<T>::has_infinity;
            p.s0.set(open ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest());
            p.s1.set(open ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max());
          }
        });
        for (const auto* bound : {&bounds.min, &bounds.max})
          if (*bound) check_holds(**bound, d);
        if (bounds.min) write_compute(p.s0, *bounds.min, d);
        if (bounds.max) write_compute(p.s1, *bounds.max, d);
      },
      &context);
  return record<ClampBackward>(y, {x}, [&](auto& n) {
    n.self = save(x);
    n.min = min;
    n.max = max;
  });
}

// clamp between tensors        dx = dy inside; dmin = dy where x < min < max; dmax = dy where max < x or max < min
struct ClampTensorsBackward : Node {
  static constexpr const char* kName = "ClampBackward0";
  static constexpr bool kStacks = true;
  Saved self, min, max;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), low = min.defined() ? min.unpack(*this) : Tensor(),
           high = max.defined() ? max.unpack(*this) : Tensor();
    Grads dx(3);
    if (needs(0)) {
      Tensor inside = low.defined() ? ge(x, low) : le(x, high);
      if (low.defined() && high.defined()) inside = logical_and(inside, le(x, high));
      dx[0] = keep_where(inside, dy[0]);
    }
    if (needs(1)) {
      Tensor below = lt(x, low);
      dx[1] = keep_where(high.defined() ? logical_and(below, lt(low, high)) : below, dy[0]);
    }
    if (needs(2)) {
      Tensor above = gt(x, high);
      dx[2] = keep_where(low.defined() ? logical_or(above, lt(high, low)) : above, dy[0]);
    }
    return dx;
  }
  FIELDS(self, min, max)
};
static Tensor clamp_tensors(const Tensor& x, const OptTensor& min, const OptTensor& max) {
  CHECK(min.defined() || max.defined(), Runtime, "torch.clamp: At least one of 'min' or 'max' must not be None");
  CHECK(!x.is_complex(), Runtime, "clamp is not implemented for complex tensors.");
  Tensor y;
  if (min.defined() && max.defined()) {
    Value operands[] = {x, static_cast<const Tensor&>(min), static_cast<const Tensor&>(max)};
    y = pointwise("clamp", Pointwise::ClampTensors, operands, 3);
  } else {
    const Tensor& bound = min.defined() ? min : max;
    y = binary("clamp", min.defined() ? Pointwise::Maximum : Pointwise::Minimum, x, bound);
  }
  return record<ClampTensorsBackward>(y, {x, static_cast<const Tensor&>(min), static_cast<const Tensor&>(max)},
                                      [&](auto& n) {
                                        n.self = save(x);
                                        if (min.defined()) n.min = save(min);
                                        if (max.defined()) n.max = save(max);
                                      });
}
static Tensor clamp_min(const Tensor& x, const Scalar& min) { return clamp(x, min, std::nullopt); }
static Tensor clamp_max(const Tensor& x, const Scalar& max) { return clamp(x, std::nullopt, max); }
static Tensor clamp_min_tensor(const Tensor& x, const Tensor& min) { return clamp_tensors(x, min, {}); }
static Tensor clamp_max_tensor(const Tensor& x, const Tensor& max) { return clamp_tensors(x, {}, max); }

// nan_to_num: NaN and infinities replaced by finite values        dx = dy where x is finite
struct NanToNumBackward : SelfNode {
  static constexpr const char* kName = "NanToNumBackward0";
  Grads backward(const Grads& dy) { return {keep_where(isfinite(x()), dy[0])}; }
};
static double largest(DType t) {
  return t == DType::Float64    ? 1.7976931348623157e308
         : t == DType::Float16  ? 65504.0
         : t == DType::BFloat16 ? 3.3895313892515355e38
                                : 3.4028234663852886e38;
}
static constexpr Kernel kNanToNum{.op = Pointwise::NanToNum, .cost = 2};
static Tensor nan_to_num(const Tensor& x, const std::optional<double>& nan, const std::optional<double>& posinf,
                         const std::optional<double>& neginf) {
  if (x.is_complex())
    return complex(nan_to_num(real(x), nan, posinf, neginf), nan_to_num(imag(x), nan, posinf, neginf));
  double top = largest(x.dtype());
  PointwiseOptions options = with_numbers(kNanToNum, nan.value_or(0), posinf.value_or(top), neginf.value_or(-top));
  return from_self<NanToNumBackward>(unary("nan_to_num", kNanToNum.op, x, options), x);
}

static const Register registered([](Ops& ops) {
  ops.def("where", where, "condition, input, other", kExactOut | kAnyType | kOwnType, R"(
    Chooses element by element: input where condition is true, else other.

    With the condition alone it is nonzero(as_tuple=True).

    Args:
        condition: bools.
        input: what is taken where the condition is true.
        other: what is taken elsewhere.

    Gradient:
        Goes to what was taken; the rest gets 0. Where the branch not taken has an infinite derivative,
        as sqrt() at 0, its chain turns that 0 into NaN: make its argument safe first.

    Example:
        >>> x = torch.tensor([-1.0, 2.0, -3.0])
        >>> torch.where(x > 0, x, 0.0)
        tensor([0., 2., 0.])
        >>> torch.where(x > 0)
        (tensor([1]),))",
          kWhere);
  ops.def("where", where_indices, "condition", kNoOut | kAnyType);
  ops.def("_where_method", where_method, "input, condition, other", kMethod | kNoFunction | kElementwise | kOwnType);
  ops.def("maximum", maximum_op, "input, other", kMethod, R"(
    Takes the larger of two elements; NaN where one of them is.

    Gradient:
        To the larger one; half to each where both are equal.

    Example:
        >>> torch.maximum(torch.tensor([1.0, math.nan]), torch.tensor([2.0, 3.0]))
        tensor([2., nan]))",
          kMaximum);
  ops.def("minimum", minimum_op, "input, other", kMethod, R"(
    Takes the smaller of two elements; NaN where one of them is.

    Gradient:
        To the smaller one; half to each where both are equal.

    Example:
        >>> torch.minimum(torch.tensor([1.0, math.nan]), torch.tensor([2.0, 3.0]))
        tensor([1., nan]))",
          kMinimum);
  ops.def("fmax", fmax, "input, other", kMethod, R"(
    Takes the larger of two elements; NaN is left out where the other is a number.

    Gradient:
        To the larger one; to input where both are equal.

    Example:
        >>> torch.fmax(torch.tensor([1.0, math.nan]), torch.tensor([2.0, 3.0]))
        tensor([2., 3.]))",
          kFmax);
  ops.def("fmin", fmin, "input, other", kMethod, R"(
    Takes the smaller of two elements; NaN is left out where the other is a number.

    Gradient:
        To the smaller one; to input where both are equal.

    Example:
        >>> torch.fmin(torch.tensor([1.0, math.nan]), torch.tensor([2.0, 3.0]))
        tensor([1., 3.]))",
          kFmin);
  // Tensors first: a 0-dim tensor would pass for a number, and lose its gradient.
  ops.def("clamp", clamp_tensors, "input, min=None, max=None", kUnary, R"(
    Brings each element into [min, max].

    Args:
        min: the lower bound, or bounds; None for none. NaN gives NaN.
        max: the upper bound, or bounds; None for none. It wins where it is below min.

    Gradient:
        dy where the element lies between the bounds or on one, else 0; tensors as bounds get the rest.

    Example:
        >>> x = torch.tensor([-2.0, 0.5, 3.0])
        >>> torch.clamp(x, min=-1.0, max=1.0)
        tensor([-1.0000,  0.5000,  1.0000])
        >>> x.clamp(min=torch.tensor([0.0, 1.0, 2.0]))
        tensor([0., 1., 3.]))");
  ops.def("clamp", clamp, "input, min=None, max=None", kUnary | kExactOut, "", kClamp);
  ops.alias("clip", "clamp");
  ops.def("clamp_min", clamp_min_tensor, "input, min", kUnary, R"(
    Replaces elements that are smaller than min by it: clamp() with the lower bound alone.

    Args:
        min: the bound, or bounds.

    Example:
        >>> torch.clamp_min(torch.tensor([-0.5, 3.0]), 0)
        tensor([0., 3.]))");
  ops.def("clamp_min", clamp_min, "input, min", kUnary | kExactOut);
  ops.def("clamp_max", clamp_max_tensor, "input, max", kUnary, R"(
    Replaces elements that are larger than max by it: clamp() with the upper bound alone.

    Args:
        max: the bound, or bounds.

    Example:
        >>> torch.clamp_max(torch.tensor([0.5, 3.0]), 1)
        tensor([0.5000, 1.0000]))");
  ops.def("clamp_max", clamp_max, "input, max", kUnary | kExactOut);
  ops.def("nan_to_num", nan_to_num, "input, nan=0.0, posinf=None, neginf=None", kUnary | kExactOut, R"(
    Replaces NaN and the infinities by finite numbers.

    Args:
        nan: what stands for NaN.
        posinf: what stands for inf; None takes the largest number of the type.
        neginf: what stands for -inf; None takes the smallest number of the type.

    Gradient:
        0 where something was replaced.

    Example:
        >>> x = torch.tensor([math.nan, math.inf, 1.0])
        >>> torch.nan_to_num(x, nan=-1.0, posinf=99.0)
        tensor([-1., 99.,  1.]))",
          kNanToNum);
});

}  // namespace rl::ops
