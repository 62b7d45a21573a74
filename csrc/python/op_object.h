// The callable that stands for an op in Python, and the table of all of them.
#pragma once
#include <Python.h>

#include "schema/python_side.h"

namespace rl {

// Adds every registered op to `ops` (a dict name -> function) and its methods to the Tensor class.
void install_ops(PyObject* module, PyObject* ops);
// The function in `ops` by that name. Borrowed.
PyObject* op_function(const char* name);
// Calls an op by its C++ registration, as Python would (slots and composed code).
PyObject* call_op(const char* name, PyObject* const* args, Py_ssize_t count);

}  // namespace rl
