#include "python/operators.h"

#include <cstring>

#include "autograd/profile.h"
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "python/bridge.h"
#include "python/errors.h"
#include "python/note_no_grad.h"
#include "python/op_object.h"
#include "python/override.h"

namespace rl::ops {
Tensor divide(const Value& a, const Value& b);  // the operator: ops/elementwise/arithmetic.cpp
}

namespace rl {
namespace {

// Those that need no resolving (Note [Lazy views]) go straight to the op.
bool plain_tensor(PyObject* o) {
  return Py_TYPE(o) == g_tensor_type && !(g_lazy_views && reinterpret_cast<TensorObject*>(o)->lazy());
}
bool plain(PyObject* o) { return plain_tensor(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o); }
bool operand(PyObject* o) { return is_tensor(o) || is_number(o) || overrides(o); }

// The method of Tensor by that name, so that subclasses may override it.
PyObject* by_name(const char* name, PyObject* a, PyObject* b) {
  PyObject* method = PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name);
  if (!method) return nullptr;
  PyObject* args[] = {a, b};
  PyObject* result = PyObject_Vectorcall(method, args, b ? 2 : 1, nullptr);
  Py_DECREF(method);
  return result;
}

// The op of an operator and of the same with its operands reflected, and by which methods a class with
// __torch_function__ sees them if that is not the op itself.
struct Spelling {
  const char *op, *reflected;
  const char *seen = nullptr, *seen_reflected = nullptr;
};

PyObject* by_spelling(const Spelling& names, PyObject* a, PyObject* b) {
  bool reflected = !is_tensor(a);
  if (reflected) std::swap(a, b);
  if (const char* seen = reflected ? names.seen_reflected : names.seen)
    if (asks(a, true) || (b && asks(b, true))) {
      PyObject* args[] = {a, b};
      return method_override(seen, args, b ? 2 : 1, nullptr);
    }
  return by_name(reflected ? names.reflected : names.op, a, b);
}
// Nobody computes a op b: the class of b may know the operator with its operands reflected, as Python asks elsewhere.
PyObject* reflected_way(PyObject* a, PyObject* b, const Spelling& names) {
  if (!names.seen_reflected || !is_tensor(a) || Py_TYPE(a) == Py_TYPE(b) || !PyErr_ExceptionMatches(PyExc_TypeError))
    return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);  // before classes are looked at, which would clear it
  PyObject *args[] = {b, a}, *result = nullptr;
  bool asked = asks(b, true);
  if (asked) result = method_override(names.seen_reflected, args, 2, nullptr);
  if (!asked || (!result && PyErr_ExceptionMatches(PyExc_TypeError))) {
    PyErr_Restore(type, value, trace);  // the first one names the operator as it was written
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return result;
}
// The result, or, where classes refuse each other, NotImplemented: Python says which operator has no meaning for them.
PyObject* or_not_implemented(PyObject* result, PyObject* a, PyObject* b) {
  if (result || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);  // before classes are looked at, which would clear it
  if (!overrides(a) && !overrides(b)) {
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  Py_RETURN_NOTIMPLEMENTED;
}
PyObject* either_way(PyObject* a, PyObject* b, const Spelling& names) {
  if (!operand(a) || !operand(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* result = by_spelling(names, a, b);
  return or_not_implemented(result ? result : reflected_way(a, b, names), a, b);
}
PyObject* in_place(PyObject* a, PyObject* b, const Spelling& names) {
  if (!operand(b)) Py_RETURN_NOTIMPLEMENTED;
  return or_not_implemented(by_spelling(names, a, b), a, b);
}

// Straight to the op for tensors and scalars.
using Binary = Tensor (*)(const Value&, const Value&);
inline PyObject* direct(Binary op, const char* name, PyObject* a, PyObject* b) {
  return guarded([&] {
    Tensor y = op(Arg<Value>::load(a), Arg<Value>::load(b));
    PyObject* args[] = {a, b};
    note_result(y.object(), name, args, 2);
    return y.release();
  });
}
template <Binary Op> PyObject* binary(PyObject* a, PyObject* b, const Spelling& names) {
  if (plain(a) && plain(b) && !watched()) return direct(Op, names.op, a, b);
  return either_way(a, b, names);
}
Tensor add1(const Value& a, const Value& b) { return ops::add(a, b, Scalar(1)); }
Tensor sub1(const Value& a, const Value& b) { return ops::sub(a, b, Scalar(1)); }

// array / tensor: by the reciprocal, whose product with an array NumPy takes.
PyObject* array_over(PyObject* array, PyObject* t) {
  PyObject* reciprocal = PyObject_CallMethod(t, "reciprocal", nullptr);
  PyObject* result = reciprocal ? PyNumber_Multiply(reciprocal, array) : nullptr;
  Py_XDECREF(reciprocal);
  return result;
}

}  // namespace

PyObject* op_add(PyObject* a, PyObject* b) { return binary<add1>(a, b, {"add", "__radd_op__", nullptr, "add"}); }
PyObject* op_subtract(PyObject* a, PyObject* b) {
  return binary<sub1>(a, b, {"sub", "__rsub_op__", nullptr, "__rsub__"});
}
PyObject* op_multiply(PyObject* a, PyObject* b) {
  return binary<ops::mul>(a, b, {"mul", "__rmul_op__", nullptr, "mul"});
}
PyObject* op_divide(PyObject* a, PyObject* b) {
  if (!operand(a) && is_tensor(b) && is_ndarray(a)) return array_over(a, b);
  return binary<ops::divide>(a, b, {"div", "__rdiv_op__", nullptr, "__rdiv__"});
}
PyObject* op_matmul(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || (!is_tensor(b) && !overrides(b))) Py_RETURN_NOTIMPLEMENTED;
  return or_not_implemented(by_name("matmul", a, b), a, b);
}
PyObject* op_negative(PyObject* a) {
  if (!plain_tensor(a) || watched()) return by_name("neg", a, nullptr);
  return guarded([&] {
    Tensor y = ops::neg(Tensor::borrow(a));
    note_result(y.object(), "neg", &a, 1);
    return y.release();
  });
}

// NumPy leaves == and != to the tensor: element by element, as with a tensor of the same values.
static PyObject* compare_array(PyObject* a, PyObject* array, const char* name) {
  return guarded([&] { return by_name(name, a, tensor_from_array(array, false).object()); });
}

PyObject* op_compare(PyObject* a, PyObject* b, int which) {
  static constexpr Binary kOps[] = {ops::lt, ops::le, ops::eq, ops::ne, ops::gt, ops::ge};  // in the order of Py_LT ...
  static constexpr const char* kNames[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  if (plain(a) && plain(b) && !watched()) return direct(kOps[which], kNames[which], a, b);
  if (which == Py_EQ && asks(a, true)) {
    PyObject* args[] = {a, b};
    return or_not_implemented(method_override("__eq__", args, 2, nullptr), a, b);
  }
  if (!operand(b)) {
    if ((which == Py_EQ || which == Py_NE) && is_array_like(b) && !PyBytes_Check(b) && !PyByteArray_Check(b))
      return compare_array(a, b, kNames[which]);
    Py_RETURN_NOTIMPLEMENTED;
  }
  return or_not_implemented(by_name(kNames[which], a, b), a, b);
}

PyObject* op_power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<ops::pow>(a, b, {"pow", "__rpow_op__", nullptr, "__rpow__"});
}
PyObject* op_floor_divide(PyObject* a, PyObject* b) {
  return either_way(a, b, {"floor_divide", "__rfloordiv_op__", "__floordiv__", "__rfloordiv__"});
}
PyObject* op_remainder(PyObject* a, PyObject* b) {
  return either_way(a, b, {"remainder", "__rmod_op__", nullptr, "__rmod__"});
}
PyObject* op_divmod(PyObject* a, PyObject* b) {
  PyObject* quotient = op_floor_divide(a, b);
  if (!quotient || quotient == Py_NotImplemented) return quotient;
  PyObject* rest = op_remainder(a, b);
  return rest ? Py_BuildValue("NN", quotient, rest) : (Py_DECREF(quotient), nullptr);
}
PyObject* op_and(PyObject* a, PyObject* b) { return either_way(a, b, {"bitwise_and", "bitwise_and", "__and__"}); }
PyObject* op_or(PyObject* a, PyObject* b) { return either_way(a, b, {"bitwise_or", "bitwise_or", "__or__"}); }
PyObject* op_xor(PyObject* a, PyObject* b) { return either_way(a, b, {"bitwise_xor", "bitwise_xor", "__xor__"}); }
PyObject* op_lshift(PyObject* a, PyObject* b) {
  return either_way(a, b, {"bitwise_left_shift", "__rlshift_op__", "__lshift__", "__rlshift__"});
}
PyObject* op_rshift(PyObject* a, PyObject* b) {
  return either_way(a, b, {"bitwise_right_shift", "__rrshift_op__", "__rshift__", "__rrshift__"});
}
PyObject* op_invert(PyObject* a) {
  return guarded([&] {
    CHECK(Py_TYPE(a) != g_tensor_type || is_integral(reinterpret_cast<TensorObject*>(a)->dtype, true), Type,
          "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return by_spelling({"bitwise_not", nullptr, "__invert__"}, a, nullptr);
  });
}
PyObject* op_absolute(PyObject* a) { return by_name("abs", a, nullptr); }
PyObject* op_positive(PyObject* a) { return by_name("positive", a, nullptr); }

PyObject* op_iadd(PyObject* a, PyObject* b) { return in_place(a, b, {"add_"}); }
PyObject* op_isubtract(PyObject* a, PyObject* b) { return in_place(a, b, {"sub_"}); }
PyObject* op_imultiply(PyObject* a, PyObject* b) { return in_place(a, b, {"mul_"}); }
PyObject* op_idivide(PyObject* a, PyObject* b) { return in_place(a, b, {"div_"}); }
PyObject* op_ipower(PyObject* a, PyObject* b, PyObject*) { return in_place(a, b, {"pow_"}); }
PyObject* op_ifloor_divide(PyObject* a, PyObject* b) { return in_place(a, b, {"floor_divide_"}); }
PyObject* op_iremainder(PyObject* a, PyObject* b) { return in_place(a, b, {"remainder_"}); }
PyObject* op_iand(PyObject* a, PyObject* b) { return in_place(a, b, {"bitwise_and_", nullptr, "__iand__"}); }
PyObject* op_ior(PyObject* a, PyObject* b) { return in_place(a, b, {"bitwise_or_", nullptr, "__ior__"}); }
PyObject* op_ixor(PyObject* a, PyObject* b) { return in_place(a, b, {"bitwise_xor_", nullptr, "__ixor__"}); }
PyObject* op_ilshift(PyObject* a, PyObject* b) {
  return in_place(a, b, {"bitwise_left_shift_", nullptr, "__ilshift__"});
}
PyObject* op_irshift(PyObject* a, PyObject* b) {
  return in_place(a, b, {"bitwise_right_shift_", nullptr, "__irshift__"});
}

}  // namespace rl
