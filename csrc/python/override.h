// __torch_function__: classes and modes that take over calls.
#pragma once
#include <Python.h>

namespace rl {

extern PyObject* g_disabled_torch_function;  // the marker that Parameter carries
// Off while a class handles a call, so that the call it makes in turn is the plain one.
extern thread_local bool t_overrides;
// What TorchFunctionMode put in the way of all calls in this thread: f(callable, types, args, kwargs). Borrowed, or
// null.
PyObject* function_mode();
void set_function_mode(PyObject* mode);

// Whether an argument (a tensor, or a list of them) belongs to a class that overrides ops.
bool overrides(PyObject* o);
// Gives the call to the mode, or to the classes of the arguments, subclasses first. New reference.
PyObject* call_override(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
// The same for slots of Tensor that are no ops (x[i]). Null if nobody overrides it: the caller goes on.
PyObject* slot_override(const char* name, PyObject* const* args, Py_ssize_t nargs);

}  // namespace rl
