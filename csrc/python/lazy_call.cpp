#include "python/lazy_call.h"

#include "autograd/meta.h"
#include "ops/elementwise/lazy_view.h"

namespace rl {

bool has_lazy(PyObject* value) {
  if (!value) return false;
  if (is_tensor(value)) return reinterpret_cast<TensorObject*>(value)->lazy();
  if (!PyTuple_Check(value) && !PyList_Check(value)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, i);
    if (is_tensor(item) && reinterpret_cast<TensorObject*>(item)->lazy()) return true;
  }
  return false;
}

bool any_lazy(const Bound& b, int count) {
  for (int i = 0; i < count; ++i)
    if (has_lazy(b.slots[i])) return true;
  return has_lazy(b.out);
}

PlainArguments::PlainArguments(const OpDef& def, bool in_place, Bound& b, int count) {
  // Ops that write are derived, or have a name with one underscore at its end.
  const std::string& name = def.name;
  const bool writes = in_place || (name.ends_with('_') && !name.ends_with("__"));
  for (int i = 0; i < count; ++i)
    if (has_lazy(b.slots[i])) b.slots[i] = plain(b.slots[i], writes && i == 0);
  if (has_lazy(b.out)) b.out = plain(b.out, true);
}
PlainArguments::~PlainArguments() {
  for (PyObject* o : owned_) Py_DECREF(o);
}

PyObject* PlainArguments::plain(PyObject* value, bool written) {
  if (is_tensor(value)) {
    Tensor view = Tensor::borrow(value);
    if (!view->lazy()) return value;
    Tensor copy = ops::resolved(view);
    if (written) written_.push_back({view, copy});
    owned_.push_back(copy.release());
  } else {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(value);
    Owned list(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(value, i);
      PyTuple_SET_ITEM(list.p, i, Py_NewRef(is_tensor(item) ? plain(item, written) : item));
    }
    owned_.push_back(Py_NewRef(list.p));
  }
  return owned_.back();
}

PyObject* PlainArguments::finish(PyObject* result) {
  Owned held(result);
  for (const Written& w : written_) {
    if (!(w.copy.sizes() == w.view.sizes())) set_geometry(w.view.get(), w.copy.sizes(), w.copy.strides(), 0);
    g_engine_ops.assign(ops::under(w.view), ops::as_under(w.view, w.copy));
  }
  auto original = [&](PyObject* o) {
    for (const Written& w : written_)
      if (o == w.copy.object()) return w.view.object();
    return o;
  };
  if (!PyTuple_CheckExact(result)) return Py_NewRef(original(result));
  Owned same(PyTuple_New(PyTuple_GET_SIZE(result)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i)
    PyTuple_SET_ITEM(same.p, i, Py_NewRef(original(PyTuple_GET_ITEM(result, i))));
  return Py_NewRef(same.p);
}

}  // namespace rl
