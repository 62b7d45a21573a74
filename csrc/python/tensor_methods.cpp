// Methods of tensors that are no ops: x.size(), x.item(), x.retain_grad().
#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "autograd/record.h"
#include "ops/ops.h"
#include "python/dispatch.h"
#include "python/errors.h"
#include "python/override.h"
#include "python/tensor_type.h"
#include "schema/arguments.h"
#include "tensor/no_grad_reason.h"

namespace rl {

namespace {

struct Arguments {
  PyObject* const* args;
  Py_ssize_t count;
  PyObject* names;
};

TensorObject* cast(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }
Tensor handle(PyObject* o) { return Tensor::borrow(o); }

PyObject* m_dim(PyObject* s, PyObject*) { return PyLong_FromLong(cast(s)->ndim); }
PyObject* m_numel(PyObject* s, PyObject*) { return PyLong_FromLongLong(cast(s)->numel); }
PyObject* m_element_size(PyObject* s, PyObject*) { return PyLong_FromLongLong(itemsize(cast(s)->dtype)); }
PyObject* m_storage_offset(PyObject* s, PyObject*) { return PyLong_FromLongLong(cast(s)->offset); }
PyObject* m_data_ptr(PyObject* s, PyObject*) {
  return guarded([&] {
    cast(s)->storage->materialize();
    const bool none = !cast(s)->storage->data || cast(s)->numel == 0;
    return PyLong_FromVoidPtr(none ? nullptr : handle(s).memory());
  });
}
PyObject* m_item(PyObject* s, PyObject*) {
  return guarded([&] { return scalar_object(item(handle(s))); });
}
PyObject* m_is_view(PyObject* s, PyObject*) { return PyBool_FromLong(cast(s)->base != nullptr); }
PyObject* m_is_inference(PyObject* s, PyObject*) { return PyBool_FromLong(cast(s)->inference); }
PyObject* m_type_name(PyObject* s, PyObject*) {
  return PyUnicode_FromFormat("torch.%sTensor", info(cast(s)->dtype).legacy);
}

// The argument of a method that takes one at most, by position or by name; null if there is none.
PyObject* one_argument(const char* method, const char* name, const Arguments& given) {
  PyObject* names = given.names;
  bool fits = given.count + (names ? PyTuple_GET_SIZE(names) : 0) <= 1 &&
              (!names || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), name) == 0);
  CHECK(fits, Type, method, "() takes one argument, ", name);
  return given.count || names ? given.args[0] : nullptr;
}
// The same as a method of Tensor: asks classes that take over first.
template <PyObject* (*Method)(PyObject*, PyObject*), Name name, Name parameter>
PyObject* asked_one(PyObject* s, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (may_ask(s) && asks(s, false)) {
      SmallVector<PyObject*, 4> all{s};
      for (Py_ssize_t i = 0; i < count + (names ? PyTuple_GET_SIZE(names) : 0); ++i) all.push_back(args[i]);
      return method_override(name.text, all.data(), count + 1, names);
    }
    return Method(s, one_argument(name.text, parameter.text, {args, count, names}));
  });
}

PyCFunction fast(_PyCFunctionFastWithKeywords f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

// size() and stride(), whole or of one dimension.
int64_t dimension(PyObject* dim, const char* method) {
  CHECK(is_integer(dim), Type, method, "(): argument 'dim' (position 1) must be int, not ", Py_TYPE(dim)->tp_name);
  return integer_from(dim);
}
PyObject* m_size(PyObject* s, PyObject* dim) {
  if (!dim || dim == Py_None) return size_object({cast(s)->sizes, cast(s)->ndim});
  return PyLong_FromLongLong(handle(s).size(dimension(dim, "size")));
}
PyObject* m_stride(PyObject* s, PyObject* dim) {
  if (dim && dim != Py_None) return PyLong_FromLongLong(handle(s).stride(dimension(dim, "stride")));
  PyObject* t = PyTuple_New(cast(s)->ndim);
  for (int i = 0; i < cast(s)->ndim; ++i) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(cast(s)->strides()[i]));
  return t;
}

PyObject* m_is_contiguous(PyObject* s, PyObject* format) {
  MemoryFormat f = MemoryFormat::Contiguous;
  CHECK(!format || format == Py_None || memory_format_from(format, &f), Type,
        "is_contiguous(): argument 'memory_format' must be torch.memory_format, not ", Py_TYPE(format)->tp_name);
  TensorObject* t = cast(s);
  if (f == MemoryFormat::Contiguous || f == MemoryFormat::Preserve) return PyBool_FromLong(t->contiguous);
  bool rank = t->ndim == (f == MemoryFormat::ChannelsLast ? 4 : 5);
  return PyBool_FromLong(rank && is_channels_last({t->sizes, t->ndim}, {t->strides(), t->ndim}));
}

PyObject* m_requires_grad_(PyObject* s, PyObject* on) {
  return change_requires_grad(s, on ? on : Py_True, true) < 0 ? nullptr : Py_NewRef(s);
}

PyObject* m_make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject *type, *data, *on = Py_False, *policy, *device, *layout, *other_device;
  // Attributes are of the object itself: __torch_dispatch__ is not asked for them.
  static const char* names[] = {"cls",
                                "data",
                                "require_grad",
                                "dispatch_sizes_strides_policy",
                                "dispatch_device",
                                "dispatch_layout",
                                "device_for_backend_keys",
                                nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$OOOO", const_cast<char**>(names), &type, &data, &on, &policy,
                                   &device, &layout, &other_device))
    return nullptr;
  return guarded([&]() -> PyObject* {
    CHECK(PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), g_tensor_type), Type,
          "cls must be a subclass of Tensor");
    CHECK(is_tensor(data), Type, "_make_subclass(): argument 'data' must be Tensor, not ", Py_TYPE(data)->tp_name);
    Tensor t = alias_of_type(handle(data), reinterpret_cast<PyTypeObject*>(type));
    // A counter of its own: the subclass object is a variable of its own (Parameter(data)).
    set_version(t.get(), new_version(0));
    t->version->refs = 1;
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0 || (wanted && change_requires_grad(t.object(), Py_True, false) < 0)) python_error();
    return t.release();
  });
}
PyObject* m_as_subclass(PyObject* s, PyObject* type) {
  return guarded([&]() -> PyObject* {
    CHECK(PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), g_tensor_type), Type,
          "as_subclass() needs a subclass of Tensor");
    return ops::record_alias(alias_of_type(handle(s), reinterpret_cast<PyTypeObject*>(type)), handle(s)).release();
  });
}

// tensor.register_hook: the dict of hooks is shared with the node that receives the gradient.
PyObject* m_add_hook_dict(PyObject* s, PyObject* dict) {
  return guarded([&]() -> PyObject* {
    CHECK(PyDict_Check(dict), Type, "hooks must be a dict, not ", Py_TYPE(dict)->tp_name);
    CHECK(cast(s)->wants_grad(), Runtime, "cannot register a hook on a tensor that doesn't require gradient");
    Py_XSETREF(extra_of(cast(s)).hooks, Py_NewRef(dict));
    if (Node* fn = grad_fn_of(cast(s))) hooks_of(*fn).tensor_hooks.push_back({cast(s)->output_nr, Py_NewRef(dict)});
    return Py_NewRef(Py_None);
  });
}
PyObject* m_add_post_accumulate(PyObject* s, PyObject* dict) {
  return guarded([&]() -> PyObject* {
    CHECK(PyDict_Check(dict), Type, "hooks must be a dict, not ", Py_TYPE(dict)->tp_name);
    Py_XSETREF(extra_of(cast(s)).post_accumulate_hooks, Py_NewRef(dict));
    return Py_NewRef(Py_None);
  });
}
PyObject* get_post_accumulate(PyObject* s, PyObject*) {
  TensorExtra* e = cast(s)->extra;
  return Py_NewRef(e && e->post_accumulate_hooks ? e->post_accumulate_hooks : Py_None);
}
PyObject* m_retain_grad(PyObject* s, PyObject*) {
  return guarded([&]() -> PyObject* {
    retain_grad(cast(s));
    return Py_NewRef(Py_None);
  });
}
PyObject* m_detach_(PyObject* s, PyObject*) {
  return guarded([&]() -> PyObject* {
    TensorObject* t = cast(s);
    if (t_grad_mode.inference || t->inference) return Py_NewRef(s);  // the graph is not looked at there
    CHECK(!t->base, Runtime, "Can't detach views in-place. Use detach() instead.");
    Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->grad_fn, nullptr)));
    if (t->requires_grad) note_cut(t, CutKind::Detached, "detach_");
    t->requires_grad = false;
    t->output_nr = 0;
    return Py_NewRef(s);
  });
}
// For methods that are written in Python (rushlight/_tensor.py: asked).
PyObject* m_asks(PyObject* s, PyObject*) { return PyBool_FromLong(asks(s, false)); }
PyObject* m_ask(PyObject*, PyObject* all) {
  PyObject *function, *args, *kwargs;
  if (!PyArg_ParseTuple(all, "OO!O!", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
  return guarded([&] {
    SmallVector<PyObject*, 8> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) values.push_back(PyTuple_GET_ITEM(args, i));
    Owned names(PySequence_Tuple(kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.p); ++i)
      values.push_back(PyDict_GetItem(kwargs, PyTuple_GET_ITEM(names.p, i)));
    return call_override(function, values.data(), PyTuple_GET_SIZE(args), names.p);
  });
}
PyObject* m_bump_version(PyObject* s, PyObject*) {
  bump_version(handle(s));
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef kTensorMethods[] = {
    {"dim", asked_call<m_dim, "dim">, METH_NOARGS, "The number of dimensions."},
    {"ndimension", asked_call<m_dim, "dim">, METH_NOARGS, "The number of dimensions."},
    {"numel", asked_call<m_numel, "numel">, METH_NOARGS, "The number of elements."},
    {"nelement", asked_call<m_numel, "numel">, METH_NOARGS, "The number of elements."},
    {"element_size", asked_call<m_element_size, "element_size">, METH_NOARGS, "Bytes of one element."},
    {"storage_offset", asked_call<m_storage_offset, "storage_offset">, METH_NOARGS,
     "The offset of its first element in the storage, in elements."},
    {"data_ptr", asked_call<m_data_ptr, "data_ptr">, METH_NOARGS, "The address of the first element."},
    {"item", asked_call<dispatched_call<m_item, "item">, "item">, METH_NOARGS, "The one element as a Python number."},
    {"size", fast(asked_one<m_size, "size", "dim">), METH_FASTCALL | METH_KEYWORDS,
     "size($self, dim=None)\n--\n\nIts sizes, a torch.Size; or the size of one dimension."},
    {"stride", fast(asked_one<m_stride, "stride", "dim">), METH_FASTCALL | METH_KEYWORDS,
     "stride($self, dim=None)\n--\n\nElements from one index of a dimension to the next: of all dimensions, or of "
     "one."},
    {"is_contiguous", fast(asked_one<m_is_contiguous, "is_contiguous", "memory_format">), METH_FASTCALL | METH_KEYWORDS,
     "is_contiguous($self, memory_format=None)\n--\n\nWhether its elements lie in memory in the order of their "
     "indices."},
    {"requires_grad_", fast(asked_one<m_requires_grad_, "requires_grad_", "requires_grad">),
     METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_($self, requires_grad=True)\n--\n\nSets whether gradients are wanted for it; returns the tensor "
     "itself."},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(m_make_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {"as_subclass", m_as_subclass, METH_O,
     "The same tensor as an object of a subclass of Tensor; gradients flow through."},
    {"_asks", m_asks, METH_NOARGS, nullptr},
    {"_ask", m_ask, METH_VARARGS | METH_STATIC, nullptr},
    {"_is_view", asked_call<m_is_view, "_is_view">, METH_NOARGS, nullptr},
    {"is_inference", asked_call<m_is_inference, "is_inference">, METH_NOARGS, "Whether it was made in inference mode."},
    {"_type_name", m_type_name, METH_NOARGS, nullptr},
    {"_add_hook_dict", m_add_hook_dict, METH_O, nullptr},
    {"_set_post_accumulate_hooks", m_add_post_accumulate, METH_O, nullptr},
    {"_get_post_accumulate_hooks", get_post_accumulate, METH_NOARGS, nullptr},
    {"retain_grad", asked_call<m_retain_grad, "retain_grad">, METH_NOARGS,
     "Makes backward() keep the gradient of a computed tensor in its grad."},
    {"detach_", asked_call<dispatched_call<m_detach_, "detach_">, "detach_">, METH_NOARGS,
     "Takes the tensor itself out of the graph, which makes it a leaf."},
    {"_bump_version", m_bump_version, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace rl
