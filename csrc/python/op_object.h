// The callable that stands for an op in Python, and the table of all of them.
#pragma once
#include <Python.h>

namespace rl {

// Adds every registered op to `ops` (a dict name -> function) and its methods to the Tensor class.
void install_ops(PyObject* module, PyObject* ops);
// For subclasses of Tensor and others that override ops: calls type.__torch_function__ unless switched off.
bool torch_function_enabled();
void set_torch_function_enabled(bool on);
PyObject* function_mode();  // borrowed; null: none
void set_function_mode(PyObject* mode);
extern PyObject* g_disabled_torch_function;  // the marker that Parameter carries

// Writes the result of f(..., out=out) and returns what the call returns: out, or a tuple of them. New reference.
PyObject* write_result(const char* name, PyObject* out, PyObject* result);

// Calls an op by its C++ registration, as Python would (slots and composed code).
PyObject* call_op(const char* name, PyObject* const* args, Py_ssize_t count);

}  // namespace rl
