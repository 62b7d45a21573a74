// The trees of arguments and results of a compiled call.
#pragma once
#include <Python.h>

#include <string>
#include <vector>

#include "compiler/facts.h"

namespace rl {

// What an argument or a result is: a tensor by its number, a list of such, or an object.
struct CallShape {
  enum Kind : uint8_t { kTensor, kObject, kTuple, kList, kDict } kind;
  int tensor = -1;
  compiler::Ref object;  // kObject: itself; kDict: its keys
  std::vector<CallShape> parts;

  // Told as an int, ("object", o), ("tuple", [...]), ("list", [...]) or ("dict", keys, [...]).
  static CallShape told(PyObject* o) {
    CallShape s{};
    if (PyLong_CheckExact(o)) {
      s.kind = kTensor;
      s.tensor = static_cast<int>(PyLong_AsLong(o));
      return s;
    }
    const std::string kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(o, 0));
    PyObject* parts = PyTuple_GET_ITEM(o, PyTuple_GET_SIZE(o) - 1);
    s.kind = kind == "object" ? kObject : kind == "tuple" ? kTuple : kind == "list" ? kList : kDict;
    if (s.kind == kObject || s.kind == kDict) s.object = compiler::Ref(PyTuple_GET_ITEM(o, 1));
    if (s.kind != kObject)
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts); ++i) s.parts.push_back(told(PyList_GET_ITEM(parts, i)));
    return s;
  }

  // Whether an argument is so; its tensors go to their indices.
  bool fits(PyObject* o, const std::vector<compiler::TensorFact>& facts, std::vector<Tensor>& given) const {
    switch (kind) {
      case kTensor:
        if (Py_TYPE(o) != facts[tensor].type || !facts[tensor].holds(reinterpret_cast<TensorObject*>(o))) return false;
        given[tensor] = Tensor::borrow(o);
        return true;
      case kObject: return compiler::same_value(o, object.get());
      case kTuple:
      case kList: {
        if (!(kind == kTuple ? PyTuple_CheckExact(o) : PyList_CheckExact(o))) return false;
        if (PySequence_Fast_GET_SIZE(o) != static_cast<Py_ssize_t>(parts.size())) return false;
        for (size_t i = 0; i < parts.size(); ++i)
          if (!parts[i].fits(PySequence_Fast_GET_ITEM(o, static_cast<Py_ssize_t>(i)), facts, given)) return false;
        return true;
      }
      case kDict: {
        if (!PyDict_CheckExact(o) || PyDict_GET_SIZE(o) != static_cast<Py_ssize_t>(parts.size())) return false;
        Py_ssize_t at = 0;
        PyObject *key, *value;
        for (size_t i = 0; PyDict_Next(o, &at, &key, &value); ++i)
          if (!compiler::same_value(key, PyTuple_GET_ITEM(object.get(), static_cast<Py_ssize_t>(i))) ||
              !parts[i].fits(value, facts, given))
            return false;
        return true;
      }
    }
    return false;
  }

  // A result made so; a new reference.
  PyObject* make(const std::vector<Tensor>& results) const {
    if (kind == kTensor) return Py_NewRef(results[static_cast<size_t>(tensor)].object());
    if (kind == kObject) return Py_NewRef(object.get());
    const auto n = static_cast<Py_ssize_t>(parts.size());
    PyObject* made = kind == kTuple ? PyTuple_New(n) : kind == kList ? PyList_New(n) : PyDict_New();
    for (Py_ssize_t i = 0; made && i < n; ++i) {
      PyObject* part = parts[static_cast<size_t>(i)].make(results);
      if (kind == kTuple) PyTuple_SET_ITEM(made, i, part);
      else if (kind == kList) PyList_SET_ITEM(made, i, part);
      else {
        PyDict_SetItem(made, PyTuple_GET_ITEM(object.get(), i), part);
        Py_DECREF(part);
      }
    }
    return made;
  }
};

}  // namespace rl
