// nn.Module.__call__: runs forward, notes which module is running (autograd/module_scope.h), and lets an error that
// leaves the module say where it came from. In C++ because every layer of every model passes here.
#include "python/module_call.h"

#include "autograd/module_scope.h"
#include "python/errors.h"

namespace rl {
namespace {

bool g_hooked = false;  // some module has, or had, hooks: calls take the way through Module._call_impl

struct Names {
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* call_impl = PyUnicode_InternFromString("_call_impl");
};
const Names& names() {
  static const Names n;
  return n;
}

// rushlight.nn.modules._error_notes.annotate(error, module, args, kwargs), with the error being on its way out.
[[gnu::cold]] void annotate(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  PyObject* notes = PyImport_ImportModule("rushlight.nn.modules._error_notes");
  PyObject* given = PyTuple_New(nargs);
  for (Py_ssize_t i = 0; given && i < nargs; ++i) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
  PyObject* named = PyDict_New();
  for (Py_ssize_t i = 0; named && kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
    PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[nargs + i]);
  PyObject* done =
      notes && given && named ? PyObject_CallMethod(notes, "annotate", "OOOO", value, self, given, named) : nullptr;
  PyErr_Clear();  // a note that cannot be written must not hide the error
  Py_XDECREF(done);
  Py_XDECREF(named);
  Py_XDECREF(given);
  Py_XDECREF(notes);
  PyErr_Restore(type, value, trace);
}

PyObject* module_call(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  InModule running(self);
  // One slot in front for self; few calls have more than eight arguments.
  constexpr Py_ssize_t kFew = 8;
  PyObject* few[kFew + 1];
  Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  PyObject** stack = all <= kFew ? few : static_cast<PyObject**>(PyMem_Malloc(sizeof(PyObject*) * (all + 1)));
  if (!stack) return PyErr_NoMemory();
  stack[0] = self;
  for (Py_ssize_t i = 0; i < all; ++i) stack[i + 1] = args[i];
  PyObject* result = PyObject_VectorcallMethod(g_hooked ? names().call_impl : names().forward, stack,
                                               static_cast<size_t>(nargs + 1), kwnames);
  if (stack != few) PyMem_Free(stack);
  if (!result) annotate(self, args, nargs, kwnames);
  return result;
}

PyMethodDef kCall = {"__call__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(module_call)),
                     METH_FASTCALL | METH_KEYWORDS,
                     "__call__($self, /, *args, **kwargs)\n--\n\nRuns forward, with hooks if there are any."};

// Gives a class its __call__.
PyObject* give_call(PyObject*, PyObject* cls) {
  if (!PyType_Check(cls)) return PyErr_Format(PyExc_TypeError, "expected a class");
  PyObject* method = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(cls), &kCall);
  if (!method) return nullptr;
  int failed = PyObject_SetAttrString(cls, "__call__", method);
  Py_DECREF(method);
  if (failed < 0) return nullptr;
  Py_RETURN_NONE;
}
PyObject* use_hooks(PyObject*, PyObject*) {
  g_hooked = true;
  Py_RETURN_NONE;
}
// The scope of the module that is running: see module_scope(); None outside.
PyObject* current_scope(PyObject*, PyObject*) {
  PyObject* scope = module_scope();
  return Py_NewRef(scope ? scope : Py_None);
}

PyMethodDef kFunctions[] = {{"_give_module_call", give_call, METH_O, nullptr},
                            {"_use_module_hooks", use_hooks, METH_NOARGS, nullptr},
                            {"_module_scope", current_scope, METH_NOARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

int install_module_call(PyObject* module) { return PyModule_AddFunctions(module, kFunctions); }

}  // namespace rl
