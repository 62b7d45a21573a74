// The class rushlight.Tensor, and the tables that fill it.
#pragma once
#include <Python.h>
#include <structmember.h>

#include "tensor/tensor.h"

namespace rl {

int install_tensor_type(PyObject* module);

extern PyGetSetDef kTensorAttributes[];  // tensor_attributes.cpp
extern PyMethodDef kTensorMethods[];     // tensor_methods.cpp: those that are no ops

// `from_method`: x.requires_grad_(), which says nothing against a tensor that has it already.
int change_requires_grad(PyObject* self, PyObject* on, bool from_method);

}  // namespace rl
