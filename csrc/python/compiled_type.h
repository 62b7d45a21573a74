// Recording tapes, and functions that replay them (csrc/compiler), as Python sees them.
#pragma once
#include <Python.h>

namespace rl {

int install_compiled_type(PyObject* module);    // adds _Compiled, _Variant and _Facts
int install_recording_calls(PyObject* module);  // adds _record_begin, ...

}  // namespace rl
