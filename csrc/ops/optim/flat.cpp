// L-BFGS sees all parameters as one vector: that vector gathered, a step along it, and the direction.
#include <vector>

#include "autograd/copy_on_write.h"
#include "autograd/grad_mode.h"
#include "backend/backend.h"
#include "ops/optim/dense.h"
#include "schema/registry.h"
#include "tensor/promote.h"

namespace rl::ops {

// y += alpha * x for dense arrays of one type
static void add_scaled(Device device, DType dtype, double alpha, OptimRow* rows, size_t count) {
  OptimGroup group = {OptimStep::Sgd, 0, 1.0, 0.0, 1.0, {-alpha}};
  backend(device).optim->step(dtype, group, rows, static_cast<int64_t>(count));
}
static void add_scaled(const Tensor& y, const Tensor& x, double alpha) {
  OptimRow row = {};
  row.data[0] = y.memory();
  row.data[1] = x.memory();
  row.numel = y.numel();
  add_scaled(y.device(), y.dtype(), alpha, &row, 1);
}
// A complex tensor as pairs of reals, on the same memory
static Tensor as_reals(const Tensor& t) {
  if (!t.is_complex()) return t;
  Ints sizes(t.sizes()), strides(t.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return alias_as(t, to_real(t.dtype()), sizes, strides, 2 * t->offset);
}

// All elements one after another, complex ones as pairs of reals
Tensor flat(const Tensors& tensors) {
  NoGrad off;
  CHECK(!tensors.empty(), Runtime, "expected a non-empty list of Tensors");
  int64_t total = 0;
  DType dtype = to_real(tensors[0].dtype());
  Tensors parts;
  for (const Tensor& t : tensors) {
    parts.push_back(as_reals(t));
    total = checked_add(total, parts.back().numel());
    dtype = promote_types(dtype, parts.back().dtype());
  }
  Tensor out = empty({total}, dtype, tensors[0].device());
  int64_t at = 0;
  for (const Tensor& t : parts) {
    if (t.numel() != 0) copy_into(alias(out, t.sizes(), contiguous_strides(t.sizes()), at), t);
    at += t.numel();
  }
  return out;
}

static void check_length(const Tensors& params, const Tensor& vector) {
  int64_t total = 0;
  for (const Tensor& p : params) total = checked_add(total, p.numel() * (p.is_complex() ? 2 : 1));
  CHECK(vector.dim() == 1 && vector.numel() == total && vector.is_contiguous(), Runtime, "the parameters have ", total,
        " elements and the vector has size ", to_text(vector.sizes()));
}

// params += alpha * direction, each parameter by its part of the vector
void add_flat_(const Tensors& params, const Tensor& direction, double alpha) {
  NoGrad off;
  check_length(params, direction);
  for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    std::vector<Dense> arrays;
    std::vector<OptimRow> rows;
    Tensor d;
    int64_t at = 0;
    for (const Tensor& p : params) {
      const int64_t n = p.numel() * (p.is_complex() ? 2 : 1);
      if (to_real(p.dtype()) == dtype && n != 0 && p.has_values()) {
        if (!d) d = contiguous(cast(direction, dtype));
        before_write(p);
        arrays.emplace_back(p, p.dtype());
        OptimRow row = {};
        row.data[0] = arrays.back().data();
        row.data[1] = static_cast<char*>(d.memory()) + at * itemsize(dtype);
        row.numel = n;
        rows.push_back(row);
      }
      at += n;
    }
    if (rows.empty()) continue;
    add_scaled(d.device(), dtype, alpha, rows.data(), rows.size());
    for (const Dense& a : arrays) a.put_back(kOptimizerStep);
  }
}

// params = vector, each parameter its part of it
void set_flat_(const Tensors& params, const Tensor& vector) {
  NoGrad off;
  check_length(params, vector);
  int64_t at = 0;
  for (const Tensor& p : params) {
    const Tensor part = as_reals(p);
    before_write(p);
    if (part.numel() != 0)
      copy_into(part, alias(vector, part.sizes(), contiguous_strides(part.sizes()), vector->offset + at));
    at += part.numel();
    bump_version(p, kOptimizerStep);
  }
}

// -H g by the two-loop recursion, H the inverse Hessian that the pairs (y, s) and their rho = 1 / y.s imply.
// Returns it and the first loop's alphas, oldest pair first
Tensors lbfgs_direction(const Tensor& grad, const Tensors& y, const Tensors& s, const Tensors& rho,
                        const Value& diagonal) {
  NoGrad off;
  CHECK(y.size() == s.size() && y.size() == rho.size(), Runtime, "the lists of a history have different lengths");
  for (size_t i = 0; i < static_cast<size_t>(y.size()); ++i)
    for (const Tensor* t : {&y[i], &s[i]})
      CHECK(t->sizes() == grad.sizes() && t->dtype() == grad.dtype() && t->is_contiguous(), Runtime,
            "a vector of the history has size ", to_text(t->sizes()), " and the gradient ", to_text(grad.sizes()));
  const size_t count = static_cast<size_t>(y.size());
  Tensors out(count + 1, Tensor());
  Tensor q = contiguous(neg(grad));
  for (size_t i = count; i-- > 0;) {
    out[i + 1] = mul(dot(s[i], q), rho[i]);
    add_scaled(q, y[i], -number_of(out[i + 1]));
  }
  q = mul(q, diagonal);
  for (size_t i = 0; i < count; ++i) add_scaled(q, s[i], number_of(sub(out[i + 1], mul(dot(y[i], q), rho[i]))));
  out[0] = q;
  return out;
}

static const Register registered([](Ops& ops) {
  constexpr uint32_t flags = kNoOut | kNotDifferentiable;
  ops.def("_optim.flat", flat, "tensors", flags, "All elements of the tensors as one vector.");
  ops.def("_optim.add_flat_", add_flat_, "params, direction, alpha", flags,
          "Adds to each parameter its part of a vector.");
  ops.def("_optim.set_flat_", set_flat_, "params, vector", flags, "Sets each parameter to its part of a vector.");
  ops.def("_optim.lbfgs_direction", lbfgs_direction, "grad, y, s, rho, diagonal", flags,
          "The direction of L-BFGS, and the coefficients of its history.");
});

}  // namespace rl::ops
