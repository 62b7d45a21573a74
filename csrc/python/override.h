// __torch_function__: classes and modes that take over calls.
#pragma once
#include <Python.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "autograd/profile.h"
#include "tensor/tensor.h"

namespace rl {

extern PyObject* g_disabled_torch_function;  // the marker that Parameter carries
// Who may take over in this thread: classes and modes, modes only, nobody. Less than all while a class handles a call,
// so that the call it makes in turn is the plain one.
enum class Overriding : uint8_t { On, ModesOnly, Off };
extern thread_local Overriding t_overriding;
// The innermost TorchFunctionMode of this thread, if modes may take over. Borrowed, or null.
PyObject* function_mode();
const std::vector<PyObject*>& mode_stack();
void push_function_mode(PyObject* mode);
void insert_function_mode(int64_t index, PyObject* mode);  // 0: outermost
int install_overrides(PyObject* module);
PyObject* pop_function_mode();  // a new reference

// Whether an argument (a tensor, or a list of them) belongs to a class that overrides ops.
bool overrides(PyObject* o);
// Gives the call to the mode, or to the classes of the arguments, subclasses first. New reference.
PyObject* call_override(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
// The same for slots of Tensor that are no ops (x[i]). Null if nobody overrides it: the caller goes on.
PyObject* slot_override(const char* name, PyObject* const* args, Py_ssize_t nargs);

// Note [What is asked]
// A class or mode with __torch_function__ is asked for ops, and for what else can be done with a tensor: reading an
// attribute, dim(), float(x). Those of our own that want ops alone (vmap's, sparse tensors) say so by `_ops_only`. The
// default of Tensor, which gives results the subclass, is asked only where the result is a tensor.
bool asks(PyObject* o, bool tensor_result);
inline bool may_ask(PyObject* o) { return Py_TYPE(o) != g_tensor_type || watched(); }

// What stands for reading (`how` is __get__), writing (__set__) and deleting (__delete__) an attribute, called.
PyObject* attribute_override(const char* name, const char* how, PyObject* self, PyObject* value);
// The method of Tensor by that name, called. New reference, or null with a Python error.
PyObject* method_override(const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// A name as an argument of a template.
template <size_t N> struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }
};
template <getter Get, Name name, bool tensor_result = false> PyObject* asked_get(PyObject* s, void* closure) {
  if (may_ask(s) && asks(s, tensor_result)) return attribute_override(name.text, "__get__", s, nullptr);
  return Get(s, closure);
}
template <setter Set, Name name> int asked_set(PyObject* s, PyObject* value, void* closure) {
  if (!may_ask(s) || !asks(s, false)) return Set(s, value, closure);
  PyObject* done = attribute_override(name.text, value ? "__set__" : "__delete__", s, value);
  Py_XDECREF(done);
  return done ? 0 : -1;
}
// A method or a slot without further arguments.
template <auto Method, Name name> PyObject* asked_call(PyObject* s, PyObject* unused) {
  if (may_ask(s) && asks(s, false)) return method_override(name.text, &s, 1, nullptr);
  return Method(s, unused);
}
template <unaryfunc Slot, Name name> PyObject* asked_slot(PyObject* s) {
  return may_ask(s) && asks(s, false) ? method_override(name.text, &s, 1, nullptr) : Slot(s);
}

}  // namespace rl
