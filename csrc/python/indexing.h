// x[...] and x[...] = value.
#pragma once
#include <Python.h>

namespace rl {

PyObject* tensor_getitem(PyObject* self, PyObject* index);
int tensor_setitem(PyObject* self, PyObject* index, PyObject* value);

}  // namespace rl
