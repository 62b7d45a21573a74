#include <algorithm>

#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"

namespace rl::ops {

static void check_var(const Tensor& input) {
  CHECK(is_differentiable(input.dtype()), Runtime, "std and var only support floating point and complex dtypes");
}
static void warn_degrees_of_freedom(const char* name, const Tensor& input, const Reduced& r, double correction) {
  if (!input.has_values() || static_cast<double>(r.count) > correction || r.count == 0 || input.numel() == 0) return;
  std::string message = text(name,
                             "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                             "factor (input numel divided by output numel).");
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) python_error();
}

// var: v = sum |x - mean|^2 / (n - correction)        dx = dv 2 (x - mean) / (n - correction)
// std: s = sqrt(v)                                    dx = ds (x - mean) / (s (n - correction)), 0 where s is 0
// Their means come along for var_mean and std_mean, whose dx adds dmean / n.
struct VarBackward : Node {
  static constexpr const char* kName = "VarBackward0";
  static constexpr bool kUndefinedOk = true;
  static constexpr bool kStacks = true;
  Saved self, result;  // result: of std only
  Ints dim, kept;
  double correction = 1;
  int64_t count = 1;
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), dx;
    if (dy[0].defined()) {
      double n = std::max(0.0, static_cast<double>(count) - correction);
      Tensor g = reshape(dy[0], led(dy[0], kept));
      if (result.defined()) {
        Tensor s = reshape(result.unpack(*this), kept);
        Tensor flat = binary("eq", Pointwise::Eq, detach(s), Scalar(0), {.rule = Rule::Bool});
        g = masked_fill(div(g, s), flat, Scalar(0));
      } else {
        g = mul(g, Scalar(2));
      }
      dx = mul(div(g, n), sub(x, mean(x, dim, true)));
    }
    if (dy.size() > 1 && dy[1].defined()) {
      Tensor m = spread(div(dy[1], count), led(dy[1], kept, 1), led(dy[1], x.sizes(), 1));
      dx = dx.defined() ? add(dx, m) : m;
    }
    return {dx};
  }
  FIELDS(self, result, correction)
};
struct StdBackward : VarBackward {
  static constexpr const char* kName = "StdBackward0";
};
struct VarMeanBackward : VarBackward {
  static constexpr const char* kName = "VarMeanBackward0";
};
struct StdMeanBackward : VarBackward {
  static constexpr const char* kName = "StdMeanBackward0";
};

template <class N> static Pair var_raw(const char* name, const Tensor& input, const OptDims& dim, double correction,
                                       bool keepdim, bool root, bool with_mean) {
  check_var(input);
  Reduced r = reduced(input, dim, keepdim);
  if (input.is_complex()) {
    // The variance of the real parts plus that of the imaginary parts.
    Tensor v = add(var(real(input), r.dims, correction, keepdim), var(imag(input), r.dims, correction, keepdim));
    return {root ? sqrt(v) : v, with_mean ? mean(input, r.dims, keepdim) : Tensor()};
  }
  warn_degrees_of_freedom(name, input, r, correction);
  Tensor y = empty(r.result, input.dtype(), input.device()), m;
  if (with_mean) m = empty(r.result, input.dtype(), input.device());
  View v = r.of(y), e = with_mean ? r.of(m) : v;
  backend(input.device()).reduce->variance(&v, with_mean ? &e : nullptr, input.view(), correction, root);
  auto fill = [&](auto& n) {
    n.self = save(input), n.dim = r.dims, n.kept = r.kept, n.correction = correction, n.count = r.count;
    if (root) n.result = save_output(n, y);
  };
  if (with_mean) {
    Tensor both[] = {y, m};
    record_all<N>({both, 2}, {input}, fill);
    return {y, m};
  }
  return {record<N>(y, {input}, fill), Tensor()};
}
Tensor var(const Tensor& input, const OptDims& dim, double correction, bool keepdim) {
  return std::get<0>(var_raw<VarBackward>("var", input, dim, correction, keepdim, false, false));
}

// The three spellings of each: correction=, unbiased with dims, unbiased alone.
#define VARIANCE(name, N, root, with_mean, Result, pick)                                                        \
  static Result name##_correction(const Tensor& x, const OptDims& dim, std::optional<Scalar> c, bool keepdim) { \
    return pick(var_raw<N>(#name, x, dim, c ? c->to_double() : 1, keepdim, root, with_mean));                   \
  }                                                                                                             \
  static Result name##_unbiased(const Tensor& x, const OptDims& dim, bool unbiased, bool keepdim) {             \
    return pick(var_raw<N>(#name, x, dim, unbiased, keepdim, root, with_mean));                                 \
  }                                                                                                             \
  static Result name##_all(const Tensor& x, bool unbiased) {                                                    \
    return pick(var_raw<N>(#name, x, std::nullopt, unbiased, false, root, with_mean));                          \
  }
static Tensor first(Pair p) { return std::get<0>(p); }
static Pair both(Pair p) { return p; }
VARIANCE(var, VarBackward, false, false, Tensor, first)
VARIANCE(std, StdBackward, true, false, Tensor, first)
VARIANCE(var_mean, VarMeanBackward, false, true, Pair, both)
VARIANCE(std_mean, StdMeanBackward, true, true, Pair, both)
#undef VARIANCE

static const Register registered([](Ops& ops) {
  const char *all = "input, unbiased", *by = "input, dim=None, *, correction=None, keepdim=False";
  const char* old = "input, dim, unbiased=True, keepdim=False";
#define DEF(name, flags, doc)                   \
  ops.def(#name, name##_all, all, flags, doc);  \
  ops.def(#name, name##_correction, by, flags); \
  ops.def(#name, name##_unbiased, old, flags);
  DEF(var, kMethod | kFreeOut, R"(
    Computes the variance: the sum of (x - mean)^2 divided by n - correction.

    Args:
        correction: what is subtracted from the number of elements n, by which is divided; None is 1.
        unbiased: True is correction 1, False is correction 0.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
        >>> x.var(dim=1)
        tensor([1., 4.])
        >>> x.var(dim=1, correction=0)
        tensor([0.6667, 2.6667]))")
  DEF(std, kMethod | kFreeOut, R"(
    Computes the standard deviation: the root of var().

    Args:
        correction: what is subtracted from the number of elements n, by which is divided; None is 1.
        unbiased: True is correction 1, False is correction 0.

    Gradient:
        0 where the deviation itself is 0.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
        >>> x.std()
        tensor(1.7889)
        >>> x.std(dim=1)
        tensor([1., 2.])
        >>> x.std(dim=1, correction=0)
        tensor([0.8165, 1.6330]))")
  DEF(var_mean, kNoOut, R"(
    Computes the variance and the mean in one pass.

    Args:
        correction: what is subtracted from the number of elements n, by which is divided; None is 1.
        unbiased: True is correction 1, False is correction 0.

    Returns:
        A tuple (variance, mean).

    Example:
        >>> torch.var_mean(torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]), dim=1)
        (tensor([1., 4.]), tensor([2., 4.])))")
  DEF(std_mean, kNoOut, R"(
    Computes the standard deviation and the mean in one pass.

    Args:
        correction: what is subtracted from the number of elements n, by which is divided; None is 1.
        unbiased: True is correction 1, False is correction 0.

    Returns:
        A tuple (standard deviation, mean).

    Example:
        >>> torch.std_mean(torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]), dim=1)
        (tensor([1., 2.]), tensor([2., 4.])))")
#undef DEF
});

}  // namespace rl::ops
