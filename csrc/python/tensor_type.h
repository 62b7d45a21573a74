#pragma once
#include <Python.h>
#include <structmember.h>

namespace rl {

int install_tensor_type(PyObject* module);

}  // namespace rl
