// __torch_dispatch__: classes and modes that take over ops below autograd. Which primitive a call is, how it is
// recorded and whom it goes to is decided in Python (rushlight/_dispatch); here is the test whether to ask.
#pragma once
#include <Python.h>

#include "autograd/profile.h"
#include "python/errors.h"
#include "python/override.h"
#include "tensor/tensor.h"

namespace rl {

// Whether tensors of this class have a __torch_dispatch__ of their own.
bool dispatches(PyTypeObject* type);
// Called when an object of a subclass is made: from the first one that dispatches on, calls look for them.
void note_class(PyTypeObject* type);
// The op given to whoever takes over. Null: nobody does, the caller goes on. Throws if the Python error is set.
PyObject* dispatch_call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
// Whether a mode of this thread, or the class of an argument, would take over a call.
bool anybody_dispatches(PyObject* const* args, Py_ssize_t count);
extern PyObject* g_disabled_torch_dispatch;  // what Tensor has
// The same for what is no op, by the name of the method of Tensor.
PyObject* dispatch_method(const char* name, PyObject* const* args, Py_ssize_t nargs);
// A method or a slot that reads values.
template <auto Method, Name name> PyObject* dispatched_call(PyObject* s, PyObject* unused) {
  return guarded([&]() -> PyObject* {
    PyObject* result = dispatching() ? dispatch_method(name.text, &s, 1) : nullptr;
    return result ? result : Method(s, unused);
  });
}
template <unaryfunc Slot, Name name> PyObject* dispatched_slot(PyObject* s) {
  return guarded([&]() -> PyObject* {
    PyObject* result = dispatching() ? dispatch_method(name.text, &s, 1) : nullptr;
    return result ? result : Slot(s);
  });
}
// The ops that the engine calls itself look for such classes, too.
void dispatch_engine_ops();

}  // namespace rl
