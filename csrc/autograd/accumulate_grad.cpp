// The node of a leaf: where gradients become `.grad`.
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/gradient_sum.h"
#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "autograd/record.h"
#include "tensor/overlap.h"

namespace rl {

// dL/dx arrives: the first gradient is kept as it is if nobody else holds it, later ones are added.
Grads AccumulateGrad::backward(const Grads& dy) {
  if (!dy[0].defined() || !variable.defined()) return {};
  TensorObject* v = variable.get();
  CHECK(!grad_fn_of(v), Runtime, "leaf variable has been moved into the graph interior");
  if (!v->requires_grad) {  // it changed its mind
    run_post_accumulate_hooks(variable);
    return {};
  }
  {
    GradientLock lock(adding);
    add(dy[0]);
  }
  run_post_accumulate_hooks(variable);
  return {};
}

void AccumulateGrad::add(Tensor g) {
  TensorObject* v = variable.get();
  if (v->grad && v->grad->lazy()) {
    Tensor plain = g_engine_ops.resolved(Tensor::borrow(v->grad));
    Py_SETREF(v->grad, reinterpret_cast<TensorObject*>(plain.release()));
  }
  if (adds_itself(g) || (v->grad && adds_itself(Tensor::borrow(v->grad)))) {
    // In place, unless a dense gradient comes to a sparse one.
    if (v->grad && !grad_enabled() && (!is_sparse(Tensor::borrow(v->grad)) || is_sparse(g)))
      g = add_by_class(Tensor::borrow(v->grad), g, true);
    else if (v->grad) g = add_by_class(Tensor::borrow(v->grad), g);
    else if (!grad_enabled() && g_adds_itself(Py_TYPE(g.object())))
      // Later gradients are added to it in place: the elements of a plain tensor must be its own.
      g = Py_TYPE(g.object()) != g_tensor_type || non_overlapping_and_dense(g.sizes(), g.strides())
              ? detached_by_class(g)
              : tensor_of(PyObject_CallMethod(g.object(), "clone", nullptr));
    else if (!grad_enabled()) {
      // Two references: the engine's and ours.
      const int shared = Py_REFCNT(g.object()) > 2;
      g = tensor_of(PyObject_CallMethod(g.object(), "_as_gradient", "i", shared));
    }
    TensorObject* old = std::exchange(v->grad, reinterpret_cast<TensorObject*>(g.release()));
    Py_XDECREF(old);
  } else if (!v->grad) {
    // Two references: the engine's and ours.
    bool ours =
        Py_REFCNT(g.object()) <= 2 && g.storage()->refs == 1 && Py_TYPE(g.object()) == g_tensor_type && !g->base;
    // The gradient is going to be added to in place: no two of its elements may share one.
    const bool dense = variable.is_contiguous() || non_overlapping_and_dense(variable.sizes(), variable.strides());
    const bool same_layout = dense
                                 ? g.strides() == variable.strides() || (g.is_contiguous() && variable.is_contiguous())
                                 : g.is_contiguous();
    if (!ours || !same_layout || grad_enabled()) {  // what has a history may be changed in place: never .grad itself
      Tensor laid =
          empty_strided(variable.sizes(), dense ? variable.strides() : IntSpan(contiguous_strides(variable.sizes())),
                        g.dtype(), g.device());
      if (grad_enabled()) g_engine_ops.assign(laid, g);
      else g_engine_ops.copy(laid, g);
      g = laid;
    }
    Py_XSETREF(v->grad, reinterpret_cast<TensorObject*>(g.release()));
  } else if (!grad_enabled()) {
    Tensor have = Tensor::borrow(v->grad);
    check_inplace(have, true);  // also makes the addition uninterruptible
    check_no_internal_overlap(have);
    CHECK(expandable(g.sizes(), have.sizes()), Runtime, "output with shape ", to_text(have.sizes()),
          " doesn't match the broadcast shape ", to_text(g.sizes()),
          "\n  The .grad of a leaf was given another shape, and a gradient is to be added to it.");
    g_engine_ops.add_inplace(have, g);
    bump_version(have);
  } else {
    Tensor sum = g_engine_ops.add(Tensor::borrow(v->grad), g);
    TensorObject* old = std::exchange(v->grad, reinterpret_cast<TensorObject*>(sum.release()));
    Py_XDECREF(old);
  }
}

}  // namespace rl
