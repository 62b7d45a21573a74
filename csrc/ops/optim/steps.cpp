// Optimizer steps. Python owns groups and state; each function here applies one algorithm to all parameters of a group.
// They return false, having changed nothing, when tensors need the composed formula of rushlight.optim: other devices,
// mixed types, or layouts that differ between a parameter and its state.
#include <cmath>
#include <vector>

#include "autograd/copy_on_write.h"
#include "backend/backend.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

// The rows of one step, sorted by element type, with what must stay alive until it is done.
class Step {
 public:
  Step(OptimStep step, bool maximize, double weight_decay, double decoupled_decay = 1) {
    group_ = {
        step, weight_decay != 0 ? uint32_t{kWeightDecay} : 0, maximize ? -1.0 : 1.0, weight_decay, decoupled_decay, {}};
  }
  void flag(OptimFlags f, bool on) {
    if (on) group_.flags |= f;
  }
  void shared(double s0, double s1 = 0, double s2 = 0, double s3 = 0, double s4 = 0) {
    double values[] = {s0, s1, s2, s3, s4};
    std::copy(values, values + 5, group_.s);
  }
  // Takes the tensors; false if they do not suit.
  bool take(const Tensors& params, const Tensors& grads, std::initializer_list<const Tensors*> state) {
    rows_.reserve(params.size());
    for (const Tensors* list : state)
      CHECK(list->size() == params.size(), Runtime, "the lists of an optimizer step have different lengths");
    CHECK(grads.size() == params.size(), Runtime, "the lists of an optimizer step have different lengths");
    for (size_t i = 0; i < static_cast<size_t>(params.size()); ++i) {
      const Tensor& p = params[i];
      if (!p.has_values() || !same_device(p.device(), params[0].device()) || !(p.is_float() || p.is_complex()) ||
          p.dtype() == DType::Complex32)
        return false;
      if (!p.is_contiguous() && !non_overlapping_and_dense(p.sizes(), p.strides())) return false;
      OptimRow row = {};
      row.numel = p.numel() * (p.is_complex() ? 2 : 1);
      row.data[0] = p.memory();
      int at = 2;
      for (const Tensors* list : state) {
        if (!alike(p, (*list)[i])) return false;
        row.data[at++] = (*list)[i].memory();
      }
      Tensor g = grads[i];
      if (!alike(p, g)) {
        if (!same_device(g.device(), p.device()) || g.dtype() != p.dtype() || !(g.sizes() == p.sizes())) return false;
        Tensor copy = empty_like(p);
        copy_into(copy, g);
        copies_.push_back(g = copy);
      }
      row.data[1] = g.memory();
      rows_.push_back(row);
    }
    params_ = &params;
    return true;
  }
  OptimRow& row(size_t i) { return rows_[i]; }
  size_t size() const { return rows_.size(); }
  bool run() {
    if (params_->empty()) return true;
    for (const Tensor& p : *params_) before_write(p);
    const OptimKernels& kernels = *backend((*params_)[0].device()).optim;
    for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
      if (uniform(dtype)) {
        kernels.step(dtype, group_, rows_.data(), static_cast<int64_t>(rows_.size()));
        break;
      }
      std::vector<OptimRow> some;
      for (size_t i = 0; i < rows_.size(); ++i)
        if (to_real((*params_)[i].dtype()) == dtype) some.push_back(rows_[i]);
      if (!some.empty()) kernels.step(dtype, group_, some.data(), static_cast<int64_t>(some.size()));
    }
    for (const Tensor& p : *params_) bump_version(p, kOptimizerStep);
    return true;
  }

 private:
  static bool alike(const Tensor& p, const Tensor& t) {
    if (!same_device(t.device(), p.device()) || t.dtype() != p.dtype() || !(t.sizes() == p.sizes())) return false;
    if (p.is_contiguous() && t.is_contiguous()) return true;
    for (int64_t d = 0; d < p.dim(); ++d)
      if (p.sizes()[d] > 1 && p.strides()[d] != t.strides()[d]) return false;
    return true;
  }
  bool uniform(DType dtype) const {
    for (const Tensor& p : *params_)
      if (to_real(p.dtype()) != dtype) return false;
    return true;
  }

  OptimGroup group_;
  std::vector<OptimRow> rows_;
  const Tensors* params_ = nullptr;
  Tensors copies_;
};

// 0-dim counters of steps: float32 or float64 in the host's memory.
bool are_counters(const Tensors& steps, size_t count) {
  if (static_cast<size_t>(steps.size()) != count) return false;
  for (const Tensor& t : steps)
    if (!t.on_host() || t.numel() != 1 || (t.dtype() != DType::Float32 && t.dtype() != DType::Float64)) return false;
  return true;
}
double get(const Tensor& t) { return t.dtype() == DType::Float32 ? *t.data<float>() : *t.data<double>(); }
void set(const Tensor& t, double value) {
  if (t.dtype() == DType::Float32) *t.data<float>() = static_cast<float>(value);
  else *t.data<double>() = value;
}
// Raises a counter by one and returns it.
double raise(const Tensor& t) {
  set(t, get(t) + 1);
  return get(t);
}
double shrink_by(bool decoupled, double lr, double weight_decay) {
  return decoupled && weight_decay != 0 ? 1 - lr * weight_decay : 1;
}

}  // namespace

// buf = momentum * buf + (1 - dampening) * g; p -= lr * buf        fresh: buf starts as g
bool sgd_step(const Tensors& params, const Tensors& grads, const Tensors& buffers, const Ints& fresh, double lr,
              double momentum, double dampening, double weight_decay, bool nesterov, bool maximize) {
  Step step(OptimStep::Sgd, maximize, weight_decay);
  if (!(momentum != 0 ? step.take(params, grads, {&buffers}) : step.take(params, grads, {}))) return false;
  CHECK(momentum == 0 || fresh.size() == buffers.size(), Runtime,
        "the lists of an optimizer step have different lengths");
  step.flag(kMomentum, momentum != 0);
  step.flag(kNesterov, nesterov);
  step.shared(lr, momentum);
  for (size_t i = 0; momentum != 0 && i < step.size(); ++i) {
    step.row(i).c[0] = fresh[i] ? 0 : momentum;
    step.row(i).c[1] = fresh[i] ? 1 : 1 - dampening;
  }
  return step.run();
}

// m, v: means of g and g^2; p -= lr * m_hat / (sqrt(v_hat) + eps)
bool adam_step(const Tensors& params, const Tensors& grads, const Tensors& m, const Tensors& v, const Tensors& largest,
               const Tensors& steps, double lr, double beta1, double beta2, double eps, double weight_decay,
               bool amsgrad, bool maximize, bool decoupled) {
  Step step(OptimStep::Adam, maximize, decoupled ? 0 : weight_decay, shrink_by(decoupled, lr, weight_decay));
  if (!are_counters(steps, params.size())) return false;
  if (!(amsgrad ? step.take(params, grads, {&m, &v, &largest}) : step.take(params, grads, {&m, &v}))) return false;
  step.flag(kAmsgrad, amsgrad);
  step.shared(1 - beta1, beta2, eps, 1 - beta2);
  for (size_t i = 0; i < step.size(); ++i) {
    double t = raise(steps[i]);
    step.row(i).c[0] = lr / (1 - std::pow(beta1, t));
    step.row(i).c[1] = std::sqrt(1 - std::pow(beta2, t));
  }
  return step.run();
}

// u = max(beta2 * u, |g| + eps); p -= lr / (1 - beta1^t) * m / u
bool adamax_step(const Tensors& params, const Tensors& grads, const Tensors& m, const Tensors& u, const Tensors& steps,
                 double lr, double beta1, double beta2, double eps, double weight_decay, bool maximize) {
  Step step(OptimStep::Adamax, maximize, weight_decay);
  if (!are_counters(steps, params.size()) || !step.take(params, grads, {&m, &u})) return false;
  step.shared(1 - beta1, beta2, eps);
  for (size_t i = 0; i < step.size(); ++i) step.row(i).c[0] = lr / (1 - std::pow(beta1, raise(steps[i])));
  return step.run();
}

// mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2), and one step ahead
bool nadam_step(const Tensors& params, const Tensors& grads, const Tensors& m, const Tensors& v,
                const Tensors& products, const Tensors& steps, double lr, double beta1, double beta2, double eps,
                double weight_decay, double momentum_decay, bool maximize, bool decoupled) {
  Step step(OptimStep::NAdam, maximize, decoupled ? 0 : weight_decay, shrink_by(decoupled, lr, weight_decay));
  if (!are_counters(steps, params.size()) || !are_counters(products, params.size())) return false;
  if (!step.take(params, grads, {&m, &v})) return false;
  step.shared(1 - beta1, beta2, eps, 1 - beta2);
  for (size_t i = 0; i < step.size(); ++i) {
    double t = raise(steps[i]);
    double mu = beta1 * (1 - 0.5 * std::pow(0.96, t * momentum_decay));
    double next = beta1 * (1 - 0.5 * std::pow(0.96, (t + 1) * momentum_decay));
    // A product in the tensor's own type, as a multiplication of tensors would give it.
    bool single = products[i].dtype() == DType::Float32;
    set(products[i], single ? static_cast<float>(get(products[i])) * static_cast<float>(mu) : get(products[i]) * mu);
    double product = get(products[i]);
    double* c = step.row(i).c;
    c[0] = lr * (1 - mu) / (1 - product);
    c[1] = lr * next / (1 - product * next);
    c[2] = 1 - std::pow(beta2, t);
  }
  return step.run();
}

// rho_t: the length of the average that v amounts to; up to 5 the step is plain momentum
bool radam_step(const Tensors& params, const Tensors& grads, const Tensors& m, const Tensors& v, const Tensors& steps,
                double lr, double beta1, double beta2, double eps, double weight_decay, bool maximize, bool decoupled) {
  Step step(OptimStep::RAdam, maximize, decoupled ? 0 : weight_decay, shrink_by(decoupled, lr, weight_decay));
  if (!are_counters(steps, params.size()) || !step.take(params, grads, {&m, &v})) return false;
  step.shared(1 - beta1, beta2, eps, 1 - beta2);
  for (size_t i = 0; i < step.size(); ++i) {
    double t = raise(steps[i]), power = std::pow(beta2, t), share = 1 - power;
    double longest = 2 / (1 - beta2) - 1, rho = longest - 2 * t * power / share;
    step.row(i).c[0] = 1 - std::pow(beta1, t);
    step.row(i).c[2] = lr;
    if (rho > 5) {
      double rectify = (rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho);
      step.row(i).c[1] = std::sqrt(rectify) * std::sqrt(share);
    }
  }
  return step.run();
}

// sum += g^2; p -= lr_t * g / (sqrt(sum) + eps)
bool adagrad_step(const Tensors& params, const Tensors& grads, const Tensors& sums, const Tensors& steps, double lr,
                  double lr_decay, double eps, double weight_decay, bool maximize) {
  Step step(OptimStep::Adagrad, maximize, weight_decay);
  if (!are_counters(steps, params.size()) || !step.take(params, grads, {&sums})) return false;
  step.shared(eps);
  for (size_t i = 0; i < step.size(); ++i) step.row(i).c[0] = lr / (1 + (raise(steps[i]) - 1) * lr_decay);
  return step.run();
}

// delta = g * sqrt(acc + eps) / sqrt(v + eps); p -= lr * delta
bool adadelta_step(const Tensors& params, const Tensors& grads, const Tensors& v, const Tensors& acc,
                   const Tensors& steps, double lr, double rho, double eps, double weight_decay, bool maximize) {
  Step step(OptimStep::Adadelta, maximize, weight_decay);
  if (!are_counters(steps, params.size()) || !step.take(params, grads, {&v, &acc})) return false;
  step.shared(rho, eps, lr, 1 - rho);
  for (const Tensor& t : steps) raise(t);
  return step.run();
}

// p -= lr * g / (sqrt(v) + eps), centered: v less the square of the mean
bool rmsprop_step(const Tensors& params, const Tensors& grads, const Tensors& v, const Tensors& means,
                  const Tensors& buffers, const Tensors& steps, double lr, double alpha, double eps,
                  double weight_decay, double momentum, bool centered, bool maximize) {
  Step step(OptimStep::RMSprop, maximize, weight_decay);
  const bool buffered = momentum > 0;
  if (!are_counters(steps, params.size())) return false;
  if (!(centered && buffered ? step.take(params, grads, {&v, &means, &buffers})
        : centered           ? step.take(params, grads, {&v, &means})
        : buffered           ? step.take(params, grads, {&v, &buffers})
                             : step.take(params, grads, {&v})))
    return false;
  step.flag(kCentered, centered);
  step.flag(kMomentum, buffered);
  step.shared(alpha, eps, lr, momentum, 1 - alpha);
  for (const Tensor& t : steps) raise(t);
  return step.run();
}

// A step of its own for each element, longer while the gradient keeps its sign
bool rprop_step(const Tensors& params, const Tensors& grads, const Tensors& previous, const Tensors& sizes,
                const Tensors& steps, double eta_minus, double eta_plus, double smallest, double largest,
                bool maximize) {
  Step step(OptimStep::Rprop, maximize, 0);
  if (!are_counters(steps, params.size()) || !step.take(params, grads, {&previous, &sizes})) return false;
  step.shared(eta_minus, eta_plus, smallest, largest);
  for (const Tensor& t : steps) raise(t);
  return step.run();
}

// p = (1 - lambd * eta) * p - eta * g; ax += mu * (p - ax); then eta and mu of the next step
bool asgd_step(const Tensors& params, const Tensors& grads, const Tensors& averages, const Tensors& mus,
               const Tensors& etas, const Tensors& steps, double lr, double lambd, double alpha, double t0,
               double weight_decay, bool maximize) {
  Step step(OptimStep::Asgd, maximize, weight_decay);
  const size_t n = params.size();
  if (!are_counters(steps, n) || !are_counters(mus, n) || !are_counters(etas, n)) return false;
  if (!step.take(params, grads, {&averages})) return false;
  for (size_t i = 0; i < n; ++i) {
    double t = raise(steps[i]), eta = get(etas[i]);
    double* c = step.row(i).c;
    c[0] = 1 - lambd * eta;
    c[1] = eta;
    c[2] = get(mus[i]);
    set(etas[i], lr / std::pow(1 + lambd * lr * t, alpha));
    set(mus[i], 1 / std::max(1.0, t - t0));
  }
  return step.run();
}

static const Register registered([](Ops& ops) {
  constexpr uint32_t flags = kNoOut | kNotDifferentiable;
  ops.def("_optim.sgd_step", sgd_step,
          "params, grads, buffers, fresh, lr, momentum, dampening, weight_decay, nesterov, maximize", flags,
          "One step of SGD.");
  ops.def("_optim.adam_step", adam_step,
          "params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, amsgrad, "
          "maximize, decoupled",
          flags, "One step of Adam.");
  ops.def("_optim.adamax_step", adamax_step,
          "params, grads, exp_avgs, exp_infs, steps, lr, beta1, beta2, eps, weight_decay, maximize", flags,
          "One step of Adamax.");
  ops.def("_optim.nadam_step", nadam_step,
          "params, grads, exp_avgs, exp_avg_sqs, mu_products, steps, lr, beta1, beta2, eps, weight_decay, "
          "momentum_decay, maximize, decoupled",
          flags, "One step of NAdam.");
  ops.def("_optim.radam_step", radam_step,
          "params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, maximize, decoupled",
          flags, "One step of RAdam.");
  ops.def("_optim.adagrad_step", adagrad_step, "params, grads, sums, steps, lr, lr_decay, eps, weight_decay, maximize",
          flags, "One step of Adagrad.");
  ops.def("_optim.adadelta_step", adadelta_step,
          "params, grads, square_avgs, acc_deltas, steps, lr, rho, eps, weight_decay, maximize", flags,
          "One step of Adadelta.");
  ops.def("_optim.rmsprop_step", rmsprop_step,
          "params, grads, square_avgs, grad_avgs, buffers, steps, lr, alpha, eps, weight_decay, momentum, centered, "
          "maximize",
          flags, "One step of RMSprop.");
  ops.def("_optim.rprop_step", rprop_step,
          "params, grads, prevs, step_sizes, steps, eta_minus, eta_plus, smallest, largest, maximize", flags,
          "One step of Rprop.");
  ops.def("_optim.asgd_step", asgd_step,
          "params, grads, axs, mus, etas, steps, lr, lambd, alpha, t0, weight_decay, maximize", flags,
          "One step of ASGD.");
});

}  // namespace rl::ops
