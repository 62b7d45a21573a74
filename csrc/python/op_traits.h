// What registrations say of ops, in Python: `_C.OpFlags` and `op.traits`.
#pragma once
#include <Python.h>

#include "schema/kernel.h"

namespace rl {

int install_traits(PyObject* module);
// New reference.
PyObject* traits_object(uint32_t flags, const Kernel* kernel);

}  // namespace rl
