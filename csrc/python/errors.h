// C++ exceptions become Python's at the boundary.
#pragma once
#include <Python.h>

#include <new>

#include "base/check.h"

namespace rl {

extern PyObject *g_out_of_memory_error, *g_linalg_error;
void set_python_error(const Error& e);
void set_out_of_memory();  // of memory that an algorithm wanted for itself

// Runs f() (returning a new reference); sets a Python error and returns null if it throws.
template <class F> PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (const Error& e) {
    set_python_error(e);
  } catch (const std::bad_alloc&) {
    set_out_of_memory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}
template <class F> int guarded_int(F&& f) noexcept {
  try {
    return f();
  } catch (const Error& e) {
    set_python_error(e);
  } catch (const std::bad_alloc&) {
    set_out_of_memory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return -1;
}

}  // namespace rl
