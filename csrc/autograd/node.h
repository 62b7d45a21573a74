// A node of the graph: the derivative of one recorded call. Nodes are named structs with named saved fields, and
// Python objects (`y.grad_fn`), so that the garbage collector sees the whole graph.
#pragma once
#include <Python.h>

#include <cstdint>
#include <new>
#include <string>

#include "base/small_vector.h"
#include "tensor/site.h"
#include "tensor/tensor.h"

namespace rl {

struct Node;

// One gradient per result (or per input); undefined where there is none.
using Grads = SmallVector<Tensor, 3>;

// Where a gradient goes: the node, and which of its results the gradient belongs to. Owns the node.
struct Edge {
  Node* node = nullptr;
  uint32_t nr = 0;
  Edge() = default;
  Edge(Node* n, uint32_t i);
  Edge(const Edge& o) : Edge(o.node, o.nr) {}
  Edge(Edge&& o) noexcept : node(std::exchange(o.node, nullptr)), nr(o.nr) {}
  Edge& operator=(Edge o) noexcept {
    std::swap(node, o.node);
    std::swap(nr, o.nr);
    return *this;
  }
  ~Edge();
};

// What the engine must know of a forward result to check and shape its gradient.
struct ResultMeta {
  SmallVector<int64_t, 4> sizes;
  DType dtype = DType::Float32;
  Device device;
  ResultMeta() = default;
  explicit ResultMeta(const Tensor& t) : sizes(t.sizes()), dtype(t.dtype()), device(t.device()) {}
};

// A tensor kept for backward. Remembers the version it had: a write in between is an error at unpack.
class Saved {
 public:
  Saved() = default;
  Tensor unpack(Node& node) const;
  bool defined() const { return tensor_.defined() || packed_; }
  bool ever() const { return output_nr_ != kNothing; }  // whether anything was saved here, freed since or not
  void reset();
  int traverse(visitproc visit, void* arg) const;

  Tensor tensor_;  // inputs: the tensor itself; outputs: an alias without history
  uint32_t version_ = 0;
  static constexpr int32_t kInput = -1, kInputWithHistory = -2, kNothing = -3, kCopyOnWrite = -4;
  int32_t output_nr_ = kNothing;  // >= 0: result number of the node itself
  PyObject* packed_ = nullptr;    // what a saved-tensor pack hook returned
  PyObject* unpack_hook_ = nullptr;
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;
  Saved(Saved&& o) noexcept { *this = std::move(o); }
  Saved& operator=(Saved&& o) noexcept {
    std::swap(tensor_, o.tensor_);
    std::swap(version_, o.version_);
    std::swap(output_nr_, o.output_nr_);
    std::swap(packed_, o.packed_);
    std::swap(unpack_hook_, o.unpack_hook_);
    return *this;
  }
  ~Saved() { reset(); }
};

// An operand that was a tensor or a number.
struct Value {
  Tensor tensor;
  Scalar number = Scalar(0);
  Value(const Tensor& t) : tensor(t) {}
  Value(Tensor&& t) : tensor(std::move(t)) {}
  Value(const Scalar& s) : number(s) {}
  Value(double v) : number(v) {}
  Value(int64_t v) : number(v) {}
  Value(int v) : number(v) {}
  Value(bool v) : number(v) {}
  bool is_tensor() const { return tensor.defined(); }
  bool requires_grad() const { return tensor.defined() && tensor.requires_grad(); }
};
struct SavedValue {
  Saved tensor;
  Scalar number = Scalar(0);
  bool is_tensor = false;
  bool kept = false;  // whether anything was saved
  // A number is freed like a tensor: torch, which wraps it in one, refuses a second backward too.
  Value unpack(Node& node) const;
};

// Called with each saved field of a node and its name.
struct FieldVisitor {
  virtual void saved(const char* name, Saved& s) = 0;
  virtual void saved_list(const char* name, SmallVector<Saved, 2>& list) = 0;
  virtual void other(const char* name, PyObject* (*get)(const void*), const void* field) = 0;
  virtual void saved_number() {}   // a SavedValue that was a number: other() follows
  virtual void inner(Node& call);  // a node within the node: its fields count as fields
  void operator()(const char* name, Saved& s) { saved(name, s); }
  void operator()(const char* name, SavedValue& v);
  void operator()(const char* name, SmallVector<Saved, 2>& list) { saved_list(name, list); }
  // Not const: else the template would be the better match.
  void operator()(const char* name, int64_t& v);
  void operator()(const char* name, double& v);
  void operator()(const char* name, bool& v);
  void operator()(const char* name, Ints& v);
  void operator()(const char* name, Scalar& v);
  void operator()(const char* name, std::string& v);
  template <class T> void operator()(const char*, T&) {}  // fields that are not shown
};

struct NodeType {
  const char* name;
  size_t size;
  Grads (*backward)(Node&, const Grads& dy);
  Grads (*stacked)(Node&, const Grads& dy);  // of stacked gradients (Note [Stacked gradients]); null: row by row
  void (*fields)(Node&, FieldVisitor&);
  void (*construct)(void*);
  void (*destroy)(Node&);
  bool undefined_ok;  // backward handles undefined gradients itself
  bool ends_in_view;  // the last of several steps in PyTorch is a view: backward(inputs=[its result]) does not run it
  PyTypeObject* python;  // made on first use
};

struct NodeHooks;

// Note [Stacked gradients]
// Jacobians and grad(is_grads_batched=True) ask one graph for the gradients of many rows: dy then has a dimension in
// front of those of the result, and so must dx have in front of those of the input. A node whose backward is right for
// such gradients as it stands says `static constexpr bool kStacks = true;`: formulas of elementwise ops are, because
// what was saved broadcasts; others count dimensions from the end, or from `lead(dy)`, and make sizes with `led(dy,
// sizes)`. A node with another way to do it has a member `stacked(dy)`. All others run row by row
// (autograd/batched_gradients.h): right, and slow.
struct Node {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  const NodeType* type;
  uint64_t sequence;           // later calls have a higher one
  SmallVector<Edge, 2> edges;  // one per input
  SmallVector<ResultMeta, 1> results;
  Site site;         // the line that recorded it
  Site freed;        // the line whose backward freed the saved tensors
  PyObject* scope;   // the module call that recorded it (autograd/module_scope.h), or null; owned
  NodeHooks* hooks;  // null mostly
  Node* slices;      // the CopySlices whose write this is the call of: the graph holds that, not this; else null
  bool released;     // what was saved is gone
  uint64_t done;     // the sequence number that the next call had when backward last ran through here; 0: never

  // The engine's own: the backward that visits the node, and where that one has its state (Note [Threads of backward]).
  uint64_t run;
  uint32_t slot;

  Node();  // not inline: each class of nodes has its own constructor, which calls this one
  ~Node();
  // Whether the gradient of an input is asked for; in a run with inputs=, whether it leads to one of them.
  bool needs(int64_t input) const;
  bool needs_any() const;
  // How many dimensions dy, the gradient of a result, has in front of those of the result.
  int64_t lead(const Tensor& dy, int64_t result = 0) const { return dy.dim() - results[result].sizes.size(); }
  // The sizes that dy has in front, then these.
  Ints led(const Tensor& dy, IntSpan sizes, int64_t result = 0) const {
    Ints all(IntSpan(dy.sizes().data(), lead(dy, result)));
    for (int64_t n : sizes) all.push_back(n);
    return all;
  }
};

inline Value SavedValue::unpack(Node& node) const {
  return is_tensor || node.released ? Value(tensor.unpack(node)) : Value(number);
}

// Python callbacks of a node, in order of registration.
struct NodeHooks {
  struct TensorHook {
    uint32_t nr;
    PyObject* hook;
  };  // gradient -> gradient or None
  SmallVector<TensorHook, 2> tensor_hooks;  // dict-like objects: see python/hooks
  PyObject* pre = nullptr;                  // dict id -> f(grad_outputs)
  PyObject* post = nullptr;                 // dict id -> f(grad_inputs, grad_outputs)
  SmallVector<TensorHook, 1> retain_grad;   // weak references to tensors that keep their gradient
  PyObject* post_accumulate = nullptr;      // dict id -> f(param)
};
NodeHooks& hooks_of(Node& node);

inline Edge::Edge(Node* n, uint32_t i) : node(n), nr(i) { Py_XINCREF(reinterpret_cast<PyObject*>(n)); }
inline Edge::~Edge() { Py_XDECREF(reinterpret_cast<PyObject*>(node)); }

// A node struct lists its saved fields with FIELDS, in the order Python shows them (`_saved_<name>`).
#define FIELDS_1(a) visit(#a, a);
#define FIELDS_2(a, b) FIELDS_1(a) FIELDS_1(b)
#define FIELDS_3(a, b, c) FIELDS_2(a, b) FIELDS_1(c)
#define FIELDS_4(a, b, c, d) FIELDS_3(a, b, c) FIELDS_1(d)
#define FIELDS_5(a, b, c, d, e) FIELDS_4(a, b, c, d) FIELDS_1(e)
#define FIELDS_6(a, b, c, d, e, f) FIELDS_5(a, b, c, d, e) FIELDS_1(f)
#define FIELDS_7(a, b, c, d, e, f, g) FIELDS_6(a, b, c, d, e, f) FIELDS_1(g)
#define FIELDS_8(a, b, c, d, e, f, g, h) FIELDS_7(a, b, c, d, e, f, g) FIELDS_1(h)
#define FIELDS_PICK(_1, _2, _3, _4, _5, _6, _7, _8, name, ...) name
#define FIELDS(...)                                                                                            \
  void fields(FieldVisitor& visit) {                                                                           \
    FIELDS_PICK(__VA_ARGS__, FIELDS_8, FIELDS_7, FIELDS_6, FIELDS_5, FIELDS_4, FIELDS_3, FIELDS_2, FIELDS_1, ) \
    (__VA_ARGS__)                                                                                              \
  }

template <class N> constexpr Grads (*stacked_of())(Node&, const Grads&) {
  if constexpr (requires(N& n, const Grads& dy) { n.stacked(dy); })
    return [](Node& node, const Grads& dy) -> Grads { return static_cast<N&>(node).stacked(dy); };
  else if constexpr (requires { N::kStacks; })
    return [](Node& node, const Grads& dy) -> Grads { return static_cast<N&>(node).backward(dy); };
  else return nullptr;
}

template <class N> struct NodeTypeOf {
  static NodeType type;
};
template <class N> NodeType NodeTypeOf<N>::type = {
    N::kName,
    sizeof(N),
    [](Node& node, const Grads& dy) -> Grads { return static_cast<N&>(node).backward(dy); },
    stacked_of<N>(),
    [](Node& node, FieldVisitor& visit) {
      if constexpr (requires(N & n) { n.fields(visit); }) static_cast<N&>(node).fields(visit);
    },
    [](void* p) { new (p) N; },
    [](Node& node) { static_cast<N&>(node).~N(); },
    requires { N::kUndefinedOk; },
    requires { N::kEndsInView; },
    nullptr,
};

Node* new_node(NodeType& type);  // not yet tracked by the collector: call track_node when it is whole
// Begins the life of a node in memory that Python allocated for an object of class `python`.
Node* construct_node(NodeType& type, void* raw, PyTypeObject* python);
void track_node(Node* node);
void release_saved(Node& node, const Site& by);
Edge written_edge(Node& slices);        // leads to the part of the base that a CopySlices wrote
std::string freed_message(Node& node);  // of a second backward
uint64_t next_sequence();
uint64_t last_sequence();
PyTypeObject* python_type(NodeType& type);
extern PyTypeObject* g_node_type;

}  // namespace rl
