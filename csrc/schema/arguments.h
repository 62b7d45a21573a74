// Python values to C++ arguments and back. An Arg<T> says whether an object fits (`check`, cheap, no error set), turns
// it into a T (`load`), and what it is called in messages.
#pragma once
#include <Python.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "autograd/node.h"
#include "tensor/tensor.h"

namespace rl {

class Generator;

// A tensor argument that may be None.
struct OptTensor : Tensor {
  OptTensor() = default;
  OptTensor(Tensor t) : Tensor(std::move(t)) {}
};
// Any Python object, borrowed.
struct Object {
  PyObject* p = nullptr;
};
// A new reference to return.
struct NewObject {
  PyObject* p = nullptr;
};
enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
enum class Layout : uint8_t { Strided, SparseCoo, SparseCsr, SparseCsc, SparseBsr, SparseBsc, Mkldnn };

PyObject* dtype_object(DType t);           // borrowed
bool dtype_from(PyObject* o, DType* out);  // torch.float32, and Python's float, int, bool, complex
extern bool g_bare_types;  // whether an element type without a C++ type was ever named: only then calls look for them
PyObject* device_object(Device d);  // new
bool is_device_like(PyObject* o);   // device, "cpu", 0
Device device_from(PyObject* o);
PyObject* memory_format_object(MemoryFormat f);  // borrowed
bool memory_format_from(PyObject* o, MemoryFormat* out);
PyObject* layout_object(Layout l);  // borrowed
bool layout_from(PyObject* o, Layout* out);
PyObject* size_object(IntSpan sizes);      // new torch.Size
PyObject* scalar_object(const Scalar& s);  // new Python number
bool is_number(PyObject* o);               // Python or NumPy number, bool included
bool is_ndarray(PyObject* o);              // an array of NumPy's, or of a class derived from it (np.memmap)
bool is_integer(PyObject* o);              // int or NumPy integer or integral 0-dim tensor; not bool
Scalar scalar_from(PyObject* o);           // number or 0-dim tensor
int64_t integer_from(PyObject* o);
bool is_list_integer(PyObject* item,
                     Py_ssize_t position);  // an integer, also as a 0-dim array, or a bool that is not the first
bool is_int_list(PyObject* o);              // sequence of such
Ints ints_from(PyObject* o);                // sequence, or one integer
bool is_tensor_list(PyObject* o);
Tensors tensors_from(PyObject* o);
bool is_generator(PyObject* o);
Generator* generator_from(PyObject* o);
Scalar item(const Tensor& t);  // the one element

[[noreturn]] void python_error();  // a Python exception is already set

// A new reference, dropped at the end of the scope. Null is the sign of a Python exception.
struct Owned {
  PyObject* p;
  explicit Owned(PyObject* o) : p(o) {
    if (!p) python_error();
  }
  ~Owned() { Py_DECREF(p); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};

template <class T> struct Arg;

template <> struct Arg<Tensor> {
  static constexpr const char* kName = "Tensor";
  static bool check(PyObject* o) { return is_tensor(o); }
  static Tensor load(PyObject* o) { return Tensor::borrow(o); }
};
template <> struct Arg<OptTensor> {
  static constexpr const char* kName = "Tensor";
  static bool check(PyObject* o) { return o == Py_None || is_tensor(o); }
  static OptTensor load(PyObject* o) { return o == Py_None ? OptTensor() : OptTensor(Tensor::borrow(o)); }
};
template <> struct Arg<Value> {
  static constexpr const char* kName = "Tensor";
  static bool check(PyObject* o) { return is_tensor(o) || is_number(o); }
  static Value load(PyObject* o) { return is_tensor(o) ? Value(Tensor::borrow(o)) : Value(scalar_from(o)); }
};
template <> struct Arg<Scalar> {
  static constexpr const char* kName = "Number";
  static bool check(PyObject* o) {
    return is_number(o) || (is_tensor(o) && reinterpret_cast<TensorObject*>(o)->ndim == 0);
  }
  static Scalar load(PyObject* o) { return scalar_from(o); }
};
template <> struct Arg<int64_t> {
  static constexpr const char* kName = "int";
  static bool check(PyObject* o) { return is_integer(o); }
  static int64_t load(PyObject* o) { return integer_from(o); }
};
template <> struct Arg<double> {
  static constexpr const char* kName = "float";
  static bool check(PyObject* o) { return Arg<Scalar>::check(o); }
  static double load(PyObject* o) {
    Scalar s = scalar_from(o);
    CHECK(!s.is_complex(), Type, "expected a real number, got a complex one");
    return s.to_double();
  }
};
template <> struct Arg<bool> {
  static constexpr const char* kName = "bool";
  static bool check(PyObject* o) {
    return PyBool_Check(o) || std::string_view(Py_TYPE(o)->tp_name) == "numpy.bool" ||
           std::string_view(Py_TYPE(o)->tp_name) == "numpy.bool_";
  }
  static bool load(PyObject* o) { return PyObject_IsTrue(o) == 1; }
};
template <> struct Arg<Ints> {
  static constexpr const char* kName = "tuple of ints";
  static bool check(PyObject* o) { return is_integer(o) || is_int_list(o); }
  static Ints load(PyObject* o) { return ints_from(o); }
};
template <> struct Arg<Tensors> {
  static constexpr const char* kName = "tuple of Tensors";
  static bool check(PyObject* o) { return is_tensor_list(o); }
  static Tensors load(PyObject* o) { return tensors_from(o); }
};
template <> struct Arg<DType> {
  static constexpr const char* kName = "torch.dtype";
  static bool check(PyObject* o) {
    DType t;
    return dtype_from(o, &t);
  }
  static DType load(PyObject* o) {
    DType t = DType::Float32;
    dtype_from(o, &t);
    return t;
  }
};
template <> struct Arg<Device> {
  static constexpr const char* kName = "torch.device";
  static bool check(PyObject* o) { return is_device_like(o); }
  static Device load(PyObject* o) { return device_from(o); }
};
template <> struct Arg<MemoryFormat> {
  static constexpr const char* kName = "torch.memory_format";
  static bool check(PyObject* o) {
    MemoryFormat f;
    return memory_format_from(o, &f);
  }
  static MemoryFormat load(PyObject* o) {
    MemoryFormat f = MemoryFormat::Contiguous;
    memory_format_from(o, &f);
    return f;
  }
};
template <> struct Arg<Layout> {
  static constexpr const char* kName = "torch.layout";
  static bool check(PyObject* o) {
    Layout l;
    return layout_from(o, &l);
  }
  static Layout load(PyObject* o) {
    Layout l = Layout::Strided;
    layout_from(o, &l);
    return l;
  }
};
template <> struct Arg<std::string> {
  static constexpr const char* kName = "str";
  static bool check(PyObject* o) { return PyUnicode_Check(o); }
  static std::string load(PyObject* o) {
    Py_ssize_t n;
    const char* s = PyUnicode_AsUTF8AndSize(o, &n);
    if (!s) python_error();
    return {s, static_cast<size_t>(n)};
  }
};
template <> struct Arg<Generator*> {
  static constexpr const char* kName = "torch.Generator";
  static bool check(PyObject* o) { return o == Py_None || is_generator(o); }
  static Generator* load(PyObject* o) { return o == Py_None ? nullptr : generator_from(o); }
};
template <> struct Arg<Object> {
  static constexpr const char* kName = "object";
  static bool check(PyObject*) { return true; }
  static Object load(PyObject* o) { return {o}; }
};
template <class T> struct Arg<std::optional<T>> {
  static constexpr const char* kName = Arg<T>::kName;
  static bool check(PyObject* o) { return o == Py_None || Arg<T>::check(o); }
  static std::optional<T> load(PyObject* o) {
    if (o == Py_None) return std::nullopt;
    return Arg<T>::load(o);
  }
};

// Results.
inline PyObject* to_python(Tensor&& t) { return t.defined() ? t.release() : Py_NewRef(Py_None); }
inline PyObject* to_python(NewObject&& o) {
  if (!o.p) python_error();
  return o.p;
}
inline PyObject* to_python(bool v) { return PyBool_FromLong(v); }
inline PyObject* to_python(int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* to_python(double v) { return PyFloat_FromDouble(v); }
inline PyObject* to_python(const Scalar& s) { return scalar_object(s); }
inline PyObject* to_python(DType t) { return Py_NewRef(dtype_object(t)); }
inline PyObject* to_python(Device d) { return device_object(d); }
inline PyObject* to_python(const std::string& s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}
inline PyObject* to_python(const Ints& v) { return size_object(v); }
PyObject* to_python(Tensors&& list);  // a tuple

}  // namespace rl
