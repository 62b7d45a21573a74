#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"

namespace rl::ops {

Reduced reduced(const Tensor& input, const OptDims& dim, bool keepdim) {
  int64_t n = input.dim();
  CHECK(n <= kMaxDims, Runtime, "reductions take at most ", kMaxDims, " dimensions, got ", n);
  uint64_t mask = 0;
  if (dim && !dim->empty()) {
    for (int64_t d : *dim) {
      uint64_t bit = uint64_t(1) << wrap_dim(d, n);
      CHECK(!(mask & bit), Runtime, "dim ", wrap_dim(d, n), " appears multiple times in the list of dims");
      mask |= bit;
    }
  } else {
    mask = ~uint64_t(0);
  }
  Reduced r;
  r.kept = Ints(input.sizes());
  r.count = 1;
  for (int64_t i = 0; i < n; ++i) {
    if (mask >> i & 1) {
      r.dims.push_back(i);
      r.count *= input.sizes()[i];
      r.kept[i] = 1;
      if (keepdim) r.result.push_back(1);
    } else {
      r.result.push_back(input.sizes()[i]);
    }
  }
  r.strides = contiguous_strides(r.kept);
  return r;
}

Tensor spread(const Tensor& dy, IntSpan kept, IntSpan sizes) {
  Tensor g = dy.sizes() == kept ? dy : reshape(dy, kept);
  return g.sizes() == sizes ? g : expand(g, sizes);
}

Tensor reduce_raw(Reduce op, const Tensor& input, const Reduced& r, DType dtype, double p) {
  Tensor y = empty(r.result, dtype, input.device());
  backend(input.device()).reduce->reduce(op, r.of(y), input.view(), p);
  return y;
}

// sum: y = sum of x over dims        dx = dy spread over them
struct SumBackward : Node {
  static constexpr const char* kName = "SumBackward1";
  static constexpr bool kStacks = true;
  Ints kept, sizes;
  Grads backward(const Grads& dy) { return {spread(dy[0], led(dy[0], kept), led(dy[0], sizes))}; }
};
struct SumAllBackward : SumBackward {
  static constexpr const char* kName = "SumBackward0";
};
static DType sum_dtype(const Tensor& input, std::optional<DType> dtype) {
  return dtype ? *dtype : is_integral(input.dtype(), true) ? DType::Int64 : input.dtype();
}
// The input in the type that is to be summed; integers are widened by the kernel.
static Tensor summand(const Tensor& input, DType dtype) {
  bool widened = dtype == DType::Int64 && is_integral(input.dtype(), true);
  return widened ? input : cast(input, dtype);
}
Tensor sum(const Tensor& input, const OptDims& dim, bool keepdim, std::optional<DType> dtype) {
  DType to = sum_dtype(input, dtype);
  if (input.dtype() != to && !(to == DType::Int64 && is_integral(input.dtype(), true)))
    return sum(cast(input, to), dim, keepdim, to);
  Reduced r = reduced(input, dim, keepdim);
  Tensor y = reduce_raw(Reduce::Sum, input, r, to);
  auto fill = [&](auto& n) { n.kept = r.kept, n.sizes = Ints(input.sizes()); };
  return dim ? record<SumBackward>(y, {input}, fill) : record<SumAllBackward>(y, {input}, fill);
}

// nansum: as sum, NaN counting as 0        dx = dy where x is a number
struct NansumBackward : Node {
  static constexpr const char* kName = "NansumBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  Ints kept;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    return {mul(spread(dy[0], led(dy[0], kept), led(dy[0], x.sizes())),
                binary("eq", Pointwise::Eq, x, x, {.rule = Rule::Bool}))};
  }
  FIELDS(self)
};
Tensor nansum(const Tensor& input, const OptDims& dim, bool keepdim, std::optional<DType> dtype) {
  CHECK(!input.is_complex(), Runtime, "nansum does not support complex inputs");
  DType to = sum_dtype(input, dtype);
  if (!input.is_float()) return sum(input, dim, keepdim, to);
  Tensor x = cast(input, to);
  if (!x.is_float()) return sum(x, dim, keepdim, to);
  Reduced r = reduced(x, dim, keepdim);
  Tensor y = reduce_raw(Reduce::NanSum, x, r, to);
  return record<NansumBackward>(y, {x}, [&](auto& n) { n.self = save(x), n.kept = r.kept; });
}

// mean: y = sum x / n        dx = dy / n spread
struct MeanBackward : Node {
  static constexpr const char* kName = "MeanBackward1";
  static constexpr bool kStacks = true;
  Ints kept, sizes;
  int64_t count = 1;
  Grads backward(const Grads& dy) { return {spread(div(dy[0], count), led(dy[0], kept), led(dy[0], sizes))}; }
};
struct MeanAllBackward : MeanBackward {
  static constexpr const char* kName = "MeanBackward0";
};
Tensor mean(const Tensor& input, const OptDims& dim, bool keepdim, std::optional<DType> dtype) {
  DType to = dtype.value_or(input.dtype());
  CHECK(is_differentiable(to), Runtime, "mean(): could not infer output dtype. ", dtype ? "Optional" : "Input",
        " dtype must be either a floating point or complex dtype. Got: ", info(to).legacy,
        "\n  Say which: x.float().mean(), or x.mean(dtype=torch.float32).");
  if (input.dtype() != to) return mean(cast(input, to), dim, keepdim);
  Reduced r = reduced(input, dim, keepdim);
  Tensor y = reduce_raw(Reduce::Mean, input, r, to);
  auto fill = [&](auto& n) { n.kept = r.kept, n.sizes = Ints(input.sizes()), n.count = r.count; };
  return dim ? record<MeanBackward>(y, {input}, fill) : record<MeanAllBackward>(y, {input}, fill);
}

// prod: y = product of x        dx = dy conj(y / x); where x has zeros, the product of all the others instead
struct ProdBackward : Node {
  static constexpr const char* kName = "ProdBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Ints kept;
  int64_t dim = 0;
  bool all = false;
  Grads backward(const Grads& dy) {
    Tensor y = result.unpack(*this), x = cast(self.unpack(*this), y.dtype());
    if (x.dim() == 0) return {dy[0]};
    Tensor g = spread(dy[0], led(dy[0], kept), led(dy[0], x.sizes()));
    bool zeros_in_x = x.has_values() && !item(rl::ops::all(x)).to_bool();
    if (!zeros_in_x) return {mul(g, conj(div(spread(y, kept, x.sizes()), x)))};
    // Two zeros among the factors: each product of others has one, whatever else stands there.
    if (all && !grad_enabled() && item(sum(eq(x, 0))).to_int() > 1)
      return {zeros(led(dy[0], x.sizes()), x.dtype(), x.device())};
    Tensor others =
        all ? reshape(products_of_others(reshape(x, {x.numel()}), 0), x.sizes()) : products_of_others(x, dim);
    return {mul(g, conj(others))};
  }
  // The product of what stands before and of what stands after each element. cumprod keeps its input: that is a copy,
  // joined with ones, so that x may be written to afterwards.
  static Tensor products_of_others(const Tensor& x, int64_t dim) {
    int64_t n = x.dim() ? x.size(dim) : 1;
    Ints one(x.sizes());
    if (x.dim()) one[dim] = 1;
    Tensor ones = full(one, Scalar(1), x.dtype(), x.device());
    if (n == 1) return ones;
    Tensor before = cumprod(cat({ones, narrow(x, dim, 0, n - 1)}, dim), dim);
    Tensor after = flip(cumprod(cat({ones, flip(narrow(x, dim, 1, n - 1), {dim})}, dim), dim), {dim});
    return mul(before, after);
  }
  FIELDS(self, result)
};
Tensor prod(const Tensor& input, std::optional<int64_t> dim, bool keepdim, std::optional<DType> dtype) {
  DType to = sum_dtype(input, dtype);
  Tensor x = summand(input, to);
  Reduced r = reduced(x, dim ? OptDims(Ints{*dim}) : std::nullopt, keepdim);
  Tensor y = reduce_raw(Reduce::Prod, x, r, to);
  return record<ProdBackward>(y, {input}, [&](auto& n) {
    n.self = save(input), n.result = save_output(n, y), n.kept = r.kept;
    n.all = !dim, n.dim = dim ? wrap_dim(*dim, x.dim()) : 0;
  });
}
static Tensor prod_all(const Tensor& input, std::optional<DType> dtype) {
  return prod(input, std::nullopt, false, dtype);
}
static Tensor prod_dim(const Tensor& input, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  return prod(input, dim, keepdim, dtype);
}

// any, all: is some, is every element different from 0
static Tensor truth(Reduce op, const Tensor& input, const OptDims& dim, bool keepdim) {
  if (is_float8(input.dtype())) return truth(op, cast(input, DType::Bool), dim, keepdim);
  DType to = input.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool;
  if (dim && dim->empty()) return cast(binary("ne", Pointwise::Ne, input, Scalar(0), {.rule = Rule::Bool}), to);
  return reduce_raw(op, input, reduced(input, dim, keepdim), to);
}
Tensor any(const Tensor& input, const OptDims& dim, bool keepdim) { return truth(Reduce::Any, input, dim, keepdim); }
Tensor all(const Tensor& input, const OptDims& dim, bool keepdim) { return truth(Reduce::All, input, dim, keepdim); }

static Tensor count_nonzero(const Tensor& input, const OptDims& dim) {
  return reduce_raw(Reduce::CountNonzero, input, reduced(input, dim, false), DType::Int64);
}

// The exclusive or of int64 patterns; hash_tensor is written in Python with it.
static Tensor xor_bits(const Tensor& input, const OptDims& dim, bool keepdim) {
  CHECK(input.dtype() == DType::Int64, Runtime, "_xor: expected int64, got ", info(input.dtype()).name);
  return reduce_raw(Reduce::Xor, input, reduced(input, dim, keepdim), DType::Int64);
}

static const Register registered([](Ops& ops) {
  const char* dims = "input, dim=None, keepdim=False, *, dtype=None";
  ops.def("sum", sum, dims, kMethod | kFreeOut | kOverlapOk | kOutType, R"(
    Adds up all elements, or those along the given dimensions.

    Args:
        dtype: the type to add in, and of the result. None takes the input's, int64 for integers and bools.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> x.sum()
        tensor(10)
        >>> x.sum(dim=0)
        tensor([4, 6])
        >>> x.sum(dim=1, keepdim=True)
        tensor([[3],
                [7]]))");
  ops.def("nansum", nansum, dims, kMethod | kFreeOut, R"(
    Adds up all elements but NaN, or those along the given dimensions.

    Gradient:
        0 where the element is NaN.

    Example:
        >>> torch.nansum(torch.tensor([1.0, math.nan, 2.0]))
        tensor(3.))");
  ops.def("mean", mean, dims, kMethod | kFreeOut, R"(
    Averages all elements, or those along the given dimensions. Integers need dtype.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
        >>> x.mean()
        tensor(3.)
        >>> x.mean(dim=1)
        tensor([1.5000, 4.5000]))");
  ops.def("prod", prod_all, "input, *, dtype=None", kMethod | kCastFull | kFreeOut | kOverlapOk | kOutType, R"(
    Multiplies all elements, or those along a dimension.

    Args:
        dim: the dimension to reduce; all of them if it is not given.
        dtype: the type to multiply in, and of the result. None takes the input's, int64 for integers and bools.

    Gradient:
        The product of the other elements, also where some are 0.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.prod()
        tensor(24.)
        >>> x.prod(dim=0)
        tensor([3., 8.]))");
  ops.def("prod", prod_dim, "input, dim, keepdim=False, *, dtype=None",
          kMethod | kCastFull | kFreeOut | kOverlapOk | kOutType);
  ops.def("any", any, "input, dim=None, keepdim=False", kMethod | kNotDifferentiable | kBoolOut | kAnyType, R"(
    Tells whether some element is true (not 0), or some along the given dimensions.

    Example:
        >>> x = torch.tensor([[False, False], [True, False]])
        >>> x.any()
        tensor(True)
        >>> x.any(dim=1)
        tensor([False,  True]))");
  ops.def("all", all, "input, dim=None, keepdim=False", kMethod | kNotDifferentiable | kBoolOut | kAnyType, R"(
    Tells whether all elements are true (not 0), or all along the given dimensions.

    Example:
        >>> x = torch.tensor([[True, False], [True, True]])
        >>> x.all()
        tensor(False)
        >>> x.all(dim=1)
        tensor([False,  True]))");
  ops.def("count_nonzero", count_nonzero, "input, dim=None", kMethod | kNoOut | kNotDifferentiable, R"(
    Counts the elements that are not 0.

    Args:
        dim: the dimension, or dimensions, to count along; None counts all.

    Example:
        >>> x = torch.tensor([[0, 1, 2], [0, 0, 3]])
        >>> torch.count_nonzero(x)
        tensor(3)
        >>> torch.count_nonzero(x, dim=1)
        tensor([2, 1]))");
  ops.def("_xor", xor_bits, "input, dim=None, keepdim=False", kNoOut | kNotDifferentiable);
});

}  // namespace rl::ops
