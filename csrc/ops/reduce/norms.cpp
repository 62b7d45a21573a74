#include <cmath>

#include "backend/backend.h"
#include "backend/distances.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"
#include "tensor/promote.h"

namespace rl::ops {

static Tensor is_zero(const Tensor& x) {
  return binary("eq", Pointwise::Eq, detach(x), Scalar(0), {.rule = Rule::Bool});
}

// vector_norm: y = (sum |x|^p)^(1/p)        dx = dy x |x|^(p-2) / y^(p-1); at 0 the subgradient 0;
// nothing for p = 0, which is not asked here. For p = inf the elements that reach the extremum share dy, or have all of
// it each.
static Tensor norm_grad(const Tensor& x, const Tensor& y, const Tensor& g, IntSpan dim, double ord, bool share = true) {
  if (ord == 1) return mul(g, sgn(x));
  if (ord == 2) {
    // Recorded, x / y is what is 0 where y is: there PyTorch's second derivative is NaN in x, and 0 in dy. Otherwise
    // there is less to divide in g / y, and an infinite dy is NaN at 0, too.
    // A float16 g / y overflows where y is small.
    if (grad_enabled() || y.dtype() == DType::Float16) return mul(g, masked_fill(div(x, y), is_zero(y), Scalar(0)));
    return mul(where(is_zero(y), mul(g, Scalar(0)), div(g, y)), x);
  }
  if (std::isinf(ord)) {
    Tensor held = cast(binary("eq", Pointwise::Eq, detach(abs(x)), detach(y), {.rule = Rule::Bool}), g.dtype());
    return mul(mul(sgn(x), held), share ? div(g, sum(held, Ints(dim), true)) : g);
  }
  Tensor size = abs(x), at_zero = is_zero(x);
  // |x|^(p-1) in terms of |x| / y, which neither overflows nor vanishes.
  Tensor ratio = masked_fill(div(size, y), is_zero(y), Scalar(0));
  if (ord < 1) {
    Tensor power = masked_fill(pow(masked_fill(ratio, at_zero, Scalar(1)), Scalar(ord - 1)), at_zero, Scalar(0));
    return mul(mul(sgn(x), power), g);
  }
  if (ord < 2) {
    Tensor power = pow(masked_fill(ratio, at_zero, Scalar(1)), Scalar(ord - 1));
    return mul(mul(sgn(x), masked_fill(power, at_zero, Scalar(0))), g);
  }
  return mul(mul(sgn(x), pow(ratio, Scalar(ord - 1))), g);
}
struct VectorNormBackward : Node {
  static constexpr const char* kName = "LinalgVectorNormBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Ints dim, kept;
  double ord = 2;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this);
    if (ord == 0) return {zeros(led(dy[0], x.sizes()), x.dtype(), x.device())};
    return {norm_grad(x, reshape(result.unpack(*this), kept), reshape(dy[0], led(dy[0], kept)), dim, ord)};
  }
  FIELDS(self, result, ord)
};
Tensor vector_norm(const Tensor& input, double ord, const OptDims& dim, bool keepdim, std::optional<DType> dtype) {
  CHECK(is_differentiable(input.dtype()), Runtime,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ", info(input.dtype()).legacy);
  Tensor x = input;
  if (dtype) {
    CHECK(is_differentiable(*dtype), Runtime, "linalg.vector_norm: dtype should be floating point or complex, but got ",
          info(*dtype).legacy);
    CHECK(input.is_complex() == rl::is_complex(*dtype), Runtime, "linalg.vector_norm: dtype should be ",
          input.is_complex() ? "complex" : "real", " for ", input.is_complex() ? "complex" : "real",
          " inputs, but got ", info(*dtype).legacy);
    CHECK(promote_types(input.dtype(), *dtype) == *dtype, Runtime, "linalg.vector_norm: the dtype of the input (",
          info(input.dtype()).legacy, ") should be convertible without narrowing to the specified dtype (",
          info(*dtype).legacy, ")");
    x = cast(input, *dtype);
  }
  Reduced r = reduced(x, dim, keepdim);
  if (x.numel() == 0 && (ord < 0 || ord == INFINITY)) {
    CHECK(dim && !dim->empty(), Runtime, "linalg.vector_norm cannot compute the ", ord,
          " norm on an empty tensor because the operation does not have an identity");
    for (int64_t d : r.dims)
      CHECK(x.sizes()[d] != 0, Runtime, "linalg.vector_norm cannot compute the ", ord, " norm on the dimension ", d,
            "because this dimension is empty and the operation does not have an identity");
  }
  Reduce op = ord == 0           ? Reduce::Norm0
              : ord == 1         ? Reduce::Norm1
              : ord == 2         ? Reduce::Norm2
              : ord == INFINITY  ? Reduce::NormInf
              : ord == -INFINITY ? Reduce::NormNegInf
                                 : Reduce::NormP;
  Tensor y = reduce_raw(op, x, r, to_real(x.dtype()), ord);
  return record<VectorNormBackward>(y, {x}, [&](auto& n) {
    n.self = save(x), n.result = save_output(n, y), n.dim = r.dims, n.kept = r.kept, n.ord = ord;
  });
}
static Tensor vector_norm_op(const Tensor& input, const Scalar& ord, const OptDims& dim, bool keepdim,
                             std::optional<DType> dtype) {
  CHECK(!ord.is_complex(), Runtime, "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  return vector_norm(input, ord.to_double(), dim, keepdim, dtype);
}

// distances: y = the norms of a_i - b_j        as of the norms of their differences
// Where nothing is recorded, straight from the rows: the differences of all pairs take long to write and to read.
static bool has_distance_kernel(const Tensor& rows, int64_t lead, double p) {
  return !grad_enabled() && !lead && (p == 1 || p == 2 || (std::isinf(p) && rows.sizes()[rows.dim() - 1] >= 8));
}
struct DistancesBackward : Node {
  static constexpr const char* kName = "CdistBackward0";
  static constexpr bool kStacks = true;
  Saved self, other, result;
  double p = 2;
  Grads backward(const Grads& dy) {
    const int64_t first = lead(dy[0]);
    const Tensor left = self.unpack(*this), right = other.unpack(*this), distances = result.unpack(*this);
    if (has_distance_kernel(left, first, p)) {
      const Tensor x = contiguous(left), o = contiguous(right), y = contiguous(distances), g = contiguous(dy[0]);
      auto gradient = [&](const Tensor& rows, const Tensor& others, bool turned) {
        Tensor d = empty(rows.sizes(), rows.dtype(), rows.device());
        if (d.numel())
          backend(d.device())
              .distances->gradient(d.view(), rows.view(), others.view(), y.view(), g.view(), p, turned, false);
        return d;
      };
      return {needs(0) ? gradient(x, o, false) : Tensor(), needs(1) ? gradient(o, x, true) : Tensor()};
    }
    Tensor a = unsqueeze(left, 2), b = unsqueeze(right, 1), d = sub(a, b);
    Tensor g = p == 0 ? zeros(led(dy[0], d.sizes()), d.dtype(), d.device())
                      : norm_grad(d, unsqueeze(distances, 3), unsqueeze(dy[0], -1), {3}, p, false);
    return {needs(0) ? sum(g, Ints{first + 2}) : Tensor(), needs(1) ? neg(sum(g, Ints{first + 1})) : Tensor()};
  }
  FIELDS(self, other, result, p)
};
static Tensor distances(const Tensor& a, const Tensor& b, double p) {
  CHECK(a.dim() == 3 && b.dim() == 3 && a.sizes()[0] == b.sizes()[0] && a.sizes()[2] == b.sizes()[2], Runtime,
        "_distances: expected (batch, rows, columns) twice, got ", a.sizes(), " and ", b.sizes());
  CHECK((a.dtype() == DType::Float32 || a.dtype() == DType::Float64) && a.dtype() == b.dtype() && p >= 0, Runtime,
        "_distances: expected two tensors of floats or of doubles and p >= 0");
  Tensor y = empty({a.sizes()[0], a.sizes()[1], b.sizes()[1]}, a.dtype(), a.device());
  if (y.numel())
    backend(y.device()).distances->distances(y.view(), contiguous(a).view(), contiguous(b).view(), p, false);
  return record<DistancesBackward>(
      y, {a, b}, [&](auto& n) { n.self = save(a), n.other = save(b), n.result = save_output(n, y), n.p = p; });
}
// pair_distances: y = the norms of x_i - x_j for i < j, row by row        as of the norms of these differences
struct PairDistancesBackward : Node {
  static constexpr const char* kName = "PdistBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  double p = 2;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), y = result.unpack(*this);
    const int64_t n = x.sizes()[0];
    if (has_distance_kernel(x, lead(dy[0]), p)) {
      const Tensor rows = unsqueeze(contiguous(x), 0), g = contiguous(dy[0]), d = contiguous(y);
      Tensor dx = empty(x.sizes(), x.dtype(), x.device());
      if (dx.numel())
        backend(dx.device())
            .distances->gradient(unsqueeze(dx, 0).view(), rows.view(), rows.view(), d.view(), g.view(), p, false, true);
      return {dx};
    }
    Tensor first = empty({y.numel()}, DType::Int64), second = empty_like(first);
    {
      auto *i = first.data<int64_t>(), *j = second.data<int64_t>();
      for (int64_t row = 0; row < n; ++row)
        for (int64_t column = row + 1; column < n; ++column) *i++ = row, *j++ = column;
    }
    first = to_device(first, x.device()), second = to_device(second, x.device());
    Tensor difference = sub(index_select(x, 0, first), index_select(x, 0, second));
    Tensor dx = zeros(led(dy[0], x.sizes()), x.dtype(), x.device());
    if (p == 0) return {dx};
    Tensor g = norm_grad(difference, unsqueeze(y, 1), unsqueeze(dy[0], -1), {1}, p, false);
    const int64_t rows = lead(dy[0]);
    return {index_add(index_add(dx, rows, first, g), rows, second, g, Scalar(-1))};
  }
  FIELDS(self, result, p)
};
static Tensor pair_distances(const Tensor& x, double p) {
  CHECK(x.dim() == 2 && (x.dtype() == DType::Float32 || x.dtype() == DType::Float64) && p >= 0, Runtime,
        "_pair_distances: expected a matrix of floats or doubles and p >= 0");
  const int64_t n = x.sizes()[0], pairs = n > 0 ? checked_mul(n, n - 1) / 2 : 0;
  Tensor y = empty({pairs}, x.dtype(), x.device());
  if (pairs) {
    NoGrad raw;
    Tensor one = unsqueeze(contiguous(x), 0);
    backend(y.device()).distances->distances(y.view(), one.view(), one.view(), p, true);
  }
  return record<PairDistancesBackward>(
      y, {x}, [&](auto& node) { node.self = save(x), node.result = save_output(node, y), node.p = p; });
}

// logsumexp: y = log(sum(exp(x)))        dx = dy exp(x - y)
struct LogsumexpBackward : Node {
  static constexpr const char* kName = "LogsumexpBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Ints dim, kept;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), y = reshape(result.unpack(*this), kept);
    Tensor weight = exp(sub(x, y));
    return {mul(reshape(dy[0], led(dy[0], kept)), x.is_complex() ? conj(weight) : weight)};
  }
  FIELDS(self, result)
};
Tensor logsumexp(const Tensor& input, const Ints& dim, bool keepdim) {
  Tensor x = is_integral(input.dtype(), true) ? cast(input, default_dtype()) : input;
  Reduced r = reduced(x, dim, keepdim);
  Tensor y;
  if (x.is_float() && r.dims.size() <= 1) {
    y = empty(r.result, x.dtype(), x.device());
    int d = r.dims.empty() ? 0 : static_cast<int>(r.dims[0]);
    backend(x.device()).reduce->logsumexp(r.of(y), x.view(), d);
  } else {
    NoGrad raw;
    Tensor parts = x.is_complex() ? real(x) : x;
    Tensor top = x.numel() ? amax(parts, r.dims, true) : zeros(r.kept, parts.dtype(), x.device());
    Tensor finite =
        binary("eq", Pointwise::Eq, unary("abs", Pointwise::Abs, top), Scalar(INFINITY), {.rule = Rule::Bool});
    top = masked_fill(top, finite, Scalar(0));
    y = add(reshape(log(sum(exp(sub(x, top)), r.dims, true)), r.result), reshape(top, r.result));
  }
  return record<LogsumexpBackward>(
      y, {x}, [&](auto& n) { n.self = save(x), n.result = save_output(n, y), n.dim = r.dims, n.kept = r.kept; });
}

static const Register registered([](Ops& ops) {
  ops.def("linalg.vector_norm", vector_norm_op, "input, ord=2, dim=None, keepdim=False, *, dtype=None",
          kExactOut | kFreeOut, R"(
    Computes the norm of the elements as one vector: (sum |x|^ord)^(1 / ord).

    Args:
        ord: a number; inf takes the largest |x|, -inf the smallest, 0 counts the elements that are not 0.
        dim: the dimension, or dimensions, of the vectors; None takes all.

    Gradient:
        0 where the norm is 0.

    Example:
        >>> x = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
        >>> torch.linalg.vector_norm(x)
        tensor(11.1803)
        >>> torch.linalg.vector_norm(x, dim=1)
        tensor([ 5., 10.])
        >>> torch.linalg.vector_norm(x, ord=math.inf)
        tensor(8.))");
  ops.def("_distances", distances, "input, other, p", kNoOut,
          "The p-norms of the differences of two batches of rows, (batch, rows, columns) each.");
  ops.def("_pair_distances", pair_distances, "input, p", kNoOut,
          "The p-norms of the differences of all pairs of rows.");
  ops.def("logsumexp", logsumexp, "input, dim, keepdim=False", kMethod | kFreeOut, R"(
    Computes log(sum(e^x)) along the given dimensions, without overflow.

    Gradient:
        dy * softmax(x).

    Example:
        >>> torch.logsumexp(torch.tensor([1000.0, 1000.0]), dim=0)
        tensor(1000.6932))");
  ops.alias("special.logsumexp", "logsumexp");
});

}  // namespace rl::ops
