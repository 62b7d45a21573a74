#include "python/indexing.h"

#include "ops/ops.h"
#include "python/arguments.h"
#include "python/errors.h"

namespace rl {
namespace {

// Integers, slices, None and Ellipsis: a view.
Tensor basic(const Tensor& self, PyObject* index) {
  PyObject* single[] = {index};
  PyObject** items = PyTuple_Check(index) ? &PyTuple_GET_ITEM(index, 0) : single;
  Py_ssize_t n = PyTuple_Check(index) ? PyTuple_GET_SIZE(index) : 1;
  int64_t specified = 0;
  for (Py_ssize_t i = 0; i < n; ++i) specified += items[i] != Py_None && items[i] != Py_Ellipsis;
  CHECK(specified <= self.dim(), Index, "too many indices for tensor of dimension ", self.dim());
  Tensor t = self;
  int64_t dim = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = items[i];
    if (o == Py_None) {
      t = ops::unsqueeze(t, dim++);
    } else if (o == Py_Ellipsis) {
      dim += self.dim() - specified;
    } else if (PySlice_Check(o)) {
      Py_ssize_t start, stop, step;
      if (PySlice_Unpack(o, &start, &stop, &step) < 0) python_error();
      t = ops::slice(t, dim++, start, stop, step);
    } else {
      CHECK(is_integer(o), Type, "unsupported index of type ", Py_TYPE(o)->tp_name);
      t = ops::select(t, dim, integer_from(o));
    }
  }
  return t.is(self) ? ops::record_alias(alias(self), self) : t;
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* index) {
  return guarded([&] { return basic(Tensor::borrow(self), index).release(); });
}

int tensor_setitem(PyObject* self, PyObject* index, PyObject* value) {
  return guarded_int([&] {
    CHECK(value, Type, "Tensor does not support deleting items");
    Tensor target = basic(Tensor::borrow(self), index);
    PyObject* result = PyObject_CallMethod(target.object(), "copy_", "O", value);
    if (!result) python_error();
    Py_DECREF(result);
    return 0;
  });
}

}  // namespace rl
