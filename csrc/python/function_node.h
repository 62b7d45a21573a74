#pragma once
#include <Python.h>

namespace rl {

int install_function_node(PyObject* module);

}  // namespace rl
