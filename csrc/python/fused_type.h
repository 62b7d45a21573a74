// Pointwise expressions that run as one op (ops/elementwise/fused.h), as Python objects.
#pragma once
#include <Python.h>

namespace rl {

int install_fused_type(PyObject* module);  // adds _Fused

}  // namespace rl
