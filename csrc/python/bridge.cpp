#include "python/bridge.h"

#include <cstring>
#include <optional>

#include "base/interrupt.h"
#include "ops/elementwise/lazy_view.h"
#include "ops/ops.h"
#include "python/errors.h"
#include "schema/registry.h"

namespace rl {
namespace {

// The struct-module codes of element types, as the buffer protocol names them.
bool dtype_of_format(const char* f, Py_ssize_t size, DType* out) {
  if (!f) f = "B";
  if (*f == '@' || *f == '=' || *f == '<') ++f;
  if (*f == '>' || *f == '!') return false;
  if (f[0] == 'Z') {
    *out = f[1] == 'f' ? DType::Complex64 : DType::Complex128;
    return (f[1] == 'f' || f[1] == 'd') && f[2] == 0;
  }
  if (f[0] == 0 || f[1] != 0) return false;
  switch (*f) {
    case '?': *out = DType::Bool; return true;
    case 'e': *out = DType::Float16; return true;
    case 'f': *out = DType::Float32; return true;
    case 'd': *out = DType::Float64; return true;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      *out = size == 1 ? DType::Int8 : size == 2 ? DType::Int16 : size == 4 ? DType::Int32 : DType::Int64;
      return true;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
    case 'c':
      *out = size == 1 ? DType::UInt8 : size == 2 ? DType::UInt16 : size == 4 ? DType::UInt32 : DType::UInt64;
      return true;
    default: return false;
  }
}

const char* format_of(DType t) {
  switch (t) {
    case DType::Bool: return "?";
    case DType::UInt8: return "B";
    case DType::Int8: return "b";
    case DType::Int16: return "h";
    case DType::Int32: return "i";
    case DType::Int64: return sizeof(long) == 8 ? "l" : "q";  // NumPy's own int64: "q" would print as another type
    case DType::Float16: return "e";
    case DType::Float32: return "f";
    case DType::Float64: return "d";
    case DType::Complex64: return "Zf";
    case DType::Complex128: return "Zd";
    case DType::UInt16: return "H";
    case DType::UInt32: return "I";
    case DType::UInt64: return "L";
    default: return nullptr;
  }
}

// An object that offers a tensor's memory through the buffer protocol; NumPy arrays are made over it and keep it alive.
struct Exporter {
  PyObject_HEAD TensorObject* tensor;
};
struct Geometry {
  Py_ssize_t shape[kMaxDims], strides[kMaxDims];
};

int exporter_getbuffer(PyObject* self, Py_buffer* view, int flags) {
  TensorObject* t = reinterpret_cast<Exporter*>(self)->tensor;
  if (!t) {
    PyErr_SetString(PyExc_BufferError, "the tensor is gone");
    return -1;
  }
  auto* g = new Geometry;
  for (int i = 0; i < t->ndim; ++i) {
    g->shape[i] = t->sizes[i];
    g->strides[i] = t->strides()[i] * itemsize(t->dtype);
  }
  static char nothing[16];
  void* data = t->storage->data ? Tensor::borrow(t).data() : nothing;
  view->obj = Py_NewRef(self);
  view->buf = data;
  view->len = t->numel * itemsize(t->dtype);
  view->itemsize = itemsize(t->dtype);
  view->readonly = 0;
  view->ndim = t->ndim;
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(t->dtype)) : nullptr;
  view->shape = g->shape;
  view->strides = g->strides;
  view->suboffsets = nullptr;
  view->internal = g;
  return 0;
}
void exporter_release(PyObject*, Py_buffer* view) { delete static_cast<Geometry*>(view->internal); }
void exporter_dealloc(PyObject* self) {
  Py_XDECREF(reinterpret_cast<PyObject*>(reinterpret_cast<Exporter*>(self)->tensor));
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyTypeObject* exporter_type() {
  static PyTypeObject* type = [] {
    PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(exporter_dealloc)},
                           {Py_bf_getbuffer, reinterpret_cast<void*>(exporter_getbuffer)},
                           {Py_bf_releasebuffer, reinterpret_cast<void*>(exporter_release)},
                           {0, nullptr}};
    PyType_Spec spec = {"rushlight._C.TensorMemory", sizeof(Exporter), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  }();
  return type;
}

PyObject* export_memory(const Tensor& t) {
  Exporter* e = PyObject_New(Exporter, exporter_type());
  if (!e) python_error();
  e->tensor = Tensor(t).get();
  Py_INCREF(e->tensor);
  return reinterpret_cast<PyObject*>(e);
}

void release_buffer(Storage* s) {
  auto* view = static_cast<Py_buffer*>(s->owner);
  PyBuffer_Release(view);
  delete view;
}

// The elements of one row of the commonest types, without a tensor for each.
template <class T, class Make> PyObject* list_row(const Tensor& t, int64_t offset, Make make) {
  const int64_t n = t.sizes()[t.dim() - 1], step = t.strides()[t.dim() - 1];
  Owned list(PyList_New(n));
  const T* p = t.data<T>() + (offset - t->offset);
  for (int64_t i = 0; i < n && !stops_at(i); ++i) {
    PyObject* element = make(p[i * step]);
    if (!element) python_error();
    PyList_SET_ITEM(list.p, i, element);
  }
  return Py_NewRef(list.p);
}

PyObject* list_at(const Tensor& t, int64_t dim, int64_t offset) {
  if (dim + 1 == t.dim()) {
    auto real = [](auto x) { return PyFloat_FromDouble(static_cast<double>(x)); };
    if (t.dtype() == DType::Float32) return list_row<float>(t, offset, real);
    if (t.dtype() == DType::Float64) return list_row<double>(t, offset, real);
    if (t.dtype() == DType::Int64) return list_row<int64_t>(t, offset, PyLong_FromLongLong);
    if (t.dtype() == DType::Bool) return list_row<bool>(t, offset, [](bool x) { return PyBool_FromLong(x); });
  }
  if (dim == t.dim()) {
    Tensor one = alias(t, {}, {}, offset);
    return scalar_object(item(one));
  }
  Owned list(PyList_New(t.sizes()[dim]));
  for (int64_t i = 0; i < t.sizes()[dim] && !stops_at(i); ++i)
    PyList_SET_ITEM(list.p, i, list_at(t, dim + 1, offset + i * t.strides()[dim]));
  return Py_NewRef(list.p);
}

// Null and an error of Python's where there is no NumPy, or no array of `o`.
PyObject* numpy_array(PyObject* o) {
  static PyObject* asarray = nullptr;  // looked up once: finding the module takes as long as making the array
  if (!asarray) {
    PyObject* numpy = PyImport_ImportModule("numpy");
    if (!numpy) return nullptr;
    asarray = PyObject_GetAttrString(numpy, "asarray");
    Py_DECREF(numpy);
    if (!asarray) return nullptr;
  }
  return PyObject_CallOneArg(asarray, o);
}

}  // namespace

bool is_array_like(PyObject* o) {
  if (is_ndarray(o)) return true;
  if (PyBytes_Check(o) || PyByteArray_Check(o) || PyMemoryView_Check(o)) return PyMemoryView_Check(o);
  if (PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o) || is_number(o)) return false;
  return PyObject_CheckBuffer(o) || PyObject_HasAttrString(o, "__array_interface__") ||
         (PyObject_HasAttrString(o, "__array__") && !is_tensor(o) && !PyType_Check(o));
}

Tensor tensor_from_array(PyObject* o, bool copy) {
  Owned held(PyObject_CheckBuffer(o) ? Py_NewRef(o) : numpy_array(o));
  PyObject* array = held.p;
  auto view = new Py_buffer;
  bool readonly = false;
  if (PyObject_GetBuffer(array, view, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    readonly = true;
    if (PyObject_GetBuffer(array, view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
      delete view;
      PyErr_Clear();
      fail(ErrorKind::Type,
           "can't convert np.ndarray of this dtype to a tensor. The only supported types are: float64, float32, "
           "float16, complex64, "
           "complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.");
    }
  }
  // From here the storage owns the buffer.
  DType dtype = DType::Float32;
  Ints sizes, strides;
  std::string problem;
  if (!dtype_of_format(view->format, view->itemsize, &dtype) || itemsize(dtype) != view->itemsize)
    problem =
        text("can't convert np.ndarray of type with format '", view->format ? view->format : "",
             "'. The only supported types are: float64, float32, "
             "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.");
  int64_t extent = view->itemsize;
  ErrorKind kind = ErrorKind::Type;
  for (int i = 0; i < view->ndim && problem.empty(); ++i) {
    sizes.push_back(view->shape[i]);
    int64_t s = view->strides[i];
    if (s < 0)
      problem =
          "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
          "currently supported. (You can probably "
          "work around this by making a copy of your array  with array.copy().)",
      kind = ErrorKind::Value;
    else if (s % view->itemsize)
      problem =
          "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
          "memory.",
      kind = ErrorKind::Value;
    strides.push_back(s / view->itemsize);
    if (view->shape[i] > 1) extent += (view->shape[i] - 1) * s;
    if (view->shape[i] == 0) extent = 0;
  }
  if (problem.empty() && view->ndim > kMaxDims) problem = "too many dimensions";
  if (!problem.empty()) {
    PyBuffer_Release(view);
    delete view;
    fail(kind, problem);
  }
  if (readonly && !copy &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
                   "means writing to this tensor "
                   "will result in undefined behavior. You may want to copy the array to protect its data or make it "
                   "writable before converting it to a "
                   "tensor.",
                   1) < 0) {
    PyBuffer_Release(view);
    delete view;
    python_error();
  }
  Tensor shared = tensor_over(Storage::borrow(view->buf, extent, release_buffer, view), sizes, strides, 0, dtype);
  if (!copy) return shared;
  Tensor own = empty(sizes, dtype);
  ops::copy_into(own, shared);
  return own;
}

PyObject* array_from_tensor(const Tensor& t) {
  t.storage()->materialize();
  t.storage()->resizable = false;  // the array would be left with memory that is gone
  CHECK(t.device().is_cpu(), Type, "can't convert ", t.device().name(),
        " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  CHECK(format_of(t.dtype()), Type, "Got unsupported ScalarType ", info(t.dtype()).legacy);
  PyObject* memory = export_memory(t);
  PyObject* array = numpy_array(memory);
  Py_DECREF(memory);
  if (!array) python_error();
  return array;
}

PyObject* to_list(const Tensor& t) {
  CHECK(t.has_values(), NotImplemented, "Cannot copy out of meta tensor; no data!");
  NoGrad raw;
  const Tensor host = ops::to_host(t);
  return list_at(host, 0, host->offset);
}

static NewObject numpy_op(const Tensor& input, bool force) {
  Tensor t = input;
  if (force) {
    NoGrad raw;
    t = ops::resolved(ops::detach(t));
  } else {
    std::string how =
        t->grad_fn && t->grad_fn->site ? text("\n  it was computed at ", t->grad_fn->site.describe()) : "";
    CHECK(!t.requires_grad() || !grad_enabled(), Runtime,
          "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.", how);
  }
  CHECK(!t->conj, Runtime,
        "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.");
  CHECK(!t->neg, Runtime,
        "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead.");
  return {array_from_tensor(t)};
}
static NewObject memory_op(const Tensor& input) {
  CHECK(input.on_host(), Type, "can't convert ", input.device().name(),
        " device type tensor to a buffer. Use Tensor.cpu() to copy the tensor to host memory first.");
  return {export_memory(input)};
}
static NewObject tolist_op(const Tensor& input) { return {to_list(input)}; }
static Tensor from_numpy_op(Object array) {
  CHECK(PyObject_CheckBuffer(array.p) && is_ndarray(array.p), Type, "expected np.ndarray (got ",
        Py_TYPE(array.p)->tp_name, ")");
  return tensor_from_array(array.p, false);
}
// Shares memory where it can: what as_tensor and asarray are made of.
static Tensor share_op(Object array) { return tensor_from_array(array.p, false); }
static bool is_array_like_op(Object o) { return !is_tensor(o.p) && is_array_like(o.p); }

static Tensor frombuffer_op(Object buffer, DType dtype, int64_t count, int64_t offset, bool requires_grad) {
  CHECK(PyObject_CheckBuffer(buffer.p), Value, "object does not implement Python buffer protocol.");
  auto view = new Py_buffer;
  if (PyObject_GetBuffer(buffer.p, view, PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(buffer.p, view, PyBUF_SIMPLE) < 0) {
      delete view;
      PyErr_Clear();
      fail(ErrorKind::Value, "could not retrieve buffer from object");
    }
    if (PyErr_WarnEx(PyExc_UserWarning,
                     "The given buffer is not writable, and PyTorch does not support non-writable tensors.", 1) < 0) {
      PyBuffer_Release(view);
      delete view;
      python_error();
    }
  }
  int64_t size = itemsize(dtype), left = view->len - offset;
  std::string problem;
  if (view->len <= 0 || count == 0)
    problem = text("both buffer length (", static_cast<int64_t>(view->len), ") and count (", count, ") must not be 0");
  else if (offset < 0 || offset >= view->len)
    problem = text("offset (", offset, " bytes) must be non-negative and no greater than buffer length (",
                   static_cast<int64_t>(view->len), " bytes) - 1");
  else if (count < 0 && left % size)
    problem = text("buffer length (", left, " bytes) after offset (", offset,
                   " bytes) must be a multiple of element size (", size, ")");
  else if (count > 0 && count > left / size)
    problem =
        text("requested buffer length (", count, " * ", size, " bytes) after offset (", offset,
             " bytes) must not be greater than actual buffer length (", static_cast<int64_t>(view->len), " bytes)");
  if (!problem.empty()) {
    PyBuffer_Release(view);
    delete view;
    fail(ErrorKind::Value, problem);
  }
  int64_t n = count < 0 ? left / size : count;
  Tensor t = tensor_over(Storage::borrow(static_cast<char*>(view->buf) + offset, n * size, release_buffer, view), {n},
                         {1}, 0, dtype);
  t->requires_grad = requires_grad;
  return t;
}

static const Register registered([](Ops& ops) {
  ops.def("numpy", numpy_op, "input, *, force=False", kMethod | kNoFunction | kNoOut | kLazyOk | kAnyType, R"(
    Returns a NumPy array on the same memory: writes to one change the other.

    Args:
        force: whether to detach, resolve views and copy as it takes, instead of raising.

    Raises:
        RuntimeError: the tensor requires gradients; detach() it first.

    Example:
        >>> torch.tensor([1, 2]).numpy()
        array([1, 2])
        >>> torch.ones(2, requires_grad=True).numpy(force=True)
        array([1., 1.], dtype=float32))");
  ops.def("_memory", memory_op, "input", kMethod | kNoFunction | kNoOut,
          "An object offering the memory by the buffer protocol.");
  ops.def("tolist", tolist_op, "input", kMethod | kNoFunction | kNoOut | kAnyType, R"(
    Returns the elements as nested lists of Python numbers; a number for a 0-dim tensor.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]])");
  ops.def("from_numpy", from_numpy_op, "ndarray", kNoOut | kFactory | kAnyType, R"(
    Makes a tensor on the memory of a NumPy array: writes to one change the other.

    Args:
        ndarray: a writable array of a type that tensors have.

    Example:
        >>> a = np.array([1, 2, 3])
        >>> x = torch.from_numpy(a)
        >>> x[0] = 9
        >>> a
        array([9, 2, 3]))");
  ops.def("_share_array", share_op, "array", kNoOut | kAnyType);
  ops.def("_is_array_like", is_array_like_op, "object", kNoOut | kAnyType);
  ops.def("frombuffer", frombuffer_op, "buffer, *, dtype, count=-1, offset=0, requires_grad=False",
          kNoOut | kFactory | kAnyType, R"(
    Makes a vector on the memory of an object with a buffer, such as bytearray.

    Args:
        buffer: the object; writes to the tensor change it.
        dtype: how its bytes are read.
        count: the number of elements; -1 takes all there are.
        offset: how many bytes are skipped at the start.

    Example:
        >>> torch.frombuffer(bytearray(b"\x01\x00\x02\x00"), dtype=torch.int16)
        tensor([1, 2], dtype=torch.int16))");
});

}  // namespace rl
