// What ops ask of Python's side. csrc/python implements it.
#pragma once
#include <Python.h>

#include <optional>

#include "tensor/tensor.h"

namespace rl {

// Writes the result of f(..., out=out) and returns what the call returns: out, or a tuple of them. New reference.
PyObject* write_result(const char* name, PyObject* out, PyObject* result, bool exact);
// A new tensor with the numbers of nested sequences, arrays, tensors.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, Device device);

}  // namespace rl
