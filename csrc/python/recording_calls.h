// A recorded tape on its way to the variant that will own it.
#pragma once
#include <Python.h>

#include <memory>

#include "compiler/tape.h"

namespace rl {

std::unique_ptr<compiler::Tape> take_tape(PyObject* capsule);  // null if it has been taken

}  // namespace rl
