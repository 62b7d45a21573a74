#include "autograd/record.h"

#include <string>

#include "autograd/destination.h"
#include "autograd/history.h"
#include "autograd/meta.h"
#include "autograd/module_scope.h"

namespace rl {

TensorExtra& extra_of(TensorObject* t) {
  if (!t->extra) t->extra = new TensorExtra;
  return *t->extra;
}

AccumulateGrad::~AccumulateGrad() {
  if (variable.defined() && variable->accumulator == this) variable->accumulator = nullptr;
}

// The leaf's node, if it is not waiting for its destruction.
static AccumulateGrad* living_accumulator(TensorObject* leaf) {
  PyObject* node = reinterpret_cast<PyObject*>(leaf->accumulator);
  if (!node || Py_REFCNT(node) == 0) return nullptr;
  Py_INCREF(node);
  return leaf->accumulator;
}

AccumulateGrad* accumulator_of(TensorObject* leaf) {
  if (AccumulateGrad* have = living_accumulator(leaf)) return have;
  auto* node = static_cast<AccumulateGrad*>(new_node(NodeTypeOf<AccumulateGrad>::type));
  // The allocation may have run the collector, and with it other threads.
  if (AccumulateGrad* have = living_accumulator(leaf)) {
    Py_DECREF(reinterpret_cast<PyObject*>(node));
    return have;
  }
  node->variable = Tensor::borrow(leaf);
  node->results.push_back(ResultMeta(node->variable));
  node->sequence = UINT64_MAX;  // runs as soon as it is ready
  leaf->accumulator = node;
  track_node(node);
  return node;
}

namespace {

// The history of t changes from `before` to `after`. Hooks stay with the value that they were registered for;
// retain_grad means the value that t has now.
[[gnu::cold]] void move_hooks(TensorObject* t, Node* before, Node* after, uint32_t nr) {
  Py_CLEAR(t->extra->hooks);
  if (!t->extra->retains_grad || !before || !before->hooks) return;
  auto& kept = before->hooks->retain_grad;
  for (int64_t i = 0; i < kept.size(); ++i) {
    if (PyWeakref_GetObject(kept[i].hook) != reinterpret_cast<PyObject*>(t)) continue;
    hooks_of(*after).retain_grad.push_back({nr, kept[i].hook});
    kept[i] = kept[kept.size() - 1];
    kept.resize(kept.size() - 1);
    return;
  }
}

}  // namespace

void set_history(TensorObject* t, Node* node, uint32_t nr) {
  if (t->extra) move_hooks(t, t->grad_fn, node, nr);
  Node* old = std::exchange(t->grad_fn, node);
  t->output_nr = nr;
  t->requires_grad = true;
  Py_XDECREF(reinterpret_cast<PyObject*>(old));
}

Node* grad_fn_of(TensorObject* t) {
  TensorObject* base = t->base;
  if (!base || t->view_version == t->version->value || (!t->grad_fn && !base->wants_grad())) return t->grad_fn;
  return history_through_base(t);
}

Edge gradient_edge(TensorObject* t) {
  if (Node* fn = grad_fn_of(t)) return Edge(fn, t->output_nr);
  if (!t->requires_grad) return {};  // also a view from outside the graph, whose base asks for gradients: it keeps none
  Edge e;
  e.node = accumulator_of(t);
  return e;
}

void add_edges(Node* node, const Inputs& inputs) {
  node->edges.reserve(inputs.size());
  for (int64_t i = 0; i < inputs.size(); ++i) {
    TensorObject* t = inputs[i];
    node->edges.push_back(t && t->wants_grad() ? gradient_edge(t) : Edge());
  }
}

void attach_result(Node* node, const Tensor& y) {
  uint32_t nr = static_cast<uint32_t>(node->results.size());
  node->results.push_back(ResultMeta(y));
  if (!is_differentiable(y.dtype()) || y->inference) return;  // a view of an inference tensor is one, too
  if (y.get() == t_destination.taken) {                       // an in-place op that wrote straight into its target
    bump_version(y, t_destination.op);
    t_destination.counted = true;
    t_destination.pending_history = Edge(node, nr);
    return;
  }
  Py_INCREF(reinterpret_cast<PyObject*>(node));
  set_history(y.get(), node, nr);
}

void NewNode::drop_node(Node* node) {
  track_node(node);  // its results may outlive it in the hands of the hook that failed
  Py_DECREF(reinterpret_cast<PyObject*>(node));
}

void finish_node(Node* node) {
  node->sequence = next_sequence();
  node->site = Site::here();
  if (t_module_call) node->scope = Py_XNewRef(module_scope());
  track_node(node);
  if (t_destination.pending_history.node == node) {
    Edge edge = std::move(t_destination.pending_history);
    rebase_history(Tensor::borrow(t_destination.taken), std::move(edge));
  }
  Py_DECREF(reinterpret_cast<PyObject*>(node));
}

namespace {
struct NotDifferentiable : Node {
  static constexpr const char* kName = "NotImplemented";
  std::string op;
  Grads backward(const Grads&) { fail(ErrorKind::Runtime, "derivative for ", op, " is not implemented"); }
};
}  // namespace

Tensor record_not_differentiable(const char* op, Tensor y, const Inputs& inputs) {
  return record<NotDifferentiable>(std::move(y), inputs, [&](auto& n) { n.op = op; });
}

Edge not_differentiable(const char* op, const Tensor& y, const Inputs& inputs) {
  auto* node = static_cast<NotDifferentiable*>(new_node(NodeTypeOf<NotDifferentiable>::type));
  NewNode made(node);
  add_edges(node, inputs);
  node->results.push_back(ResultMeta(y));
  node->op = op;
  Edge edge(node, 0);
  made.finish();
  node->sequence = UINT64_MAX;  // refuses before anything else is done, as torch's does
  return edge;
}

}  // namespace rl
