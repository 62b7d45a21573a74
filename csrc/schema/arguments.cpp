#include "schema/arguments.h"

#include <cstring>

#include "base/float8.h"

namespace rl {

void python_error() { throw Error(ErrorKind::Runtime, ""); }

namespace {

bool is_numpy_scalar(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  if (std::strncmp(name, "numpy.", 6) != 0) return false;
  return std::strcmp(name, "numpy.ndarray") != 0 && Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_float;
}

// Keeps an object while code of its own runs.
struct Held {
  PyObject* object;
  explicit Held(PyObject* o) : object(Py_NewRef(o)) {}
  Held(const Held&) = delete;
  ~Held() { Py_DECREF(object); }
};

}  // namespace

bool is_ndarray(PyObject* o) {
  for (PyTypeObject* kind = Py_TYPE(o); kind; kind = kind->tp_base)
    if (std::strcmp(kind->tp_name, "numpy.ndarray") == 0) return true;
  return false;
}

bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  return is_numpy_scalar(o);
}

bool is_integer(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  if (PyBool_Check(o)) return false;
  if (PyLong_Check(o)) return true;
  if (PyFloat_Check(o) || PyUnicode_Check(o) || PyTuple_Check(o) || PyList_Check(o) || o == Py_None) return false;
  if (is_tensor(o)) {
    auto* t = reinterpret_cast<TensorObject*>(o);
    return t->numel == 1 && is_integral(t->dtype) && t->ndim == 0;
  }
  if (!PyIndex_Check(o) || std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) == 0) return false;
  if (!is_ndarray(o)) return true;
  PyObject* number = PyNumber_Index(o);  // np.array(3) is an integer, every other array says that it is not
  if (!number) return PyErr_Clear(), false;
  Py_DECREF(number);
  return true;
}

// An error of its own: where several integers are taken, a TypeError.
static int64_t integer_from(PyObject* o, ErrorKind kind) {
  if (is_tensor(o)) return item(Tensor::borrow(o)).to_int();
  PyObject* number = PyLong_Check(o) ? Py_NewRef(o) : PyNumber_Index(o);
  if (!number) python_error();
  int overflow = 0;
  int64_t v = PyLong_AsLongLongAndOverflow(number, &overflow);
  Py_DECREF(number);
  if (overflow) fail(kind, "Overflow when unpacking long long: the integer does not fit 64 bits");
  if (v == -1 && PyErr_Occurred()) python_error();
  return v;
}
int64_t integer_from(PyObject* o) { return integer_from(o, ErrorKind::Value); }

// Up to 2^64 - 1; beyond, Python's own OverflowError.
static Scalar integer_scalar(PyObject* o) {
  Owned number(PyLong_Check(o) ? Py_NewRef(o) : PyNumber_Index(o));
  int overflow = 0;
  int64_t v = PyLong_AsLongLongAndOverflow(number.p, &overflow);
  if (!overflow) return Scalar(v);
  uint64_t wide = PyLong_AsUnsignedLongLong(number.p);
  if (PyErr_Occurred()) python_error();
  return Scalar::from_unsigned(wide);
}

Scalar scalar_from(PyObject* o) {
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) return integer_scalar(o);
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) return Scalar(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (is_tensor(o)) {
    CHECK(
        !reinterpret_cast<TensorObject*>(o)->wants_grad(), Type,
        "argument must be Number, not Tensor: a tensor that requires grad was given where a plain number is taken, so "
        "that no gradient could reach it. Pass x.item() or x.detach() if none is wanted.");
    return item(Tensor::borrow(o));
  }
  const char* name = Py_TYPE(o)->tp_name;
  if (std::strncmp(name, "numpy.bool", 10) == 0) return Scalar(PyObject_IsTrue(o) == 1);
  if (std::strncmp(name, "numpy.complex", 13) == 0) {
    Py_complex z = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) python_error();
    return Scalar(std::complex<double>(z.real, z.imag));
  }
  if (PyIndex_Check(o)) return integer_scalar(o);
  double d = PyFloat_AsDouble(o);
  if (d == -1 && PyErr_Occurred()) python_error();
  return Scalar(d);
}

PyObject* scalar_object(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool: return PyBool_FromLong(s.to_bool());
    case Scalar::Kind::Int:
      return s.above_int64() ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(s.to_int()))
                             : PyLong_FromLongLong(s.to_int());
    case Scalar::Kind::Float: return PyFloat_FromDouble(s.to_double());
    case Scalar::Kind::Complex: return PyComplex_FromDoubles(s.to_complex128().real(), s.to_complex128().imag());
  }
  return nullptr;
}

bool is_list_integer(PyObject* item, Py_ssize_t position) {
  if (is_integer(item) || (position > 0 && PyBool_Check(item))) return true;
  if (!is_ndarray(item)) return false;
  PyObject* number = PyNumber_Index(item);  // an array of no dimensions
  if (!number) PyErr_Clear();
  Py_XDECREF(number);
  return number != nullptr;
}

bool is_int_list(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    // A NumPy array of integers, a range: anything that is a sequence of integers.
    if (PyUnicode_Check(o) || PyDict_Check(o) || is_tensor(o) || !PySequence_Check(o)) return false;
    Py_ssize_t n = PySequence_Size(o);
    if (n < 0) return PyErr_Clear(), false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_GetItem(o, i);
      bool ok = item && is_list_integer(item, i);
      Py_XDECREF(item);
      if (!ok) return PyErr_Clear(), false;
    }
    return true;
  }
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!is_list_integer(PySequence_Fast_GET_ITEM(o, i), i)) return false;
  return true;
}

Ints ints_from(PyObject* o) {
  Ints out;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    CHECK(n <= 4096, Value, "too many integers: ", static_cast<int64_t>(n));
    out.reserve(n);
    // An __index__ may change the list it stands in: the size is read again, the item held.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, i);
      CHECK(is_list_integer(item, i), Type, "expected a sequence of integers, got ", Py_TYPE(item)->tp_name,
            " at position ", static_cast<int64_t>(i));
      Held held(item);
      out.push_back(integer_from(item, ErrorKind::Type));
    }
    return out;
  }
  if (is_integer(o)) {
    out.push_back(integer_from(o, ErrorKind::Type));
    return out;
  }
  PyObject* fast = PySequence_Fast(o, "expected a sequence of integers");
  if (!fast) python_error();
  try {
    CHECK(PySequence_Fast_GET_SIZE(fast) <= 4096, Value, "too many integers");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); ++i) {
      Held held(PySequence_Fast_GET_ITEM(fast, i));
      out.push_back(integer_from(held.object, ErrorKind::Type));
    }
  } catch (...) {
    Py_DECREF(fast);
    throw;
  }
  Py_DECREF(fast);
  return out;
}

bool is_tensor_list(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (!is_tensor(PySequence_Fast_GET_ITEM(o, i))) return false;
  return true;
}

Tensors tensors_from(PyObject* o) {
  Tensors out;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  out.reserve(n);
  for (Py_ssize_t i = 0; i < n; ++i) out.push_back(Tensor::borrow(PySequence_Fast_GET_ITEM(o, i)));
  return out;
}

PyObject* to_python(Tensors&& list) {
  PyObject* t = PyTuple_New(list.size());
  if (!t) python_error();
  for (int64_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(t, i, to_python(std::move(list[i])));
  return t;
}

// The value that an element stands for: of conjugate and negative views not the one in memory.
template <class T> static Scalar element(T v, bool conj, bool neg) {
  if constexpr (__is_same(T, bool)) {
    return Scalar(static_cast<bool>(reinterpret_cast<uint8_t&>(v)));
  } else if constexpr (is_complex_v<T> || __is_same(T, complex32)) {
    std::complex<double> z;
    if constexpr (__is_same(T, complex32)) z = std::complex<double>(std::complex<float>(v));
    else z = std::complex<double>(v);
    if (conj) z = std::conj(z);
    return Scalar(neg ? -z : z);
  } else if constexpr (is_floating_v<T>) {
    const double x = static_cast<double>(static_cast<compute_t<T>>(v));
    return Scalar(neg ? -x : x);
  } else {
    if (neg) v = static_cast<T>(uint64_t{0} - static_cast<uint64_t>(v));
    if constexpr (__is_same(T, uint64_t)) return Scalar::from_unsigned(v);
    else return Scalar(static_cast<int64_t>(v));
  }
}

Scalar item(const Tensor& t) {
  CHECK(t.numel() == 1, Runtime, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar",
        "\n  its shape is ", to_text(t.sizes()),
        ": pick one element, t[i], or reduce, t.sum() or t.mean(); t.tolist() gives all");
  CHECK(t.has_values(), Runtime, "Tensor.item() cannot be called on meta tensors");
  if (is_float8(t.dtype())) {
    uint8_t code;
    read_element(t, &code);
    return Scalar(static_cast<double>(float8_values(t.dtype())[code]));
  }
  if (!has_cpp_type(t.dtype())) fail_without_kernel(t.dtype(), "_local_scalar_dense_cpu");
  Scalar result(0);
  visit_dtype(t.dtype(), [&](auto tag) {
    typename decltype(tag)::type value;
    read_element(t, &value);
    result = element(value, t->conj, t->neg);
  });
  return result;
}

}  // namespace rl
