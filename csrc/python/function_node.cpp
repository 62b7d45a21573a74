// The C++ half of autograd.Function: its calls are nodes whose backward is Python.
#include "python/function_node.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "autograd/batched_gradients.h"
#include "autograd/grad_mode.h"
#include "autograd/gradient_sum.h"
#include "autograd/meta.h"
#include "autograd/record.h"
#include "ops/ops.h"
#include "python/errors.h"
#include "schema/registry.h"

namespace rl {

namespace {

PyTypeObject* g_type = nullptr;

struct FunctionNode : Node {
  static constexpr const char* kName = "FunctionNode";
  static constexpr bool kUndefinedOk = true;
  std::shared_ptr<NodeType> owned_type;  // what `type` points to: the collector may end the class before its nodes
  SmallVector<Saved, 2> saved_tensors;
  Ints positions;  // of the tensors among forward's arguments, one per edge
  Ints constant;   // the outputs that were marked as not differentiable
  int64_t arguments = 0;
  Grads backward(const Grads& dy);
  Grads stacked(const Grads& dy) { return backward(dy); }  // it runs under vmap
  FIELDS(saved_tensors)
};

FunctionNode& of(PyObject* o) { return *static_cast<FunctionNode*>(reinterpret_cast<Node*>(o)); }
PyObject* object(Node* n) { return reinterpret_cast<PyObject*>(n); }

Grads FunctionNode::backward(const Grads& dy) {
  PyObject* self = object(this);
  Owned cls(PyObject_GetAttrString(self, "_forward_cls"));
  // A Function defines backward or its other name, vjp.
  Owned base_module(PyImport_ImportModule("rushlight.autograd.function"));
  Owned base(PyObject_GetAttrString(base_module.p, "Function"));
  Owned base_backward(PyObject_GetAttrString(base.p, "backward"));
  Owned backward(PyObject_GetAttrString(cls.p, "backward"));
  Owned vjp(PyObject_GetAttrString(cls.p, "vjp"));
  Owned base_vjp(PyObject_GetAttrString(base.p, "vjp"));
  CHECK(backward.p == base_backward.p || vjp.p == base_vjp.p, Runtime,
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of "
        "them.");
  PyObject* f = backward.p != base_backward.p ? backward.p : vjp.p;
  Owned materialize(PyObject_GetAttrString(self, "materialize_grads"));
  bool fill = PyObject_IsTrue(materialize.p) == 1;
  Owned materialize_constant(PyObject_GetAttrString(self, "_materialize_non_diff_grads"));
  bool fill_constant = PyObject_IsTrue(materialize_constant.p) == 1;
  Owned args(PyTuple_New(1 + dy.size()));
  PyTuple_SET_ITEM(args.p, 0, Py_NewRef(self));
  for (int64_t i = 0; i < dy.size(); ++i) {
    Tensor g = dy[i];
    const bool is_constant = std::find(constant.begin(), constant.end(), i) != constant.end();
    if (!g.defined() && fill && (fill_constant || !is_constant) &&
        !(results[i].sizes.size() == 1 && results[i].sizes[0] == -1))
      g = ops::zeros(stacked_rows() < 0 ? Ints(results[i].sizes) : stacked_sizes(results[i].sizes), results[i].dtype,
                     results[i].device);
    PyTuple_SET_ITEM(args.p, i + 1, g.defined() ? g.release() : Py_NewRef(Py_None));
  }
  Owned result(call_stacked(f, args.p));
  bool tuple = PyTuple_Check(result.p) || PyList_Check(result.p);
  int64_t n = tuple ? PySequence_Fast_GET_SIZE(result.p) : 1;
  auto get = [&](int64_t i) { return tuple ? PySequence_Fast_GET_ITEM(result.p, i) : result.p; };
  // More gradients than arguments are fine if the rest is None.
  bool only_none = true;
  for (int64_t i = arguments; i < n; ++i) only_none &= get(i) == Py_None;
  CHECK(n >= arguments && only_none, Runtime, "function ", type->name,
        " returned an incorrect number of gradients (expected ", arguments, ", got ", n, ")");
  Grads dx(edges.size());
  for (int64_t i = 0; i < positions.size(); ++i) {
    PyObject* g = get(positions[i]);
    if (g == Py_None || !needs(i)) continue;
    CHECK(is_tensor(g), Type, "expected Variable or None (got ", Py_TYPE(g)->tp_name, ")");
    dx[i] = g_engine_ops.resolved(Tensor::borrow(g));
  }
  return dx;
}

// A profile keeps names by their address, longer than a class may live.
const char* lasting_name(const char* name) {
  static auto* names = new std::unordered_set<std::string>;
  return names->insert(name).first->c_str();
}

struct ClassEntry {
  std::shared_ptr<NodeType> type;
  PyObject* watch = nullptr;  // a weak reference to the class; owned
};
std::unordered_map<PyTypeObject*, ClassEntry>& class_entries() {
  static auto* entries = new std::unordered_map<PyTypeObject*, ClassEntry>;
  return *entries;
}

// Called with the weak reference to a class that is no more; `address` is what the class was found by.
PyObject* forget_class(PyObject* address, PyObject* watch) {
  auto& entries = class_entries();
  auto entry = entries.find(static_cast<PyTypeObject*>(PyLong_AsVoidPtr(address)));
  if (entry != entries.end() && entry->second.watch == watch) {
    Py_DECREF(watch);
    entries.erase(entry);
  }
  Py_RETURN_NONE;
}
PyMethodDef forget_class_method = {"forget_class", forget_class, METH_O, nullptr};

// A NodeType of its own per class, for the name that grad_fn shows.
std::shared_ptr<NodeType> type_of(PyTypeObject* cls) {
  if (auto entry = class_entries().find(cls); entry != class_entries().end()) return entry->second.type;
  Owned address(PyLong_FromVoidPtr(cls)), forget(PyCFunction_New(&forget_class_method, address.p));
  Owned watch(PyWeakref_NewRef(reinterpret_cast<PyObject*>(cls), forget.p));
  auto type = std::make_shared<NodeType>(NodeTypeOf<FunctionNode>::type);
  const char* dot = std::strrchr(cls->tp_name, '.');
  type->name = lasting_name(dot ? dot + 1 : cls->tp_name);
  type->python = cls;
  class_entries()[cls] = {type, Py_NewRef(watch.p)};
  return type;
}

PyObject* new_function_node(PyObject*, PyObject* cls) {
  return guarded([&]() -> PyObject* {
    CHECK(PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), g_type), Type,
          "expected a class of Function nodes");
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    std::shared_ptr<NodeType> node_type = type_of(type);
    PyObject* raw = PyType_GenericAlloc(type, 0);
    if (!raw) python_error();
    PyObject_GC_UnTrack(raw);
    Node* node = construct_node(*node_type, raw, type);
    static_cast<FunctionNode*>(node)->owned_type = std::move(node_type);
    track_node(node);  // if forward raises, it is never finished, and may be part of a cycle
    return object(node);
  });
}

bool contains(PyObject* sequence, PyObject* item) {
  if (!sequence || sequence == Py_None) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i)
    if (PySequence_Fast_GET_ITEM(sequence, i) == item) return true;
  return false;
}

bool is_view_of(PyObject* inputs, const Tensor& y) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(inputs); ++i) {
    auto* t = reinterpret_cast<TensorObject*>(PySequence_Fast_GET_ITEM(inputs, i));
    if (t == y->base || (t->base && t->base == y->base)) return true;
  }
  return false;
}

// An input that forward returned as it is: a view of it, of the same class.
Tensor handed_through(const Tensor& x) {
  if (Py_TYPE(x.object()) != g_tensor_type) {
    Owned view(PyObject_CallMethod(x.object(), "view_as", "O", x.object()));
    if (is_tensor(view.p) && view.p != x.object()) return Tensor::borrow(view.p);
  }
  return alias(x);
}

// ctx.name (left by save_for_backward and the mark_ functions), taken away from it; null if there is none.
struct Taken {
  PyObject* p = nullptr;
  Taken(PyObject* ctx, const char* name) {
    PyObject* dict = of(ctx).dict;
    p = Py_XNewRef(dict ? PyDict_GetItemString(dict, name) : nullptr);
    if (p) PyDict_DelItemString(dict, name);
  }
  ~Taken() { Py_XDECREF(p); }
  Taken(const Taken&) = delete;
};

// What forward was given and what it left on ctx; each may be null or None.
struct Call {
  FunctionNode& node;
  bool record;  // it gets history
  PyObject *inputs, *outputs, *to_save, *dirty, *no_gradient;
  bool tuple() const { return PyTuple_Check(outputs); }
  Py_ssize_t count() const { return tuple() ? PyTuple_GET_SIZE(outputs) : 1; }
  PyObject* output(Py_ssize_t i) const { return tuple() ? PyTuple_GET_ITEM(outputs, i) : outputs; }
};

void mark_written(const Call& call) {
  if (!call.dirty || call.dirty == Py_None) return;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(call.dirty); ++i) {
    PyObject* t = PySequence_Fast_GET_ITEM(call.dirty, i);
    CHECK(is_tensor(t), Type, "mark_dirty can only accept variables");
    if (call.record) {
      NoGrad on(true);
      check_inplace(Tensor::borrow(t));
    }
    bump_version(Tensor::borrow(t));
  }
}

void connect_arguments(FunctionNode& node, PyObject* args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* a = PyTuple_GET_ITEM(args, i);
    if (!is_tensor(a)) continue;
    auto* t = reinterpret_cast<TensorObject*>(a);
    node.edges.push_back(t->wants_grad() ? gradient_edge(t) : Edge());
    node.positions.push_back(i);
  }
}

// Output i as the caller gets it: with history, and as a view where it is one. A new reference.
PyObject* finished_output(const Call& call, Py_ssize_t i) {
  FunctionNode& node = call.node;
  PyObject* o = call.output(i);
  if (!is_tensor(o)) {
    ResultMeta none;
    none.sizes = {-1};
    node.results.push_back(none);
    return Py_NewRef(o);
  }
  Tensor y = Tensor::borrow(o);
  const bool is_input = contains(call.inputs, o), is_dirty = contains(call.dirty, o);
  const bool constant = contains(call.no_gradient, o), views = call.record || grad_enabled();
  if (is_input && !is_dirty) {
    Tensor x = y;
    y = handed_through(x);
    if (views && !y->base) mark_view(y, x, ViewOrigin::InsideFunction);
  }
  if (!is_input && y->base && views) {
    // A view of an input stays one, and may not be written to: its base's history could not follow. Others were
    // made of what forward computed, and are tensors of their own.
    if (is_view_of(call.inputs, y)) y->view_origin = ViewOrigin::InsideFunction;
    else Py_CLEAR(y->base);
  }
  if (constant) node.constant.push_back(i);
  const bool differentiable = call.record && is_differentiable(y.dtype()) && !constant;
  node.results.push_back(ResultMeta(y));
  if (differentiable && is_dirty) {
    rebase_history(y, Edge(&node, static_cast<uint32_t>(i)));
  } else if (differentiable) {
    Py_INCREF(object(&node));
    Py_XDECREF(object(std::exchange(y->grad_fn, &node)));
    y->output_nr = static_cast<uint32_t>(i);
    y->requires_grad = true;
  }
  return y.release();
}

void save_tensors(const Call& call) {
  if (!call.to_save || !call.record) return;
  FunctionNode& node = call.node;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(call.to_save); ++i) {
    PyObject* t = PySequence_Fast_GET_ITEM(call.to_save, i);
    if (t == Py_None) {
      node.saved_tensors.push_back(Saved());
      continue;
    }
    int32_t nr = -1;
    for (Py_ssize_t k = 0; k < call.count(); ++k)
      if (call.output(k) == t && (!contains(call.inputs, t) || contains(call.dirty, t))) nr = static_cast<int32_t>(k);
    node.saved_tensors.push_back(nr >= 0 ? save_output(node, Tensor::borrow(t), nr) : save(Tensor::borrow(t)));
  }
}

// finish_function(ctx, recorded, args, inputs, outputs): gives the outputs of forward their history.
PyObject* finish_function(PyObject*, PyObject* arguments) {
  PyObject *ctx, *recorded, *args, *inputs, *outputs;
  if (!PyArg_ParseTuple(arguments, "OOOOO", &ctx, &recorded, &args, &inputs, &outputs)) return nullptr;
  const Taken to_save(ctx, "_to_save"), dirty(ctx, "_dirty"), no_gradient(ctx, "_non_differentiable");
  return guarded([&]() -> PyObject* {
    const Call call{of(ctx), recorded == Py_True, inputs, outputs, to_save.p, dirty.p, no_gradient.p};
    call.node.arguments = PyTuple_GET_SIZE(args);
    mark_written(call);
    if (call.record) connect_arguments(call.node, args);
    Owned result(PyTuple_New(call.count()));
    for (Py_ssize_t i = 0; i < call.count(); ++i) PyTuple_SET_ITEM(result.p, i, finished_output(call, i));
    save_tensors(call);
    Py_INCREF(ctx);
    finish_node(&call.node);
    return Py_NewRef(call.tuple() ? result.p : PyTuple_GET_ITEM(result.p, 0));
  });
}

// save_inputs(ctx, tensors): keeps arguments before forward runs. A hook may raise, and then nothing has been computed.
PyObject* save_inputs(PyObject*, PyObject* arguments) {
  PyObject *ctx, *tensors;
  if (!PyArg_ParseTuple(arguments, "OO!", &ctx, &PyList_Type, &tensors)) return nullptr;
  return guarded([&]() -> PyObject* {
    CHECK(PyObject_TypeCheck(ctx, g_type), Type, "expected the node of a Function");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) {
      PyObject* t = PyList_GET_ITEM(tensors, i);
      CHECK(is_tensor(t), Type, "expected Tensors, got ", Py_TYPE(t)->tp_name);
      of(ctx).saved_tensors.push_back(save(Tensor::borrow(t)));
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* saved_tensors(PyObject* s, void*) {
  return guarded([&]() -> PyObject* {
    FunctionNode& node = of(s);
    if (node.dict)  // still inside forward, or inside jvp, which finds what was saved for it alone
      if (PyObject* pending = PyDict_GetItemString(node.dict, "_to_save")) return Py_NewRef(pending);
    PyObject* t = PyTuple_New(node.saved_tensors.size());
    for (int64_t i = 0; i < node.saved_tensors.size(); ++i) PyTuple_SET_ITEM(t, i, Py_NewRef(Py_None));
    for (int64_t i = 0; i < node.saved_tensors.size(); ++i) {
      const Saved& s = node.saved_tensors[i];
      if (!s.ever() && !node.released) continue;
      Tensor v;
      try {
        // Users find a saved result with its history, also where backward records nothing: it may differentiate it.
        NoGrad history(grad_enabled() || (s.output_nr_ >= 0 && !s.packed_));
        v = s.unpack(node);
      } catch (...) {
        Py_DECREF(t);
        throw;
      }
      if (v.defined()) PyTuple_SetItem(t, i, v.release());
    }
    return t;
  });
}
PyObject* saved_variables(PyObject* s, void* closure) {
  if (PyErr_WarnEx(PyExc_DeprecationWarning, "'saved_variables' is deprecated; use 'saved_tensors'", 1) < 0)
    return nullptr;
  return saved_tensors(s, closure);
}
PyGetSetDef kGetSet[] = {{"saved_tensors", saved_tensors, nullptr, nullptr, nullptr},
                         {"saved_variables", saved_variables, nullptr, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};

struct FailingNode : Node {
  static constexpr const char* kName = "Error";
  std::string message;
  Grads backward(const Grads&) { fail(ErrorKind::Runtime, message); }
};
// The tensors of a sequence (None stays None), through a node whose backward is an error.
NewObject fail_on_backward(Object inputs, const std::string& message) {
  Owned list(PySequence_List(inputs.p));
  auto* node = static_cast<FailingNode*>(new_node(NodeTypeOf<FailingNode>::type));
  NewNode made(node);
  node->message = message;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.p); ++i) {
    PyObject* o = PyList_GET_ITEM(list.p, i);
    CHECK(o == Py_None || is_tensor(o), Type, "expected Tensors or None, got ", Py_TYPE(o)->tp_name);
    auto* t = reinterpret_cast<TensorObject*>(o);
    node->edges.push_back(o != Py_None && t->wants_grad() ? gradient_edge(t) : Edge());
    if (o == Py_None) {
      node->results.push_back(ResultMeta());
      continue;
    }
    Tensor y = alias(Tensor::borrow(o));
    attach_result(node, y);
    PyList_SetItem(list.p, i, y.release());
  }
  made.finish();
  return {Py_NewRef(list.p)};
}

// Where forward mode begins: x itself, as a step of the graph, so that it may be written to.
struct DualBackward : Node {
  static constexpr const char* kName = "MakeDualBackward";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {dy[0]}; }
};
Tensor dual_of(const Tensor& x) { return record<DualBackward>(alias(x), {x}); }

PyMethodDef kFunctions[] = {{"_new_function_node", new_function_node, METH_O, nullptr},
                            {"_finish_function", finish_function, METH_VARARGS, nullptr},
                            {"_save_inputs", save_inputs, METH_VARARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

int install_function_node(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_getset, kGetSet},
                         {Py_tp_dealloc, reinterpret_cast<void*>(g_node_type->tp_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(g_node_type->tp_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(g_node_type->tp_clear)},
                         {0, nullptr}};
  PyType_Spec spec = {"rushlight.autograd.FunctionNode", sizeof(FunctionNode), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, slots};
  PyObject* bases = PyTuple_Pack(1, reinterpret_cast<PyObject*>(g_node_type));
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, bases));
  Py_XDECREF(bases);
  g_function_node_type = g_type;
  if (!g_type || PyModule_AddFunctions(module, kFunctions) < 0) return -1;
  return PyModule_AddObjectRef(module, "FunctionNode", reinterpret_cast<PyObject*>(g_type));
}

static const Register registered([](Ops& ops) {
  ops.def("_dual_of", dual_of, "input", kNoOut);
  ops.def("_fail_on_backward", fail_on_backward, "tensors, message", kNoOut);
});

}  // namespace rl
