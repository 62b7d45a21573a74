// The small immutable values of the API: dtype, device, layout, memory_format, Size.
#pragma once
#include <Python.h>

namespace rl {

int install_value_types(PyObject* module);
extern PyTypeObject* g_size_type;

}  // namespace rl
