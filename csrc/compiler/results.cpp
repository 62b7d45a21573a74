// What a recorded run leaves behind: how its results and gradients are made again.
#include "autograd/gradient_sum.h"
#include "autograd/meta.h"
#include "compiler/recorder.h"
#include "tensor/no_grad_reason.h"

namespace rl::compiler {
namespace {

struct AnythingSaved final : FieldVisitor {
  bool any = false;
  void saved(const char*, Saved& s) override { any |= s.defined(); }
  void saved_list(const char*, SmallVector<Saved, 2>& list) override {
    for (Saved& s : list) saved("", s);
  }
  void inner(Node&) override { any = true; }
  void other(const char*, PyObject* (*)(const void*), const void*) override {}
};

}  // namespace

std::unique_ptr<Tape> Recorder::finish(const std::vector<Tensor>& outputs) {
  watch(false);
  if (in_kernel_) refuse("a kernel failed");
  end_segment();
  for (const StateFact& f : found_)
    if (!f.holds()) refuse("a tensor gets other memory, another shape or other properties");
  for (const Tensor& t : outputs) tape_->outputs.push_back(describe(t));
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Made& m = tape_->made[i];
    if (m.slot >= 0 && kept_[i].version() != m.version) refuse("a gradient is written to after the optimizer's step");
  }
  for (int output : tape_->outputs) note(static_cast<uint64_t>(output));
  for (size_t i = 0; i < alive_.size(); ++i)
    if (alive_[i] && tape_->slots[i].kind == SlotKind::Temporary)
      refuse("memory is kept that is not returned: by a graph without a backward, or by an object");
  if (!refused_.empty()) return nullptr;
  return std::move(tape_);
}

// The index of a tensor in `made`.
int Recorder::describe(const Tensor& t) {
  auto [found, fresh] = described_.emplace(t.object(), static_cast<int>(tape_->made.size()));
  if (!fresh) return found->second;
  kept_.push_back(t);
  const auto at = static_cast<size_t>(found->second);
  tape_->made.emplace_back();
  Made m;
  int same = -1;
  for (int i = 0; i < count() && same < 0; ++i)
    if (tensor(i).is(t)) same = i;
  int leaf = -1;
  for (size_t k = 0; k < tape_->leaves.size() && leaf < 0; ++k)
    if (tensor(tape_->leaves[k])->grad == t.get() && tape_->had_grad[k] && t.storage() && slot_.count(t.storage()) &&
        tape_->slots[static_cast<size_t>(slot_[t.storage()])].kind == SlotKind::Grad)
      leaf = tape_->leaves[k];
  if (same >= 0) (same < tape_->inputs ? m.input : m.state) = same < tape_->inputs ? same : same - tape_->inputs;
  else if (leaf >= 0) m.grad_of = leaf;
  else if (!describe_memory(t, m) || !describe_history(t, m)) refuse("a result that cannot be made again");
  for (int64_t word : {int64_t{m.input}, int64_t{m.state}, int64_t{m.grad_of}, int64_t{m.slot}, m.offset,
                       static_cast<int64_t>(m.dtype), int64_t{m.requires_grad}, int64_t{m.version}, int64_t{m.shares}})
    note(static_cast<uint64_t>(word));
  for (int64_t n : m.sizes) note(static_cast<uint64_t>(n));
  for (int64_t n : m.strides) note(static_cast<uint64_t>(n));
  tape_->made[at] = std::move(m);
  return static_cast<int>(at);
}

bool Recorder::describe_memory(const Tensor& t, Made& m) {
  if (Py_TYPE(t.object()) != g_tensor_type || t->dict || !plain(t) || t->grad || t->extra) return false;
  auto found = slot_.find(t.storage());
  if (found == slot_.end()) return false;
  Slot& s = tape_->slots[static_cast<size_t>(found->second)];
  m.sizes = Ints(t.sizes());
  m.strides = Ints(t.strides());
  m.dtype = t.dtype();
  m.offset = t->offset;
  m.version = t.version();
  if (s.kind == SlotKind::Temporary || s.kind == SlotKind::Fresh) {
    s.kind = SlotKind::Fresh;
    m.slot = found->second;
    return t->version == &t.storage()->version;
  }
  for (int i = 0; i < count(); ++i)
    if (tensor(i)->version == t->version && tensor(i).storage() == t.storage() && tensor(i).dtype() == t.dtype()) {
      m.shares = i;
      m.offset = t->offset - tensor(i)->offset;
      return true;
    }
  return false;
}

bool Recorder::describe_history(const Tensor& t, Made& m) {
  m.requires_grad = t->requires_grad;
  m.inference = t->inference;
  m.wrapped_number = t->wrapped_number;
  m.output_nr = t->output_nr;
  m.origin = t->view_origin;
  if (t->cut) {
    m.cut = empty({0}, DType::Float32);
    inherit_cut(m.cut.get(), t.get());
  }
  if (t->base) {
    if (t->wants_grad()) return false;
    for (int i = 0; i < count() && m.base < 0; ++i)
      if (tensor(i).get() == t->base) m.base = i;
    if (m.base < 0) m.made_base = describe(Tensor::borrow(t->base));
  }
  if (!t->grad_fn) return true;
  if (!known_graph(t->grad_fn)) {
    refuse("the graph of a result is still needed: its backward is not part of the function");
    return false;
  }
  m.history = Edge(t->grad_fn, t->output_nr);
  return true;
}

// Whether a graph holds nothing but ends at leaves of the state: then it may be that of the results of all replays.
bool Recorder::known_graph(Node* root) {
  std::vector<Node*> stack = {root};
  std::set<Node*> seen = {root};
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    if (n->hooks || (g_function_node_type && PyObject_TypeCheck(reinterpret_cast<PyObject*>(n), g_function_node_type)))
      return false;
    if (n->type == &NodeTypeOf<AccumulateGrad>::type) {
      bool known = false;
      for (int leaf : tape_->leaves)
        known |= leaf >= tape_->inputs && tensor(leaf).is(static_cast<AccumulateGrad*>(n)->variable);
      if (!known) return false;
      continue;
    }
    AnythingSaved fields;
    n->type->fields(*n, fields);
    if (fields.any) return false;
    for (Edge& e : n->edges)
      if (e.node && seen.insert(e.node).second) stack.push_back(e.node);
  }
  return true;
}

}  // namespace rl::compiler
