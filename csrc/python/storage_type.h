#pragma once
#include <Python.h>
#include <structmember.h>

#include "tensor/storage.h"

namespace rl {

int install_storage_type(PyObject* module);
Storage* storage_of(PyObject* o);  // null if it is no storage of bytes

}  // namespace rl
