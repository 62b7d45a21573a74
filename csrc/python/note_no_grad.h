// After each call from Python: a result without history remembers why (tensor/no_grad_reason.h).
#pragma once
#include <Python.h>

#include "tensor/no_grad_reason.h"

namespace rl {

// The call `op` of these arguments (null ones allowed) gave `result`, a tensor or a tuple.
void note_arguments(PyObject* result, const char* op, PyObject* const* args, int count);

inline void note_result(PyObject* result, const char* op, PyObject* const* args, int count) {
  // Most results of training have a history, and nothing is to be noted.
  if (Py_TYPE(result) == g_tensor_type && reinterpret_cast<TensorObject*>(result)->requires_grad) return;
  if (g_sites_enabled) note_arguments(result, op, args, count);
}

}  // namespace rl
