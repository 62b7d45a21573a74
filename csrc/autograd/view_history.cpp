// The history of views: it follows from that of their base when the base is written to, and rewrites it when they are.
#include "autograd/batched_gradients.h"
#include "autograd/history.h"
#include "autograd/meta.h"
#include "autograd/record.h"

namespace rl {

ViewGeometry::ViewGeometry(const TensorObject* base, const TensorObject* view)
    : base_sizes(IntSpan(base->sizes, base->ndim)),
      base_strides(IntSpan(base->strides(), base->ndim)),
      sizes(IntSpan(view->sizes, view->ndim)),
      strides(IntSpan(view->strides(), view->ndim)),
      distance(view->offset - base->offset),
      conj(is_complex(view->dtype) && view->conj != base->conj),
      neg(view->neg != base->neg) {
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
  if (t->view_origin == ViewOrigin::InsideFunction)
    fail(ErrorKind::Runtime, "Output ", static_cast<int64_t>(t->output_nr), " of ",
         t->grad_fn ? t->grad_fn->type->name : "a function", " is a view", what,
         ". This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
         "logic to handle view+inplace would override the custom backward associated with the custom Function, leading "
         "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
         "Function.");
  if (t->view_origin == ViewOrigin::MultiOutput)
    fail(ErrorKind::Runtime, "Output ", static_cast<int64_t>(t->output_nr), " of ",
         t->grad_fn ? t->grad_fn->type->name : "a function", " is a view", what,
         ". This view is the output of a function that returns multiple views. Such functions do not allow the output "
         "views to be modified inplace. You should replace the inplace operation by an out-of-place one.");
  bool inference = t->view_origin == ViewOrigin::Inference;
  std::string subject = "A view was";
  if (t->grad_fn && !base_written)
    subject = text("Output ", static_cast<int64_t>(t->output_nr), " of ", t->grad_fn->type->name,
                   " is a view of a view which was");
  fail(ErrorKind::Runtime, subject, " created in ", inference ? "inference mode" : "no_grad mode", what,
       inference ? " in normal mode." : " with grad mode enabled.",
       " Whether the write belongs to the history cannot be known, so it is forbidden. Make the view and write to it "
       "both inside the ",
       inference ? "inference_mode" : "no_grad",
       " block (to leave the write untracked) or both outside of it (to track it), or write to a clone().");
}

// From the base's values under a view to the view's own, and back.
Tensor through_marks(const ViewGeometry& view, Tensor t) {
  if (view.conj) t = g_engine_ops.conj(t);
  return view.neg ? g_engine_ops.neg(t) : t;
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
  given[fn_nr] = through_marks(view, g_engine_ops.clone(part));  // f may hand it on, while `whole` is written to below
  DType computed = fn->results[fn_nr].dtype;                     // f's result was cast when it was written
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
  g_engine_ops.assign(part, through_marks(view, through));
  result[0] = whole;
  return result;
}

}  // namespace

Node* history_through_base(TensorObject* t) {
  TensorObject* base = t->base;
  if (t->view_origin != ViewOrigin::Plain) fail_view(t, true);
  Edge to_base = gradient_edge(base);  // may throw
  auto* node = static_cast<AsStridedBackward*>(new_node(NodeTypeOf<AsStridedBackward>::type));
  node->edges.push_back(std::move(to_base));
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

// A write that is going to be part of the history must be able to rewrite that of the view's base.
void check_view_history(const Tensor& t) {
  if (t->base && t->view_origin != ViewOrigin::Plain) fail_view(t.get(), false);
}

void rebase_history(const Tensor& t, Edge edge) {
  TensorObject* base = t->base;
  if (!base) {
    Node* node = std::exchange(edge.node, nullptr);
    set_history(t.get(), node, edge.nr);
    return;
  }
  Edge to_base = base->wants_grad() ? gradient_edge(base) : Edge();  // may throw
  auto* slices = static_cast<CopySlices*>(new_node(NodeTypeOf<CopySlices>::type));
  Tensor whole = Tensor::borrow(base);
  slices->edges.push_back(std::move(to_base));
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

}  // namespace rl
