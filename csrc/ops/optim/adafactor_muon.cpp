// Steps that treat a parameter as a matrix: Adafactor and Muon. One call for all parameters of a group.
#include <cmath>
#include <vector>

#include "autograd/copy_on_write.h"
#include "autograd/grad_mode.h"
#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/optim/dense.h"
#include "schema/registry.h"

namespace rl::ops {

// Means of g^2 along rows and columns; update = g / sqrt(row * col / mean(row)), at most d long in the root mean square
// p -= max(eps2, rms(p)) * min(lr, 1/sqrt(t)) * update        eps1 < 0: the type's own epsilon
void adafactor_step(const Tensors& params, const Tensors& grads, const Tensors& rows, const Tensors& cols,
                    const Tensors& steps, double lr, double beta2_decay, double eps1, double eps2, double d,
                    double weight_decay, bool maximize) {
  NoGrad off;
  const size_t count = static_cast<size_t>(params.size());
  for (const Tensors* list : {&grads, &rows, &cols, &steps})
    CHECK(static_cast<size_t>(list->size()) == count, Runtime, "the lists of an optimizer step have different lengths");
  const FactorGroup group = {maximize ? -1.0 : 1.0, 1 - lr * weight_decay, eps2, d};
  for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    std::vector<Dense> arrays;
    std::vector<FactorRow> work;
    for (size_t i = 0; i < count; ++i) {
      const Tensor &p = params[i], &g = grads[i];
      if (p.dtype() != dtype) continue;
      CHECK(p.sizes() == g.sizes(), Runtime, "adafactor: a parameter of size ", to_text(p.sizes()),
            " has a gradient of size ", to_text(g.sizes()));
      fill_raw(steps[i], Scalar(number_of(steps[i]) + 1));
      bump_version(steps[i]);
      if (!p.has_values() || p.numel() == 0) continue;
      const bool matrix = p.dim() > 1;
      const int64_t columns = matrix ? p.size(-1) : p.numel(), lines = matrix ? p.size(-2) : 1;
      CHECK(rows[i].numel() == (matrix ? p.numel() / columns : columns) &&
                (!matrix || cols[i].numel() == p.numel() / lines),
            Runtime, "adafactor: the state of parameter ", i, " does not have the size of a parameter of size ",
            to_text(p.sizes()));
      before_write(p);
      for (const Tensor* t : {&p, &rows[i], &cols[i], &g}) arrays.emplace_back(*t, dtype);
      const Dense* of = &arrays[arrays.size() - 4];
      const double t = number_of(steps[i]);
      const double epsilon = dtype == DType::Float32   ? 0x1p-23
                             : dtype == DType::Float64 ? 0x1p-52
                             : dtype == DType::Float16 ? 0x1p-10
                                                       : 0x1p-7;
      work.push_back({of[0].data(), of[3].data(), of[1].data(), matrix ? of[2].data() : nullptr,
                      p.numel() / (lines * columns), lines, columns, std::pow(t, beta2_decay),
                      eps1 < 0 ? epsilon : eps1, std::min(lr, 1 / std::sqrt(t))});
    }
    if (work.empty()) continue;
    backend(arrays[0].tensor().device()).optim->adafactor(dtype, group, work.data(), static_cast<int64_t>(work.size()));
    for (size_t i = 0; i < arrays.size(); i += 4) {
      arrays[i].put_back(kOptimizerStep);
      arrays[i + 1].put_back();
      if (work[i / 4].col) arrays[i + 2].put_back();
    }
  }
}

// About U V^T of x = U S V^T: steps of x -> a x + (b x x^T + c (x x^T)^2) x, in bfloat16
static Tensor orthogonal(const Tensor& matrix, double a, double b, double c, int64_t steps, double eps) {
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = cast(matrix, DType::BFloat16);
  if (tall) x = transpose(x, 0, 1);
  x = div(x, clamp(vector_norm(x), Scalar(eps), std::nullopt));
  for (int64_t i = 0; i < steps; ++i) {
    Tensor gram = mm(x, transpose(x, 0, 1));
    x = addmm(x, addmm(gram, gram, gram, Scalar(b), Scalar(c)), x, Scalar(a), Scalar(1.0));
  }
  return tall ? transpose(x, 0, 1) : x;
}

// buf: the mean of g; p = (1 - lr * weight_decay) * p - lr * scale * orthogonal(buf)
void muon_step(const Tensors& params, const Tensors& grads, const Tensors& buffers, double lr, double weight_decay,
               double momentum, bool nesterov, double a, double b, double c, int64_t ns_steps, double eps,
               bool match_rms) {
  NoGrad off;
  CHECK(grads.size() == params.size() && buffers.size() == params.size(), Runtime,
        "the lists of an optimizer step have different lengths");
  for (size_t i = 0; i < static_cast<size_t>(params.size()); ++i) {
    const Tensor &p = params[i], &g = grads[i], &buffer = buffers[i];
    CHECK(g.dim() == 2, Value, "Param gradient must be a 2D matrix, and that of parameter ", i, " has size ",
          to_text(g.sizes()));
    copy_into(buffer, lerp(buffer, g, Scalar(1 - momentum)));
    bump_version(buffer);
    Tensor update = orthogonal(nesterov ? lerp(g, buffer, Scalar(momentum)) : buffer, a, b, c, ns_steps, eps);
    const double rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
    const double scale =
        match_rms ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
    Tensor shrunk = mul(p, Scalar(1 - lr * weight_decay));
    before_write(p);
    copy_into(p, add(shrunk, update, Scalar(-lr * scale)));
    bump_version(p, kOptimizerStep);
  }
}

static const Register registered([](Ops& ops) {
  constexpr uint32_t flags = kNoOut | kNotDifferentiable;
  ops.def("_optim.adafactor_step", adafactor_step,
          "params, grads, rows, cols, steps, lr, beta2_decay, eps1, eps2, d, weight_decay, maximize", flags,
          "One step of Adafactor.");
  ops.def("_optim.muon_step", muon_step,
          "params, grads, buffers, lr, weight_decay, momentum, nesterov, a, b, c, ns_steps, eps, match_rms", flags,
          "One step of Muon.");
});

}  // namespace rl::ops
