#include "python/errors.h"

namespace rl {

PyObject *g_out_of_memory_error = nullptr, *g_linalg_error = nullptr;

void set_python_error(const Error& e) {
  if (e.what()[0] == 0 && PyErr_Occurred()) return;  // raised by Python code on the way
  PyObject* type = PyExc_RuntimeError;
  switch (e.kind()) {
    case ErrorKind::Runtime: break;
    case ErrorKind::Value: type = PyExc_ValueError; break;
    case ErrorKind::Type: type = PyExc_TypeError; break;
    case ErrorKind::Index: type = PyExc_IndexError; break;
    case ErrorKind::NotImplemented: type = PyExc_NotImplementedError; break;
    case ErrorKind::OutOfMemory: type = g_out_of_memory_error ? g_out_of_memory_error : PyExc_MemoryError; break;
    case ErrorKind::Attribute: type = PyExc_AttributeError; break;
    case ErrorKind::Overflow: type = PyExc_OverflowError; break;
    case ErrorKind::Linalg: type = g_linalg_error ? g_linalg_error : PyExc_RuntimeError; break;
    case ErrorKind::Assertion: type = PyExc_AssertionError; break;
  }
  PyErr_SetString(type, e.what());
}

void set_out_of_memory() {
  set_python_error(Error(ErrorKind::OutOfMemory,
                         "DefaultCPUAllocator: can't allocate memory: an operation could not get its working memory"));
}

}  // namespace rl
