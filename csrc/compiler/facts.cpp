#include "compiler/facts.h"

#include <algorithm>
#include <cstring>

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "autograd/profile.h"
#include "backend/matmul.h"
#include "backend/precision.h"
#include "base/check.h"
#include "tensor/default_device.h"

namespace rl::compiler {

bool same_value(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!same_value(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  if (!PyLong_CheckExact(a) && !PyUnicode_CheckExact(a) && !PyBytes_CheckExact(a)) return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

static bool hooked(const TensorObject* t) {
  if (t->extra && (t->extra->hooks || t->extra->post_accumulate_hooks || t->extra->retains_grad)) return true;
  return t->accumulator && t->accumulator->hooks;
}

TensorFact::TensorFact(const Tensor& t)
    : type(Py_TYPE(t.object())),
      dtype(t.dtype()),
      requires_grad(t->requires_grad),
      has_base(t->base),
      inference(t->inference),
      leaf(!t->grad_fn),
      lazy(t->lazy()),
      hooked(compiler::hooked(t.get())),
      device(t.device()),
      geometry(IntSpan(t->sizes, 2 * t.dim())) {}
bool TensorFact::holds(const TensorObject* t) const {
  return Py_TYPE(t) == type && t->dtype == dtype && t->requires_grad == requires_grad &&
         (t->base != nullptr) == has_base && t->inference == inference && !t->grad_fn == leaf && t->lazy() == lazy &&
         t->device == device && 2 * t->ndim == geometry.size() &&
         std::equal(geometry.begin(), geometry.end(), t->sizes) && compiler::hooked(t) == hooked &&
         !(t->base && t->base->requires_grad);
}

StateFact::StateFact(const Tensor& t)
    : tensor(t),
      fact(t),
      storage(t.storage()),
      data(t.storage()->data),
      offset(t->offset),
      version(t->version),
      attributes(t->dict) {}
bool StateFact::holds() const {
  const TensorObject* t = tensor.get();
  return t->storage == storage && storage->data == data && t->offset == offset && t->version == version &&
         t->dict == attributes && !storage->lazy && fact.holds(t);
}

ObjectFact::ObjectFact(PyObject* told, PyObject* missing) {
  auto item = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(told, i); };
  auto list = [&](std::vector<Ref>& to, PyObject* from) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); ++i)
      to.emplace_back(PyTuple_GET_ITEM(from, i) == missing ? nullptr : PyTuple_GET_ITEM(from, i));
  };
  const std::string kind = PyUnicode_AsUTF8(item(0));
  object_ = Ref(item(1));
  if (kind == "dict") {
    kind_ = Kind::Dict;
    list(keys_, item(2));
    list(values_, item(3));
    whole_ = item(4) == Py_True;
  } else if (kind == "list") {
    kind_ = Kind::List;
    list(values_, item(2));
  } else if (kind == "class") {
    kind_ = Kind::Class;
    auto* type = reinterpret_cast<PyTypeObject*>(object_.get());
    Py_XDECREF(PyObject_GetAttrString(object_.get(), "__doc__"));  // gives the class its tag, if it has none
    PyErr_Clear();
    tag_ = type->tp_version_tag;
  } else {
    kind_ = kind == "cell" ? Kind::Cell : kind == "function" ? Kind::Function : kind == "type" ? Kind::Type : Kind::Set;
    first_ = Ref(item(2) == missing ? nullptr : item(2));
    if (kind_ == Kind::Function) second_ = Ref(item(3));
  }
}

// The keys are strings, and a dictionary's own tag tells that nothing has changed.
bool ObjectFact::dict_holds() {
#if PY_VERSION_HEX < 0x030c0000
  const uint64_t tag = reinterpret_cast<PyDictObject*>(object_.get())->ma_version_tag;
  if (tag == tag_) return true;
#endif
  if (whole_ && PyDict_GET_SIZE(object_.get()) != static_cast<Py_ssize_t>(keys_.size())) return false;
  for (size_t i = 0; i < keys_.size(); ++i) {
    PyObject* found = PyDict_GetItemWithError(object_.get(), keys_[i].get());
    if (!found && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    if (found != values_[i].get() && !same_value(found, values_[i].get())) return false;
  }
#if PY_VERSION_HEX < 0x030c0000
  tag_ = tag;
#endif
  return true;
}

bool ObjectFact::holds() {
  PyObject* o = object_.get();
  switch (kind_) {
    case Kind::Dict: return dict_holds();
    case Kind::List:
      if (PyList_GET_SIZE(o) != static_cast<Py_ssize_t>(values_.size())) return false;
      for (size_t i = 0; i < values_.size(); ++i)
        if (!same_value(PyList_GET_ITEM(o, static_cast<Py_ssize_t>(i)), values_[i].get())) return false;
      return true;
    case Kind::Cell: return same_value(PyCell_GET(o), first_.get());
    case Kind::Function: {
      auto* f = reinterpret_cast<PyFunctionObject*>(o);
      return f->func_code == first_.get() && same_value(f->func_defaults ? f->func_defaults : Py_None, second_.get());
    }
    case Kind::Type: return reinterpret_cast<PyObject*>(Py_TYPE(o)) == first_.get();
    case Kind::Class: return tag_ && reinterpret_cast<PyTypeObject*>(o)->tp_version_tag == tag_;
    case Kind::Set: return PyObject_RichCompareBool(o, first_.get(), Py_EQ) == 1;
  }
  return false;
}

int ObjectFact::traverse(visitproc visit, void* arg) const {
  Py_VISIT(object_.get());
  Py_VISIT(first_.get());
  Py_VISIT(second_.get());
  for (const Ref& r : keys_) Py_VISIT(r.get());
  for (const Ref& r : values_) Py_VISIT(r.get());
  return 0;
}

Modes Modes::now() {
  const GradMode& g = t_grad_mode;
  const uint64_t grad = uint64_t{g.enabled} | uint64_t{g.inference} << 1 | uint64_t{g.anomaly} << 2 |
                        uint64_t{g.anomaly_check_nan} << 3 | uint64_t{t_saved_hooks && !t_saved_hooks->empty()} << 4 |
                        uint64_t{t_saved_hooks_disabled != nullptr} << 5;
  const Device d = chosen_device();
  const uint64_t process = static_cast<uint64_t>(default_dtype()) | static_cast<uint64_t>(d.type) << 8 |
                           static_cast<uint64_t>(static_cast<uint16_t>(d.index)) << 16 |
                           static_cast<uint64_t>(g_float_precision) << 32 | uint64_t{g_plain_convolutions} << 40;
  // That some class dispatches is nothing to tensors of plain classes.
  return {{grad, process, g_watched & ~uint32_t{kWatchDispatch}, uint64_t{g_lazy_views}}};
}

}  // namespace rl::compiler
