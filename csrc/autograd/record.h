// The only door to the graph. `record` returns at once unless somebody wants a gradient.
#pragma once
#include "autograd/grad_mode.h"
#include "autograd/node.h"

namespace rl {

// The tensors an op was called with, undefined ones allowed.
class Inputs {
 public:
  struct Ref {
    TensorObject* p;
    Ref(const Tensor& t) : p(t.get()) {}
    Ref(const Value& v) : p(v.tensor.get()) {}
  };
  Inputs(std::initializer_list<Ref> refs) : refs_(refs.begin()), size_(static_cast<int64_t>(refs.size())) {}
  Inputs(const Ref* refs, int64_t size) : refs_(refs), size_(size) {}
  Inputs(const Tensor* tensors, int64_t size)  // a Tensor is one pointer, as a Ref is
      : refs_(reinterpret_cast<const Ref*>(tensors)), size_(size) {}
  template <int N> Inputs(const SmallVector<Tensor, N>& tensors) : Inputs(tensors.data(), tensors.size()) {}
  Inputs(Span<Tensor> tensors) : Inputs(tensors.data(), tensors.size()) {}
  int64_t size() const { return size_; }
  TensorObject* operator[](int64_t i) const { return refs_[i].p; }
  bool any_requires_grad() const {
    for (int64_t i = 0; i < size_; ++i)
      if (refs_[i].p && refs_[i].p->wants_grad()) return true;
    return false;
  }

 private:
  const Ref* refs_;
  int64_t size_;
};
static_assert(sizeof(Tensor) == sizeof(Inputs::Ref));

// Whether a call on these inputs is going to be recorded.
inline bool will_record(const Inputs& inputs) { return grad_enabled() && inputs.any_requires_grad(); }

// The edge that a gradient of t follows: its grad_fn (rebuilt for views whose base was written to) or, for a leaf,
// the node that accumulates into t.grad.
Edge gradient_edge(TensorObject* t);
Node* grad_fn_of(TensorObject* t);  // borrowed, null for leaves

// t, made to send its gradient along an edge.
Tensor with_history(Tensor t, Edge edge);

void add_edges(Node* node, const Inputs& inputs);
void attach_result(Node* node, const Tensor& y);  // y becomes the node's next result (skipped for integer results)
// Finishes a node: its line, its place in the order, visible to the collector. Takes over the caller's reference.
void finish_node(Node* node);

// A node that is being made. If what fills it throws (a pack hook of the user's may), the reference goes, and with it
// the node and what it has saved so far.
class NewNode {
 public:
  explicit NewNode(Node* node) : node_(node) {}
  NewNode(const NewNode&) = delete;
  ~NewNode() {
    if (node_) drop_node(node_);
  }
  void finish() { finish_node(std::exchange(node_, nullptr)); }

 private:
  static void drop_node(Node* node);
  Node* node_;
};

// Keeps a tensor for backward. Outputs are kept without their history, else node and result would own each other.
Saved save(const Tensor& input);
Saved save_output(Node& node, const Tensor& output, int32_t nr = 0);
inline SavedValue save(const Value& v) {
  return {v.is_tensor() ? save(v.tensor) : Saved(), v.number, v.is_tensor(), true};
}

// record<ExpBackward>(y, {x}, [&](auto& n) { n.y = save_output(n, y); }): makes y remember how to send its gradient
// to the inputs. The filling function runs only if the call is recorded.
template <class N, class Fill> Tensor record(Tensor y, const Inputs& inputs, Fill&& fill) {
  if (!will_record(inputs) || !is_differentiable(y.dtype())) return y;
  N* node = static_cast<N*>(new_node(NodeTypeOf<N>::type));
  NewNode made(node);
  add_edges(node, inputs);
  attach_result(node, y);
  fill(*node);
  made.finish();
  return y;
}
template <class N> Tensor record(Tensor y, const Inputs& inputs) {
  return record<N>(std::move(y), inputs, [](N&) {});
}
// The same for several results: all become outputs of one node.
template <class N, class Fill> void record_all(Span<Tensor> ys, const Inputs& inputs, Fill&& fill) {
  if (!will_record(inputs)) return;
  N* node = static_cast<N*>(new_node(NodeTypeOf<N>::type));
  NewNode made(node);
  add_edges(node, inputs);
  for (const Tensor& y : ys) attach_result(node, y);
  fill(*node);
  made.finish();
}

// A float op without a derivative: says so by name when backward reaches it.
Tensor record_not_differentiable(const char* op, Tensor y, const Inputs& inputs);
Edge not_differentiable(const char* op, const Tensor& y,
                        const Inputs& inputs);  // the same as an edge, for rebase_history

void mark_view(const Tensor& y, const Tensor& of, ViewOrigin origin = ViewOrigin::Plain);
// Marks y as a differentiable view of t (t may itself be a view), with t's node for its history.
template <class N, class Fill> Tensor record_view(Tensor y, const Tensor& t, Fill&& fill) {
  mark_view(y, t);
  return record<N>(std::move(y), {t}, static_cast<Fill&&>(fill));
}

// Writing in place. `check_inplace` refuses what may not be written; then the op writes, counts the write, and gives
// the tensor its new history with `rebase_history`, which also rewrites the history of a view's base.
void check_inplace(const Tensor& t, bool overlap_ok = false);
void check_view_history(const Tensor& t);
void rebase_history(const Tensor& t, Edge edge);
// x.op_(...) for any op: runs `compute` (which may write into x directly, see ops/destination.h) and moves the
// result, its history included, into x.
struct InplaceTraits {
  bool direct = false;              // compute may write straight into x
  bool direct_with_grad = false;    // ... also when the call is recorded
  bool overlap_ok = false;          // x may have several elements in one place (fill_, zero_)
  bool operands_want_grad = false;  // x.eq_(y) is a step of the graph if y is part of it, though all it sends back is 0
};
Tensor apply_inplace(const char* name, const Tensor& self, InplaceTraits traits, Tensor (*compute)(void*),
                     void* context);
inline Tensor apply_inplace(const char* name, const Tensor& self, bool direct, bool direct_with_grad,
                            Tensor (*compute)(void*), void* context) {
  return apply_inplace(name, self, InplaceTraits{direct, direct_with_grad, false, false}, compute, context);
}

}  // namespace rl
