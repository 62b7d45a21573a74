#include "python/dispatch.h"

#include <algorithm>
#include <cstring>

#include "autograd/gradient_sum.h"
#include "autograd/meta.h"
#include "schema/registry.h"

namespace rl {

PyObject* g_disabled_torch_dispatch = nullptr;

namespace {

thread_local bool t_dispatch = true;  // off inside torch._C._DisableTorchDispatch
thread_local int64_t t_modes = 0;     // dispatch modes of this thread
int64_t g_mode_threads = 0;           // threads with a mode
bool g_classes = false;               // an object of a class that dispatches was made
PyObject* g_handler = nullptr;        // rushlight._dispatch.call

void update_watch() {
  g_watched =
      g_classes || g_mode_threads ? g_watched | kWatchDispatch : g_watched & ~static_cast<uint32_t>(kWatchDispatch);
}

// Lists of lists of tensors are the deepest that ops take.
bool taken(PyObject* o, int depth = 0) {
  PyTypeObject* t = Py_TYPE(o);
  if (t == g_tensor_type || t == &PyLong_Type || t == &PyFloat_Type || o == Py_None) return false;
  if (t == &PyTuple_Type || t == &PyList_Type) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (depth < 3 && taken(PySequence_Fast_GET_ITEM(o, i), depth + 1)) return true;
    return false;
  }
  return PyType_IsSubtype(t, g_tensor_type) && dispatches(t);
}

}  // namespace

bool anybody_dispatches(PyObject* const* args, Py_ssize_t count) {
  if (!t_dispatch) return false;
  if (t_modes) return true;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (taken(args[i])) return true;
  return false;
}

namespace {

PyObject* ask(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (!g_handler) {
    PyObject* module = PyImport_ImportModule("rushlight._dispatch");
    g_handler = module ? PyObject_GetAttrString(module, "call") : nullptr;
    Py_XDECREF(module);
    if (!g_handler) python_error();
  }
  Owned given(PyTuple_New(nargs)), named(PyDict_New());
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(given.p, i, Py_NewRef(args[i]));
  for (Py_ssize_t k = 0; k < (kwnames ? PyTuple_GET_SIZE(kwnames) : 0); ++k)
    PyDict_SetItem(named.p, PyTuple_GET_ITEM(kwnames, k), args[nargs + k]);
  PyObject* result = PyObject_CallFunctionObjArgs(g_handler, callable, given.p, named.p, nullptr);
  if (!result) python_error();
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  return nullptr;
}

Tensor as_tensor(PyObject* made) {
  if (!made) python_error();
  CHECK(is_tensor(made), Type, "__torch_dispatch__ returned ", Py_TYPE(made)->tp_name, " where a gradient is a Tensor");
  return Tensor::own(reinterpret_cast<TensorObject*>(made));
}
// A gradient of a class that dispatches, or any gradient while a mode wants to see what is computed.
bool goes_through_python(PyTypeObject* type) { return t_dispatch && (t_modes || dispatches(type)); }
bool by_class(const Tensor& t) { return dispatching() && goes_through_python(Py_TYPE(t.object())); }

EngineOps g_plain;

bool set_dispatch(bool on) { return std::exchange(t_dispatch, on); }
bool is_dispatching() { return dispatching() && t_dispatch; }
void set_modes(int64_t count) {
  g_mode_threads += (count > 0) - (t_modes > 0);
  t_modes = count;
  update_watch();
}

// A tensor of a subclass that has a shape, a type and a device, and no memory.
NewObject new_wrapper(Object type, const Ints& sizes, const Ints& strides, int64_t offset, DType dtype, Device device,
                      int64_t bytes) {
  CHECK(PyType_Check(type.p) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.p), g_tensor_type), Type,
        "cls must be a subclass of Tensor");
  Tensor meta = empty_strided(sizes, strides, dtype, Device{DeviceType::Meta});
  Tensor t = alias_of_type(meta, reinterpret_cast<PyTypeObject*>(type.p));
  if (offset) set_geometry(t.get(), sizes, strides, offset);
  if (bytes >= 0) t->storage->bytes = bytes;
  t->device = device;
  set_version(t.get(), new_version(0));
  t->version->refs = 1;
  return {t.release()};
}

// Everything of a tensor but its identity: memory, geometry, history, class and attributes.
void swap_bodies(const Tensor& a, const Tensor& b) {
  constexpr size_t kHead = sizeof(PyObject);
  TensorObject *x = a.get(), *y = b.get();
  CHECK(Py_TYPE(x)->tp_basicsize == Py_TYPE(y)->tp_basicsize, Runtime,
        "Cannot swap t1 and t2 if they have different slots");
  std::swap(x->ob_base.ob_type, y->ob_base.ob_type);
  const bool x_inline = x->sizes == x->inline_geometry, y_inline = y->sizes == y->inline_geometry;
  char spare[sizeof(TensorObject)];
  char *p = reinterpret_cast<char*>(x) + kHead, *q = reinterpret_cast<char*>(y) + kHead;
  std::memcpy(spare, p, sizeof(TensorObject) - kHead);
  std::memcpy(p, q, sizeof(TensorObject) - kHead);
  std::memcpy(q, spare, sizeof(TensorObject) - kHead);
  if (y_inline) x->sizes = x->inline_geometry;
  if (x_inline) y->sizes = y->inline_geometry;
  for (TensorObject* t : {x, y})
    if (AccumulateGrad* node = std::exchange(t->accumulator, nullptr)) node->variable = Tensor();
  // Whoever saved one of them for backward finds that it has changed.
  x->version->value = y->version->value = std::max(x->version->value, y->version->value) + 1;
}

}  // namespace

bool dispatches(PyTypeObject* type) {
  if (type == g_tensor_type) return false;
  static PyObject* name = PyUnicode_InternFromString("__torch_dispatch__");
  PyObject* f = _PyType_Lookup(type, name);
  return f && f != g_disabled_torch_dispatch;
}

void note_class(PyTypeObject* type) {
  if (g_classes || !dispatches(type)) return;
  g_classes = true;
  update_watch();
}

PyObject* dispatch_call(PyObject* callable, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (!anybody_dispatches(args, nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0))) return nullptr;
  return ask(callable, args, nargs, kwnames);
}

PyObject* dispatch_method(const char* name, PyObject* const* args, Py_ssize_t nargs) {
  if (!anybody_dispatches(args, nargs)) return nullptr;
  Owned method(PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name));
  return ask(method.p, args, nargs, nullptr);
}

void dispatch_engine_ops() {
  g_plain = g_engine_ops;
  g_adds_itself = goes_through_python;
  g_engine_ops.sum_to = [](const Tensor& t, IntSpan sizes) {
    if (!by_class(t)) return g_plain.sum_to(t, sizes);
    Owned shape(size_object(sizes));
    return as_tensor(PyObject_CallMethod(t.object(), "sum_to_size", "(O)", shape.p));
  };
  g_engine_ops.cast = [](const Tensor& t, DType type) {
    if (!by_class(t)) return g_plain.cast(t, type);
    return as_tensor(PyObject_CallMethod(t.object(), "to", "(O)", dtype_object(type)));
  };
  g_engine_ops.clone = [](const Tensor& t) {
    return by_class(t) ? as_tensor(PyObject_CallMethod(t.object(), "clone", nullptr)) : g_plain.clone(t);
  };
}

static const Register registered([](Ops& ops) {
  ops.def("_set_torch_dispatch", set_dispatch, "mode", kNoOut);
  ops.def("_dispatching", is_dispatching, "", kNoOut);
  ops.def("_set_dispatch_modes", set_modes, "count", kNoOut);
  ops.def("_new_wrapper", new_wrapper, "type, sizes, strides, offset, dtype, device, bytes", kNoOut);
  ops.def("_swap_bodies", swap_bodies, "input, other", kNoOut | kAnyDevice);
});

}  // namespace rl
