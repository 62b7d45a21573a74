#include <cmath>

#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"

namespace rl::ops {

// Totals from each element to the end.
static Tensor sum_from(const Tensor& x, int64_t dim) { return flip(cumsum(flip(x, {dim}), dim), {dim}); }

static Tensor scan_input(const Tensor& input, std::optional<DType> dtype) {
  return cast(input, dtype ? *dtype : is_integral(input.dtype(), true) ? DType::Int64 : input.dtype());
}
static Tensor scan_raw(Scan op, const Tensor& x, int64_t dim) {
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  backend(x.device()).reduce->scan(op, y.view(), with_neighbours(x).view(), static_cast<int>(dim));
  return y;
}

// cumsum: y_i = x_0 + ... + x_i        dx = totals of dy from each place to the end
struct CumsumBackward : Node {
  static constexpr const char* kName = "CumsumBackward0";
  static constexpr bool kStacks = true;
  int64_t dim = 0;
  Grads backward(const Grads& dy) { return {results[0].sizes.empty() ? dy[0] : sum_from(dy[0], dim + lead(dy[0]))}; }
  FIELDS(dim)
};
Tensor cumsum(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  dim = wrap_dim(dim, input.dim());
  CHECK(dtype != DType::Bool || input.numel() == 0 || input.dim() == 0, NotImplemented,
        "\"cumsum_out_cpu\" not implemented for 'Bool'");
  Tensor x = scan_input(input, dtype);
  return record<CumsumBackward>(scan_raw(Scan::Sum, x, dim), {x}, [&](auto& n) { n.dim = dim; });
}

// cumprod: y_i = x_0 ... x_i        dx = totals of dy conj(y) from each place, over conj(x); where x has zeros, term by
// term: dx_k = sum over i >= k of dy_i times the product of the x_j, j <= i, without x_k
struct CumprodBackward : Node {
  static constexpr const char* kName = "CumprodBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), y = result.unpack(*this);
    if (x.dim() == 0 || x.numel() == 0 || x.size(dim) == 1) return {dy[0]};
    if (!x.has_values() || item(all(x)).to_bool()) return {div(sum_from(mul(dy[0], conj(y)), dim - x.dim()), conj(x))};
    int64_t n = x.size(dim);
    Tensor xc = conj(x);
    if (!grad_enabled()) return {with_zeros(dy[0], xc, conj(y))};
    Tensors parts;
    Ints one(x.sizes());
    one[dim] = 1;
    Tensor before = full(one, Scalar(1), x.dtype(), x.device());  // the product of x_j, j < k
    for (int64_t k = 0; k < n; ++k) {
      Tensor after = before;  // for i = k, then times x_{k+1} ... x_i
      if (k + 1 < n) after = cat({before, mul(before, cumprod(narrow(xc, dim, k + 1, n - k - 1), dim))}, dim);
      parts.push_back(sum(mul(narrow(dy[0], dim - x.dim(), k, n - k), after), Ints{dim - x.dim()}, true));
      before = mul(before, narrow(xc, dim, k, 1));
    }
    return {cat(parts, dim - x.dim())};
  }
  // The same sums without the terms that a zero makes vanish: up to the first zero they end before it; that zero's own
  // end before the second one; there are none after it.
  Tensor with_zeros(const Tensor& g, const Tensor& x, const Tensor& y) const {
    Tensor zeros = eq(x, 0), count = cumsum(zeros, dim);
    Tensor before = eq(count, 0), between = eq(count, 1), first = logical_and(zeros, between);
    int64_t d = dim - x.dim();  // g may have further dimensions in front
    Tensor derivative = div(sum_from(where(before, mul(g, y), Scalar(0)), d), x);
    Tensor rest = cumprod(where(logical_and(between, eq(zeros, false)), x, Scalar(1)), dim);
    Tensor at_zero = sum(mul(rest, where(between, g, Scalar(0))), Ints{d}, true);
    Ints one(x.sizes());
    one[dim] = 1;
    Tensor start = full(one, Scalar(1), x.dtype(), x.device());
    Tensor product = cat({start, narrow(y, dim, 0, x.size(dim) - 1)}, dim);  // of what comes before each place
    at_zero = mul(at_zero, sum(where(first, product, Scalar(0)), Ints{dim}, true));
    return where(before, derivative, where(first, at_zero, Scalar(0)));
  }
  FIELDS(self, result, dim)
};
Tensor cumprod(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  dim = wrap_dim(dim, input.dim());
  CHECK(dtype != DType::Bool || input.numel() == 0 || input.dim() == 0, NotImplemented,
        "\"cumprod_out_cpu\" not implemented for 'Bool'");
  Tensor x = scan_input(input, dtype);
  Tensor y = scan_raw(Scan::Prod, x, dim);
  return record<CumprodBackward>(y, {x}, [&](auto& n) { n.self = save(x), n.result = save_output(n, y), n.dim = dim; });
}

// logcumsumexp: y_i = log(e^x_0 + ... + e^x_i)        dx = e^x times totals of dy e^-y, taken in logarithms by sign
static Tensor logcumsumexp(const Tensor& input, int64_t dim);
struct LogcumsumexpBackward : Node {
  static constexpr const char* kName = "LogcumsumexpBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), y = result.unpack(*this), g = dy[0];
    if (x.dim() == 0 || x.numel() == 0) return {g};
    // The plain form is the one that can be differentiated again: -inf in the other has no derivative.
    if (x.is_complex() || grad_enabled())
      return {mul(sum_from(mul(g, exp(neg(conj(y)))), dim - x.dim()), exp(conj(x)))};
    int64_t d = dim - x.dim();
    auto part = [&](bool positive) {
      Tensor own = binary("gt", positive ? Pointwise::Gt : Pointwise::Lt, detach(g), Scalar(0), {.rule = Rule::Bool});
      Tensor size = log(masked_fill(positive ? g : neg(g), logical_not(own), Scalar(1)));
      size = masked_fill(size, logical_not(own), Scalar(-INFINITY));
      return exp(add(flip(logcumsumexp(flip(sub(size, y), {d}), d), {d}), x));
    };
    return {sub(part(true), part(false))};
  }
  static Tensor logical_not(const Tensor& t) {
    return unary("logical_not", Pointwise::LogicalNot, t, {.rule = Rule::Bool});
  }
  FIELDS(self, result, dim)
};
static Tensor logcumsumexp(const Tensor& input, int64_t dim) {
  CHECK(is_differentiable(input.dtype()), NotImplemented, "\"logcumsumexp_out_cpu\" not implemented for '",
        info(input.dtype()).legacy, "'");
  dim = wrap_dim(dim, input.dim());
  Tensor y = scan_raw(Scan::LogSumExp, input, dim);
  return record<LogcumsumexpBackward>(
      y, {input}, [&](auto& n) { n.self = save(input), n.result = save_output(n, y), n.dim = dim; });
}

// cummax, cummin: the extremum so far and its last place        dx = dy added where the extremum stands
struct CummaxBackward : Node {
  static constexpr const char* kName = "CummaxBackward0";
  Saved indices;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor at = repeated(*this, indices.unpack(*this), dy[0]);
    return {scatter_add(zeros(dy[0].sizes(), dy[0].dtype(), dy[0].device()), dim + lead(dy[0]), at, dy[0])};
  }
  Grads stacked(const Grads& dy) { return results[0].sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(indices, dim)
};
struct CumminBackward : CummaxBackward {
  static constexpr const char* kName = "CumminBackward0";
};
template <class N> static Pair running(const char* kernel, bool largest, const Tensor& input, int64_t dim) {
  CHECK(!input.is_complex() && static_cast<int>(input.dtype()) < kComputeDTypes, NotImplemented, "\"", kernel,
        "\" not implemented for '", info(input.dtype()).legacy, "'");
  dim = wrap_dim(dim, input.dim());
  Tensor values = empty(input.sizes(), input.dtype(), input.device()),
         indices = empty(input.sizes(), DType::Int64, input.device());
  backend(input.device())
      .reduce->scan_extremum(largest, values.view(), indices.view(), input.view(), static_cast<int>(dim));
  Tensor y = record<N>(values, {input}, [&](auto& n) { n.indices = save(indices), n.dim = dim; });
  return {y, indices};
}
static Pair cummax(const Tensor& input, int64_t dim) { return running<CummaxBackward>("cummax_cpu", true, input, dim); }
static Pair cummin(const Tensor& input, int64_t dim) {
  return running<CumminBackward>("cummin_cpu", false, input, dim);
}

static const Register registered([](Ops& ops) {
  ops.def("cumsum", cumsum, "input, dim, *, dtype=None", kMethod | kInplace | kOutType, R"(
    Adds up along a dimension: y[i] = x[0] + ... + x[i].

    Args:
        dtype: the type to add in, and of the result. None takes the input's, int64 for integers and bools.

    Example:
        >>> torch.cumsum(torch.tensor([[1, 2], [3, 4]]), dim=0)
        tensor([[1, 2],
                [4, 6]]))");
  ops.def("cumprod", cumprod, "input, dim, *, dtype=None", kMethod | kInplace | kOutType, R"(
    Multiplies up along a dimension: y[i] = x[0] * ... * x[i].

    Args:
        dtype: the type to multiply in, and of the result. None takes the input's, int64 for integers and bools.

    Example:
        >>> torch.cumprod(torch.tensor([1, 2, 3, 4]), dim=0)
        tensor([ 1,  2,  6, 24]))");
  ops.def("logcumsumexp", logcumsumexp, "input, dim", kMethod | kExactOut, R"(
    Computes log(cumsum(e^x)) along a dimension, without overflow.

    Example:
        >>> torch.logcumsumexp(torch.tensor([0.0, 0.0, 1000.0]), dim=0)
        tensor([0.0000e+00, 6.9315e-01, 1.0000e+03]))");
  ops.def("cummax", cummax, "input, dim", kMethod | kExactOut | kFreeOut | kOverlapOk, R"(
    Takes the maximum so far along a dimension, and its index: the last of equal ones.

    Gradient:
        Each dy to the element that was taken.

    Example:
        >>> torch.cummax(torch.tensor([1.0, 3.0, 2.0, 3.0]), dim=0)
        torch.return_types.cummax(
        values=tensor([1., 3., 3., 3.]),
        indices=tensor([0, 1, 1, 3])))",
          "values, indices");
  ops.def("cummin", cummin, "input, dim", kMethod | kExactOut | kFreeOut | kOverlapOk, R"(
    Takes the minimum so far along a dimension, and its index: the last of equal ones.

    Gradient:
        Each dy to the element that was taken.

    Example:
        >>> torch.cummin(torch.tensor([3.0, 1.0, 2.0, 1.0]), dim=0)
        torch.return_types.cummin(
        values=tensor([3., 1., 1., 1.]),
        indices=tensor([0, 1, 1, 3])))",
          "values, indices");
});

}  // namespace rl::ops
