#include "python/operators.h"

#include "autograd/profile.h"
#include "ops/elementwise.h"
#include "python/bridge.h"
#include "python/errors.h"
#include "python/note_result.h"
#include "python/op_object.h"

namespace rl {
namespace {

bool plain(PyObject* o) { return Py_TYPE(o) == g_tensor_type || PyFloat_CheckExact(o) || PyLong_CheckExact(o); }
bool operand(PyObject* o) { return is_tensor(o) || is_number(o) || PyObject_HasAttrString(o, "__torch_function__"); }

// The method of Tensor by that name, so that subclasses may override it.
PyObject* by_name(const char* name, PyObject* a, PyObject* b) {
  PyObject* method = PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name);
  if (!method) return nullptr;
  PyObject* args[] = {a, b};
  PyObject* result = PyObject_Vectorcall(method, args, b ? 2 : 1, nullptr);
  Py_DECREF(method);
  return result;
}
PyObject* either_way(PyObject* a, PyObject* b, const char* name, const char* reflected) {
  if (!operand(a) || !operand(b)) Py_RETURN_NOTIMPLEMENTED;
  return is_tensor(a) ? by_name(name, a, b) : by_name(reflected, b, a);
}
PyObject* in_place(PyObject* a, PyObject* b, const char* name) {
  if (!operand(b)) Py_RETURN_NOTIMPLEMENTED;
  return by_name(name, a, b);
}

using Op = Tensor (*)(const Value&, const Value&);
PyObject* direct(Op op, const char* name, PyObject* a, PyObject* b) {
  return guarded([&] {
    Tensor y = op(Arg<Value>::load(a), Arg<Value>::load(b));
    PyObject* args[] = {a, b};
    note_result(y.object(), name, args, 2);
    return y.release();
  });
}

}  // namespace

// NumPy leaves == and != to the tensor: element by element, as with a tensor of the same numbers.
static PyObject* compare_array(PyObject* a, PyObject* array, const char* name) {
  return guarded([&] { return by_name(name, a, tensor_from_array(array, false).object()); });
}

PyObject* op_compare(PyObject* a, PyObject* b, int which) {
  static constexpr Op kOps[] = {ops::lt, ops::le, ops::eq, ops::ne, ops::gt, ops::ge};  // in the order of Py_LT ...
  static constexpr const char* kNames[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  if (plain(a) && plain(b) && !watched()) return direct(kOps[which], kNames[which], a, b);
  if (!operand(b)) {
    if ((which == Py_EQ || which == Py_NE) && is_array_like(b) && !PyBytes_Check(b) && !PyByteArray_Check(b))
      return compare_array(a, b, kNames[which]);
    Py_RETURN_NOTIMPLEMENTED;
  }
  return by_name(kNames[which], a, b);
}

PyObject* op_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  if (plain(a) && plain(b) && !watched()) return direct(ops::pow, "pow", a, b);
  return either_way(a, b, "pow", "__rpow_op__");
}
PyObject* op_floor_divide(PyObject* a, PyObject* b) { return either_way(a, b, "floor_divide", "__rfloordiv_op__"); }
PyObject* op_remainder(PyObject* a, PyObject* b) { return either_way(a, b, "remainder", "__rmod_op__"); }
PyObject* op_divmod(PyObject* a, PyObject* b) {
  PyObject* quotient = op_floor_divide(a, b);
  if (!quotient || quotient == Py_NotImplemented) return quotient;
  PyObject* rest = op_remainder(a, b);
  return rest ? Py_BuildValue("NN", quotient, rest) : (Py_DECREF(quotient), nullptr);
}
PyObject* op_and(PyObject* a, PyObject* b) { return either_way(a, b, "bitwise_and", "bitwise_and"); }
PyObject* op_or(PyObject* a, PyObject* b) { return either_way(a, b, "bitwise_or", "bitwise_or"); }
PyObject* op_xor(PyObject* a, PyObject* b) { return either_way(a, b, "bitwise_xor", "bitwise_xor"); }
PyObject* op_lshift(PyObject* a, PyObject* b) { return either_way(a, b, "bitwise_left_shift", "__rlshift_op__"); }
PyObject* op_rshift(PyObject* a, PyObject* b) { return either_way(a, b, "bitwise_right_shift", "__rrshift_op__"); }
PyObject* op_invert(PyObject* a) {
  return guarded([&] {
    CHECK(Py_TYPE(a) != g_tensor_type || is_integral(reinterpret_cast<TensorObject*>(a)->dtype, true), Type,
          "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return by_name("bitwise_not", a, nullptr);
  });
}
PyObject* op_absolute(PyObject* a) { return by_name("abs", a, nullptr); }
PyObject* op_positive(PyObject* a) { return by_name("positive", a, nullptr); }

PyObject* op_ipower(PyObject* a, PyObject* b, PyObject*) { return in_place(a, b, "pow_"); }
PyObject* op_ifloor_divide(PyObject* a, PyObject* b) { return in_place(a, b, "floor_divide_"); }
PyObject* op_iremainder(PyObject* a, PyObject* b) { return in_place(a, b, "remainder_"); }
PyObject* op_iand(PyObject* a, PyObject* b) { return in_place(a, b, "bitwise_and_"); }
PyObject* op_ior(PyObject* a, PyObject* b) { return in_place(a, b, "bitwise_or_"); }
PyObject* op_ixor(PyObject* a, PyObject* b) { return in_place(a, b, "bitwise_xor_"); }
PyObject* op_ilshift(PyObject* a, PyObject* b) { return in_place(a, b, "bitwise_left_shift_"); }
PyObject* op_irshift(PyObject* a, PyObject* b) { return in_place(a, b, "bitwise_right_shift_"); }

}  // namespace rl
