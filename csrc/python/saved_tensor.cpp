// grad_fn._raw_saved_<name>: what a node keeps for backward, before it is unpacked; hooks can be put on it one by one.
#include "python/saved_tensor.h"

#include <cstring>
#include <string>

#include "autograd/hooks.h"
#include "python/errors.h"
#include "schema/registry.h"

namespace rl {
namespace {

PyTypeObject* g_type = nullptr;

struct SavedTensorObject {
  PyObject_HEAD PyObject* node;
  std::string* field;
  int64_t index;  // in a list; -1: no list
};
SavedTensorObject& of(PyObject* o) { return *reinterpret_cast<SavedTensorObject*>(o); }

PyObject* new_object(Node& node, const char* field, int64_t index) {
  PyObject* made = g_type->tp_alloc(g_type, 0);
  if (!made) python_error();
  of(made).node = Py_NewRef(reinterpret_cast<PyObject*>(&node));
  of(made).field = new std::string(field);
  of(made).index = index;
  return made;
}

// Calls `use` with the Saved of a name, or with each of a list.
template <class Use, class UseList> struct Visit final : FieldVisitor {
  const char* wanted;
  Use use;
  UseList use_list;
  bool found = false;
  Visit(const char* w, Use u, UseList l) : wanted(w), use(u), use_list(l) {}
  bool match(const char* name) { return !found && std::strcmp(name, wanted) == 0 && (found = true); }
  void saved(const char* name, Saved& s) override {
    if (match(name)) use(s);
  }
  void saved_list(const char* name, SmallVector<Saved, 2>& list) override {
    if (match(name)) use_list(list);
  }
  void other(const char*, PyObject* (*)(const void*), const void*) override {}
};

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(of(self).node);
  delete of(self).field;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "Trying to create a SavedTensor object from Python is forbidden");
  return nullptr;
}

PyObject* register_hooks(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    CHECK(PyTuple_GET_SIZE(args) == 2 && PyCallable_Check(PyTuple_GET_ITEM(args, 0)) &&
              PyCallable_Check(PyTuple_GET_ITEM(args, 1)),
          Type,
          "register_hooks(): incompatible function arguments. It takes two functions, register_hooks(pack_hook, "
          "unpack_hook)");
    Node& node = *reinterpret_cast<Node*>(of(self).node);
    auto put = [&](Saved& s) {
      CHECK(
          !s.packed_, Runtime,
          "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
          "allowed at a time.");
      CHECK(s.defined() || (!node.released && !s.ever()), Runtime,
            "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
            "are "
            "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
            "through the graph a second time or if you need to access saved variables after calling backward.");
      CHECK(s.defined(), Runtime, "Calling register_hooks on a saved tensor with value None is forbidden");
      pack_saved(s, PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1));
    };
    const int64_t index = of(self).index;
    Visit visit(of(self).field->c_str(), put, [&](SmallVector<Saved, 2>& list) { put(list[index]); });
    node.type->fields(node, visit);
    return Py_NewRef(Py_None);
  });
}

PyMethodDef kMethods[] = {{"register_hooks", register_hooks, METH_VARARGS,
                           "Packs the tensor with one function, and unpacks it in backward with another."},
                          {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* raw_saved(Node& node, const char* field) {
  PyObject* result = nullptr;
  Visit visit(
      field, [&](Saved&) { result = new_object(node, field, -1); },
      [&](SmallVector<Saved, 2>& list) {
        if (node.released) fail(ErrorKind::Runtime, freed_message(node));
        result = PyTuple_New(list.size());
        for (int64_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(result, i, new_object(node, field, i));
      });
  node.type->fields(node, visit);
  return result;
}

int install_saved_tensor(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A tensor that a node keeps for backward.")},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_new, reinterpret_cast<void*>(refuse_new)},
                         {Py_tp_methods, kMethods},
                         {0, nullptr}};
  PyType_Spec spec = {"rushlight.autograd.SavedTensor", sizeof(SavedTensorObject), 0, Py_TPFLAGS_DEFAULT, slots};
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return g_type ? PyModule_AddObjectRef(module, "SavedTensor", reinterpret_cast<PyObject*>(g_type)) : -1;
}

}  // namespace rl
