// Results with names: torch.return_types.max(values, indices).
#include <Python.h>
#include <structmember.h>

#include <unordered_map>

#include "schema/op_def.h"

namespace rl::detail {

// One field a line, as tensors take several.
static PyObject* named_tuple_repr(PyObject* self) {
  std::string text = std::string(Py_TYPE(self)->tp_name) + "(";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    PyObject* value = PyObject_Repr(PyTuple_GET_ITEM(self, i));
    const char* shown = value ? PyUnicode_AsUTF8(value) : nullptr;
    if (!shown) {
      Py_XDECREF(value);
      return nullptr;
    }
    text += std::string(i ? ",\n" : "\n") + Py_TYPE(self)->tp_members[i].name + "=" + shown;
    Py_DECREF(value);
  }
  return PyUnicode_FromString((text + ")").c_str());
}

// The class of "max:values, indices". Descriptors must outlive a class, and these live as long as the process.
static PyTypeObject* make_class(const std::string& names, int count) {
  size_t colon = names.find(':');
  std::string op = names.substr(0, colon);
  bool linalg = op.starts_with("linalg.");
  auto* full =
      new std::string((linalg ? "torch.return_types.linalg_" : "torch.return_types.") + op.substr(op.rfind('.') + 1));
  auto* fields = new std::vector<PyStructSequence_Field>;
  std::string rest = names.substr(colon + 1) + ",";
  for (size_t at = 0, comma; (comma = rest.find(',', at)) != std::string::npos; at = comma + 1)
    fields->push_back({(new std::string(strip(rest.substr(at, comma - at))))->c_str(), nullptr});
  fields->push_back({nullptr, nullptr});
  PyStructSequence_Desc desc = {full->c_str(), nullptr, fields->data(), count};
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (!type) python_error();
  type->tp_repr = named_tuple_repr;
  // So that it can be pickled: no module has these classes under their names.
  Owned module(PyImport_ImportModule("rushlight.return_types"));
  Owned done(PyObject_CallMethod(module.p, "_register", "O", type));
  return type;
}

PyObject* named_tuple(const char* names, PyObject** items, int count) {
  for (int i = 0; i < count; ++i)
    if (!items[i]) {
      for (int k = 0; k < count; ++k) Py_XDECREF(items[k]);
      python_error();
    }
  if (!names) {
    PyObject* t = PyTuple_New(count);
    for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(t, i, items[i]);
    return t;
  }
  static auto* made = new std::unordered_map<std::string, PyTypeObject*>;
  PyTypeObject*& type = (*made)[names];
  if (!type) type = make_class(names, count);
  PyObject* t = PyStructSequence_New(type);
  for (int i = 0; i < count; ++i) PyStructSequence_SetItem(t, i, items[i]);
  return t;
}

}  // namespace rl::detail
