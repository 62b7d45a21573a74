#include "autograd/hooks.h"

#include "autograd/batched_gradients.h"
#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "autograd/record.h"

namespace rl {
namespace {

[[noreturn]] void python_error() { throw Error(ErrorKind::Runtime, ""); }

// A new reference, dropped at the end, also by an error; null is an error of Python's.
struct Ref {
  PyObject* p;
  explicit Ref(PyObject* o) : p(o) {
    if (!p) python_error();
  }
  ~Ref() { Py_DECREF(p); }
  Ref(const Ref&) = delete;
};

// f(a), or f(a, b).
PyObject* call(PyObject* f, PyObject* a, PyObject* b = nullptr) {
  Ref args(b ? PyTuple_Pack(2, a, b) : PyTuple_Pack(1, a));
  return call_stacked(f, args.p);
}

PyObject* or_none(const Tensor& t) { return Py_NewRef(t.defined() ? t.object() : Py_None); }

// f(g) for each f of a dict, each result replacing g unless it is None.
void run_dict(PyObject* dict, Tensor& g) {
  if (!dict || PyDict_GET_SIZE(dict) == 0) return;
  Ref list(PyDict_Values(dict));  // hooks may remove themselves while they run
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.p); ++i) {
    Ref arg(or_none(g));
    Ref result(call(PyList_GET_ITEM(list.p, i), arg.p));
    if (result.p == Py_None) continue;
    CHECK(is_tensor(result.p), Type, "expected hook to return a Tensor or None");
    Tensor replaced = g_engine_ops.resolved(Tensor::borrow(result.p));
    CHECK(!g.defined() || replaced.sizes() == g.sizes(), Runtime, "hook '' has changed the size of value: expected ",
          to_text(g.sizes()), ", got ", to_text(replaced.sizes()));
    g = std::move(replaced);
  }
}

PyObject* as_tuple(const Grads& grads) {
  PyObject* t = PyTuple_New(grads.size());
  if (!t) python_error();
  for (int64_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(t, i, or_none(grads[i]));
  return t;
}

// Replaces the gradients by the tuple (or single tensor) that a hook returned.
void replace(Grads& grads, PyObject* result) {
  if (result == Py_None) return;
  if (is_tensor(result) && grads.size() == 1) {
    grads[0] = g_engine_ops.resolved(Tensor::borrow(result));
    return;
  }
  CHECK(PyTuple_Check(result) && PyTuple_GET_SIZE(result) == grads.size(), Runtime,
        "hook has returned an incorrect number of values (got ", PyTuple_Check(result) ? PyTuple_GET_SIZE(result) : 1,
        ", but expected ", grads.size(), "): it must return None or a tuple of them");
  for (int64_t i = 0; i < grads.size(); ++i) {
    PyObject* item = PyTuple_GET_ITEM(result, i);
    CHECK(item == Py_None || is_tensor(item), Type, "expected hook to return Tensors or None");
    grads[i] = item == Py_None ? Tensor() : g_engine_ops.resolved(Tensor::borrow(item));
  }
}

}  // namespace

void retain_grad(TensorObject* t) {
  CHECK(t->wants_grad(), Runtime, "can't retain_grad on Tensor that has requires_grad=False");
  if (t->extra && t->extra->retains_grad) return;
  if (t->view_origin != ViewOrigin::Plain && !t->grad_fn) return;
  Node* fn = grad_fn_of(t);
  if (!fn) return;
  extra_of(t).retains_grad = true;
  PyObject* weak = PyWeakref_NewRef(reinterpret_cast<PyObject*>(t), nullptr);
  if (!weak) python_error();
  hooks_of(*fn).retain_grad.push_back({t->output_nr, weak});
}

void run_tensor_hooks(Node& node, Grads& dy) {
  if (node.type == &NodeTypeOf<AccumulateGrad>::type) {
    TensorObject* v = static_cast<AccumulateGrad&>(node).variable.get();
    if (v && v->extra && v->extra->hooks) run_dict(v->extra->hooks, dy[0]);
    return;
  }
  if (!node.hooks) return;
  // By index: a hook may register further hooks.
  for (int64_t i = 0; i < node.hooks->tensor_hooks.size(); ++i) {
    auto [nr, dict] = node.hooks->tensor_hooks[i];
    if (nr < dy.size()) run_dict(dict, dy[nr]);  // None where no gradient came
  }
  if (stacked_rows() >= 0) return;  // a stack of gradients is none of the tensor's shape
  for (int64_t i = 0; i < node.hooks->retain_grad.size(); ++i) {
    auto [nr, weak] = node.hooks->retain_grad[i];
    PyObject* o = PyWeakref_GetObject(weak);
    if (!o || o == Py_None || nr >= dy.size() || !dy[nr].defined()) continue;
    Tensor t = Tensor::borrow(o);
    static auto* retaining = new std::recursive_mutex;  // rarely contended: one for all tensors
    GradientLock lock(*retaining);
    Tensor sum = t->grad                             ? g_engine_ops.add(Tensor::borrow(t->grad), dy[nr])
                 : grad_enabled() || dy[nr]->grad_fn ? dy[nr]
                                                     : g_engine_ops.clone(dy[nr]);
    TensorObject* old = std::exchange(t->grad, reinterpret_cast<TensorObject*>(sum.release()));
    Py_XDECREF(old);
  }
}

void run_pre_hooks(Node& node, Grads& dy) {
  if (!node.hooks || !node.hooks->pre || PyDict_GET_SIZE(node.hooks->pre) == 0) return;
  Ref list(PyDict_Values(node.hooks->pre));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.p); ++i) {
    Ref args(as_tuple(dy));
    Ref result(call(PyList_GET_ITEM(list.p, i), args.p));
    replace(dy, result.p);
  }
}

void run_post_hooks(Node& node, Grads& dx, const Grads& dy) {
  if (!node.hooks || !node.hooks->post || PyDict_GET_SIZE(node.hooks->post) == 0) return;
  dx.resize(node.edges.size());
  Ref list(PyDict_Values(node.hooks->post));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.p); ++i) {
    Ref inputs(as_tuple(dx)), outputs(as_tuple(dy));
    Ref result(call(PyList_GET_ITEM(list.p, i), inputs.p, outputs.p));
    replace(dx, result.p);
  }
}

void run_post_accumulate_hooks(const Tensor& leaf) {
  if (!leaf->extra || !leaf->extra->post_accumulate_hooks) return;
  Ref list(PyDict_Values(leaf->extra->post_accumulate_hooks));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.p); ++i) {
    Ref result(PyObject_CallOneArg(PyList_GET_ITEM(list.p, i), leaf.object()));
    CHECK(result.p == Py_None, Runtime, "Tensor post accumulate grad hooks should return None.");
  }
}

}  // namespace rl
