#include "autograd/record.h"

#include <cstring>
#include <string>

#include "autograd/apart.h"
#include "autograd/destination.h"
#include "autograd/meta.h"
#include "autograd/module_scope.h"
#include "autograd/stack.h"
#include "tensor/overlap.h"
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

ViewGeometry::ViewGeometry(const TensorObject* base, const TensorObject* view)
    : base_sizes(IntSpan(base->sizes, base->ndim)),
      base_strides(IntSpan(base->strides(), base->ndim)),
      sizes(IntSpan(view->sizes, view->ndim)),
      strides(IntSpan(view->strides(), view->ndim)),
      distance(view->offset - base->offset) {
  if (is_complex(base->dtype) == is_complex(view->dtype)) return;
  auto in_pairs = [](Ints& n, Ints& s) {
    for (int64_t& v : s) v *= 2;
    n.push_back(2);
    s.push_back(1);
  };
  if (is_complex(base->dtype)) {
    elements = ViewElements::RealOfComplex;
    in_pairs(base_sizes, base_strides);
    distance = view->offset - 2 * base->offset;
  } else {
    elements = ViewElements::ComplexOfReal;
    in_pairs(sizes, strides);
    distance = 2 * view->offset - base->offset;
  }
}

namespace {

// Why a view cannot follow, or take part in, a write that is recorded.
[[noreturn, gnu::cold]] void fail_view(const TensorObject* t, bool base_written) {
  const char* what = base_written ? " and its base or another view of its base has been modified inplace"
                                  : " and is being modified inplace";
  if (t->view_origin == ViewOrigin::MultiOutput)
    fail(ErrorKind::Runtime, "Output ", static_cast<int64_t>(t->output_nr), " of ",
         t->grad_fn ? t->grad_fn->type->name : "a function", " is a view", what,
         ". This view is the output of a function that returns multiple views. Such functions do not allow the output "
         "views to be modified inplace. You should replace the inplace operation by an out-of-place one.");
  bool inference = t->view_origin == ViewOrigin::Inference;
  fail(
      ErrorKind::Runtime, "A view was created in ", inference ? "inference mode" : "no_grad mode", what,
      inference ? " in normal mode." : " with grad mode enabled.",
      " Whether the write belongs to the history cannot be known, so it is forbidden.\n  Make the view and write to it "
      "both inside the block (to leave the write untracked) or both outside of it (to track it), or write to a "
      "clone().");
}

// base[view] = f(...): the gradient of the base outside the view goes on to the base's old history, that of the view
// through f. Edge 0 is the base's, the others are f's own.
struct CopySlices : Node {
  static constexpr const char* kName = "CopySlices";
  ViewGeometry view;
  Ints base_sizes, base_strides;
  ResultMeta written;  // the view
  Node* fn = nullptr;  // owned
  uint32_t fn_nr = 0;
  Grads backward(const Grads& dy);
  Grads stacked(const Grads& dy) { return backward(dy); }
  Tensor part_of(const Tensor& whole, int64_t rows, int64_t step) const;
  ~CopySlices() {
    if (fn && fn->slices == this) fn->slices = nullptr;
    Py_XDECREF(reinterpret_cast<PyObject*>(fn));
  }
  void fields(FieldVisitor& visit) {
    visit.saved_number();  // it counts as freed after backward, whatever f keeps: torch refuses a second one, too
    if (fn) visit.inner(*fn);
  }
};

// The part of `whole`, which is `rows` such bases, `step` elements from one to the next; of one base where rows < 0.
Tensor CopySlices::part_of(const Tensor& whole, int64_t rows, int64_t step) const {
  const EngineOps& ops = g_engine_ops;
  Ints sizes = view.sizes, strides = view.strides;
  if (rows >= 0)
    sizes.insert(0, rows), strides.insert(0, view.elements == ViewElements::RealOfComplex ? 2 * step : step);
  if (view.elements == ViewElements::RealOfComplex)
    return ops.as_strided(ops.view_as_real(whole), sizes, strides, view.distance);
  Tensor part = ops.as_strided(whole, sizes, strides, view.distance);
  return view.elements == ViewElements::ComplexOfReal ? ops.view_as_complex(part) : part;
}

// The gradient is laid out in memory as the base is, so that the view's own strides find its part.
Grads CopySlices::backward(const Grads& dy) {
  const int64_t rows = stacked_rows();
  Ints sizes = base_sizes, strides = base_strides;
  int64_t step = checked_extent(sizes, strides);
  step = checked_add(step, step % 2);  // rows of pairs that are complex numbers begin with a whole pair
  if (rows >= 0) sizes.insert(0, rows), strides.insert(0, step);
  Tensor whole = empty_strided(sizes, strides, dy[0].dtype(), dy[0].device());
  g_engine_ops.assign(whole, dy[0]);
  Tensor part = part_of(whole, rows, step);
  Grads given(fn->results.size());
  given[fn_nr] = g_engine_ops.clone(part);    // f may hand it on, while `whole` is written to below
  DType computed = fn->results[fn_nr].dtype;  // f's result was cast when it was written
  if (is_complex(part.dtype()) && !is_complex(computed)) given[fn_nr] = g_engine_ops.real(given[fn_nr]);
  if (given[fn_nr].dtype() != computed) given[fn_nr] = g_engine_ops.cast(given[fn_nr], computed);
  for (int64_t i = 0; i < given.size(); ++i)
    if (!given[i].defined() && !fn->type->undefined_ok)
      given[i] = g_engine_ops.zeros(rows < 0 ? Ints(fn->results[i].sizes) : stacked_sizes(fn->results[i].sizes),
                                    fn->results[i].dtype, fn->results[i].device);
  fn->released = fn->released || released;
  Grads sent = rows < 0 ? fn->type->backward(*fn, given) : stacked_backward(*fn, given);
  Grads result(edges.size());
  for (int64_t i = 1; i < sent.size() && i < result.size(); ++i) result[i] = sent[i];
  if (!needs(0)) return result;
  // What f sends to the value that was overwritten; nothing means zero.
  Tensor through = sent.empty() ? Tensor() : sent[0];
  if (!through.defined()) through = g_engine_ops.zeros(part.sizes(), part.dtype(), whole.device());
  else if (!(through.sizes() == part.sizes()))
    through = rows < 0 ? g_engine_ops.sum_to(through, part.sizes())
                       : stacked_sum_to(through, IntSpan(part.sizes().data() + 1, part.dim() - 1));
  if (is_complex(through.dtype()) && !is_complex(part.dtype())) through = g_engine_ops.real(through);
  g_engine_ops.assign(part, through);
  result[0] = whole;
  return result;
}

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

void set_history(TensorObject* t, Node* node, uint32_t nr) {  // takes over the reference to node
  if (t->extra) move_hooks(t, t->grad_fn, node, nr);
  Node* old = std::exchange(t->grad_fn, node);
  t->output_nr = nr;
  t->requires_grad = true;
  Py_XDECREF(reinterpret_cast<PyObject*>(old));
}

}  // namespace

Node* grad_fn_of(TensorObject* t) {
  TensorObject* base = t->base;
  if (!base || t->view_version == t->version->value || (!t->grad_fn && !base->wants_grad())) return t->grad_fn;
  if (t->view_origin != ViewOrigin::Plain) fail_view(t, true);
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

Edge written_edge(Node& node) {
  auto& slices = static_cast<CopySlices&>(node);
  auto* view = static_cast<AsStridedBackward*>(new_node(NodeTypeOf<AsStridedBackward>::type));
  view->edges.push_back(Edge(&slices, 0));
  view->results.push_back(slices.written);
  view->view = slices.view;
  view->size = slices.view.sizes;
  view->stride = slices.view.strides;
  view->storage_offset = slices.view.distance;
  Edge edge(view, 0);
  finish_node(view);
  return edge;
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
  if (of->inference) return;
  TensorObject* base = of->base ? of->base : of.get();
  y->base = base;
  Py_INCREF(base);
  y->view_version = y.version();
  if (t_grad_mode.inference) origin = ViewOrigin::Inference;
  else if (!grad_enabled()) origin = ViewOrigin::NoGrad;
  // A view of a view has the origin of both; the first inference mode wins.
  if (of->base && (origin == ViewOrigin::Plain || of->view_origin == ViewOrigin::Inference)) origin = of->view_origin;
  y->view_origin = origin;
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
  add_edges(node, inputs);
  node->results.push_back(ResultMeta(y));
  node->op = op;
  Edge edge(node, 0);
  finish_node(node);
  node->sequence = UINT64_MAX;  // refuses before anything else is done, as torch's does
  return edge;
}

// A write that is going to be part of the history must be able to rewrite that of the view's base.
void check_view_history(const Tensor& t) {
  if (t->base && t->view_origin != ViewOrigin::Plain) fail_view(t.get(), false);
}

void check_inplace(const Tensor& t, bool overlap_ok) {
  CHECK(!t->inference || t_grad_mode.inference, Runtime,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor before doing inplace update.");
  if (grad_enabled() && t.requires_grad()) {
    if (t->base) {
      check_view_history(t);
      CHECK(t->base->grad_fn, Runtime,
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            "\n  Write under no_grad(), or work on a clone(): x = leaf.clone(); x[...] = value");
    }
    CHECK(grad_fn_of(t.get()), Runtime, "a leaf Variable that requires grad is being used in an in-place operation.",
          "\n  Change it under no_grad() (as optimizers do), or out of place: y = x + 1");
  }
  if (!overlap_ok) check_no_internal_overlap(t);
  before_write(t);
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
  slices->view = ViewGeometry(base, t.get());
  slices->fn = edge.node;
  Py_INCREF(reinterpret_cast<PyObject*>(edge.node));
  slices->fn_nr = edge.nr;
  slices->written = ResultMeta(t);
  edge.node->slices = slices;
  slices->sequence = next_sequence();
  slices->site = edge.node->site;
  slices->scope = Py_XNewRef(edge.node->scope);
  track_node(slices);
  set_history(base, slices, 0);
  t->view_version = t.version() - 1;  // stale: the view's own node is rebuilt from the base
  grad_fn_of(t.get());
}

namespace {

// x's values were replaced, by constants or by what the second edge leads to: no gradient reaches what x was before.
struct OverwrittenBackward : Node {
  static constexpr const char* kName = "CopyBackwards";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) {
    Tensor none = g_engine_ops.zeros(dy[0].sizes(), dy[0].dtype(), dy[0].device());
    if (edges.size() == 1) return {none};
    return {none, dy[0]};
  }
};
Edge overwritten(const Inputs& inputs, const Tensor& like) {
  auto* node = static_cast<OverwrittenBackward*>(new_node(NodeTypeOf<OverwrittenBackward>::type));
  add_edges(node, inputs);
  node->results.push_back(ResultMeta(like));
  Edge edge(node, 0);
  finish_node(node);
  return edge;
}

// Whether the first edge of a result's node leads to what x was: then f is a step from x to the result. A result of
// several calls is none, and a view's base needs one.
bool one_step(const Tensor& x, const Tensor& result) {
  Node* own = x->wants_grad() ? grad_fn_of(x.get()) : nullptr;
  const SmallVector<Edge, 2>& edges = result->grad_fn->edges;
  Node* first = edges.empty() ? nullptr : edges[0].node;
  return first == own && (!own || edges[0].nr == x->output_nr);
}

// What a node kept of a call that is now written in place. Saved results belong to the tensor written to; a saved input
// that is that tensor gets a copy of the old values, with the old history.
struct SettleSaved final : FieldVisitor {
  const Tensor& self;
  bool before;  // before the write: inputs; after it: results
  SettleSaved(const Tensor& t, bool b) : self(t), before(b) {}
  void saved(const char* name, Saved& s) override {
    if (!s.tensor_.defined()) return;
    // x.mul_(x): torch keeps no copy for the other operands, and refuses the backward.
    if (before && s.output_nr_ < 0 && s.tensor_.is(self) && std::strcmp(name, "self") == 0) {
      NoGrad raw;
      Tensor old = g_engine_ops.clone(self);
      if (Node* fn = grad_fn_of(self.get())) {
        Py_INCREF(reinterpret_cast<PyObject*>(fn));
        set_history(old.get(), fn, self->output_nr);
      }
      s.version_ = old.version();
      s.tensor_ = std::move(old);
    } else if (!before && s.output_nr_ >= 0) {
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
  Edge step;
  if (self->base && result.requires_grad() && call && !one_step(self, result))
    step = overwritten({self, result}, result);
  // The result is cast when it is written, and so the call's gradient comes in self's type.
  if (result.requires_grad() && call && !step.node) {
    if (is_complex(result.dtype()) == is_complex(self.dtype())) call->results[result->output_nr].dtype = self.dtype();
    else if (!self->base) result = g_engine_ops.cast(result, self.dtype());  // of a view, CopySlices does it
  }
  g_engine_ops.copy(self, result);
  bump_version(self, name);
  if (step.node) {
    rebase_history(self, std::move(step));
  } else if (result.requires_grad() && result->grad_fn) {
    SettleSaved results(self, false);
    call->type->fields(*call, results);
    rebase_history(self, Edge(result->grad_fn, result->output_nr));
  } else if (grad_enabled() && is_differentiable(self.dtype()) && (self.requires_grad() || traits.operands_want_grad)) {
    check_view_history(self);
    rebase_history(self, overwritten({self}, self));
  }
  return self;
}

}  // namespace rl
