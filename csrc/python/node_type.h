#pragma once
#include <Python.h>

#include "tensor/site.h"

namespace rl {

// (file, line, function, text) of a line, None if there is none. New reference; made once per line, mostly.
PyObject* site_object(const Site& site);
int install_node_type(PyObject* module);

}  // namespace rl
