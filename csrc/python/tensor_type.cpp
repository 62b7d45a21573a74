// The class rushlight.Tensor: birth and death of its objects, protocols, slots. Ops are added by install_ops, and
// what is written in Python by rushlight/_tensor.py.
#include "python/tensor_type.h"

#include <vector>

#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "base/sanitized.h"
#include "ops/ops.h"
#include "python/dispatch.h"
#include "python/errors.h"
#include "python/indexing.h"
#include "python/op_object.h"
#include "python/operators.h"
#include "python/override.h"
#include "schema/arguments.h"
#include "tensor/no_grad_reason.h"

namespace rl {

PyTypeObject* g_tensor_type = nullptr;

namespace {

// Dead tensors of the base class, reused: a small op makes no call to malloc.
constexpr size_t kMaxSpare = kSanitized ? 0 : 512;
std::vector<TensorObject*>& spare() {
  static auto* list = new std::vector<TensorObject*>;
  return *list;
}

TensorObject* cast(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }
Tensor handle(PyObject* o) { return Tensor::borrow(o); }

void blank(TensorObject* t) {
  t->dict = t->weakrefs = nullptr;
  t->storage = nullptr;
  t->offset = 0;
  t->numel = 1;
  t->sizes = t->inline_geometry;
  t->version = nullptr;
  t->grad_fn = nullptr;
  t->grad = t->base = nullptr;
  t->accumulator = nullptr;
  t->extra = nullptr;
  t->cut = nullptr;
  t->output_nr = t->view_version = 0;
  t->ndim = 0;
  t->dtype = DType::Float32;
  t->requires_grad = t->inference = t->wrapped_number = t->conj = t->neg = false;
  t->contiguous = true;
  t->view_origin = ViewOrigin::Plain;
  t->device = Device();
}

void drop_extra(TensorObject* t) {
  if (TensorExtra* e = std::exchange(t->extra, nullptr)) {
    Py_XDECREF(e->hooks);
    Py_XDECREF(e->post_accumulate_hooks);
    delete e;
  }
}

void tensor_dealloc(PyObject* self) {
  TensorObject* t = cast(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(t->dict);
  if (t->extra) drop_extra(t);
  if (t->cut) t->cut->unref();
  Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->grad_fn, nullptr)));
  Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->grad, nullptr)));
  Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->base, nullptr)));
  if (t->version && t->version != &t->storage->version) release_version(t);
  if (t->storage) t->storage->unref();
  if (t->sizes != t->inline_geometry) PyMem_Free(t->sizes);
  if (type == g_tensor_type && spare().size() < kMaxSpare) {
    spare().push_back(t);  // keeps its reference to the class
    return;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  TensorObject* t = cast(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(t->dict);
  Py_VISIT(reinterpret_cast<PyObject*>(t->grad_fn));
  Py_VISIT(reinterpret_cast<PyObject*>(t->grad));
  Py_VISIT(reinterpret_cast<PyObject*>(t->base));
  if (t->extra) {
    Py_VISIT(t->extra->hooks);
    Py_VISIT(t->extra->post_accumulate_hooks);
  }
  return 0;
}

int tensor_clear(PyObject* self) {
  TensorObject* t = cast(self);
  Py_CLEAR(t->dict);
  Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->grad_fn, nullptr)));
  Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->grad, nullptr)));
  Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->base, nullptr)));
  drop_extra(t);
  return 0;
}

// Tensor(...): the old constructor. Subclasses may take any arguments in __init__, so __new__ looks only at what it
// knows.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* make = PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), "_legacy_new");
    if (!make) python_error();
    PyObject* made = PyObject_Call(make, args, kwargs);
    Py_DECREF(make);
    if (!made) python_error();
    Tensor data = Tensor::own(cast(made));
    if (type == g_tensor_type) return data.release();
    Tensor t = alias_of_type(data, type);
    return (data->base ? ops::record_alias(std::move(t), data) : t).release();  // a view of the tensor that was given
  });
}

// Protocols.

Py_ssize_t tensor_length(PyObject* s) {
  if (may_ask(s) && asks(s, false)) {
    PyObject* n = method_override("__len__", &s, 1, nullptr);
    Py_ssize_t length = n ? PyNumber_AsSsize_t(n, PyExc_OverflowError) : -1;
    Py_XDECREF(n);
    return length;
  }
  if (cast(s)->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return cast(s)->sizes[0];
}
int tensor_bool(PyObject* s) {
  if (may_ask(s) && asks(s, false)) {
    PyObject* truth = method_override("__bool__", &s, 1, nullptr);
    int value = truth ? PyObject_IsTrue(truth) : -1;
    Py_XDECREF(truth);
    return value;
  }
  return guarded_int([&] {
    if (PyObject* truth = dispatching() ? dispatch_method("__bool__", &s, 1) : nullptr) {
      Owned held(truth);
      return PyObject_IsTrue(truth);
    }
    CHECK(cast(s)->numel != 0, Runtime, "Boolean value of Tensor with no values is ambiguous");
    CHECK(cast(s)->numel == 1, Runtime, "Boolean value of Tensor with more than one value is ambiguous",
          "\n  Its shape is ", to_text(handle(s).sizes()), ": say which is meant, t.any(), t.all() or t.item()");
    return item(handle(s)).to_bool() ? 1 : 0;
  });
}
// float(t), int(t): a ValueError where item() is a RuntimeError, as in torch.
void check_single(PyObject* s) {
  CHECK(cast(s)->numel == 1, Value, "only one element tensors can be converted to Python scalars", "\n  its shape is ",
        to_text(handle(s).sizes()), ": pick one element, t[i], or reduce, t.sum(); t.tolist() gives all");
}
PyObject* tensor_float(PyObject* s) {
  return guarded([&]() -> PyObject* {
    check_single(s);
    Scalar v = item(handle(s));
    CHECK(!v.is_complex() || v.to_complex128().imag() == 0, Runtime,
          "value cannot be converted to type double without overflow");
    return PyFloat_FromDouble(v.to_double());
  });
}
PyObject* tensor_int(PyObject* s) {
  return guarded([&]() -> PyObject* {
    check_single(s);
    Scalar v = item(handle(s));
    CHECK(!v.is_complex(), Runtime, "value cannot be converted to type int64_t without overflow");
    if (v.kind() == Scalar::Kind::Bool) return PyLong_FromLong(v.to_bool());
    return v.is_integral() ? scalar_object(v) : PyLong_FromDouble(v.to_double());
  });
}
PyObject* tensor_index(PyObject* s) {
  return guarded([&]() -> PyObject* {
    CHECK(cast(s)->numel == 1 && is_integral(cast(s)->dtype, true), Type,
          "only integer tensors of a single element can be converted to an index");
    Scalar v = item(handle(s));
    return v.kind() == Scalar::Kind::Bool ? PyLong_FromLong(v.to_bool()) : scalar_object(v);
  });
}
Py_hash_t tensor_hash(PyObject* s) { return reinterpret_cast<Py_hash_t>(s); }  // id(tensor)

// What a class inherits that has no handler of its own: (func, types, args, kwargs) is func itself, with a switch off.
PyObject* call_without(PyObject* given, const char* option) {
  PyObject *function, *types, *args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(given, "OO|OO", &function, &types, &args, &kwargs)) return nullptr;
  Owned none(PyTuple_New(0));
  Owned positional(PySequence_Tuple(args ? args : none.p));
  PyObject *set = op_function(option), *before = PyObject_CallOneArg(set, Py_False);
  if (!before) return nullptr;
  PyObject* result = PyObject_Call(function, positional.p, kwargs && kwargs != Py_None ? kwargs : nullptr);
  PyObject *kind, *message, *trace;
  PyErr_Fetch(&kind, &message, &trace);
  Py_XDECREF(PyObject_CallOneArg(set, before));
  PyErr_Restore(kind, message, trace);
  Py_DECREF(before);
  return result;
}

}  // namespace

TensorObject* new_tensor_object(PyTypeObject* type) {
  TensorObject* t;
  if (type == g_tensor_type && !spare().empty()) {
    t = spare().back();
    spare().pop_back();
    _Py_NewReference(reinterpret_cast<PyObject*>(t));
  } else if (type == g_tensor_type) {
    t = reinterpret_cast<TensorObject*>(_PyObject_GC_New(type));
    if (!t) python_error();
  } else {
    PyObject* o = type->tp_alloc(type, 0);
    if (!o) python_error();
    blank(cast(o));
    note_class(type);
    return cast(o);  // tracked by tp_alloc
  }
  blank(t);
  t->inference = t_grad_mode.inference;
  PyObject_GC_Track(t);
  return t;
}

static const char kTensorDoc[] =
    "An n-dimensional array of one element type. torch.tensor(data), zeros(size), randn(size) and other functions "
    "make\n"
    "them; operations on tensors with requires_grad=True are recorded, and backward() computes gradients.";

static PyMemberDef kTensorMembers[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
static PyType_Slot kTensorSlots[] = {
    {Py_tp_doc, const_cast<char*>(kTensorDoc)},
    {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
    {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
    {Py_tp_getset, kTensorAttributes},
    {Py_tp_methods, kTensorMethods},
    {Py_tp_members, kTensorMembers},
    {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
    {Py_mp_length, reinterpret_cast<void*>(tensor_length)},
    {Py_mp_subscript, reinterpret_cast<void*>(tensor_getitem)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(tensor_setitem)},
    {Py_sq_length, reinterpret_cast<void*>(tensor_length)},
    {Py_nb_bool, reinterpret_cast<void*>(tensor_bool)},
    {Py_nb_float, reinterpret_cast<void*>(asked_slot<dispatched_slot<tensor_float, "__float__">, "__float__">)},
    {Py_nb_int, reinterpret_cast<void*>(asked_slot<dispatched_slot<tensor_int, "__int__">, "__int__">)},
    {Py_nb_index, reinterpret_cast<void*>(asked_slot<dispatched_slot<tensor_index, "__index__">, "__index__">)},
    {Py_nb_add, reinterpret_cast<void*>(op_add)},
    {Py_nb_subtract, reinterpret_cast<void*>(op_subtract)},
    {Py_nb_multiply, reinterpret_cast<void*>(op_multiply)},
    {Py_nb_true_divide, reinterpret_cast<void*>(op_divide)},
    {Py_nb_matrix_multiply, reinterpret_cast<void*>(op_matmul)},
    {Py_nb_negative, reinterpret_cast<void*>(op_negative)},
    {Py_nb_inplace_add, reinterpret_cast<void*>(op_iadd)},
    {Py_nb_inplace_subtract, reinterpret_cast<void*>(op_isubtract)},
    {Py_nb_inplace_multiply, reinterpret_cast<void*>(op_imultiply)},
    {Py_nb_inplace_true_divide, reinterpret_cast<void*>(op_idivide)},
    {Py_tp_richcompare, reinterpret_cast<void*>(op_compare)},
    {Py_nb_power, reinterpret_cast<void*>(op_power)},
    {Py_nb_floor_divide, reinterpret_cast<void*>(op_floor_divide)},
    {Py_nb_remainder, reinterpret_cast<void*>(op_remainder)},
    {Py_nb_divmod, reinterpret_cast<void*>(op_divmod)},
    {Py_nb_and, reinterpret_cast<void*>(op_and)},
    {Py_nb_or, reinterpret_cast<void*>(op_or)},
    {Py_nb_xor, reinterpret_cast<void*>(op_xor)},
    {Py_nb_lshift, reinterpret_cast<void*>(op_lshift)},
    {Py_nb_rshift, reinterpret_cast<void*>(op_rshift)},
    {Py_nb_invert, reinterpret_cast<void*>(op_invert)},
    {Py_nb_absolute, reinterpret_cast<void*>(op_absolute)},
    {Py_nb_positive, reinterpret_cast<void*>(op_positive)},
    {Py_nb_inplace_power, reinterpret_cast<void*>(op_ipower)},
    {Py_nb_inplace_floor_divide, reinterpret_cast<void*>(op_ifloor_divide)},
    {Py_nb_inplace_remainder, reinterpret_cast<void*>(op_iremainder)},
    {Py_nb_inplace_and, reinterpret_cast<void*>(op_iand)},
    {Py_nb_inplace_or, reinterpret_cast<void*>(op_ior)},
    {Py_nb_inplace_xor, reinterpret_cast<void*>(op_ixor)},
    {Py_nb_inplace_lshift, reinterpret_cast<void*>(op_ilshift)},
    {Py_nb_inplace_rshift, reinterpret_cast<void*>(op_irshift)},
    {0, nullptr}};

// A function of the module that calls without overrides, kept in `found` too.
static void add_disabled(PyObject* module, PyMethodDef& method, PyObject*& found) {
  found = PyCFunction_NewEx(&method, nullptr, nullptr);
  PyModule_AddObjectRef(module, method.ml_name, found);
}

int install_tensor_type(PyObject* module) {
  PyType_Spec spec = {"rushlight.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, kTensorSlots};
  g_tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!g_tensor_type) return -1;
  g_tensor_type->tp_name = "Tensor";  // what Python's own messages call it
  // Attributes have the qualified names that PyTorch's have, whose class is TensorBase.
  for (PyGetSetDef* a = kTensorAttributes; a->name; ++a) {
    PyObject* found = PyDict_GetItemString(g_tensor_type->tp_dict, a->name);
    if (found && PyObject_TypeCheck(found, &PyGetSetDescr_Type))
      Py_XSETREF(reinterpret_cast<PyDescrObject*>(found)->d_qualname, PyUnicode_FromFormat("TensorBase.%s", a->name));
  }
  static PyMethodDef disabled = {"_disabled_torch_function_impl",
                                 [](PyObject*, PyObject* args) { return call_without(args, "_set_torch_function"); },
                                 METH_VARARGS, nullptr};
  add_disabled(module, disabled, g_disabled_torch_function);
  static PyMethodDef no_dispatch = {"_disabled_torch_dispatch_impl",
                                    [](PyObject*, PyObject* args) { return call_without(args, "_set_torch_dispatch"); },
                                    METH_VARARGS, nullptr};
  add_disabled(module, no_dispatch, g_disabled_torch_dispatch);
  PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), "__torch_dispatch__", g_disabled_torch_dispatch);
  return PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(g_tensor_type));
}

}  // namespace rl
