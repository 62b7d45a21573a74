#pragma once
#include <Python.h>

namespace rl {

int install_node_type(PyObject* module);

}  // namespace rl
