// Running a tape.
#include <algorithm>
#include <cstring>

#include "autograd/copy_on_write.h"
#include "autograd/grad_mode.h"
#include "autograd/record.h"
#include "base/allocator.h"
#include "compiler/tape.h"
#include "tensor/no_grad_reason.h"

namespace rl::compiler {
namespace {

bool unchanged(const Tensor& grad, const Ints& geometry) {
  const int64_t n = grad.dim();
  return geometry.size() == 2 * n + 2 && static_cast<int64_t>(grad.dtype()) == geometry[2 * n] &&
         grad->offset == geometry[2 * n + 1] && std::equal(grad->sizes, grad->sizes + 2 * n, geometry.begin());
}

// A larger arena goes back to the allocator after each run, which others can use then; mostly the same comes back.
constexpr int64_t kKeptArena = 256 << 10;

// What steps that can fail are going to write to, as it was before.
class Undo {
 public:
  Undo(const Tape& tape, const Tensor* given) : tape_(tape) {
    for (int slot : tape.undo_slots) {
      const Slot& s = tape.slots[static_cast<size_t>(slot)];
      const Tensor& t = tape.tensor(s.kind == SlotKind::State ? tape.inputs + s.index : s.index, given);
      Storage* storage = s.kind == SlotKind::Grad ? t->grad->storage : t.storage();
      saved_.push_back({storage, std::vector<char>(storage->data, storage->data + storage->bytes)});
    }
    for (Generator* g : tape.generators) {
      states_.emplace_back(Generator::kStateBytes);
      g->get_state(states_.back().data());
    }
  }
  void restore() {
    for (auto& [storage, bytes] : saved_) std::memcpy(storage->data, bytes.data(), bytes.size());
    for (size_t i = 0; i < states_.size(); ++i) tape_.generators[i]->set_state(states_[i].data(), states_[i].size());
  }

 private:
  const Tape& tape_;
  std::vector<std::pair<Storage*, std::vector<char>>> saved_;
  std::vector<std::vector<uint8_t>> states_;
};

}  // namespace

Tape::~Tape() {
  if (arena) deallocate(arena, static_cast<size_t>(arena_bytes));
  for (Segment& s : segments) {
    Py_XDECREF(s.object);
    Py_XDECREF(s.method);
  }
}

bool Tape::fits(const Tensor* given) const {
  for (int i = 0; i < inputs; ++i) {
    Storage* s = given[i].storage();
    if (s->lazy) return false;
    const auto at = static_cast<size_t>(i);
    int same = -1;
    for (int k = 0; k < i && same < 0; ++k)
      if (given[k].storage() == s) same = k;
    if (same != same_input[at]) return false;
    if (same >= 0 && (given[i].numel() || given[same].numel()) &&
        static_cast<char*>(given[i].memory()) - static_cast<char*>(given[same].memory()) != distance[at])
      return false;
    if (same_state[at] >= 0) {
      const Tensor& with = state[static_cast<size_t>(same_state[at])];
      if (with.storage() != s || static_cast<char*>(given[i].memory()) - s->data != distance[at]) return false;
    } else if (std::binary_search(state_storages.begin(), state_storages.end(), s)) {
      return false;
    }
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Tensor& leaf = tensor(leaves[i], given);
    TensorObject* grad = leaf->grad;
    if ((grad != nullptr) != had_grad[i]) return false;
    if (!grad) continue;
    const Tensor g = Tensor::borrow(grad);
    for (int k = 0; k < inputs; ++k)
      if (given[k].storage() == g.storage()) return false;
    if (grad_geometry[i].empty()) continue;
    if (!unchanged(g, grad_geometry[i]) || g.storage()->refs != 1 || g.storage()->lazy ||
        Py_TYPE(g.object()) != g_tensor_type || g->grad_fn || g->requires_grad || g->base || g->lazy() || g->inference)
      return false;
  }
  return true;
}

void Tape::bind(const Tensor* given, std::vector<Storage*>& fresh) {
  if (!arena && arena_bytes) arena = static_cast<char*>(allocate(static_cast<size_t>(arena_bytes)));
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot& s = slots[i];
    char* base = s.base;
    switch (s.kind) {
      case SlotKind::Input: base = static_cast<char*>(given[s.index].memory()); break;
      case SlotKind::State: break;
      case SlotKind::Grad: base = tensor(s.index, given)->grad->storage->data; break;
      case SlotKind::Temporary: base = arena + s.offset; break;
      case SlotKind::Fresh: fresh[i] = Storage::make(s.bytes, Device()); base = fresh[i]->data;
    }
    if (bound[i] == base) continue;
    bound[i] = base;
    for (int p = first_pointer[i]; p < first_pointer[i + 1]; ++p) {
      const Pointer& pointer = pointers[static_cast<size_t>(p)];
      *pointer.at = base + pointer.offset;
    }
  }
}

// Number i of `made`, which is made if it is not done yet; its base first.
const Tensor& Tape::make(int i, const Tensor* given, const std::vector<Storage*>& fresh, std::vector<Tensor>& done) {
  Tensor& t = done[static_cast<size_t>(i)];
  const Made& m = made[static_cast<size_t>(i)];
  if (t.defined()) return t;
  if (m.input >= 0) return t = given[m.input];
  if (m.state >= 0) return t = state[static_cast<size_t>(m.state)];
  if (m.grad_of >= 0) return t = Tensor::borrow(tensor(m.grad_of, given)->grad);
  if (m.shares >= 0) {
    const Tensor& of = tensor(m.shares, given);
    t = alias_as(of, m.dtype, m.sizes, m.strides, of->offset + m.offset);
  } else {
    Storage* storage = fresh[static_cast<size_t>(m.slot)];
    storage->ref();
    storage->version.value = m.version;
    t = tensor_over(storage, m.sizes, m.strides, m.offset, m.dtype);
  }
  t->inference = m.inference;
  t->wrapped_number = m.wrapped_number;
  if (m.history.node) t = with_history(std::move(t), Edge(m.history.node, m.output_nr));
  t->requires_grad = m.requires_grad;
  if (m.cut.defined()) inherit_cut(t.get(), m.cut.get());
  if (m.base < 0 && m.made_base < 0) return t;
  const Tensor& base = m.base >= 0 ? tensor(m.base, given) : make(m.made_base, given, fresh, done);
  t->base = base.get();
  Py_INCREF(t->base);
  t->view_version = t.version();
  t->view_origin = m.origin;
  return t;
}

// The gradients and counts of writes at the end of a segment.
void Tape::show(const Segment& s, const Tensor* given, const std::vector<Storage*>& fresh, std::vector<Tensor>& done) {
  for (const Writes& w : s.writes) {
    const Tensor& t = tensor(w.tensor, given);
    Version* v = w.to_grad ? t->grad->version : t->version;
    v->value += w.count;
    v->last_write = w.site;
    v->last_op = w.op;
  }
  for (const GradEffect& e : s.grads) {
    TensorObject* leaf = tensor(e.leaf, given).get();
    Tensor grad;
    if (e.made >= 0) grad = make(e.made, given, fresh, done);
    TensorObject* old = std::exchange(leaf->grad, reinterpret_cast<TensorObject*>(grad.release()));
    Py_XDECREF(reinterpret_cast<PyObject*>(old));
  }
}

void Tape::steps_until(size_t& at, int end) {
  for (; at < static_cast<size_t>(end); ++at) steps[at].call(steps[at]);
}

bool Tape::run(const Tensor* given, std::vector<Tensor>& results) {
  struct Held {
    Tape& tape;
    std::vector<Storage*> fresh;
    ~Held() {
      tape.running = false;
      if (tape.arena_bytes > kKeptArena) {
        deallocate(tape.arena, static_cast<size_t>(tape.arena_bytes));
        tape.arena = nullptr;
      }
      for (Storage* s : fresh)
        if (s) s->unref();
    }
  } held{*this, std::vector<Storage*>(slots.size(), nullptr)};
  running = true;
  t_interruptible = false;
  for (const Segment& s : segments)
    for (const Writes& w : s.writes)
      before_write(w.to_grad ? Tensor::borrow(tensor(w.tensor, given)->grad) : tensor(w.tensor, given));
  bind(given, held.fresh);
  Undo undo(*this, given);
  std::vector<Tensor> done(made.size());
  size_t at = 0;
  for (const Segment& segment : segments) {
    try {
      steps_until(at, segment.end);
    } catch (const Mismatch&) {
      undo.restore();
      return false;
    } catch (const Error&) {
      if (at >= static_cast<size_t>(guarded)) throw;
      undo.restore();
      return false;
    }
    show(segment, given, held.fresh, done);
    if (!segment.object) continue;
    NoGrad mode(segment.grad_mode);
    PyObject* result = PyObject_CallMethodNoArgs(segment.object, segment.method);
    if (!result) throw Error(ErrorKind::Runtime, "");
    Py_DECREF(result);
  }
  for (int i : outputs) results.push_back(make(i, given, held.fresh, done));
  return true;
}

}  // namespace rl::compiler
