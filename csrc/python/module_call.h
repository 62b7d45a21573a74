#pragma once
#include <Python.h>

namespace rl {

int install_module_call(PyObject* module);

}  // namespace rl
