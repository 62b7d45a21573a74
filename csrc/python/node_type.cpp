// The Python face of graph nodes: grad_fn.name(), next_functions, saved fields, hooks.
#include "python/node_type.h"

#include <structmember.h>

#include <cstring>
#include <string>

#include "autograd/meta.h"
#include "autograd/record.h"
#include "python/errors.h"
#include "python/saved_tensor.h"
#include "schema/arguments.h"

namespace rl {

extern const destructor kNodeDealloc;
extern const traverseproc kNodeTraverse;
extern const inquiry kNodeClear;

namespace {

Node* cast(PyObject* o) { return reinterpret_cast<Node*>(o); }

// name() has C++'s name of the nodes that no op makes.
PyObject* node_name(PyObject* s, PyObject*) {
  const char* name = cast(s)->type->name;
  for (const char* inner : {"AccumulateGrad", "CopySlices", "CopyBackwards"})
    if (std::strcmp(name, inner) == 0) return PyUnicode_FromFormat("torch::autograd::%s", name);
  return PyUnicode_FromString(name);
}
PyObject* node_repr(PyObject* s) { return PyUnicode_FromFormat("<%s object at %p>", cast(s)->type->name, s); }

PyObject* next_functions(PyObject* s, void*) {
  Node* n = cast(s);
  PyObject* t = PyTuple_New(n->edges.size());
  for (int64_t i = 0; t && i < n->edges.size(); ++i) {
    PyObject* next = n->edges[i].node ? reinterpret_cast<PyObject*>(n->edges[i].node) : Py_None;
    PyTuple_SET_ITEM(t, i, Py_BuildValue("(OI)", next, n->edges[i].nr));
  }
  return t;
}
PyObject* metadata(PyObject* s, void*) {
  Node* n = cast(s);
  if (!n->dict) n->dict = PyDict_New();
  PyObject* m = PyDict_GetItemString(n->dict, "_metadata");
  if (m) return Py_NewRef(m);
  m = PyDict_New();
  PyDict_SetItemString(n->dict, "_metadata", m);
  return m;
}
PyObject* sequence_nr(PyObject* s, PyObject*) { return PyLong_FromUnsignedLongLong(cast(s)->sequence); }
PyObject* set_sequence_nr(PyObject* s, PyObject* number) {
  uint64_t value = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) return nullptr;
  cast(s)->sequence = value;
  Py_RETURN_NONE;
}

PyTypeObject* metadata_type() {
  static PyStructSequence_Field fields[] = {
      {"shape", nullptr}, {"dtype", nullptr}, {"device", nullptr}, {nullptr, nullptr}};
  static PyStructSequence_Desc desc = {"rushlight.autograd.InputMetadata", "What a gradient must be like.", fields, 3};
  static PyTypeObject* type = PyStructSequence_NewType(&desc);
  return type;
}
PyObject* input_metadata(PyObject* s, void*) {
  Node* n = cast(s);
  PyObject* t = PyTuple_New(n->results.size());
  for (int64_t i = 0; t && i < n->results.size(); ++i) {
    const ResultMeta& r = n->results[i];
    PyObject* one = PyStructSequence_New(metadata_type());
    if (!one) return Py_DECREF(t), nullptr;
    PyStructSequence_SET_ITEM(one, 0, size_object(IntSpan(r.sizes)));
    PyStructSequence_SET_ITEM(one, 1, Py_NewRef(dtype_object(r.dtype)));
    PyStructSequence_SET_ITEM(one, 2, to_python(r.device));
    PyTuple_SET_ITEM(t, i, one);
  }
  return t;
}
PyObject* site(PyObject* s, void*) { return site_object(cast(s)->site); }
// (outer scope or None, weak reference to the module, its class) of the module call that recorded it, or None.
PyObject* scope(PyObject* s, void*) { return Py_NewRef(cast(s)->scope ? cast(s)->scope : Py_None); }
PyObject* variable(PyObject* s, void*) {
  if (cast(s)->type != &NodeTypeOf<AccumulateGrad>::type) {
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", cast(s)->type->name);
    return nullptr;
  }
  return Py_NewRef(static_cast<AccumulateGrad*>(cast(s))->variable.object());
}

struct Find final : FieldVisitor {
  const char* wanted;
  Node& node;
  bool found = false;
  PyObject* result = nullptr;
  Find(const char* w, Node& n) : wanted(w), node(n) {}
  bool match(const char* name) { return !found && std::strcmp(name, wanted) == 0 && (found = true); }
  static PyObject* object(const Saved& s, Node& node) {
    NoGrad with_history(true);
    Tensor t = s.unpack(node);
    return t.defined() ? t.release() : Py_NewRef(Py_None);
  }
  void saved(const char* name, Saved& s) override {
    if (match(name)) result = object(s, node);
  }
  void saved_list(const char* name, SmallVector<Saved, 2>& list) override {
    if (!match(name)) return;
    result = PyTuple_New(list.size());
    try {
      for (int64_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(result, i, object(list[i], node));
    } catch (...) {
      Py_CLEAR(result);
      throw;
    }
  }
  void other(const char* name, PyObject* (*get)(const void*), const void* field) override {
    if (match(name)) result = get(field);
  }
};
struct Names final : FieldVisitor {
  PyObject* list;
  void add(const char* name) {
    PyObject* s = PyUnicode_FromFormat("_saved_%s", name);
    PyList_Append(list, s);
    Py_XDECREF(s);
  }
  void saved(const char* name, Saved&) override { add(name); }
  void saved_list(const char* name, SmallVector<Saved, 2>&) override { add(name); }
  void other(const char* name, PyObject* (*)(const void*), const void*) override { add(name); }
};

PyObject* node_getattr(PyObject* s, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(s, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const char* text = PyUnicode_AsUTF8(name);
  const bool raw = text && std::strncmp(text, "_raw_saved_", 11) == 0;
  if (!text || (!raw && std::strncmp(text, "_saved_", 7) != 0)) return nullptr;
  PyErr_Clear();
  if (raw)
    return guarded([&]() -> PyObject* {
      PyObject* object = raw_saved(*cast(s), text + 11);
      if (!object) object = raw_saved(*cast(s), text + 5);  // _raw_saved_tensors of a Function
      CHECK(object, Attribute, "'", cast(s)->type->name, "' object has no attribute '", text, "'");
      return object;
    });
  return guarded([&]() -> PyObject* {
    // A trailing underscore keeps a field's name apart from a C++ member or keyword.
    Find find(text + 7, *cast(s));
    cast(s)->type->fields(*cast(s), find);
    CHECK(find.found, Attribute, "'", cast(s)->type->name, "' object has no attribute '", text, "'");
    if (!find.result) python_error();
    return find.result;
  });
}
// dir(node): what every object has, and the fields, which those who draw graphs look for.
PyObject* node_dir(PyObject* s, PyObject*) {
  PyObject* method = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__");
  Names names;
  names.list = method ? PyObject_CallOneArg(method, s) : nullptr;
  Py_XDECREF(method);
  if (names.list) cast(s)->type->fields(*cast(s), names);
  return names.list;
}

PyObject* hook_dict(PyObject* s, bool pre) {
  NodeHooks& h = hooks_of(*cast(s));
  PyObject*& d = pre ? h.pre : h.post;
  if (!d) d = PyODict_New();  // a kind of dict that handles can refer to weakly
  return Py_XNewRef(d);
}
PyObject* post_hooks(PyObject* s, PyObject*) { return hook_dict(s, false); }
PyObject* pre_hooks(PyObject* s, PyObject*) { return hook_dict(s, true); }

// node(*grads): its backward alone.
PyObject* node_call(PyObject* s, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    Grads dy;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      CHECK(o == Py_None || is_tensor(o), Type, "expected Tensors or None");
      dy.push_back(o == Py_None ? Tensor() : Tensor::borrow(o));
    }
    const int64_t wanted = std::max<int64_t>(cast(s)->results.size(), 1);
    CHECK(dy.size() == wanted, Type, "expected ", wanted, " arguments, got ", dy.size(), " instead");
    Grads dx = cast(s)->type->backward(*cast(s), dy);
    if (dx.size() == 1) return to_python(std::move(dx[0]));
    PyObject* t = PyTuple_New(dx.size());
    for (int64_t i = 0; i < dx.size(); ++i) PyTuple_SET_ITEM(t, i, to_python(std::move(dx[i])));
    return t;
  });
}

PyGetSetDef kGetSet[] = {{"next_functions", next_functions, nullptr, nullptr, nullptr},
                         {"metadata", metadata, nullptr, nullptr, nullptr},
                         {"_input_metadata", input_metadata, nullptr, nullptr, nullptr},
                         {"_site", site, nullptr, nullptr, nullptr},
                         {"_scope", scope, nullptr, nullptr, nullptr},
                         {"variable", variable, nullptr, nullptr, nullptr},
                         {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef kMethods[] = {{"name", node_name, METH_NOARGS, nullptr},
                          {"_sequence_nr", sequence_nr, METH_NOARGS, nullptr},
                          {"_set_sequence_nr", set_sequence_nr, METH_O, nullptr},
                          {"__dir__", node_dir, METH_NOARGS, nullptr},
                          {"_post_hooks", post_hooks, METH_NOARGS, nullptr},
                          {"_pre_hooks", pre_hooks, METH_NOARGS, nullptr},
                          {nullptr, nullptr, 0, nullptr}};
PyMemberDef kMembers[] = {{"__dictoffset__", T_PYSSIZET, offsetof(Node, dict), READONLY, nullptr},
                          {"__weaklistoffset__", T_PYSSIZET, offsetof(Node, weakrefs), READONLY, nullptr},
                          {nullptr, 0, 0, 0, nullptr}};

}  // namespace

PyObject* site_object(const Site& site) {
  if (!site) Py_RETURN_NONE;
  struct Entry {
    Site site;  // owned, so that the address of the code stays its own
    int line = 0;
    PyObject* tuple = nullptr;
  };
  static Entry* cache = new Entry[64];  // reading the text of a line is slow, and graphs repeat few lines
  int line = site.line();
  Entry& e = cache[((reinterpret_cast<uintptr_t>(site.code()) >> 4) ^ static_cast<uintptr_t>(line) * 7) & 63];
  if (!e.tuple || e.site.code() != site.code() || e.line != line) {
    PyObject* made = Py_BuildValue("(siss)", site.file().c_str(), line, site.function().c_str(), site.source().c_str());
    if (!made) return nullptr;
    Py_XSETREF(e.tuple, made);
    e.site = site;
    e.line = line;
  }
  return Py_NewRef(e.tuple);
}

int install_node_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("One recorded call in the graph: what grad_fn is.")},
                         {Py_tp_dealloc, reinterpret_cast<void*>(kNodeDealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(kNodeTraverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(kNodeClear)},
                         {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                         {Py_tp_getattro, reinterpret_cast<void*>(node_getattr)},
                         {Py_tp_call, reinterpret_cast<void*>(node_call)},
                         {Py_tp_getset, kGetSet},
                         {Py_tp_methods, kMethods},
                         {Py_tp_members, kMembers},
                         {0, nullptr}};
  PyType_Spec spec = {"rushlight.autograd.graph.Node", sizeof(Node), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  g_node_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return g_node_type ? PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(g_node_type)) : -1;
}

}  // namespace rl
