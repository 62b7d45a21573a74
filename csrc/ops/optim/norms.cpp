// Norms of lists of tensors and their scaling, for the clipping of gradients.
#include <cmath>
#include <vector>

#include "autograd/copy_on_write.h"
#include "backend/backend.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

// Rows over dense tensors of one real type; false if some are not.
bool rows_of(const Tensors& tensors, std::vector<OptimRow>& rows) {
  rows.reserve(static_cast<size_t>(tensors.size()));
  for (const Tensor& t : tensors) {
    if (!t.has_values() || !same_device(t.device(), tensors[0].device()) || !t.is_float() ||
        t.dtype() != tensors[0].dtype())
      return false;
    if (!t.is_contiguous() && !non_overlapping_and_dense(t.sizes(), t.strides())) return false;
    OptimRow row = {};
    row.data[0] = t.memory();
    row.numel = t.numel();
    rows.push_back(row);
  }
  return !rows.empty();
}

}  // namespace

// The norms of the tensors, and the norm of all as one vector; none when they need composed ops
static std::optional<std::vector<double>> norms_of(const Tensors& tensors, double order, double* total) {
  std::vector<OptimRow> rows;
  if ((order != 1 && order != 2 && !(std::isinf(order) && order > 0)) || !rows_of(tensors, rows)) return std::nullopt;
  std::vector<double> out(rows.size());
  backend(tensors[0].device())
      .optim->powers(tensors[0].dtype(), order, rows.data(), static_cast<int64_t>(rows.size()), out.data());
  *total = 0;
  for (double& v : out) {
    if (std::isinf(order)) *total = v > *total || v != v ? v : *total;
    else *total += v;
    if (order == 2) v = std::sqrt(v);
  }
  if (order == 2) *total = std::sqrt(*total);
  return out;
}
static Tensor number(double value, DType dtype) {
  Tensor t = empty({}, dtype);
  visit_compute(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_floating_v<T>) *t.data<T>() = T(static_cast<compute_t<T>>(value));
  });
  return t;
}

// The norm of each tensor, or nothing
Tensors list_norms(const Tensors& tensors, double order) {
  double total;
  auto norms = norms_of(tensors, order, &total);
  Tensors out;
  if (norms)
    for (double v : *norms) out.push_back(number(v, tensors[0].dtype()));
  return out;
}

// The norm of all tensors taken as one vector, in a list of one, or nothing
Tensors total_norm(const Tensors& tensors, double order) {
  double total;
  Tensors out;
  if (norms_of(tensors, order, &total)) out.push_back(number(total, tensors[0].dtype()));
  return out;
}

// x *= factor for all; false, with nothing changed, when they need composed ops
bool list_scale(const Tensors& tensors, double factor) {
  std::vector<OptimRow> rows;
  if (!rows_of(tensors, rows)) return false;
  for (const Tensor& t : tensors)
    if (t.requires_grad()) return false;
  for (const Tensor& t : tensors) before_write(t);
  if (factor != 1)
    backend(tensors[0].device())
        .optim->scale(tensors[0].dtype(), factor, rows.data(), static_cast<int64_t>(rows.size()));
  for (const Tensor& t : tensors) bump_version(t);
  return true;
}

static const Register registered([](Ops& ops) {
  constexpr uint32_t flags = kNoOut | kNotDifferentiable;
  ops.def("_optim.norms", list_norms, "tensors, ord", flags, "The norm of each tensor.");
  ops.def("_optim.total_norm", total_norm, "tensors, ord", flags, "The norm of all tensors as one vector.");
  ops.def("_optim.scale_", list_scale, "tensors, factor", flags, "Multiplies all tensors by a number.");
});

}  // namespace rl::ops
