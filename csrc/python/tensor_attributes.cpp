// Attributes of tensors: x.shape, x.grad, x.T.
#include "autograd/gradient_sum.h"
#include "autograd/meta.h"
#include "autograd/record.h"
#include "ops/ops.h"
#include "python/dispatch.h"
#include "python/errors.h"
#include "python/op_object.h"
#include "python/override.h"
#include "python/tensor_type.h"
#include "schema/arguments.h"
#include "tensor/no_grad_reason.h"

namespace rl {

namespace {

TensorObject* cast(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }
Tensor handle(PyObject* o) { return Tensor::borrow(o); }

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
  if (!v) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Deletion of _backward_hooks not allowed: set it to None, or remove() the handles");
    return -1;
  }
  if (v == Py_None) {
    if (cast(s)->extra) Py_CLEAR(cast(s)->extra->hooks);
    return 0;
  }
  if (!PyDict_Check(v)) {
    PyErr_Format(PyExc_TypeError, "_backward_hooks must be a dict of hooks or None, not %s", Py_TYPE(v)->tp_name);
    return -1;
  }
  Py_XSETREF(extra_of(cast(s)).hooks, Py_NewRef(v));
  return 0;
}
PyObject* get_data(PyObject* s, void*) {
  return guarded([&]() -> PyObject* {
    if (dispatching())
      if (PyObject* taken = dispatch_method("detach", &s, 1)) return taken;
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
    CHECK(v, Runtime, "Deleting tensor data is not allowed. Delete tensor instead!");
    CHECK(is_tensor(v), Type, "Variable data has to be a tensor, but got ", Py_TYPE(v)->tp_name);
    TensorObject *t = cast(s), *from = cast(v);
    const bool sparse = g_sparse_type && PyType_IsSubtype(Py_TYPE(v), g_sparse_type);
    CHECK(!sparse || PyType_IsSubtype(Py_TYPE(s), g_sparse_type), Runtime,
          "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type: ",
          "a dense tensor cannot take over a sparse one's data.\n  .to_dense() gives its values.");
    CHECK(!t->wants_grad() || is_differentiable(from->dtype), Runtime,
          "data set to a tensor that requires gradients must be floating point or complex dtype");
    if (t->storage != from->storage) set_storage(t, from->storage);
    t->dtype = from->dtype;
    t->conj = from->conj, t->neg = from->neg;
    t->device = from->device;
    set_geometry(t, Ints(IntSpan(from->sizes, from->ndim)), Ints(IntSpan(from->strides(), from->ndim)), from->offset);
    if (t->accumulator) t->accumulator->results[0] = ResultMeta(handle(s));
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

// Attributes that are ops.
template <Name name> PyObject* by_op(PyObject* s, void*) {
  static PyObject* op = op_function(name.text);
  return PyObject_Vectorcall(op, &s, 1, nullptr);
}
template <Name name> int set_part(PyObject* s, PyObject* v, void*) {
  if (!v) {
    PyErr_Format(PyExc_AttributeError, "%s cannot be deleted", name.text);
    return -1;
  }
  PyObject* part = by_op<name>(s, nullptr);
  int done = part ? PyObject_SetItem(part, Py_Ellipsis, v) : -1;
  Py_XDECREF(part);
  return done;
}

}  // namespace

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
          from_method ? "only Tensors of floating point dtype can require gradients (or complex ones)"
                      : "only Tensors of floating point and complex dtype can require gradients");
    CHECK(!on || !t->inference || t_grad_mode.inference, Runtime,
          "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    if (t->requires_grad && !on) note_cut(t, CutKind::Frozen, "requires_grad_");
    t->requires_grad = on;
    return 0;
  });
}

PyGetSetDef kTensorAttributes[] = {
    {"shape", asked_get<get_shape, "shape">, nullptr, "Its sizes, a torch.Size.", nullptr},
    {"dtype", asked_get<get_dtype, "dtype">, nullptr, "The type of its elements.", nullptr},
    {"device", asked_get<get_device, "device">, nullptr, "Where its memory is.", nullptr},
    {"layout", asked_get<get_layout, "layout">, nullptr, nullptr, nullptr},
    {"ndim", asked_get<get_ndim, "ndim">, nullptr, "The number of its dimensions.", nullptr},
    {"itemsize", asked_get<get_itemsize, "itemsize">, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", asked_get<get_nbytes, "nbytes">, nullptr, "Bytes of all elements.", nullptr},
    {"requires_grad", asked_get<get_requires_grad, "requires_grad">, asked_set<set_requires_grad, "requires_grad">,
     "Whether gradients are wanted for it.", nullptr},
    {"is_leaf", asked_get<get_is_leaf, "is_leaf">, nullptr,
     "Whether it was not computed from tensors that want gradients.", nullptr},
    {"grad", asked_get<get_grad, "grad">, asked_set<set_grad, "grad">, "The accumulated gradient, or None.", nullptr},
    {"_grad", asked_get<get_plain_grad, "grad">, asked_set<set_grad, "grad">, nullptr, nullptr},
    {"grad_fn", asked_get<get_grad_fn, "grad_fn">, nullptr, "The node of the call that computed it, or None.", nullptr},
    {"data", asked_get<get_data, "data", true>, asked_set<set_data, "data">,
     "The same memory outside the graph; writes to it are not checked.", nullptr},
    {"output_nr", asked_get<get_output_nr, "output_nr">, nullptr, nullptr, nullptr},
    {"retains_grad", asked_get<get_retains_grad, "retains_grad">, nullptr, nullptr, nullptr},
    {"_version", asked_get<get_version, "_version">, nullptr, "How often it was written to in place.", nullptr},
    {"_base", asked_get<get_base, "_base">, nullptr, nullptr, nullptr},
    {"_backward_hooks", asked_get<get_hooks, "_backward_hooks">, asked_set<set_hooks, "_backward_hooks">, nullptr,
     nullptr},
    {"is_cpu", asked_get<is_cpu, "is_cpu">, nullptr, nullptr, nullptr},
    {"is_meta", asked_get<is_meta, "is_meta">, nullptr, nullptr, nullptr},
    {"T", asked_get<by_op<"_T">, "T", true>, nullptr, "A view with the dimensions in reverse order.", nullptr},
    {"mT", asked_get<by_op<"_mT">, "mT", true>, nullptr, "A view with the last two dimensions exchanged.", nullptr},
    {"H", asked_get<by_op<"_H">, "H", true>, nullptr, "The matrix transposed and conjugated.", nullptr},
    {"mH", asked_get<by_op<"adjoint">, "mH", true>, nullptr, "Matrices transposed and conjugated.", nullptr},
    {"real", asked_get<by_op<"real">, "real", true>, asked_set<set_part<"real">, "real">, "The real part, as a view.",
     nullptr},
    {"imag", asked_get<by_op<"imag">, "imag", true>, asked_set<set_part<"imag">, "imag">,
     "The imaginary part, as a view.", nullptr},
    {"is_cuda", asked_get<false_, "is_cuda">, nullptr, nullptr, nullptr},
    {"is_sparse", asked_get<false_, "is_sparse">, nullptr, nullptr, nullptr},
    {"is_sparse_csr", asked_get<false_, "is_sparse_csr">, nullptr, nullptr, nullptr},
    {"is_quantized", asked_get<false_, "is_quantized">, nullptr, nullptr, nullptr},
    {"is_nested", asked_get<false_, "is_nested">, nullptr, nullptr, nullptr},
    {"is_mkldnn", asked_get<false_, "is_mkldnn">, nullptr, nullptr, nullptr},
    {"is_mps", asked_get<false_, "is_mps">, nullptr, nullptr, nullptr},
    {"is_xpu", asked_get<false_, "is_xpu">, nullptr, nullptr, nullptr},
    {"is_xla", asked_get<false_, "is_xla">, nullptr, nullptr, nullptr},
    {"is_vulkan", asked_get<false_, "is_vulkan">, nullptr, nullptr, nullptr},
    {"is_ipu", asked_get<false_, "is_ipu">, nullptr, nullptr, nullptr},
    {"is_maia", asked_get<false_, "is_maia">, nullptr, nullptr, nullptr},
    {"is_mtia", asked_get<false_, "is_mtia">, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace rl
