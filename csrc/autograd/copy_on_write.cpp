#include "autograd/copy_on_write.h"

#include <unordered_map>
#include <vector>

#include "autograd/meta.h"

namespace rl {
namespace {

// The nodes that keep something in a storage, by weak references (owned). Either may be gone: dead nodes are dropped
// now and then, and what a node keeps is looked at again before it is copied. Touched with the GIL held only.
using Keepers = std::unordered_multimap<Storage*, PyObject*>;
Keepers& keepers() {
  static auto* all = new Keepers;
  return *all;
}

size_t g_sift_at = 64;  // so that dead nodes do not pile up
void sift() {
  Keepers& all = keepers();
  for (auto k = all.begin(); k != all.end();) {
    if (PyWeakref_GetObject(k->second) != Py_None) {
      ++k;
      continue;
    }
    Py_DECREF(k->second);
    k = all.erase(k);
  }
  g_sift_at = std::max<size_t>(64, 2 * all.size());
}

struct CopyKept final : FieldVisitor {
  Storage* written;
  explicit CopyKept(Storage* s) : written(s) {}
  void saved(const char*, Saved& s) override {
    const Tensor& t = s.tensor_;
    if (s.output_nr_ != Saved::kCopyOnWrite || !t.defined() || t.storage() != written || t.version() != s.version_)
      return;
    NoGrad raw;
    Tensor copy = g_engine_ops.clone(t);
    if (t->grad_fn) copy = with_history(std::move(copy), Edge(t->grad_fn, t->output_nr));
    s.version_ = copy.version();
    s.tensor_ = std::move(copy);
    s.output_nr_ = Saved::kInput;
  }
  void saved_list(const char*, SmallVector<Saved, 2>& list) override {
    for (Saved& s : list) saved("", s);
  }
  void other(const char*, PyObject* (*)(const void*), const void*) override {}
};

}  // namespace

Saved save_copy_on_write(Node& node, const Tensor& input) {
  if (input->inference) {  // which may not be saved, while its copy may
    NoGrad raw;
    return save(g_engine_ops.clone(input));
  }
  // First, because it may wake the collector, which may run code that writes to the input.
  PyObject* weak = PyWeakref_NewRef(reinterpret_cast<PyObject*>(&node), nullptr);
  if (!weak) throw Error(ErrorKind::Runtime, "");
  if (keepers().size() >= g_sift_at) sift();
  keepers().emplace(input.storage(), weak);
  input.storage()->copy_on_write = true;
  Saved s = save_view(input);
  if (!s.packed_) s.output_nr_ = Saved::kCopyOnWrite;
  return s;
}

Saved save_view(const Tensor& input) {
  Saved s = save(input);
  if (s.packed_) return s;
  s.tensor_ = alias(input);
  if (input->wants_grad())
    if (Edge edge = gradient_edge(input.get()); edge.node) s.tensor_ = with_history(s.tensor_, std::move(edge));
  s.output_nr_ = Saved::kInput;
  return s;
}

void copy_for_nodes(Storage* written) {
  written->materialize();
  written->copy_on_write = false;
  // Held, and off the list, before anything is copied: a copy may wake the collector, which may free nodes or record.
  struct Taken {
    PyObject* weak;
    Edge node;
  };
  std::vector<Taken> taken;
  auto [first, last] = keepers().equal_range(written);
  for (auto k = first; k != last; ++k) {
    PyObject* node = PyWeakref_GetObject(k->second);
    if (node == Py_None) Py_DECREF(k->second);
    else taken.push_back({k->second, Edge(reinterpret_cast<Node*>(node), 0)});
  }
  keepers().erase(first, last);
  CopyKept fields(written);
  size_t at = 0;
  try {
    for (; at < taken.size(); ++at) {
      Node& node = *taken[at].node.node;
      node.type->fields(node, fields);
      Py_DECREF(taken[at].weak);
    }
  } catch (...) {  // no memory for a copy: nothing is written, and the rest waits for the next write
    for (; at < taken.size(); ++at) keepers().emplace(written, taken[at].weak);
    written->copy_on_write = true;
    throw;
  }
}

}  // namespace rl
