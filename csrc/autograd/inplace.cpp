// Writing in place: any op's result moved into a tensor, its history included.
#include <cstring>

#include "autograd/copy_on_write.h"
#include "autograd/destination.h"
#include "autograd/history.h"
#include "autograd/meta.h"
#include "autograd/record.h"
#include "tensor/overlap.h"
#include "tensor/promote.h"

namespace rl {

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
  NewNode made(node);
  add_edges(node, inputs);
  node->results.push_back(ResultMeta(like));
  Edge edge(node, 0);
  made.finish();
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
thread_local TensorObject* t_inplace_target = nullptr;

Tensor apply_inplace(const char* name, const Tensor& self, InplaceTraits traits, Tensor (*compute)(void*),
                     void* context) {
  check_inplace(self, traits.overlap_ok);
  Destination outer = std::exchange(t_destination, Destination());
  t_destination.op = name;
  struct Restore {
    Destination& outer;
    TensorObject* target;
    ~Restore() {
      t_destination = std::move(outer);
      t_inplace_target = target;
    }
  } restore{outer, std::exchange(t_inplace_target, self.get())};
  if (traits.direct) t_destination.wanted = self.get(), t_destination.with_grad = traits.direct_with_grad;
  Tensor result = compute(context);
  t_destination.wanted = nullptr;
  t_inplace_target = restore.target;
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
