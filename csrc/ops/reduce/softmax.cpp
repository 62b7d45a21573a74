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

// The fused gradient, or the same formula in ops when it will itself be differentiated.
static Tensor softmax_gradient(bool log, const Tensor& dy, const Tensor& y, int64_t dim) {
  if (will_record({dy, y}) || dy.dtype() != y.dtype() || !(dy.sizes() == y.sizes())) {
    if (log) return sub(dy, mul(exp(y), sum(dy, Ints{dim}, true)));
    return mul(y, sub(dy, sum(mul(dy, y), Ints{dim}, true)));
  }
  Tensor dx = empty_like(y);
  backend(y.device()).reduce->softmax_grad(log, dx.view(), with_neighbours(dy).view(), y.view(), static_cast<int>(dim));
  return dx;
}
static Tensor softmax_raw(bool log, const char* name, const Tensor& x, int64_t dim) {
  CHECK(x.is_float(), NotImplemented, "\"", name, "_lastdim_kernel_impl\" not implemented for '",
        info(x.dtype()).legacy, "'");
  Tensor y = empty(x.sizes(), x.dtype(), x.device());  // row-major, whatever the input's order
  backend(x.device()).reduce->softmax(log, y.view(), with_neighbours(x).view(), static_cast<int>(dim));
  return y;
}

// softmax: y = exp(x) / sum(exp(x))        dx = y (dy - sum(dy y))
struct SoftmaxBackward : Node {
  static constexpr const char* kName = "SoftmaxBackward0";
  Saved result;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor y = result.unpack(*this);
    if (lead(dy[0])) y = expand(y, dy[0].sizes());
    return {softmax_gradient(false, dy[0], y, dim + lead(dy[0]))};
  }
  Grads stacked(const Grads& dy) { return results[0].sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, result)
};
Tensor softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  Tensor x = dtype ? cast(input, *dtype) : input;
  dim = wrap_dim(dim, x.dim());
  Tensor y = softmax_raw(false, "softmax", x, dim);
  return record<SoftmaxBackward>(y, {x}, [&](auto& n) { n.dim = dim, n.result = save_output(n, y); });
}

// log_softmax: y = x - log(sum(exp(x)))        dx = dy - exp(y) sum(dy)
struct LogSoftmaxBackward : Node {
  static constexpr const char* kName = "LogSoftmaxBackward0";
  Saved result;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor y = result.unpack(*this);
    if (lead(dy[0])) y = expand(y, dy[0].sizes());
    return {softmax_gradient(true, dy[0], y, dim + lead(dy[0]))};
  }
  Grads stacked(const Grads& dy) { return results[0].sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(dim, result)
};
Tensor log_softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  Tensor x = dtype ? cast(input, *dtype) : input;
  dim = wrap_dim(dim, x.dim());
  Tensor y = softmax_raw(true, "log_softmax", x, dim);
  return record<LogSoftmaxBackward>(y, {x}, [&](auto& n) { n.dim = dim, n.result = save_output(n, y); });
}

// As softmax, but rows that are -inf throughout give 0 instead of NaN.
static Tensor safe_softmax(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  Tensor low = binary("eq", Pointwise::Eq, detach(input), Scalar(-INFINITY), {.rule = Rule::Bool});
  Tensor none = all(low, Ints{dim}, true);
  return masked_fill(softmax(masked_fill(input, none, Scalar(0)), dim, dtype), none, Scalar(0));
}

static Tensor softmax_data(const Tensor& input, int64_t dim, bool to_float) {
  return softmax(to_float ? cast(input, DType::Float32) : input, dim);
}
static Tensor log_softmax_data(const Tensor& input, int64_t dim, bool to_float) {
  return log_softmax(to_float ? cast(input, DType::Float32) : input, dim);
}
static Tensor softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim, DType input_dtype) {
  return cast(softmax_gradient(false, grad_output, output, wrap_dim(dim, output.dim())), input_dtype);
}
static Tensor log_softmax_backward_data(const Tensor& grad_output, const Tensor& output, int64_t dim,
                                        DType input_dtype) {
  return cast(softmax_gradient(true, grad_output, output, wrap_dim(dim, output.dim())), input_dtype);
}

static const Register registered([](Ops& ops) {
  ops.def("softmax", softmax, "input, dim, dtype=None", kMethod | kExactOut | kFreeOut, R"(
    Turns scores into probabilities: e^x / sum(e^x) along a dimension, without overflow.

    Args:
        dim: the dimension along which the result sums to 1.

    Gradient:
        y * (dy - sum(dy * y)).

    Example:
        >>> torch.softmax(torch.tensor([[1.0, 2.0], [5.0, 5.0]]), dim=1)
        tensor([[0.2689, 0.7311],
                [0.5000, 0.5000]]))");
  ops.def("log_softmax", log_softmax, "input, dim, dtype=None", kMethod | kExactOut | kFreeOut, R"(
    Computes the logarithm of softmax(): x - log(sum(e^x)) along a dimension.

    Args:
        dim: the dimension along which the probabilities sum to 1.

    Example:
        >>> torch.log_softmax(torch.tensor([1.0, 2.0, 300.0]), dim=0)
        tensor([-299., -298.,    0.]))");
  ops.alias("special.softmax", "softmax");
  ops.alias("special.log_softmax", "log_softmax");
  ops.def("_safe_softmax", safe_softmax, "input, dim, dtype=None");
  ops.def("_softmax", softmax_data, "input, dim, half_to_float");
  ops.def("_log_softmax", log_softmax_data, "input, dim, half_to_float");
  ops.def("_softmax_backward_data", softmax_backward_data, "grad_output, output, dim, input_dtype");
  ops.def("_log_softmax_backward_data", log_softmax_backward_data, "grad_output, output, dim, input_dtype");
});

}  // namespace rl::ops
