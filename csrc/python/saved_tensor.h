#pragma once
#include "autograd/node.h"

namespace rl {

PyObject* raw_saved(Node& node, const char* field);  // a SavedTensor, or a tuple of them; null: no such field
int install_saved_tensor(PyObject* module);

}  // namespace rl
