#pragma once
#include <Python.h>
#include <structmember.h>

namespace rl {

int install_storage_type(PyObject* module);

}  // namespace rl
