// torch.Generator.
#pragma once
#include <Python.h>

namespace rl {

int install_generator_type(PyObject* module);  // adds Generator and default_generator

}  // namespace rl
