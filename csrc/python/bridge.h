// Memory shared with NumPy and others.
#pragma once
#include <Python.h>

#include "schema/arguments.h"
#include "schema/python_side.h"

namespace rl {

bool is_array_like(PyObject* o);  // offers the buffer protocol with numeric elements, or __array_interface__
Tensor tensor_from_array(PyObject* o, bool copy);  // shares memory unless `copy`
PyObject* array_from_tensor(const Tensor& t);      // a NumPy array on the same memory
PyObject* to_list(const Tensor& t);

}  // namespace rl
