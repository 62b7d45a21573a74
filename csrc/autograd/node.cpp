#include "autograd/node.h"

#include <cstring>
#include <string>
#include <vector>

#include "autograd/destination.h"
#include "autograd/grad_mode.h"
#include "autograd/gradient_sum.h"
#include "autograd/history.h"
#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "autograd/record.h"

namespace rl {

thread_local GradMode t_grad_mode;
thread_local SmallVector<SavedHooks, 2>* t_saved_hooks = nullptr;
const char* t_saved_hooks_disabled = nullptr;
PyTypeObject* g_node_type = nullptr;
EngineOps g_engine_ops;

namespace {

uint64_t g_sequence = 0;

// Nodes that died while another node was being destroyed: freed by a loop, so that a chain of a million nodes needs
// no deep stack.
thread_local bool t_destroying = false;
thread_local std::vector<Node*> t_dying;

void destroy_node(Node* node) {
  PyTypeObject* type = Py_TYPE(node);
  if (node->weakrefs) PyObject_ClearWeakRefs(reinterpret_cast<PyObject*>(node));
  Py_CLEAR(node->dict);
  Py_CLEAR(node->scope);
  if (NodeHooks* h = std::exchange(node->hooks, nullptr)) {
    for (auto& t : h->tensor_hooks) Py_XDECREF(t.hook);
    for (auto& t : h->retain_grad) Py_XDECREF(t.hook);
    Py_XDECREF(h->pre);
    Py_XDECREF(h->post);
    Py_XDECREF(h->post_accumulate);
    delete h;
  }
  node->type->destroy(*node);
  PyObject_GC_Del(node);
  Py_DECREF(type);
}

void node_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  t_dying.push_back(reinterpret_cast<Node*>(self));
  if (t_destroying) return;
  t_destroying = true;
  while (!t_dying.empty()) {
    Node* node = t_dying.back();
    t_dying.pop_back();
    destroy_node(node);
  }
  t_destroying = false;
}

struct TraverseFields final : FieldVisitor {
  visitproc visit;
  void* arg;
  int result = 0;
  // The collector sees it as an object of its own.
  void inner(Node& call) override {
    if (!result) result = visit(reinterpret_cast<PyObject*>(&call), arg);
  }
  void saved(const char*, Saved& s) override {
    if (!result) result = s.traverse(visit, arg);
  }
  void saved_list(const char*, SmallVector<Saved, 2>& list) override {
    for (Saved& s : list) saved("", s);
  }
  void other(const char*, PyObject* (*)(const void*), const void*) override {}
};

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Node* node = reinterpret_cast<Node*>(self);
  Py_VISIT(node->dict);
  Py_VISIT(node->scope);
  for (Edge& e : node->edges) Py_VISIT(reinterpret_cast<PyObject*>(e.node));
  if (NodeHooks* h = node->hooks) {
    for (auto& t : h->tensor_hooks) Py_VISIT(t.hook);
    for (auto& t : h->retain_grad) Py_VISIT(t.hook);
    Py_VISIT(h->pre);
    Py_VISIT(h->post);
    Py_VISIT(h->post_accumulate);
  }
  if (node->type == &NodeTypeOf<AccumulateGrad>::type) Py_VISIT(static_cast<AccumulateGrad*>(node)->variable.object());
  TraverseFields fields;
  fields.visit = visit;
  fields.arg = arg;
  node->type->fields(*node, fields);
  return fields.result;
}

struct ReleaseFields final : FieldVisitor {
  bool any = false;
  void saved(const char*, Saved& s) override {
    any |= s.defined();
    s.reset();
  }
  void saved_list(const char*, SmallVector<Saved, 2>& list) override {
    for (Saved& s : list) saved("", s);
  }
  void saved_number() override { any = true; }
  void other(const char*, PyObject* (*)(const void*), const void*) override {}
};

int node_clear(PyObject* self) {
  Node* node = reinterpret_cast<Node*>(self);
  Py_CLEAR(node->dict);
  Py_CLEAR(node->scope);
  ReleaseFields fields;
  node->type->fields(*node, fields);
  node->edges.clear();
  if (NodeHooks* h = node->hooks) {
    for (auto& t : h->tensor_hooks) Py_CLEAR(t.hook);
    for (auto& t : h->retain_grad) Py_CLEAR(t.hook);
    Py_CLEAR(h->pre);
    Py_CLEAR(h->post);
    Py_CLEAR(h->post_accumulate);
  }
  if (node->type == &NodeTypeOf<AccumulateGrad>::type) static_cast<AccumulateGrad*>(node)->variable = Tensor();
  return 0;
}

}  // namespace

// Slots for the Python face of nodes (python/node_type.cpp builds the class).
extern const destructor kNodeDealloc = node_dealloc;
extern const traverseproc kNodeTraverse = node_traverse;
extern const inquiry kNodeClear = node_clear;

PyTypeObject* python_type(NodeType& type) {
  if (type.python) return type.python;
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                         {0, nullptr}};
  // Classes of nodes have no constructor: they are made by recorded calls only.
  std::string name = std::string("rushlight.autograd.") + type.name;
  PyType_Spec spec = {name.c_str(), static_cast<int>(type.size), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_BASETYPE,
                      slots};
  PyObject* bases = PyTuple_Pack(1, reinterpret_cast<PyObject*>(g_node_type));
  PyObject* made = PyType_FromSpecWithBases(&spec, bases);
  Py_XDECREF(bases);
  if (!made) throw Error(ErrorKind::Runtime, "");
  type.python = reinterpret_cast<PyTypeObject*>(made);
  return type.python;
}

uint64_t next_sequence() { return ++g_sequence; }
uint64_t last_sequence() { return g_sequence; }

Node::Node() = default;
Node::~Node() = default;

Node* new_node(NodeType& type) {
  PyTypeObject* python = python_type(type);
  PyObject* raw = _PyObject_GC_New(python);
  if (!raw) {
    PyErr_Clear();
    fail(ErrorKind::OutOfMemory, "out of memory for a graph node");
  }
  return construct_node(type, raw, python);
}

Node* construct_node(NodeType& type, void* raw, PyTypeObject* python) {
  type.construct(raw);
  // The constructor begins the object's life, so the header is written after it. The allocation counted the class.
  Node* node = reinterpret_cast<Node*>(raw);
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(node), 1);
  reinterpret_cast<PyObject*>(node)->ob_type = python;
  node->dict = node->weakrefs = node->scope = nullptr;
  node->type = &type;
  node->hooks = nullptr;
  node->slices = nullptr;
  node->released = false;
  node->done = 0;
  node->run = 0;
  node->slot = 0;
  node->sequence = 0;
  return node;
}

void track_node(Node* node) {
  if (!PyObject_GC_IsTracked(reinterpret_cast<PyObject*>(node))) PyObject_GC_Track(node);
}

bool Node::needs_any() const {
  for (const Edge& e : edges)
    if (e.node) return true;
  return false;
}

NodeHooks& hooks_of(Node& node) {
  if (!node.hooks) node.hooks = new NodeHooks;
  return *node.hooks;
}

void release_saved(Node& node, const Site& by) {
  ReleaseFields fields;
  node.type->fields(node, fields);
  if (!fields.any) return;  // nothing was kept: it can run again
  node.released = true;
  node.freed = by;
}

// Saved tensors.

int Saved::traverse(visitproc visit, void* arg) const {
  Py_VISIT(tensor_.object());
  Py_VISIT(packed_);
  Py_VISIT(unpack_hook_);
  return 0;
}

void Saved::reset() {
  tensor_ = Tensor();
  Py_CLEAR(packed_);
  Py_CLEAR(unpack_hook_);
}

Tensor with_history(Tensor t, Edge edge) {
  t->output_nr = edge.nr;
  t->grad_fn = std::exchange(edge.node, nullptr);
  t->requires_grad = true;
  return t;
}

namespace {

// Where the gradient of a saved result goes.
Edge result_edge(Node& node, int32_t nr) {
  const bool lives = node.slices && Py_REFCNT(reinterpret_cast<PyObject*>(node.slices)) > 0;
  return lives ? written_edge(*node.slices) : Edge(&node, static_cast<uint32_t>(nr));
}

// Another tensor on t's memory, to be given a history. What a class with __torch_dispatch__ has beside sizes, only its
// own detach copies.
Tensor fresh(const Tensor& t) {
  if (!g_adds_itself || !g_adds_itself(Py_TYPE(t.object()))) return alias(t);
  PyObject* made = PyObject_CallMethod(t.object(), "detach", nullptr);
  if (!made) throw Error(ErrorKind::Runtime, "");
  if (!is_tensor(made) || made == t.object()) {
    Py_DECREF(made);
    fail(ErrorKind::Type, "__torch_dispatch__ of ", Py_TYPE(t.object())->tp_name, " returned no new tensor for detach");
  }
  return Tensor::own(reinterpret_cast<TensorObject*>(made));
}

Tensor copy_with_history(const Tensor& t) {
  NoGrad raw;
  Tensor copy = g_engine_ops.clone(t);
  if (t->wants_grad()) copy = with_history(copy, gradient_edge(t.get()));
  return copy;
}

// s keeps pack(t) instead of t.
void pack_with(Saved& s, const Tensor& t, PyObject* pack, PyObject* unpack) {
  NoGrad guard;
  const uint32_t version = t.version();
  Py_XSETREF(s.unpack_hook_, Py_NewRef(unpack));
  Py_INCREF(pack);  // which may leave the block that it was set by
  PyObject* packed = PyObject_CallOneArg(pack, t.object());
  Py_DECREF(pack);
  if (packed && t.version() != version) Py_CLEAR(packed);
  if (!packed) {
    Py_CLEAR(s.unpack_hook_);
    if (PyErr_Occurred()) throw Error(ErrorKind::Runtime, "");  // the hook's own
    fail(ErrorKind::Runtime,
         "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
         "modified by in-place operations as this can lead to unexpected side-effects. Change a clone() of it.");
  }
  s.packed_ = packed;
  if (s.output_nr_ < 0 && t->wants_grad()) {  // the input's history, without its memory
    const int64_t none[1] = {0};
    s.tensor_ = with_history(empty(IntSpan(none, 1), t.dtype(), t.device()), gradient_edge(t.get()));
  } else {
    s.tensor_ = Tensor();
  }
}

Saved pack(const Tensor& t, int32_t nr) {
  CHECK(!t->inference, Runtime,
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by autograd.\n  clone() makes a normal tensor of it; or make it under no_grad() instead.");
  Saved s;
  s.output_nr_ = nr;
  s.version_ = t.version();
  // x.addcmul_(x, y), written straight into x: the operand's values are gone, which backward must say.
  if (nr < 0 && t_destination.counted && t->version == t_destination.taken->version) --s.version_;
  if (t_saved_hooks && !t_saved_hooks->empty()) {
    SavedHooks hooks = t_saved_hooks->back();
    const bool overwritten = nr < 0 && t.get() == t_inplace_target;  // the hook gets what it was
    pack_with(s, overwritten ? copy_with_history(t) : t, hooks.pack, hooks.unpack);
    return s;
  }
  s.tensor_ = t;
  if (nr < 0 && t->grad_fn) s.output_nr_ = Saved::kInputWithHistory;  // which it must not lose
  return s;
}

void check_attached(const Saved& s) {
  CHECK(s.output_nr_ != Saved::kInputWithHistory || s.tensor_->grad_fn, Runtime,
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, ",
        "please use out-of-place `.detach()` instead");
}

[[gnu::cold]] std::string modified_message(const Saved& s, Node& node) {
  const Tensor& t = s.tensor_;
  std::string what =
      text("one of the variables needed for gradient computation has been modified by an inplace operation: [torch.",
           info(t.dtype()).legacy, "Tensor ", to_text(t.sizes()), "]");
  Node* maker = s.output_nr_ >= 0 ? &node : t->grad_fn;
  if (maker)
    what += text(", which is output ",
                 static_cast<int64_t>(s.output_nr_ >= 0 ? static_cast<uint32_t>(s.output_nr_) : t->output_nr), " of ",
                 maker->type->name, ",");
  what += text(" is at version ", static_cast<int64_t>(t.version()), "; expected version ",
               static_cast<int64_t>(s.version_), " instead.");
  if (node.site) what += text("\n  saved for backward by ", node.type->name, " at ", node.site.describe());
  const Version& v = *t->version;
  std::string line = v.last_write ? v.last_write.source() : "";
  bool step = v.last_op == kOptimizerStep || line.find(".step(") != std::string::npos;
  if (v.last_write) {
    what += "\n  changed in place ";
    if (step) what += text("by ", kOptimizerStep, " ");
    else if (v.last_op) what += text("by ", v.last_op, v.last_op[std::strlen(v.last_op) - 1] == '_' ? "() " : "_() ");
    what += text("at ", v.last_write.describe());
  }
  if (step)
    what +=
        "\n  The loss was computed with the parameters as they were before the step: call backward() of all losses "
        "first and step() after them, or compute this loss anew after the step.";
  else
    what +=
        "\n  Write the change out of place (x = x + 1, not x += 1; inplace=False), or change a clone(), or do it after "
        "backward().";
  return what;
}

}  // namespace

[[gnu::cold]] std::string freed_message(Node& node) {
  std::string what =
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
      "been "
      "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
      "retain_graph=True if you need to backward through the graph a second time or if you need to access saved "
      "tensors "
      "after calling backward.";
  if (node.site) what += text("\n  ", node.type->name, " was recorded at ", node.site.describe());
  if (node.freed) what += text("\n  its saved tensors were freed by the backward at ", node.freed.describe());
  return what;
}

void pack_saved(Saved& s, PyObject* pack, PyObject* unpack) {
  Tensor t = s.tensor_;
  pack_with(s, t, pack, unpack);
}

Saved save(const Tensor& input) { return input.defined() ? pack(input, Saved::kInput) : Saved(); }

Saved save_output(Node& node, const Tensor& output, int32_t nr) {
  (void)node;
  return pack(fresh(output), nr);
}

Tensor Saved::unpack(Node& node) const {
  if (packed_) {
    PyObject *hook = Py_NewRef(unpack_hook_), *packed = Py_NewRef(packed_);  // a backward inside may free them
    PyObject* result = PyObject_CallOneArg(hook, packed);
    Py_DECREF(hook);
    Py_DECREF(packed);
    if (!result) throw Error(ErrorKind::Runtime, "");
    if (!is_tensor(result)) {
      Py_DECREF(result);
      fail(ErrorKind::Type,
           "Output of saved tensor unpack_hook expected to be a Tensor but got result of another type");
    }
    Tensor unpacked = g_engine_ops.resolved(Tensor::own(reinterpret_cast<TensorObject*>(result)));
    if (tensor_.defined()) return with_history(fresh(unpacked), Edge(tensor_->grad_fn, tensor_->output_nr));
    if (output_nr_ < 0 || !grad_enabled()) return unpacked;
    return with_history(fresh(unpacked), result_edge(node, output_nr_));
  }
  if (!tensor_.defined()) {
    if (node.released || ever()) throw Error(ErrorKind::Runtime, freed_message(node));
    return {};
  }
  if (tensor_.version() != version_) throw Error(ErrorKind::Runtime, modified_message(*this, node));
  check_attached(*this);
  if (output_nr_ < 0 || !grad_enabled()) return tensor_;
  // A saved result, wanted with its history: an alias that remembers this node.
  return with_history(fresh(tensor_), result_edge(node, output_nr_));
}

namespace {
struct CheckFields final : FieldVisitor {
  Node& node;
  explicit CheckFields(Node& n) : node(n) {}
  void saved(const char*, Saved& s) override {
    if (!s.tensor_.defined() || s.packed_) return;
    if (s.tensor_.version() != s.version_) throw Error(ErrorKind::Runtime, modified_message(s, node));
    check_attached(s);
  }
  void saved_list(const char*, SmallVector<Saved, 2>& list) override {
    for (Saved& s : list) saved("", s);
  }
  void other(const char*, PyObject* (*)(const void*), const void*) override {}
};
}  // namespace

void check_saved(Node& node) {
  CheckFields fields(node);
  node.type->fields(node, fields);
}

void FieldVisitor::inner(Node& call) { call.type->fields(call, *this); }

// What Python sees of plain fields.

static PyObject* number_object(const Scalar& s) {
  return s.is_complex()    ? PyComplex_FromDoubles(s.to_complex128().real(), s.to_complex128().imag())
         : s.above_int64() ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(s.to_int()))
         : s.is_integral() ? PyLong_FromLongLong(s.to_int())
                           : PyFloat_FromDouble(s.to_double());
}
void FieldVisitor::operator()(const char* name, SavedValue& v) {
  if (v.is_tensor || !v.kept) return saved(name, v.tensor);
  saved_number();
  other(name, [](const void* p) { return number_object(static_cast<const SavedValue*>(p)->number); }, &v);
}
void FieldVisitor::operator()(const char* name, Scalar& v) {
  other(name, [](const void* p) { return number_object(*static_cast<const Scalar*>(p)); }, &v);
}
void FieldVisitor::operator()(const char* name, std::string& v) {
  other(name, [](const void* p) { return PyUnicode_FromString(static_cast<const std::string*>(p)->c_str()); }, &v);
}
void FieldVisitor::operator()(const char* name, int64_t& v) {
  other(name, [](const void* p) { return PyLong_FromLongLong(*static_cast<const int64_t*>(p)); }, &v);
}
void FieldVisitor::operator()(const char* name, double& v) {
  other(name, [](const void* p) { return PyFloat_FromDouble(*static_cast<const double*>(p)); }, &v);
}
void FieldVisitor::operator()(const char* name, bool& v) {
  other(name, [](const void* p) { return PyBool_FromLong(*static_cast<const bool*>(p)); }, &v);
}
void FieldVisitor::operator()(const char* name, Ints& v) {
  other(
      name,
      [](const void* p) -> PyObject* {
        const Ints& list = *static_cast<const Ints*>(p);
        PyObject* result = PyTuple_New(list.size());
        for (int64_t i = 0; result && i < list.size(); ++i) PyTuple_SET_ITEM(result, i, PyLong_FromLongLong(list[i]));
        return result;
      },
      &v);
}

}  // namespace rl
