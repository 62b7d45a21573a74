// __torch_function__: classes and modes that take over calls.
#pragma once
#include <Python.h>

namespace rl {

extern PyObject* g_disabled_torch_function;  // the marker that Parameter carries
// Off while a class handles a call, so that the call it makes in turn is the plain one.
extern thread_local bool t_overrides;
// How many TorchFunctionModes are active in this thread. See set_mode_handler.
extern thread_local int t_modes;

// Whether an argument (a tensor, or a list of them) belongs to a class that overrides ops.
bool overrides(PyObject* o);
// Gives the call to the innermost mode, or to the classes of the arguments, subclasses first. New reference.
PyObject* call_override(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
// The same for slots of Tensor that are no ops (x[i]). Null if nobody overrides it: the caller goes on.
PyObject* slot_override(const char* name, PyObject* const* args, Py_ssize_t nargs);

// f(callable, types, args, kwargs) stands for the stack of modes of the thread that calls it.
void set_mode_handler(PyObject* handler, int modes);

}  // namespace rl
