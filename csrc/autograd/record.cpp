#include "autograd/record.h"

#include <cstring>
#include <string>

#include "autograd/destination.h"
#include "autograd/meta.h"
#include "autograd/module_scope.h"
#include "tensor/promote.h"

namespace rl {

TensorExtra& extra_of(TensorObject* t) {
  if (!t->extra) t->extra = new TensorExtra;
  return *t->extra;
}

AccumulateGrad::~AccumulateGrad() {
  if (variable.defined() && variable->accumulator == this) variable->accumulator = nullptr;
}

AccumulateGrad* accumulator_of(TensorObject* leaf) {
  if (leaf->accumulator) {
    Py_INCREF(reinterpret_cast<PyObject*>(leaf->accumulator));
    return leaf->accumulator;
  }
  auto* node = static_cast<AccumulateGrad*>(new_node(NodeTypeOf<AccumulateGrad>::type));
  node->variable = Tensor::borrow(leaf);
  node->results.push_back(ResultMeta(node->variable));
  node->sequence = UINT64_MAX;  // runs as soon as it is ready
  leaf->accumulator = node;
  track_node(node);
  return node;
}

namespace {

// base[view] = f(...): the gradient of the base outside the view goes on to the base's old history, that of the view
// through f. Edge 0 is the base's, the others are f's own.
struct CopySlices : Node {
  static constexpr const char* kName = "CopySlices";
  Ints base_sizes, base_strides, sizes, strides;
  int64_t offset = 0;  // of the view in the base's memory
  Node* fn = nullptr;  // owned
  uint32_t fn_nr = 0;
  Grads backward(const Grads& dy);
  ~CopySlices() { Py_XDECREF(reinterpret_cast<PyObject*>(fn)); }
  void fields(FieldVisitor& visit) {
    visit.saved_number();  // it counts as freed after backward, whatever f keeps: torch refuses a second one, too
    if (fn) fn->type->fields(*fn, visit);
  }
};

// The gradient is laid out in memory as the base is, so that the view's own strides find its part.
Grads CopySlices::backward(const Grads& dy) {
  Tensor whole = empty_strided(base_sizes, base_strides, dy[0].dtype(), dy[0].device());
  struct Copy {
    const Tensor* from;
  } copy{&dy[0]};
  auto compute = [](void* c) { return g_engine_ops.clone(*static_cast<Copy*>(c)->from); };
  apply_inplace("copy_", whole, false, false, compute, &copy);
  Tensor part = g_engine_ops.as_strided(whole, sizes, strides, offset);
  Grads given(fn->results.size());
  given[fn_nr] = g_engine_ops.clone(part);  // f may hand it on, while `whole` is written to below
  for (int64_t i = 0; i < given.size(); ++i)
    if (!given[i].defined() && !fn->type->undefined_ok)
      given[i] = g_engine_ops.zeros(fn->results[i].sizes, fn->results[i].dtype, fn->results[i].device);
  fn->released = fn->released || released;
  Grads sent = fn->type->backward(*fn, given);
  Grads result(edges.size());
  for (int64_t i = 1; i < sent.size() && i < result.size(); ++i) result[i] = sent[i];
  // What f sends to the value that was overwritten; nothing means zero.
  Tensor through = sent.empty() ? Tensor() : sent[0];
  if (!through.defined()) through = g_engine_ops.zeros(sizes, whole.dtype(), whole.device());
  else if (!(through.sizes() == IntSpan(sizes))) through = g_engine_ops.sum_to(through, sizes);
  Copy put{&through};
  apply_inplace("copy_", part, false, false, compute, &put);
  result[0] = whole;
  return result;
}

void set_history(TensorObject* t, Node* node, uint32_t nr) {  // takes over the reference to node
  Node* old = std::exchange(t->grad_fn, node);
  t->output_nr = nr;
  t->requires_grad = true;
  Py_XDECREF(reinterpret_cast<PyObject*>(old));
}

}  // namespace

Node* grad_fn_of(TensorObject* t) {
  TensorObject* base = t->base;
  if (!base || t->view_version == t->version->value || !base->wants_grad()) return t->grad_fn;
  CHECK(t->view_origin != ViewOrigin::NoGrad, Runtime,
        "A view was created in no_grad mode and its base or another view of its base has been modified inplace with "
        "grad mode "
        "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
        "moving both "
        "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) "
        "or both "
        "outside (if you want the inplace to be tracked).");
  CHECK(t->view_origin != ViewOrigin::MultiOutput, Runtime, "Output ", static_cast<int64_t>(t->output_nr), " of ",
        t->grad_fn ? t->grad_fn->type->name : "a function",
        " is a view and its base or another view of its base has been modified inplace. This view "
        "is the output of a function that returns multiple views. Such functions do not allow the output views to be "
        "modified inplace. You should replace "
        "the inplace operation by an out-of-place one.");
  // The base was written to after the view was made: the view's history is now that of the base, seen through the view.
  auto* node = static_cast<AsStridedBackward*>(new_node(NodeTypeOf<AsStridedBackward>::type));
  node->edges.push_back(gradient_edge(base));
  node->results.push_back(ResultMeta(Tensor::borrow(t)));
  node->describe(base, t);
  Py_INCREF(reinterpret_cast<PyObject*>(node));
  finish_node(node);
  set_history(t, node, 0);
  t->view_version = t->version->value;
  return t->grad_fn;
}

Edge gradient_edge(TensorObject* t) {
  if (Node* fn = grad_fn_of(t)) return Edge(fn, t->output_nr);
  if (!t->wants_grad()) return {};
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
  if (!is_differentiable(y.dtype())) return;
  if (y.get() == t_destination.taken) {  // an in-place op that wrote straight into its target
    bump_version(y, t_destination.op);
    t_destination.counted = true;
    t_destination.pending_history = Edge(node, nr);
    return;
  }
  Py_INCREF(reinterpret_cast<PyObject*>(node));
  set_history(y.get(), node, nr);
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

void mark_view(const Tensor& y, const Tensor& of, ViewOrigin origin) {
  if (t_grad_mode.inference) return;
  TensorObject* base = of->base ? of->base : of.get();
  if (y.dtype() != of.dtype() && y.get() != of.get())
    return;  // bytes read as another type: not differentiable as a view
  y->base = base;
  Py_INCREF(base);
  y->view_version = y.version();
  y->view_origin = !grad_enabled() ? ViewOrigin::NoGrad
                   : of->base && of->view_origin != ViewOrigin::Plain && origin == ViewOrigin::Plain ? of->view_origin
                                                                                                     : origin;
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

// A write that is going to be part of the history must be able to rewrite that of the view's base.
void check_view_history(const Tensor& t) {
  if (!t->base) return;
  if (t->view_origin == ViewOrigin::NoGrad)
    fail(ErrorKind::Runtime,
         "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
         "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the "
         "view and the "
         "inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside "
         "(if you want "
         "the inplace to be tracked).");
  if (t->view_origin == ViewOrigin::MultiOutput) {
    Node* fn = t->grad_fn;
    fail(ErrorKind::Runtime, "Output ", static_cast<int64_t>(t->output_nr), " of ", fn ? fn->type->name : "a function",
         " is a view and is being modified inplace. This view is the output of a function that returns multiple views. "
         "Such "
         "functions do not allow the output views to be modified inplace. You should replace the inplace operation by "
         "an "
         "out-of-place one.");
  }
}

void check_inplace(const Tensor& t, bool overlap_ok) {
  CHECK(!t->inference || t_grad_mode.inference, Runtime,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor "
        "before doing inplace update.");
  for (int64_t i = 0; i < t.dim() && !overlap_ok; ++i)
    CHECK(t->strides()[i] != 0 || t->sizes[i] <= 1 || t->numel == 0, Runtime,
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please "
          "clone() the tensor before performing the operation.");
  if (!grad_enabled()) return;
  if (t->base) {
    if (!t->base->wants_grad()) return;
    check_view_history(t);
    CHECK(t->base->grad_fn, Runtime,
          "a view of a leaf Variable that requires grad is being used in an in-place operation.",
          "\n  Write under no_grad(), or work on a clone(): x = leaf.clone(); x[...] = value");
    return;
  }
  CHECK(!(t.requires_grad() && !t->grad_fn), Runtime,
        "a leaf Variable that requires grad is being used in an in-place operation.",
        "\n  Change it under no_grad() (as optimizers do), or out of place: y = x + 1");
}

void rebase_history(const Tensor& t, Edge edge) {
  TensorObject* base = t->base;
  if (!base) {
    Node* node = std::exchange(edge.node, nullptr);
    set_history(t.get(), node, edge.nr);
    return;
  }
  auto* slices = static_cast<CopySlices*>(new_node(NodeTypeOf<CopySlices>::type));
  Tensor whole = Tensor::borrow(base);
  slices->edges.push_back(base->wants_grad() ? gradient_edge(base) : Edge());
  for (int64_t i = 1; i < edge.node->edges.size(); ++i) slices->edges.push_back(edge.node->edges[i]);
  slices->results.push_back(ResultMeta(whole));
  slices->base_sizes = Ints(whole.sizes());
  slices->base_strides = Ints(whole.strides());
  slices->sizes = Ints(t.sizes());
  slices->strides = Ints(t.strides());
  slices->offset = t->offset - base->offset;
  slices->fn = edge.node;
  Py_INCREF(reinterpret_cast<PyObject*>(edge.node));
  slices->fn_nr = edge.nr;
  slices->sequence = next_sequence();
  slices->site = edge.node->site;
  slices->scope = Py_XNewRef(edge.node->scope);
  track_node(slices);
  set_history(base, slices, 0);
  t->view_version = t.version() - 1;  // stale: the view's own node is rebuilt from the base
  grad_fn_of(t.get());
}

namespace {

// x's values were replaced by constants: no gradient reaches what it was before.
struct OverwrittenBackward : Node {
  static constexpr const char* kName = "CopyBackwards";
  Grads backward(const Grads&) { return {Tensor()}; }
};

// What a node kept of a call that is now written in place. Saved results belong to the tensor written to; a saved input
// that is that tensor gets a copy of the old values, with the old history.
struct SettleSaved final : FieldVisitor {
  const Tensor& self;
  bool before;  // before the write: inputs; after it: results
  SettleSaved(const Tensor& t, bool b) : self(t), before(b) {}
  void saved(const char* name, Saved& s) override {
    if (!s.tensor_.defined()) return;
    // x.mul_(x): torch keeps no copy for the second operand, and refuses the backward.
    if (before && s.output_nr_ < 0 && s.tensor_.is(self) && std::strcmp(name, "other") != 0) {
      NoGrad raw;
      Tensor old = g_engine_ops.clone(self);
      if (Node* fn = grad_fn_of(self.get())) {
        Py_INCREF(reinterpret_cast<PyObject*>(fn));
        set_history(old.get(), fn, self->output_nr);
      }
      s.version_ = old.version();
      s.tensor_ = std::move(old);
    } else if (!before && s.output_nr_ >= 0 && s.tensor_.dtype() == self.dtype()) {
      s.tensor_ = alias(self);
      s.version_ = self.version();
    }
  }
  void saved_list(const char*, SmallVector<Saved, 2>& list) override {
    for (Saved& s : list) saved("", s);
  }
  void other(const char*, PyObject* (*)(const void*), const void*) override {}
};

}  // namespace

thread_local Destination t_destination;

Tensor apply_inplace(const char* name, const Tensor& self, InplaceTraits traits, Tensor (*compute)(void*),
                     void* context) {
  check_inplace(self, traits.overlap_ok);
  Destination outer = std::exchange(t_destination, Destination());
  t_destination.op = name;
  struct Restore {
    Destination& outer;
    ~Restore() { t_destination = std::move(outer); }
  } restore{outer};
  if (traits.direct) t_destination.wanted = self.get(), t_destination.with_grad = traits.direct_with_grad;
  Tensor result = compute(context);
  t_destination.wanted = nullptr;
  if (result.get() == self.get()) {
    if (!t_destination.counted) bump_version(self, name);
    return self;
  }
  CHECK(result.sizes() == self.sizes(), Runtime, "output with shape ", to_text(self.sizes()),
        " doesn't match the broadcast shape ", to_text(result.sizes()));
  CHECK(can_cast(result.dtype(), self.dtype()), Runtime, "result type ", info(result.dtype()).legacy,
        " can't be cast to the desired output type ", info(self.dtype()).legacy,
        "\n  A tensor keeps its type when it is written in place: convert it first (x = x.float()), or make a new one "
        "(x = x + y).");
  if (result.requires_grad()) check_view_history(self);
  Node* call = result->grad_fn;  // saves what the op saved, even when a cast follows it
  if (result.requires_grad() && call) {
    SettleSaved inputs(self, true);
    call->type->fields(*call, inputs);
  }
  if (result.requires_grad() && result.dtype() != self.dtype()) result = g_engine_ops.cast(result, self.dtype());
  g_engine_ops.copy(self, result);
  bump_version(self, name);
  if (result.requires_grad() && result->grad_fn) {
    SettleSaved results(self, false);
    result->grad_fn->type->fields(*result->grad_fn, results);
    rebase_history(self, Edge(result->grad_fn, result->output_nr));
  } else if (grad_enabled() && self.requires_grad()) {
    auto* node = static_cast<OverwrittenBackward*>(new_node(NodeTypeOf<OverwrittenBackward>::type));
    add_edges(node, {self});
    node->results.push_back(ResultMeta(self));
    Py_INCREF(reinterpret_cast<PyObject*>(node));
    finish_node(node);
    Edge edge;
    edge.node = node;
    rebase_history(self, std::move(edge));
  }
  return self;
}

}  // namespace rl
