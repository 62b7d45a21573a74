#include "python/override.h"

#include <vector>

#include "autograd/profile.h"
#include "tensor/tensor.h"

namespace rl {

PyObject* g_disabled_torch_function = nullptr;
thread_local bool t_overrides = true;

namespace {

thread_local PyObject* t_mode = nullptr;
int g_mode_threads = 0;  // threads with a mode: calls look for one only while there are any

PyObject* override_name() {
  static PyObject* name = PyUnicode_InternFromString("__torch_function__");
  return name;
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
  return f && f != g_disabled_torch_function;
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
  PyObject* function = PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name);
  PyObject* result = function ? call_override(function, args, nargs, nullptr) : nullptr;
  Py_XDECREF(function);
  if (!result) throw Error(ErrorKind::Runtime, "");  // the Python error is set
  return result;
}

PyObject* function_mode() { return t_mode; }
void set_function_mode(PyObject* mode) {
  g_mode_threads += (mode != nullptr) - (t_mode != nullptr);
  Py_XSETREF(t_mode, Py_XNewRef(mode));
  g_watched = g_mode_threads ? g_watched | kWatchModes : g_watched & ~static_cast<uint32_t>(kWatchModes);
}

}  // namespace rl
