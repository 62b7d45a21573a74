// tensor(data): nested sequences, scalars, arrays and tensors become a new tensor.
#include <cstring>
#include <vector>

#include "backend/backend.h"
#include "base/interrupt.h"
#include "ops/elementwise/lazy_view.h"
#include "ops/elementwise/pointwise.h"
#include "ops/ops.h"
#include "python/bridge.h"
#include "python/storage_type.h"
#include "schema/registry.h"
#include "tensor/default_device.h"
#include "tensor/promote.h"

namespace rl {
namespace {

bool is_sequence(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return true;
  if (PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o) || is_tensor(o) || is_number(o)) return false;
  if (!PySequence_Check(o)) return false;
  if (PySequence_Size(o) >= 0) return true;
  PyErr_Clear();  // an array without dimensions: a number
  return false;
}
bool is_number_like(PyObject* o) { return is_number(o) || (is_array_like(o) && !is_sequence(o)); }

// A tensor on the memory of a storage of bytes or of elements; undefined if it is no storage.
Tensor tensor_on_storage(PyObject* o, std::optional<DType> dtype) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o) || is_number(o) || PyUnicode_Check(o)) return {};
  if (!storage_of(o) && !PyObject_HasAttrString(o, "_untyped_storage")) return {};
  if (!dtype && !storage_of(o)) {
    Owned named(PyObject_GetAttrString(o, "_dtype"));
    DType own;
    if (named.p && dtype_from(named.p, &own)) dtype = own;
    PyErr_Clear();
  }
  NoGrad raw;
  Tensor t = empty({0}, dtype.value_or(default_dtype()));
  Owned done(PyObject_CallMethod(t.object(), "set_", "O", o));
  return t;
}

// np.float64(2) keeps its type; the name of its class says which.
bool numpy_scalar_dtype(PyObject* o, DType* out) {
  const char* name = Py_TYPE(o)->tp_name;
  if (std::strncmp(name, "numpy.", 6) != 0) return false;
  for (int i = 0; i < kDTypes; ++i)
    if (std::strcmp(name + 6, kDTypeInfo[i].name) == 0) return *out = static_cast<DType>(i), true;
  if (std::strcmp(name + 6, "longlong") == 0) return *out = DType::Int64, true;
  return std::strncmp(name + 6, "bool", 4) == 0 && (*out = DType::Bool, true);
}

// The type that a nest of values would have: tensors and NumPy scalars keep theirs, Python scalars take the defaults.
struct Survey {
  Ints sizes;
  ResultType types;
  bool any = false;
  bool has_typed = false;
  DType typed = DType::Bool;
};

constexpr const char* kRagged =
    "\n  The rows of a tensor are of one length: pad them (nn.utils.rnn.pad_sequence), or keep a list.";

[[noreturn, gnu::cold]] void fail_no_number(PyObject* o, bool first_of_list) {
  const char* name = Py_TYPE(o)->tp_name;
  if (PyUnicode_Check(o) && first_of_list)
    fail(ErrorKind::Value, "too many dimensions '", name, "': a tensor holds numbers, not text");
  if (PyUnicode_Check(o) || PyBytes_Check(o)) fail(ErrorKind::Type, "new(): invalid data type '", name, "'");
  fail(ErrorKind::Runtime, "Could not infer dtype of ", name);
}

bool fits_int64(PyObject* integer) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(integer, &overflow);
  return !overflow;
}

void check_fits(PyObject* o) {
  CHECK(!PyLong_CheckExact(o) || fits_int64(o), Value,
        "Overflow when unpacking long long: the integer does not fit 64 bits");
}

// Owned: the code of an item (__index__, __float__) may change the list in which it stands.
PyObject* item_of(PyObject* fast, int64_t i) {
  CHECK(i < PySequence_Fast_GET_SIZE(fast), Value, "the sequence changed its length while it was read");
  return Py_NewRef(PySequence_Fast_GET_ITEM(fast, i));
}

void survey(PyObject* o, int64_t depth, Survey& s) {
  CHECK(depth < kMaxDims, Value, "too many dimensions '", o ? Py_TYPE(o)->tp_name : "", "': nested deeper than ",
        kMaxDims);
  if (is_tensor(o)) {
    Tensor t = Tensor::borrow(o);
    s.typed = s.has_typed ? promote_types(s.typed, t.dtype()) : t.dtype();
    s.has_typed = s.any = true;
    return;
  }
  if (!is_sequence(o)) {
    if (!is_number_like(o)) fail_no_number(o, depth && !s.any);
    if (!is_number(o)) {  // a NumPy array of one element
      const DType of_array = tensor_from_array(o, true).dtype();
      s.typed = s.has_typed ? promote_types(s.typed, of_array) : of_array;
      s.has_typed = s.any = true;
      return;
    }
    DType of_numpy;
    if (numpy_scalar_dtype(o, &of_numpy)) {
      s.typed = s.has_typed ? promote_types(s.typed, of_numpy) : of_numpy;
      s.has_typed = true;
    } else {
      s.types.add(PyLong_CheckExact(o) ? Scalar(0)
                  : is_tensor(o)       ? item(Tensor::borrow(o))
                                       : scalar_from(o));  // its size matters when it is stored
    }
    s.any = true;
    return;
  }
  Owned fast(PySequence_Fast(o, "not a sequence"));
  int64_t n = PySequence_Fast_GET_SIZE(fast.p);
  if (s.sizes.size() == depth) s.sizes.push_back(n);
  CHECK(s.sizes[depth] == n, Value, "expected sequence of length ", s.sizes[depth], " at dim ", depth, " (got ", n, ")",
        kRagged);
  for (int64_t i = 0; i < n && !stops_at(i); ++i) {
    Owned item(item_of(fast.p, i));
    CHECK(item.p != o, Type, "new(): self-referential lists are incompatible");
    survey(item.p, depth + 1, s);
  }
}

// The sizes of a nest follow its first elements, as torch does.
void shape_of(PyObject* o, Ints& sizes) {
  PyObject* at = Py_NewRef(o);
  while (is_sequence(at)) {
    Py_ssize_t n = PySequence_Size(at);
    if (n < 0) {
      Py_DECREF(at);
      python_error();
    }
    sizes.push_back(n);
    CHECK(sizes.size() <= kMaxDims, Value, "too many dimensions '", Py_TYPE(at)->tp_name, "'");
    if (n == 0) break;
    PyObject* next = PySequence_GetItem(at, 0);
    if (!next && PyErr_ExceptionMatches(PyExc_Exception)) {
      PyErr_Clear();
      Owned kept(at);
      fail(ErrorKind::Value, "could not determine the shape of object type '", Py_TYPE(at)->tp_name, "'");
    }
    const bool itself = next == at;
    Py_DECREF(at);
    if (!next) python_error();
    if (itself) {
      Py_DECREF(next);
      fail(ErrorKind::Type, "new(): self-referential lists are incompatible");
    }
    at = next;
  }
  Py_DECREF(at);
}

void store(PyObject* o, char* at, DType dtype, bool in_list) {
  if (dtype == DType::UInt64 && PyLong_CheckExact(o)) {  // above what an int64 holds
    uint64_t wide = PyLong_AsUnsignedLongLong(o);
    if (!(wide == static_cast<uint64_t>(-1) && PyErr_Occurred())) {
      std::memcpy(at, &wide, sizeof wide);
      return;
    }
    PyErr_Clear();
    int beyond = 0;
    const bool negative = PyLong_AsLongLongAndOverflow(o, &beyond) < 0 && beyond <= 0;
    fail(ErrorKind::Overflow,
         negative ? "can't convert negative int to unsigned" : "int too big to convert: an uint64 ends at 2**64 - 1");
  }
  CHECK(dtype != DType::UInt64 || !PyFloat_CheckExact(o), Type, "an integer is required, not float");
  if (PyLong_CheckExact(o) && !fits_int64(o)) {
    if (dtype == DType::Bool) return write_element(at, Scalar(true), dtype);
    if (!is_differentiable(dtype)) check_fits(o);
    double wide = PyLong_AsDouble(o);
    if (wide == -1 && PyErr_Occurred()) python_error();
    write_operand(at, Scalar(wide), dtype);
    return;
  }
  if (is_number(o) || is_tensor(o)) {
    Scalar s = is_tensor(o) ? item(Tensor::borrow(o)) : scalar_from(o);
    CHECK(!s.is_complex() || is_complex(dtype) || dtype == DType::Bool, Type, "can't convert complex to ",
          info(dtype).name);
    is_differentiable(dtype) ? write_operand(at, s, dtype) : write_element(at, s, dtype);  // 1e300 is inf in float32
    return;
  }
  if (PyUnicode_Check(o)) fail_no_number(o, in_list);
  if (is_number_like(o)) {
    const Scalar s = item(tensor_from_array(o, true));
    return is_differentiable(dtype) ? write_operand(at, s, dtype) : write_element(at, s, dtype);
  }
  fail(ErrorKind::Type, "must be real number, not ", Py_TYPE(o)->tp_name);
}

void fill(PyObject* o, int64_t depth, IntSpan sizes, IntSpan strides, char* data, DType dtype) {
  if (depth == sizes.size()) {
    CHECK(!is_sequence(o), Value, "expected a number at dim ", depth, ", got a sequence");
    if (is_tensor(o) && Tensor::borrow(o).numel() != 1) {
      CHECK(is_float(dtype) || is_complex(dtype), Type,
            "only integer tensors of a single element can be converted to an index: torch.stack(list) stacks them");
      fail(ErrorKind::Value,
           "only one element tensors can be converted to Python scalars: torch.stack(list) stacks them");
    }
    return store(o, data, dtype, depth > 0);
  }
  CHECK(is_sequence(o), Type, "not a sequence");
  Owned fast(PySequence_Fast(o, "not a sequence"));
  int64_t n = PySequence_Fast_GET_SIZE(fast.p);
  CHECK(n == sizes[depth], Value, "expected sequence of length ", sizes[depth], " at dim ", depth, " (got ", n, ")",
        kRagged);
  for (int64_t i = 0; i < n && !stops_at(i); ++i) {
    Owned item(item_of(fast.p, i));
    fill(item.p, depth + 1, sizes, strides, data + i * strides[depth] * itemsize(dtype), dtype);
  }
}

}  // namespace

// A new tensor from anything that holds values. Arrays and tensors are copied.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype, Device device) {
  Tensor result;
  if (is_tensor(data)) {
    NoGrad raw;
    result = ops::clone(ops::resolved(Tensor::borrow(data)));
    if (dtype) result = ops::cast(result, *dtype);
  } else if (Tensor on = tensor_on_storage(data, dtype); on.defined()) {
    result = on;
  } else if (is_array_like(data)) {
    result = tensor_from_array(data, true);
    if (dtype) result = ops::cast(result, *dtype);
  } else {
    Ints sizes;
    shape_of(data, sizes);
    DType wanted = DType::Float32;
    if (dtype) {
      wanted = *dtype;
    } else {
      Survey s;
      survey(data, 0, s);
      wanted = !s.any        ? default_dtype()
               : s.has_typed ? (s.types.get() == DType::Bool ? s.typed : promote_types(s.typed, s.types.get()))
                             : s.types.get();
    }
    result = empty(sizes, wanted);
    if (result.numel() || sizes.empty())
      fill(data, 0, result.sizes(), result.strides(), static_cast<char*>(result.data()), wanted);
  }
  return ops::to_device(result, device);
}

static Tensor tensor_op(Object data, std::optional<DType> dtype, std::optional<Device> device, bool requires_grad,
                        bool) {
  if (is_tensor(data.p) &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "To copy construct from a tensor, write x.detach().clone(), with .requires_grad_(True) if it is to "
                   "learn, not torch.tensor(x)",
                   1) < 0)
    python_error();
  Tensor t = tensor_from_data(data.p, dtype, device_or_default(device));
  if (requires_grad) {
    CHECK(is_differentiable(t.dtype()), Runtime,
          "Only Tensors of floating point and complex dtype can require gradients\n  Write 1.0 for 1, or "
          "dtype=torch.float32.");
    t->requires_grad = true;
  }
  return t;
}

static const Register registered([](Ops& ops) {
  ops.def("tensor", tensor_op, "data, *, dtype=None, device=None, requires_grad=False, pin_memory=False",
          kFactory | kNoOut | kAnyType, R"(
    Makes a tensor of data, which is copied: numbers, nested sequences, NumPy arrays or tensors.

    Args:
        data: the values.
        dtype: the element type; None takes that of data: int64, bool, or the default float type for floats.

    Returns:
        Tensor: a leaf without history; clone() or detach() make copies of tensors.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
        >>> torch.tensor([1.0, 2.0], requires_grad=True)
        tensor([1., 2.], requires_grad=True)
        >>> torch.tensor(3.5).shape
        torch.Size([]))");
});

}  // namespace rl
