// The class rushlight.Tensor: birth and death of its objects, attributes, protocols. Ops are added by install_ops, and
// what is written in Python by rushlight/_tensor.py.
#include "python/tensor_type.h"

#include <cstring>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "autograd/profile.h"
#include "autograd/record.h"
#include "ops/ops.h"
#include "python/arguments.h"
#include "python/errors.h"
#include "python/indexing.h"
#include "python/note_result.h"
#include "python/op_object.h"
#include "python/operators.h"
#include "python/override.h"
#include "tensor/cut.h"

namespace rl::ops {
Tensor divide(const Value& a, const Value& b);  // the operator: ops/arithmetic.cpp
}

namespace rl {

PyTypeObject* g_tensor_type = nullptr;

namespace {

// Dead tensors of the base class, reused: a small op makes no call to malloc.
constexpr size_t kMaxSpare = 512;
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
  t->sizes = t->room;
  t->version = nullptr;
  t->grad_fn = nullptr;
  t->grad = t->base = nullptr;
  t->accumulator = nullptr;
  t->extra = nullptr;
  t->cut = nullptr;
  t->output_nr = t->view_version = 0;
  t->ndim = 0;
  t->dtype = DType::Float32;
  t->requires_grad = t->inference = t->wrapped_number = false;
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
  if (t->sizes != t->room) PyMem_Free(t->sizes);
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
    return alias_of_type(data, type).release();
  });
}

// Attributes.

PyObject* get_shape(PyObject* s, void*) { return size_object({cast(s)->sizes, cast(s)->ndim}); }
PyObject* get_dtype(PyObject* s, void*) { return Py_NewRef(dtype_object(cast(s)->dtype)); }
PyObject* get_device(PyObject* s, void*) { return device_object(cast(s)->device); }
PyObject* get_layout(PyObject*, void*) { return Py_NewRef(layout_object(Layout::Strided)); }
PyObject* get_ndim(PyObject* s, void*) { return PyLong_FromLong(cast(s)->ndim); }
PyObject* get_itemsize(PyObject* s, void*) { return PyLong_FromLongLong(itemsize(cast(s)->dtype)); }
PyObject* get_nbytes(PyObject* s, void*) { return PyLong_FromLongLong(itemsize(cast(s)->dtype) * cast(s)->numel); }
PyObject* get_requires_grad(PyObject* s, void*) { return PyBool_FromLong(cast(s)->wants_grad()); }
PyObject* get_is_leaf(PyObject* s, void*) {
  return guarded([&] { return PyBool_FromLong(!grad_fn_of(cast(s))); });
}
PyObject* get_version(PyObject* s, void*) { return PyLong_FromUnsignedLong(cast(s)->version->value); }
PyObject* get_output_nr(PyObject* s, void*) { return PyLong_FromUnsignedLong(cast(s)->output_nr); }
PyObject* get_base(PyObject* s, void*) {
  return Py_NewRef(cast(s)->base ? reinterpret_cast<PyObject*>(cast(s)->base) : Py_None);
}
PyObject* get_grad(PyObject* s, void*) {
  if (cast(s)->grad) return Py_NewRef(reinterpret_cast<PyObject*>(cast(s)->grad));
  if (cast(s)->grad_fn && !(cast(s)->extra && cast(s)->extra->retains_grad) &&
      PyErr_WarnEx(
          PyExc_UserWarning,
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
          "populated "
          "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
          ".retain_grad() on the non-leaf Tensor.",
          1) < 0)
    return nullptr;
  Py_RETURN_NONE;
}
PyObject* get_plain_grad(PyObject* s, void*) {
  return Py_NewRef(cast(s)->grad ? reinterpret_cast<PyObject*>(cast(s)->grad) : Py_None);
}
PyObject* get_grad_fn(PyObject* s, void*) {
  return guarded([&] {
    Node* n = grad_fn_of(cast(s));
    return Py_NewRef(n ? reinterpret_cast<PyObject*>(n) : Py_None);
  });
}
PyObject* get_retains_grad(PyObject* s, void*) {
  return PyBool_FromLong(cast(s)->extra && cast(s)->extra->retains_grad);
}
PyObject* get_hooks(PyObject* s, void*) {
  return Py_NewRef(cast(s)->extra && cast(s)->extra->hooks ? cast(s)->extra->hooks : Py_None);
}
int set_hooks(PyObject* s, PyObject* v, void*) {
  if (!v || v == Py_None) {
    if (cast(s)->extra) Py_CLEAR(cast(s)->extra->hooks);
    return 0;
  }
  Py_XSETREF(extra_of(cast(s)).hooks, Py_NewRef(v));
  return 0;
}
PyObject* get_data(PyObject* s, void*) {
  return guarded([&] {
    Tensor t = alias(handle(s));
    Version* own = new_version(0);
    set_version(t.get(), own);
    own->refs = 1;  // only t holds it
    if (cast(s)->wants_grad()) note_cut(t.get(), CutKind::Data, "data");
    return t.release();
  });
}
int set_data(PyObject* s, PyObject* v, void*) {
  return guarded_int([&] {
    CHECK(v && is_tensor(v), Type, "Variable data has to be a tensor, but got ", v ? Py_TYPE(v)->tp_name : "nothing");
    TensorObject *t = cast(s), *from = cast(v);
    CHECK(!t->wants_grad() || is_differentiable(from->dtype), Runtime,
          "data set to a tensor that requires gradients must be floating point or complex dtype");
    if (t->storage != from->storage) set_storage(t, from->storage);
    t->dtype = from->dtype;
    t->device = from->device;
    set_geometry(t, Ints(IntSpan(from->sizes, from->ndim)), Ints(IntSpan(from->strides(), from->ndim)), from->offset);
    if (t->accumulator) t->accumulator->results[0] = ResultMeta(handle(s));
    return 0;
  });
}
// `from_method`: x.requires_grad_(), which says nothing against a tensor that has it already.
int change_requires_grad(PyObject* s, PyObject* v, bool from_method) {
  return guarded_int([&] {
    CHECK(v && PyBool_Check(v), Runtime, "requires_grad must be a bool");
    TensorObject* t = cast(s);
    bool on = v == Py_True;
    if (t->view_origin == ViewOrigin::Plain ? grad_fn_of(t) : t->grad_fn) {
      if (on && from_method) return 0;
      std::string where = t->grad_fn->site ? text("\n  this tensor was computed at ", t->grad_fn->site.describe()) : "";
      fail(ErrorKind::Runtime,
           "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
           "subgraph that doesn't require differentiation use var_no_grad = var.detach().",
           where);
    }
    CHECK(!on || is_differentiable(t->dtype), Runtime,
          "only Tensors of floating point and complex dtype can require gradients");
    CHECK(!on || !t->inference || t_grad_mode.inference, Runtime,
          "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    if (t->requires_grad && !on) note_cut(t, CutKind::Frozen, "requires_grad_");
    t->requires_grad = on;
    return 0;
  });
}
int set_requires_grad(PyObject* s, PyObject* v, void*) { return change_requires_grad(s, v, false); }
int set_grad(PyObject* s, PyObject* v, void*) {
  return guarded_int([&] {
    TensorObject* t = cast(s);
    if (!v || v == Py_None) {
      Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->grad, nullptr)));
      return 0;
    }
    CHECK(is_tensor(v), Type, "assigned grad expected to be a Tensor or None but got grad of type ",
          Py_TYPE(v)->tp_name);
    CHECK(v != s, Runtime, "can't assign Variable as its own grad");
    Tensor g = handle(v);
    CHECK(g.dtype() == t->dtype, Runtime, "assigned grad has data of a different type: expected ", info(t->dtype).name,
          ", got ", info(g.dtype()).name);
    CHECK(g.device() == t->device, Runtime, "assigned grad has data located on a different device");
    CHECK(g.sizes() == handle(s).sizes(), Runtime, "assigned grad has data of a different size: expected ",
          to_text(handle(s).sizes()), ", got ", to_text(g.sizes()));
    Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(t->grad, cast(Py_NewRef(v)))));
    return 0;
  });
}
PyObject* false_(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* is_cpu(PyObject* s, void*) { return PyBool_FromLong(cast(s)->device.is_cpu()); }
PyObject* is_meta(PyObject* s, void*) { return PyBool_FromLong(cast(s)->device.is_meta()); }

PyGetSetDef kGetSet[] = {
    {"shape", get_shape, nullptr, "Its sizes, a torch.Size.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of its elements.", nullptr},
    {"device", get_device, nullptr, "Where its memory is.", nullptr},
    {"layout", get_layout, nullptr, nullptr, nullptr},
    {"ndim", get_ndim, nullptr, "The number of its dimensions.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are wanted for it.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether it was not computed from tensors that want gradients.", nullptr},
    {"grad", get_grad, set_grad, "The accumulated gradient, or None.", nullptr},
    {"_grad", get_plain_grad, set_grad, nullptr, nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node of the call that computed it, or None.", nullptr},
    {"data", get_data, set_data, "The same memory outside the graph; writes to it are not checked.", nullptr},
    {"output_nr", get_output_nr, nullptr, nullptr, nullptr},
    {"retains_grad", get_retains_grad, nullptr, nullptr, nullptr},
    {"_version", get_version, nullptr, "How often it was written to in place.", nullptr},
    {"_base", get_base, nullptr, nullptr, nullptr},
    {"_backward_hooks", get_hooks, set_hooks, nullptr, nullptr},
    {"is_cpu", is_cpu, nullptr, nullptr, nullptr},
    {"is_meta", is_meta, nullptr, nullptr, nullptr},
    {"is_cuda", false_, nullptr, nullptr, nullptr},
    {"is_sparse", false_, nullptr, nullptr, nullptr},
    {"is_sparse_csr", false_, nullptr, nullptr, nullptr},
    {"is_quantized", false_, nullptr, nullptr, nullptr},
    {"is_nested", false_, nullptr, nullptr, nullptr},
    {"is_mkldnn", false_, nullptr, nullptr, nullptr},
    {"is_mps", false_, nullptr, nullptr, nullptr},
    {"is_xpu", false_, nullptr, nullptr, nullptr},
    {"is_xla", false_, nullptr, nullptr, nullptr},
    {"is_vulkan", false_, nullptr, nullptr, nullptr},
    {"is_ipu", false_, nullptr, nullptr, nullptr},
    {"is_maia", false_, nullptr, nullptr, nullptr},
    {"is_mtia", false_, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// Methods that are not ops.

PyObject* m_dim(PyObject* s, PyObject*) { return PyLong_FromLong(cast(s)->ndim); }
PyObject* m_numel(PyObject* s, PyObject*) { return PyLong_FromLongLong(cast(s)->numel); }
PyObject* m_element_size(PyObject* s, PyObject*) { return PyLong_FromLongLong(itemsize(cast(s)->dtype)); }
PyObject* m_storage_offset(PyObject* s, PyObject*) { return PyLong_FromLongLong(cast(s)->offset); }
PyObject* m_data_ptr(PyObject* s, PyObject*) {
  return PyLong_FromVoidPtr(cast(s)->storage->data ? handle(s).data() : nullptr);
}
// The one element of a uint64 tensor, which an int64 may not hold; null for other types.
PyObject* wide_item(const Tensor& t) {
  if (t.dtype() != DType::UInt64 || t.numel() != 1 || t.device().is_meta()) return nullptr;
  return PyLong_FromUnsignedLongLong(*t.data<uint64_t>());
}
PyObject* m_item(PyObject* s, PyObject*) {
  return guarded([&] {
    if (PyObject* wide = wide_item(handle(s))) return wide;
    return scalar_object(item(handle(s)));
  });
}
PyObject* m_is_view(PyObject* s, PyObject*) { return PyBool_FromLong(cast(s)->base != nullptr); }
PyObject* m_is_inference(PyObject* s, PyObject*) { return PyBool_FromLong(cast(s)->inference); }
PyObject* m_type_name(PyObject* s, PyObject*) {
  return PyUnicode_FromFormat("torch.%sTensor", info(cast(s)->dtype).legacy);
}

// size() and stride(), whole or of one dimension.
PyObject* dim_or_all(PyObject* s, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, bool sizes) {
  return guarded([&]() -> PyObject* {
    PyObject* dim = n ? args[0] : nullptr;
    if (kwnames) {
      CHECK(PyTuple_GET_SIZE(kwnames) == 1 && !dim &&
                PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "dim") == 0,
            Type, sizes ? "size" : "stride", "() takes one argument, dim");
      dim = args[n];
    }
    if (!dim || dim == Py_None) {
      if (sizes) return size_object({cast(s)->sizes, cast(s)->ndim});
      PyObject* t = PyTuple_New(cast(s)->ndim);
      for (int i = 0; i < cast(s)->ndim; ++i) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(cast(s)->strides()[i]));
      return t;
    }
    CHECK(is_integer(dim), Type, sizes ? "size" : "stride", "(): argument 'dim' (position 1) must be int, not ",
          Py_TYPE(dim)->tp_name);
    int64_t d = integer_from(dim);
    return PyLong_FromLongLong(sizes ? handle(s).size(d) : handle(s).stride(d));
  });
}
PyObject* m_size(PyObject* s, PyObject* const* a, Py_ssize_t n, PyObject* k) { return dim_or_all(s, a, n, k, true); }
PyObject* m_stride(PyObject* s, PyObject* const* a, Py_ssize_t n, PyObject* k) { return dim_or_all(s, a, n, k, false); }

PyObject* m_is_contiguous(PyObject* s, PyObject* args, PyObject* kwargs) {
  PyObject* format = nullptr;
  static const char* names[] = {"memory_format", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &format)) return nullptr;
  MemoryFormat f = MemoryFormat::Contiguous;
  if (format && format != Py_None && !memory_format_from(format, &f)) {
    PyErr_SetString(PyExc_TypeError, "is_contiguous(): argument 'memory_format' must be torch.memory_format");
    return nullptr;
  }
  TensorObject* t = cast(s);
  if (f == MemoryFormat::Contiguous) return PyBool_FromLong(t->contiguous);
  bool rank = t->ndim == (f == MemoryFormat::ChannelsLast ? 4 : 5);
  return PyBool_FromLong(rank && is_channels_last({t->sizes, t->ndim}, {t->strides(), t->ndim}));
}

PyObject* m_requires_grad_(PyObject* s, PyObject* args, PyObject* kwargs) {
  PyObject* on = Py_True;
  static const char* names[] = {"requires_grad", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &on)) return nullptr;
  return change_requires_grad(s, on, true) < 0 ? nullptr : Py_NewRef(s);
}

PyObject* m_make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject *type, *data, *on = Py_False;
  static const char* names[] = {"cls", "data", "require_grad", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O", const_cast<char**>(names), &type, &data, &on)) return nullptr;
  return guarded([&]() -> PyObject* {
    CHECK(PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), g_tensor_type), Type,
          "cls must be a subclass of Tensor");
    CHECK(is_tensor(data), Type, "_make_subclass(): argument 'data' must be Tensor, not ", Py_TYPE(data)->tp_name);
    Tensor t = alias_of_type(handle(data), reinterpret_cast<PyTypeObject*>(type));
    // A counter of its own: the subclass object is a variable of its own (Parameter(data)).
    set_version(t.get(), new_version(0));
    t->version->refs = 1;
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0 || (wanted && set_requires_grad(t.object(), Py_True, nullptr) < 0)) python_error();
    return t.release();
  });
}
PyObject* m_as_subclass(PyObject* s, PyObject* type) {
  return guarded([&]() -> PyObject* {
    CHECK(PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), g_tensor_type), Type,
          "as_subclass() needs a subclass of Tensor");
    Tensor t = alias_of_type(handle(s), reinterpret_cast<PyTypeObject*>(type));
    if (Node* fn = grad_fn_of(cast(s))) {
      t->grad_fn = fn;
      Py_INCREF(reinterpret_cast<PyObject*>(fn));
      t->output_nr = cast(s)->output_nr;
      t->requires_grad = true;
    } else if (cast(s)->wants_grad()) {
      return ops::record_alias(std::move(t), handle(s)).release();
    }
    return t.release();
  });
}

// tensor.register_hook: the dict of hooks is shared with the node that receives the gradient.
PyObject* m_add_hook_dict(PyObject* s, PyObject* dict) {
  return guarded([&]() -> PyObject* {
    CHECK(cast(s)->wants_grad(), Runtime, "cannot register a hook on a tensor that doesn't require gradient");
    Py_XSETREF(extra_of(cast(s)).hooks, Py_NewRef(dict));
    if (Node* fn = grad_fn_of(cast(s))) hooks_of(*fn).tensor_hooks.push_back({cast(s)->output_nr, Py_NewRef(dict)});
    return Py_NewRef(Py_None);
  });
}
PyObject* m_add_post_accumulate(PyObject* s, PyObject* dict) {
  Py_XSETREF(extra_of(cast(s)).post_accumulate_hooks, Py_NewRef(dict));
  Py_RETURN_NONE;
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
PyObject* m_bump_version(PyObject* s, PyObject*) {
  bump_version(handle(s));
  Py_RETURN_NONE;
}

PyMethodDef kMethods[] = {
    {"dim", m_dim, METH_NOARGS, "The number of dimensions."},
    {"ndimension", m_dim, METH_NOARGS, "The number of dimensions."},
    {"numel", m_numel, METH_NOARGS, "The number of elements."},
    {"nelement", m_numel, METH_NOARGS, "The number of elements."},
    {"element_size", m_element_size, METH_NOARGS, "Bytes of one element."},
    {"storage_offset", m_storage_offset, METH_NOARGS, "The place of its first element in the storage, in elements."},
    {"data_ptr", m_data_ptr, METH_NOARGS, "The address of the first element."},
    {"item", m_item, METH_NOARGS, "The one element as a Python number."},
    {"size", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(m_size)), METH_FASTCALL | METH_KEYWORDS,
     "size($self, dim=None)\n--\n\nIts sizes, a torch.Size; or the size of one dimension."},
    {"stride", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(m_stride)), METH_FASTCALL | METH_KEYWORDS,
     "stride($self, dim=None)\n--\n\nElements from one index of a dimension to the next: of all dimensions, or of "
     "one."},
    {"is_contiguous", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(m_is_contiguous)),
     METH_VARARGS | METH_KEYWORDS,
     "is_contiguous($self, memory_format=None)\n--\n\nWhether its elements lie in memory in the order of their "
     "indices."},
    {"requires_grad_", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(m_requires_grad_)),
     METH_VARARGS | METH_KEYWORDS,
     "requires_grad_($self, requires_grad=True)\n--\n\nSets whether gradients are wanted for it; returns the tensor "
     "itself."},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(m_make_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {"as_subclass", m_as_subclass, METH_O,
     "The same tensor as an object of a subclass of Tensor; gradients flow through."},
    {"_is_view", m_is_view, METH_NOARGS, nullptr},
    {"is_inference", m_is_inference, METH_NOARGS, "Whether it was made in inference mode."},
    {"_type_name", m_type_name, METH_NOARGS, nullptr},
    {"_add_hook_dict", m_add_hook_dict, METH_O, nullptr},
    {"_set_post_accumulate_hooks", m_add_post_accumulate, METH_O, nullptr},
    {"_get_post_accumulate_hooks", get_post_accumulate, METH_NOARGS, nullptr},
    {"retain_grad", m_retain_grad, METH_NOARGS, "Makes backward() keep the gradient of a computed tensor in its grad."},
    {"detach_", m_detach_, METH_NOARGS, "Takes the tensor itself out of the graph, which makes it a leaf."},
    {"_bump_version", m_bump_version, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// Protocols.

Py_ssize_t tensor_length(PyObject* s) {
  if (cast(s)->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return cast(s)->sizes[0];
}
int tensor_bool(PyObject* s) {
  return guarded_int([&] {
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
    if (PyObject* wide = wide_item(handle(s))) return wide;
    Scalar v = item(handle(s));
    CHECK(!v.is_complex(), Runtime, "value cannot be converted to type int64_t without overflow");
    return v.is_integral() ? PyLong_FromLongLong(v.to_int()) : PyLong_FromDouble(v.to_double());
  });
}
PyObject* tensor_index(PyObject* s) {
  return guarded([&]() -> PyObject* {
    CHECK(cast(s)->numel == 1 && is_integral(cast(s)->dtype, true), Type,
          "only integer tensors of a single element can be converted to an index");
    if (PyObject* wide = wide_item(handle(s))) return wide;
    return PyLong_FromLongLong(item(handle(s)).to_int());
  });
}
Py_hash_t tensor_hash(PyObject* s) { return reinterpret_cast<Py_hash_t>(s); }  // id(tensor)

// Operators: straight to the op for tensors and numbers, through the overridable op otherwise.
bool plain(PyObject* o) { return Py_TYPE(o) == g_tensor_type || PyFloat_CheckExact(o) || PyLong_CheckExact(o); }
bool operand(PyObject* o) { return is_tensor(o) || is_number(o); }

template <Tensor (*Op)(const Value&, const Value&)> PyObject* direct(PyObject* a, PyObject* b, const char* name) {
  return guarded([&] {
    Tensor y = Op(Arg<Value>::load(a), Arg<Value>::load(b));
    PyObject* args[] = {a, b};
    note_result(y.object(), name, args, 2);
    return y.release();
  });
}
Tensor add1(const Value& a, const Value& b) { return ops::add(a, b, Scalar(1)); }
Tensor sub1(const Value& a, const Value& b) { return ops::sub(a, b, Scalar(1)); }

PyObject* by_name(const char* name, PyObject* a, PyObject* b) {
  PyObject* method = PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name);
  if (!method) return nullptr;
  PyObject* args[] = {a, b};
  PyObject* result = PyObject_Vectorcall(method, args, 2, nullptr);
  Py_DECREF(method);
  return result;
}

template <Tensor (*Op)(const Value&, const Value&)>
PyObject* binary(PyObject* a, PyObject* b, const char* name, const char* reflected) {
  if (plain(a) && plain(b) && !watched()) return direct<Op>(a, b, name);
  if (!operand(a) || !operand(b)) {
    if (!is_tensor(a) || !PyObject_HasAttrString(b, "__torch_function__")) Py_RETURN_NOTIMPLEMENTED;
  }
  return is_tensor(a) ? by_name(name, a, b) : by_name(reflected, b, a);
}
PyObject* n_add(PyObject* a, PyObject* b) { return binary<add1>(a, b, "add", "__radd_op__"); }
PyObject* n_sub(PyObject* a, PyObject* b) { return binary<sub1>(a, b, "sub", "__rsub_op__"); }
PyObject* n_mul(PyObject* a, PyObject* b) { return binary<ops::mul>(a, b, "mul", "__rmul_op__"); }
// array / tensor: by the reciprocal, whose product with an array NumPy takes.
PyObject* array_over(PyObject* array, PyObject* t) {
  PyObject* reciprocal = PyObject_CallMethod(t, "reciprocal", nullptr);
  PyObject* result = reciprocal ? PyNumber_Multiply(reciprocal, array) : nullptr;
  Py_XDECREF(reciprocal);
  return result;
}
PyObject* n_div(PyObject* a, PyObject* b) {
  if (!operand(a) && is_tensor(b) && std::strcmp(Py_TYPE(a)->tp_name, "numpy.ndarray") == 0) return array_over(a, b);
  return binary<ops::divide>(a, b, "div", "__rdiv_op__");
}
PyObject* n_matmul(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || (!is_tensor(b) && !PyObject_HasAttrString(b, "__torch_function__"))) Py_RETURN_NOTIMPLEMENTED;
  return by_name("matmul", a, b);
}
PyObject* n_neg(PyObject* a) {
  if (Py_TYPE(a) == g_tensor_type && !watched())
    return guarded([&] {
      Tensor y = ops::neg(handle(a));
      note_result(y.object(), "neg", &a, 1);
      return y.release();
    });
  return PyObject_CallMethod(a, "neg", nullptr);
}

PyObject* iadd(PyObject* a, PyObject* b) { return operand(b) ? by_name("add_", a, b) : Py_NewRef(Py_NotImplemented); }
PyObject* isub(PyObject* a, PyObject* b) { return operand(b) ? by_name("sub_", a, b) : Py_NewRef(Py_NotImplemented); }
PyObject* imul(PyObject* a, PyObject* b) { return operand(b) ? by_name("mul_", a, b) : Py_NewRef(Py_NotImplemented); }
PyObject* idiv(PyObject* a, PyObject* b) { return operand(b) ? by_name("div_", a, b) : Py_NewRef(Py_NotImplemented); }

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
    return cast(o);  // tracked by tp_alloc
  }
  blank(t);
  t->inference = t_grad_mode.inference;
  PyObject_GC_Track(t);
  return t;
}

int install_tensor_type(PyObject* module) {
  const char* doc =
      "An n-dimensional array of one element type. torch.tensor(data), zeros(size), randn(size) and other functions "
      "make\n"
      "them; operations on tensors with requires_grad=True are recorded, and backward() computes gradients.";
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(doc)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
                         {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
                         {Py_tp_getset, kGetSet},
                         {Py_tp_methods, kMethods},
                         {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
                         {Py_mp_length, reinterpret_cast<void*>(tensor_length)},
                         {Py_mp_subscript, reinterpret_cast<void*>(tensor_getitem)},
                         {Py_mp_ass_subscript, reinterpret_cast<void*>(tensor_setitem)},
                         {Py_sq_length, reinterpret_cast<void*>(tensor_length)},
                         {Py_nb_bool, reinterpret_cast<void*>(tensor_bool)},
                         {Py_nb_float, reinterpret_cast<void*>(tensor_float)},
                         {Py_nb_int, reinterpret_cast<void*>(tensor_int)},
                         {Py_nb_index, reinterpret_cast<void*>(tensor_index)},
                         {Py_nb_add, reinterpret_cast<void*>(n_add)},
                         {Py_nb_subtract, reinterpret_cast<void*>(n_sub)},
                         {Py_nb_multiply, reinterpret_cast<void*>(n_mul)},
                         {Py_nb_true_divide, reinterpret_cast<void*>(n_div)},
                         {Py_nb_matrix_multiply, reinterpret_cast<void*>(n_matmul)},
                         {Py_nb_negative, reinterpret_cast<void*>(n_neg)},
                         {Py_nb_inplace_add, reinterpret_cast<void*>(iadd)},
                         {Py_nb_inplace_subtract, reinterpret_cast<void*>(isub)},
                         {Py_nb_inplace_multiply, reinterpret_cast<void*>(imul)},
                         {Py_nb_inplace_true_divide, reinterpret_cast<void*>(idiv)},
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
  static PyMemberDef members[] = {
      {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot all[sizeof slots / sizeof *slots + 1];
  size_t n = sizeof slots / sizeof *slots - 1;
  std::copy(slots, slots + n, all);
  all[n] = {Py_tp_members, members};
  all[n + 1] = {0, nullptr};
  PyType_Spec spec = {"rushlight.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, all};
  g_tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!g_tensor_type) return -1;
  static PyMethodDef disabled = {"_disabled_torch_function_impl",
                                 [](PyObject*, PyObject*) -> PyObject* { return Py_NewRef(Py_NotImplemented); },
                                 METH_VARARGS, nullptr};
  g_disabled_torch_function = PyCFunction_NewEx(&disabled, nullptr, nullptr);
  PyModule_AddObjectRef(module, "_disabled_torch_function_impl", g_disabled_torch_function);
  return PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(g_tensor_type));
}

}  // namespace rl
