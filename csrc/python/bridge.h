// Memory shared with NumPy and others.
#pragma once
#include <Python.h>

#include <optional>

#include "tensor/tensor.h"

namespace rl {

bool is_ndarray(PyObject* o);                      // an array of NumPy's, or of a class derived from it (np.memmap)
bool is_array_like(PyObject* o);                   // offers the buffer protocol with numbers, or __array_interface__
Tensor tensor_from_array(PyObject* o, bool copy);  // shares memory unless `copy`
PyObject* array_from_tensor(const Tensor& t);      // a NumPy array on the same memory
PyObject* to_list(const Tensor& t);
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, Device device);

}  // namespace rl
