// backward(), grad(), and the switches of grad mode, as Python calls them.
#include "autograd/engine.h"
#include "autograd/gradient_sum.h"
#include "autograd/meta.h"
#include "ops/ops.h"
#include "python/dispatch.h"
#include "python/node_type.h"
#include "python/op_object.h"
#include "python/override.h"
#include "schema/registry.h"
#include "tensor/no_grad_reason.h"

namespace rl {

namespace {

std::string computed_at(const Tensor& t) {
  return t->grad_fn && t->grad_fn->site ? text(", and was computed at ", t->grad_fn->site.describe()) : "";
}

Tensor ones_like(const Tensor& t) {
  PyObject* argument = t.object();
  PyObject* ones = PyObject_Vectorcall(op_function("ones_like"), &argument, 1, nullptr);
  if (!ones) python_error();
  return Tensor::own(reinterpret_cast<TensorObject*>(ones));
}

// The gradient of each root: given, or 1 for a single element.
Tensors root_gradients(const Tensors& roots, PyObject* given, int64_t rows) {
  Tensors out;
  for (int64_t i = 0; i < roots.size(); ++i) {
    const Tensor& r = roots[i];
    PyObject* g = given == Py_None ? Py_None : PySequence_Fast_GET_ITEM(given, i);
    if (g != Py_None) {
      CHECK(is_tensor(g), Type, "gradients can be either Tensors or None, but got ", Py_TYPE(g)->tp_name);
      Tensor t = Tensor::borrow(g);
      if (rows >= 0)
        CHECK(t.dim() > 0 && t.sizes()[0] == rows && IntSpan(t.sizes().data() + 1, t.dim() - 1) == r.sizes(), Runtime,
              "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
              "dimension: the others "
              "are those of its output: Mismatch in shape: grad_output[",
              i, "] has a shape of torch.Size(", to_text(t.sizes()), ") and output[", i, "] has a shape of torch.Size(",
              to_text(r.sizes()), "). To batch only some of them, use vmap.");
      else
        CHECK(t.sizes() == r.sizes(), Runtime, "Mismatch in shape: grad_output[", i, "] has a shape of torch.Size(",
              to_text(t.sizes()), ") and output[", i, "] has a shape of torch.Size(", to_text(r.sizes()), ").");
      CHECK(is_complex(t.dtype()) == is_complex(r.dtype()), Runtime,
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            "Mismatch in dtype: grad_output[",
            i, "] has a dtype of ", info(t.dtype()).name, " and output[", i, "] has a dtype of ", info(r.dtype()).name,
            ".");
      out.push_back(t);
    } else {
      CHECK(rows < 0, Value, "is_grads_batched=True: expected a gradient for each output, got None for output ", i);
      CHECK(!r.requires_grad() || r.numel() == 1, Runtime, "grad can be implicitly created only for scalar outputs",
            "\n  this output has the shape ", to_text(r.sizes()), computed_at(r),
            "\n  Reduce it first, loss.sum() or loss.mean(), or pass a gradient of that shape.");
      CHECK(!is_complex(r.dtype()), Runtime,
            "grad can be implicitly created only for real scalar outputs but got torch.", info(r.dtype()).name);
      NoGrad raw;
      PyObject* root = r.object();
      if (dispatching() && anybody_dispatches(&root, 1)) out.push_back(ones_like(r));
      else out.push_back(ops::full(r.sizes(), Scalar(1), r.dtype(), r.device()));
    }
  }
  return out;
}

std::string no_grad_reason(const Tensor& t) {
  std::string known = t->cut ? t->cut->describe() : "";
  if (!known.empty()) return known;
  return "\n  nothing it was computed from asks for gradients (requires_grad=True), or the graph was cut: by "
         "no_grad(), "
         "detach(), .data, .item(), NumPy, or an op with an integer result";
}

// (kind, op, site, where grad mode was switched off, the text of the error), or None.
NewObject why_no_grad(const Tensor& t) {
  const Cut* cut = t->cut;
  if (cut && cut->kind == CutKind::Strided) cut = cut->before;
  if (t.requires_grad() || !cut) return {Py_NewRef(Py_None)};
  return {Py_BuildValue("(ssNNs)", cut_name(cut->kind), cut->op ? cut->op : "", site_object(cut->site),
                        site_object(cut->mode), cut->describe().c_str())};
}

Tensors run(const Tensors& roots, Object gradients, bool retain_graph, bool create_graph, const Tensors& inputs,
            bool accumulate, int64_t rows) {
  for (int64_t i = 0; i < roots.size(); ++i)
    CHECK(roots[i].requires_grad(), Runtime, "element ", i,
          " of tensors does not require grad and does not have a grad_fn", no_grad_reason(roots[i]));
  Tensors g = root_gradients(roots, gradients.p, rows);
  BackwardCall call;
  call.roots = roots;
  call.gradients = g;
  call.retain_graph = retain_graph;
  call.create_graph = create_graph;
  call.inputs = inputs;
  call.accumulate = accumulate;
  call.rows = rows;
  return run_backward(call);
}

bool is_grad_enabled() { return t_grad_mode.enabled; }
bool set_grad(bool on) {
  if (!on && t_grad_mode.enabled) mode_site() = Site::here();
  return std::exchange(t_grad_mode.enabled, on);
}
bool is_inference() { return t_grad_mode.inference; }
bool set_inference(bool on) { return std::exchange(t_grad_mode.inference, on); }
bool set_anomaly(bool on, bool check_nan) {
  t_grad_mode.anomaly_check_nan = check_nan;
  return std::exchange(t_grad_mode.anomaly, on);
}
bool is_anomaly() { return t_grad_mode.anomaly; }
bool is_anomaly_nan() { return t_grad_mode.anomaly_check_nan; }
bool set_sites(bool on) {
  bool before = Site::enabled();
  Site::enable(on);
  return before;
}

void push_saved_hooks(Object pack, Object unpack) {
  CHECK(!t_saved_hooks_disabled, Runtime, t_saved_hooks_disabled ? t_saved_hooks_disabled : "");
  if (!t_saved_hooks) t_saved_hooks = new SmallVector<SavedHooks, 2>;
  t_saved_hooks->push_back({Py_NewRef(pack.p), Py_NewRef(unpack.p)});
}
void pop_saved_hooks() {
  if (!t_saved_hooks || t_saved_hooks->empty()) return;
  SavedHooks h = t_saved_hooks->back();
  t_saved_hooks->pop_back();
  Py_DECREF(h.pack);
  Py_DECREF(h.unpack);
}

// Makes saving hooks an error with that message; None allows them again. The message that was set before.
NewObject disable_saved_hooks(Object message) {
  static auto* held = new std::string;
  PyObject* before = t_saved_hooks_disabled ? PyUnicode_FromString(t_saved_hooks_disabled) : Py_NewRef(Py_None);
  const char* given = message.p == Py_None ? nullptr : PyUnicode_AsUTF8(message.p);
  if (message.p != Py_None && !given) return {nullptr};
  CHECK(!given || !t_saved_hooks || t_saved_hooks->empty(), Runtime, given);
  *held = given ? given : "";
  t_saved_hooks_disabled = given ? held->c_str() : nullptr;
  return {before};
}

NewObject saved_hooks_message() {
  return {t_saved_hooks_disabled ? PyUnicode_FromString(t_saved_hooks_disabled) : Py_NewRef(Py_None)};
}

// The number of the backward that runs in this thread, -1 outside.
int64_t backward_run() { return in_backward() ? static_cast<int64_t>(current_backward()) : -1; }
bool edge_in_run(const Tensor& t) {
  Edge e = gradient_edge(t.get());
  return e.node && will_reach(*e.node);
}
Node& node_of(PyObject* o) {
  CHECK(PyObject_TypeCheck(o, g_node_type), Type, "expected a node of the graph, got ", Py_TYPE(o)->tp_name);
  return *reinterpret_cast<Node*>(o);
}
bool will_run_node(Object o) {
  CHECK(in_backward(), Runtime,
        "_get_should_execute_nodes should only be called during the backward pass: no backward runs in this thread");
  return will_run(node_of(o.p));
}
NewObject current_node_object() {
  const Node* n = current_node();
  return {Py_NewRef(n ? reinterpret_cast<PyObject*>(const_cast<Node*>(n)) : Py_None)};
}
NewObject execution_order_list() {
  CHECK(in_backward(), Runtime,
        "_current_graph_task_execution_order should only be called during the backward pass: no backward runs in this "
        "thread");
  std::vector<Node*> order = execution_order();
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(order.size()));
  for (size_t i = 0; list && i < order.size(); ++i)
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), Py_NewRef(reinterpret_cast<PyObject*>(order[i])));
  return {list};
}
void queue_callback_call(Object f) { queue_callback(f.p); }

// A tensor that stands for result output_nr of a node where only its place in the graph matters.
Tensor edge_tensor(Object o, int64_t nr) {
  CHECK(PyObject_TypeCheck(o.p, g_node_type), Type, "expected a node of the graph, got ", Py_TYPE(o.p)->tp_name);
  auto* node = reinterpret_cast<Node*>(o.p);
  if (node->type == &NodeTypeOf<AccumulateGrad>::type) {
    auto* leaf = static_cast<AccumulateGrad*>(node);
    if (leaf->variable.defined() && leaf->variable->accumulator == leaf) return leaf->variable;  // else it was set_()
  }
  CHECK(nr >= 0 && nr < node->results.size(), Index, node->type->name, " has no output ", nr);
  const ResultMeta& meta = node->results[nr];
  NoGrad raw;
  Tensor t = ops::expand(ops::zeros({}, meta.dtype, meta.device), meta.sizes);
  Py_CLEAR(t->base);
  Py_INCREF(reinterpret_cast<PyObject*>(node));
  t->grad_fn = node;
  t->output_nr = static_cast<uint32_t>(nr);
  t->requires_grad = true;
  return t;
}

NewObject gradient_edge_op(const Tensor& t) {
  Edge e = gradient_edge(t.get());
  return {Py_BuildValue("(OI)", e.node ? reinterpret_cast<PyObject*>(e.node) : Py_None, e.nr)};
}
NewObject current_site() { return {site_object(Site::here())}; }

// The TorchFunctionModes of this thread, outermost first.
NewObject function_modes() {
  PyObject* list = PyList_New(0);
  for (PyObject* mode : mode_stack()) PyList_Append(list, mode);
  return {list};
}
// The one that the next call goes to, or None.
NewObject innermost_mode() {
  PyObject* mode = function_mode();
  return {Py_NewRef(mode ? mode : Py_None)};
}
NewObject pop_mode() {
  CHECK(!mode_stack().empty(), Runtime, "no TorchFunctionMode is active");
  return {pop_function_mode()};
}

void set_sparse_type(Object type) {
  CHECK(PyType_Check(type.p), Type, "_set_sparse_type: expected a class");
  g_sparse_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.p));
}

bool set_overrides(bool on) {
  return std::exchange(t_overriding, on ? Overriding::On : Overriding::Off) == Overriding::On;
}
// 0: classes and modes take over; 1: modes only; 2: nobody. The one before.
int64_t swap_overriding(int64_t state) {
  CHECK(state >= 0 && state <= 2, Value, "_swap_overriding: expected 0, 1 or 2, got ", state);
  return static_cast<int64_t>(std::exchange(t_overriding, static_cast<Overriding>(state)));
}
int64_t overriding() { return static_cast<int64_t>(t_overriding); }

}  // namespace

static const Register registered([](Ops& ops) {
  ops.def("_run_backward", run, "tensors, grad_tensors, retain_graph, create_graph, inputs, accumulate, rows=-1",
          kNoOut | kAnyDevice);
  ops.def("is_grad_enabled", is_grad_enabled, "", kNoOut, R"(
    Tells whether calls are recorded for autograd in this thread.

    Example:
        >>> with torch.no_grad():
        ...     torch.is_grad_enabled()
        False)");
  ops.def("_set_grad_enabled", set_grad, "mode", kNoOut);
  ops.def("is_inference_mode_enabled", is_inference, "", kNoOut, R"(
    Tells whether inference mode is on in this thread.

    Example:
        >>> with torch.inference_mode():
        ...     torch.is_inference_mode_enabled()
        True)");
  ops.def("_set_inference", set_inference, "mode", kNoOut);
  ops.def("_set_anomaly", set_anomaly, "mode, check_nan", kNoOut);
  ops.def("is_anomaly_enabled", is_anomaly, "", kNoOut, R"(
    Tells whether anomaly mode is on in this thread: backward() checks gradients for NaN.

    Example:
        >>> torch.is_anomaly_enabled()
        False)");
  ops.def("is_anomaly_check_nan_enabled", is_anomaly_nan, "", kNoOut, R"(
    Tells whether anomaly mode looks for NaN in gradients.

    Example:
        >>> torch.is_anomaly_check_nan_enabled()
        True)");
  ops.def("_set_sites", set_sites, "mode", kNoOut);
  ops.def("_push_saved_hooks", push_saved_hooks, "pack, unpack", kNoOut);
  ops.def("_pop_saved_hooks", pop_saved_hooks, "", kNoOut);
  ops.def("_gradient_edge", gradient_edge_op, "input", kNoOut);
  ops.def("_current_site", current_site, "", kNoOut);
  ops.def("_why_no_grad", why_no_grad, "input", kNoOut);
  ops.def("_set_sparse_type", set_sparse_type, "type", kNoOut);
  ops.def("_set_torch_function", set_overrides, "mode", kNoOut);
  ops.def("_disable_saved_hooks", disable_saved_hooks, "message=None", kNoOut);
  ops.def("_saved_hooks_message", saved_hooks_message, "", kNoOut);
  ops.def("_backward_run", backward_run, "", kNoOut);
  ops.def("_edge_in_run", edge_in_run, "input", kNoOut);
  ops.def("_will_run_node", will_run_node, "node", kNoOut);
  ops.def("_current_node", current_node_object, "", kNoOut);
  ops.def("_execution_order", execution_order_list, "", kNoOut);
  ops.def("_keeps_graph", keeps_graph, "", kNoOut);
  ops.def("_queue_callback", queue_callback_call, "callback", kNoOut);
  ops.def("_edge_tensor", edge_tensor, "node, output_nr", kNoOut);
  ops.def("_swap_overriding", swap_overriding, "state", kNoOut);
  ops.def("_overriding", overriding, "", kNoOut);
  ops.def("_function_modes", function_modes, "", kNoOut);
  ops.def("_function_mode", innermost_mode, "", kNoOut);
  ops.def("_pop_function_mode", pop_mode, "", kNoOut);
});

}  // namespace rl
