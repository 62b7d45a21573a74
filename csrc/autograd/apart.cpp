#include "autograd/apart.h"

#include <vector>

#include "autograd/meta.h"

namespace rl {
namespace {

// A node that keeps something in a storage. Either may be gone: a dead node is dropped from the list, and what a node
// keeps is looked at again before it is copied.
struct Keeper {
  Storage* storage;
  PyObject* node;  // weak reference, owned
};
std::vector<Keeper>& keepers() {
  static auto* list = new std::vector<Keeper>;
  return *list;
}

// Leaves the keepers of other storages that are alive.
template <class Take> void sift(Take&& take) {
  auto& list = keepers();
  size_t kept = 0;
  for (Keeper k : list) {
    PyObject* node = PyWeakref_GetObject(k.node);
    if (node == Py_None || take(k.storage, reinterpret_cast<Node*>(node))) Py_DECREF(k.node);
    else list[kept++] = k;
  }
  list.resize(kept);
}

struct CopyKept final : FieldVisitor {
  Storage* written;
  explicit CopyKept(Storage* s) : written(s) {}
  void saved(const char*, Saved& s) override {
    const Tensor& t = s.tensor_;
    if (s.output_nr_ != Saved::kApart || !t.defined() || t.storage() != written || t.version() != s.version_) return;
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

size_t g_sift_at = 64;  // so that dead nodes do not pile up

}  // namespace

Saved save_apart(Node& node, const Tensor& input) {
  if (input->inference) {  // which may not be saved, while its copy may
    NoGrad raw;
    return save(g_engine_ops.clone(input));
  }
  Saved s = save(input);
  if (s.packed_) return s;
  // An alias, so that what becomes of the tensor itself (detach_, another shape) is nothing to backward either.
  s.tensor_ = alias(input);
  if (input->wants_grad())
    if (Edge edge = gradient_edge(input.get()); edge.node) s.tensor_ = with_history(s.tensor_, std::move(edge));
  s.output_nr_ = Saved::kApart;
  auto& list = keepers();
  if (list.size() >= g_sift_at) {
    sift([](Storage*, Node*) { return false; });
    g_sift_at = std::max<size_t>(64, 2 * list.size());
  }
  PyObject* weak = PyWeakref_NewRef(reinterpret_cast<PyObject*>(&node), nullptr);
  if (!weak) throw Error(ErrorKind::Runtime, "");
  list.push_back({input.storage(), weak});
  input.storage()->kept_apart = true;
  return s;
}

void copy_apart(Storage* written) {
  written->kept_apart = false;
  // Held, and off the list, before anything is copied: a copy may wake the collector, which may free nodes or record.
  std::vector<Edge> nodes;
  sift([&](Storage* storage, Node* node) {
    if (storage != written) return false;
    nodes.push_back(Edge(node, 0));
    return true;
  });
  CopyKept fields(written);
  for (const Edge& e : nodes) e.node->type->fields(*e.node, fields);
}

}  // namespace rl
