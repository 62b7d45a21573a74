#include "python/override.h"

#include <vector>

#include "autograd/profile.h"
#include "tensor/tensor.h"

namespace rl {

PyObject* g_disabled_torch_function = nullptr;
thread_local Overriding t_overriding = Overriding::On;

namespace {

thread_local std::vector<PyObject*>* t_modes = nullptr;  // owned references
int g_mode_threads = 0;  // threads with a mode: calls look for one only while there are any

std::vector<PyObject*>& modes() {
  if (!t_modes) t_modes = new std::vector<PyObject*>;
  return *t_modes;
}
void update_watch(size_t before, size_t after) {
  g_mode_threads += (after > 0) - (before > 0);
  g_watched = g_mode_threads ? g_watched | kWatchModes : g_watched & ~static_cast<uint32_t>(kWatchModes);
}

// The innermost mode is off while it handles a call.
struct Stashed {
  PyObject* mode = pop_function_mode();
  ~Stashed() {
    push_function_mode(mode);
    Py_DECREF(mode);
  }
};

PyObject* override_name() {
  static PyObject* name = PyUnicode_InternFromString("__torch_function__");
  return name;
}

PyObject* ops_only() {
  static PyObject* name = PyUnicode_InternFromString("_ops_only");
  return name;
}

// PyTorch's own tensors: its protocol does not know our functions, and would call them again for ever.
bool of_pytorch(PyTypeObject* t) {
  static PyObject* mark = PyUnicode_InternFromString("_make_wrapper_subclass");
  return !PyType_IsSubtype(t, g_tensor_type) && _PyType_Lookup(t, mark);
}

// All returned NotImplemented.
[[gnu::cold]] void nobody(PyObject* callable, PyObject* mode, PyObject* types) {
  PyObject* module = PyImport_ImportModule("rushlight.overrides");
  PyObject* done =
      module ? PyObject_CallMethod(module, "_nobody_handles", "OOO", callable, mode ? mode : Py_None, types) : nullptr;
  Py_XDECREF(done);
  Py_XDECREF(module);
}

}  // namespace

bool overrides(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  if (t == g_tensor_type || t == &PyLong_Type || t == &PyFloat_Type || t == &PyBool_Type || o == Py_None ||
      t == &PyUnicode_Type)
    return false;
  if (t == &PyTuple_Type || t == &PyList_Type) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      if (Py_TYPE(item) == &PyLong_Type) return false;
      if (!PyTuple_Check(item) && !PyList_Check(item) && overrides(item)) return true;
    }
    return false;
  }
  PyObject* f = _PyType_Lookup(t, override_name());
  return f && f != g_disabled_torch_function && !of_pytorch(t);
}

PyObject* call_override(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  PyObject* types = PyList_New(0);
  std::vector<PyObject*> found;
  auto look = [&](PyObject* o) {
    if (t_overriding != Overriding::On || !overrides(o)) return;
    for (PyObject* f : found)
      if (Py_TYPE(f) == Py_TYPE(o)) return;
    // Subclasses before their bases.
    size_t at = 0;
    while (at < found.size() && !PyType_IsSubtype(Py_TYPE(o), Py_TYPE(found[at]))) ++at;
    found.insert(found.begin() + static_cast<long>(at), o);
  };
  for (Py_ssize_t i = 0; i < nargs + nkw; ++i) {
    if (PyTuple_Check(args[i]) || PyList_Check(args[i])) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[i]); ++k) {
        PyObject* item = PySequence_Fast_GET_ITEM(args[i], k);
        if (!PyTuple_Check(item) && !PyList_Check(item)) look(item);
      }
    } else {
      look(args[i]);
    }
  }
  for (PyObject* f : found) PyList_Append(types, reinterpret_cast<PyObject*>(Py_TYPE(f)));
  PyObject* type_tuple = PyList_AsTuple(types);
  Py_DECREF(types);
  PyObject* pos = PyTuple_New(nargs);
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(pos, i, Py_NewRef(args[i]));
  PyObject* kw = PyDict_New();
  for (Py_ssize_t k = 0; k < nkw; ++k) PyDict_SetItem(kw, PyTuple_GET_ITEM(kwnames, k), args[nargs + k]);
  PyObject *result = nullptr, *mode = Py_XNewRef(function_mode());
  auto method_of = [&](PyObject* o) {
    PyObject* method = PyObject_GetAttr(o, override_name());
    if (method && o == mode && PyMethod_Check(method) && PyMethod_GET_SELF(method) != o) {
      PyErr_SetString(PyExc_RuntimeError,
                      "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a "
                      "plain method");
      Py_CLEAR(method);
    }
    if (method && o != mode && PyMethod_Check(method) && PyMethod_GET_SELF(method) == o &&
        PyErr_WarnEx(PyFunction_Check(callable) ? PyExc_DeprecationWarning : PyExc_UserWarning,
                     "Defining your `__torch_function__` as a plain method is deprecated and will be an error in "
                     "future, please define it as a classmethod.",
                     1) < 0)
      Py_CLEAR(method);
    return method;
  };
  auto handled = [&](PyObject* o) {
    PyObject* method = method_of(o);
    result = method ? PyObject_CallFunctionObjArgs(method, callable, type_tuple, pos, kw, nullptr) : nullptr;
    Py_XDECREF(method);
    if (!result || result != Py_NotImplemented) return true;
    Py_CLEAR(result);
    return false;
  };
  bool done = false;
  if (mode) {
    Stashed off;
    done = handled(mode);
  }
  for (size_t i = 0; i < found.size() && !done; ++i) done = handled(found[i]);
  if (!done) nobody(callable, mode, type_tuple);
  Py_XDECREF(mode);
  Py_DECREF(type_tuple);
  Py_DECREF(pos);
  Py_DECREF(kw);
  return result;
}

PyObject* slot_override(const char* name, PyObject* const* args, Py_ssize_t nargs) {
  bool taken = function_mode();
  for (Py_ssize_t i = 0; i < nargs && !taken && t_overriding == Overriding::On; ++i) {
    if (PyTuple_Check(args[i]))  // an index: integers may stand before a tensor
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[i]); ++k)
        taken = taken || overrides(PyTuple_GET_ITEM(args[i], k));
    else taken = overrides(args[i]);
  }
  if (!taken) return nullptr;
  PyObject* result = method_override(name, args, nargs, nullptr);
  if (!result) throw Error(ErrorKind::Runtime, "");  // the Python error is set
  return result;
}

// See Note [What is asked].
bool asks(PyObject* o, bool tensor_result) {
  PyObject* mode = function_mode();
  if (mode && !_PyType_Lookup(Py_TYPE(mode), ops_only())) return true;
  if (t_overriding != Overriding::On) return false;
  PyTypeObject* type = Py_TYPE(o);
  if (type == g_tensor_type) return false;
  PyObject* f = _PyType_Lookup(type, override_name());
  if (!f || f == g_disabled_torch_function || of_pytorch(type)) return false;
  if (!tensor_result && f == _PyType_Lookup(g_tensor_type, override_name())) return false;
  return !_PyType_Lookup(type, ops_only());
}

PyObject* method_override(const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* function = PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name);
  PyObject* result = function ? call_override(function, args, nargs, kwnames) : nullptr;
  Py_XDECREF(function);
  return result;
}

PyObject* attribute_override(const char* name, const char* how, PyObject* self, PyObject* value) {
  PyObject* attribute = PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name);
  PyObject* function = attribute ? PyObject_GetAttrString(attribute, how) : nullptr;
  PyObject* args[] = {self, value};
  PyObject* result = function ? call_override(function, args, value ? 2 : 1, nullptr) : nullptr;
  Py_XDECREF(function);
  Py_XDECREF(attribute);
  return result;
}

PyObject* function_mode() {
  return t_overriding != Overriding::Off && t_modes && !t_modes->empty() ? t_modes->back() : nullptr;
}
const std::vector<PyObject*>& mode_stack() { return modes(); }
void push_function_mode(PyObject* mode) { insert_function_mode(static_cast<int64_t>(modes().size()), mode); }
void insert_function_mode(int64_t index, PyObject* mode) {
  std::vector<PyObject*>& all = modes();
  all.insert(all.begin() + std::min(index, static_cast<int64_t>(all.size())), Py_NewRef(mode));
  update_watch(all.size() - 1, all.size());
}

// No op: its argument, a mode, would be asked for it.
int install_overrides(PyObject* module) {
  static PyMethodDef functions[] = {{"_push_function_mode",
                                     [](PyObject*, PyObject* mode) -> PyObject* {
                                       push_function_mode(mode);
                                       return Py_NewRef(Py_None);
                                     },
                                     METH_O, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
  return PyModule_AddFunctions(module, functions);
}
PyObject* pop_function_mode() {
  PyObject* mode = modes().back();
  modes().pop_back();
  update_watch(modes().size() + 1, modes().size());
  return mode;
}

}  // namespace rl
