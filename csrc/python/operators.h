// Python's operators on tensors.
#pragma once
#include <Python.h>

namespace rl {

// Results are new references; Py_NotImplemented where the other operand is neither tensor nor number.
PyObject* op_compare(PyObject* a, PyObject* b, int which);
PyObject* op_add(PyObject* a, PyObject* b);
PyObject* op_subtract(PyObject* a, PyObject* b);
PyObject* op_multiply(PyObject* a, PyObject* b);
PyObject* op_divide(PyObject* a, PyObject* b);
PyObject* op_matmul(PyObject* a, PyObject* b);
PyObject* op_negative(PyObject* a);
PyObject* op_power(PyObject* a, PyObject* b, PyObject* modulus);
PyObject* op_floor_divide(PyObject* a, PyObject* b);
PyObject* op_remainder(PyObject* a, PyObject* b);
PyObject* op_divmod(PyObject* a, PyObject* b);
PyObject* op_and(PyObject* a, PyObject* b);
PyObject* op_or(PyObject* a, PyObject* b);
PyObject* op_xor(PyObject* a, PyObject* b);
PyObject* op_lshift(PyObject* a, PyObject* b);
PyObject* op_rshift(PyObject* a, PyObject* b);
PyObject* op_invert(PyObject* a);
PyObject* op_absolute(PyObject* a);
PyObject* op_positive(PyObject* a);
PyObject* op_iadd(PyObject* a, PyObject* b);
PyObject* op_isubtract(PyObject* a, PyObject* b);
PyObject* op_imultiply(PyObject* a, PyObject* b);
PyObject* op_idivide(PyObject* a, PyObject* b);
PyObject* op_ipower(PyObject* a, PyObject* b, PyObject* modulus);
PyObject* op_ifloor_divide(PyObject* a, PyObject* b);
PyObject* op_iremainder(PyObject* a, PyObject* b);
PyObject* op_iand(PyObject* a, PyObject* b);
PyObject* op_ior(PyObject* a, PyObject* b);
PyObject* op_ixor(PyObject* a, PyObject* b);
PyObject* op_ilshift(PyObject* a, PyObject* b);
PyObject* op_irshift(PyObject* a, PyObject* b);

}  // namespace rl
