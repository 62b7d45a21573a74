#include "python/override.h"

#include <vector>

#include "autograd/profile.h"
#include "tensor/tensor.h"

namespace rl {

PyObject* g_disabled_torch_function = nullptr;
thread_local bool t_overrides = true;

namespace {

thread_local PyObject* t_mode = nullptr;
thread_local bool t_mode_ops_only = false;
int g_mode_threads = 0;  // threads with a mode: calls look for one only while there are any

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
    if (!overrides(o)) return;
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
  PyObject* result = nullptr;
  if (PyObject* mode = t_overrides ? Py_XNewRef(t_mode) : nullptr) {
    result = PyObject_CallFunctionObjArgs(mode, callable, type_tuple, pos, kw, nullptr);
    Py_DECREF(mode);
    found.clear();
  }
  for (PyObject* f : found) {
    PyObject* method = PyObject_GetAttr(f, override_name());
    result = method ? PyObject_CallFunctionObjArgs(method, callable, type_tuple, pos, kw, nullptr) : nullptr;
    Py_XDECREF(method);
    if (!result || result != Py_NotImplemented) break;
    Py_CLEAR(result);
  }
  Py_DECREF(type_tuple);
  Py_DECREF(pos);
  Py_DECREF(kw);
  if (!result && !PyErr_Occurred()) {
    PyObject* name = PyObject_GetAttrString(callable, "__name__");
    if (!name) return nullptr;
    PyErr_Format(PyExc_TypeError, "no implementation found for '%U' on types that implement __torch_function__", name);
    Py_DECREF(name);
  }
  return result;
}

PyObject* slot_override(const char* name, PyObject* const* args, Py_ssize_t nargs) {
  bool taken = t_overrides && t_mode;
  for (Py_ssize_t i = 0; i < nargs && !taken && t_overrides; ++i) {
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
  if (!t_overrides) return false;
  if (t_mode && !t_mode_ops_only) return true;
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

PyObject* function_mode() { return t_mode; }
void set_function_mode(PyObject* mode) {
  PyObject* owner = mode ? PyMethod_Check(mode) ? PyMethod_GET_SELF(mode) : mode : nullptr;
  t_mode_ops_only = owner && _PyType_Lookup(Py_TYPE(owner), ops_only());
  g_mode_threads += (mode != nullptr) - (t_mode != nullptr);
  Py_XSETREF(t_mode, Py_XNewRef(mode));
  g_watched = g_mode_threads ? g_watched | kWatchModes : g_watched & ~static_cast<uint32_t>(kWatchModes);
}

}  // namespace rl
