// torch.UntypedStorage: the bytes under tensors.
#include "python/storage_type.h"

#include "backend/backend.h"
#include "ops/ops.h"
#include "ops/registry.h"
#include "python/errors.h"

namespace rl {
namespace {

PyTypeObject* g_type = nullptr;

struct StorageObject {
  PyObject_HEAD Storage* storage;
  PyObject* weakrefs;
};

Storage* of(PyObject* o) { return reinterpret_cast<StorageObject*>(o)->storage; }

PyObject* wrap(Storage* s) {  // takes a reference of its own
  StorageObject* o = PyObject_New(StorageObject, g_type);
  if (!o) python_error();
  s->ref();
  o->storage = s;
  o->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

void dealloc(PyObject* self) {
  auto* o = reinterpret_cast<StorageObject*>(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  o->storage->unref();
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

// Fills a storage from bytes, a bytearray and the like; false if the object holds something else.
bool copy_bytes(PyObject* from, Storage* s) {
  if (!PyObject_CheckBuffer(from)) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(from, &view, PyBUF_SIMPLE)) {
    PyErr_Clear();
    return false;
  }
  const bool fits = view.len == s->bytes;
  if (fits && view.len) __builtin_memcpy(s->data, view.buf, static_cast<size_t>(view.len));
  PyBuffer_Release(&view);
  return fits;
}

// UntypedStorage(nbytes) or UntypedStorage(sequence of bytes)
PyObject* make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject *first = nullptr, *device = nullptr;
    static const char* names[] = {"size", "device", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", const_cast<char**>(names), &first, &device)) python_error();
    Device d = device && device != Py_None ? device_from(device) : Device();
    backend(d);
    int64_t bytes = 0;
    bool sequence = first && !is_integer(first);
    if (first) bytes = sequence ? PySequence_Size(first) : integer_from(first);
    if (PyErr_Occurred()) python_error();
    CHECK(bytes >= 0, Runtime, "Storage size must be non-negative, got ", bytes);
    Storage* s = Storage::make(bytes, d);
    PyObject* o = wrap(s);
    s->unref();
    if (sequence && s->data && !copy_bytes(first, s)) {
      Owned made(o);  // dropped if an item is no number
      for (int64_t i = 0; i < bytes; ++i) {
        Owned item(PySequence_GetItem(first, i));
        s->data[i] = static_cast<char>(integer_from(item.p));
      }
      return Py_NewRef(o);
    }
    return o;
  });
}

Py_ssize_t length(PyObject* s) { return of(s)->bytes; }
PyObject* get(PyObject* s, Py_ssize_t i) {
  if (i < 0 || i >= of(s)->bytes || !of(s)->data) {
    PyErr_Format(PyExc_IndexError, "index %zd out of range for storage of size %lld", i,
                 static_cast<long long>(of(s)->bytes));
    return nullptr;
  }
  return PyLong_FromLong(static_cast<uint8_t>(of(s)->data[i]));
}
int put(PyObject* s, Py_ssize_t i, PyObject* v) {
  if (i < 0 || i >= of(s)->bytes || !v || !of(s)->data) {
    PyErr_SetString(PyExc_IndexError, "index out of range for storage");
    return -1;
  }
  long b = PyLong_AsLong(v);
  if (b == -1 && PyErr_Occurred()) return -1;
  of(s)->data[i] = static_cast<char>(b);
  return 0;
}
int getbuffer(PyObject* self, Py_buffer* view, int flags) {
  static char nothing;
  return PyBuffer_FillInfo(view, self, of(self)->data ? of(self)->data : &nothing, of(self)->bytes, 0, flags);
}

PyObject* nbytes(PyObject* s, PyObject*) { return PyLong_FromLongLong(of(s)->bytes); }
PyObject* data_ptr(PyObject* s, PyObject*) { return PyLong_FromVoidPtr(of(s)->data); }
PyObject* element_size(PyObject*, PyObject*) { return PyLong_FromLong(1); }
PyObject* resize(PyObject* s, PyObject* n) {
  return guarded([&]() -> PyObject* {
    int64_t bytes = integer_from(n);
    CHECK(bytes >= 0, Runtime, "Storage size must be non-negative, got ", bytes);
    of(s)->resize(bytes);
    return Py_NewRef(s);
  });
}
PyObject* resizable(PyObject* s, PyObject*) { return PyBool_FromLong(of(s)->resizable); }
PyObject* clone(PyObject* s, PyObject*) {
  return guarded([&]() -> PyObject* {
    Storage* from = of(s);
    Storage* to = Storage::make(from->bytes, from->device);
    if (from->data && from->bytes) __builtin_memcpy(to->data, from->data, static_cast<size_t>(from->bytes));
    PyObject* o = wrap(to);
    to->unref();
    return o;
  });
}
PyObject* copy_(PyObject* s, PyObject* args) {
  PyObject *from, *blocking = nullptr;
  if (!PyArg_ParseTuple(args, "O!|O", g_type, &from, &blocking)) return nullptr;
  if (of(from)->bytes != of(s)->bytes) {
    PyErr_SetString(PyExc_RuntimeError, "size does not match");
    return nullptr;
  }
  if (of(s)->data && of(from)->data) __builtin_memmove(of(s)->data, of(from)->data, static_cast<size_t>(of(s)->bytes));
  return Py_NewRef(s);
}
PyObject* fill_(PyObject* s, PyObject* v) {
  long b = PyLong_AsLong(v);
  if (b == -1 && PyErr_Occurred()) return nullptr;
  if (of(s)->data) __builtin_memset(of(s)->data, static_cast<int>(b), static_cast<size_t>(of(s)->bytes));
  return Py_NewRef(s);
}
PyObject* deepcopy(PyObject* s, PyObject* memo) {
  if (!PyDict_Check(memo))
    return PyErr_Format(PyExc_TypeError, "__deepcopy__(): memo must be dict, not %s", Py_TYPE(memo)->tp_name), nullptr;
  PyObject* key = PyLong_FromVoidPtr(of(s));  // views of one storage stay views of one copy
  PyObject* done = PyDict_GetItemWithError(memo, key);
  PyObject* result = done ? Py_NewRef(done) : clone(s, nullptr);
  if (result && !done) PyDict_SetItem(memo, key, result);
  Py_DECREF(key);
  return result;
}
PyObject* reduce(PyObject* s, PyObject*) {
  PyObject* bytes = PyBytes_FromStringAndSize(of(s)->data, of(s)->bytes);
  return bytes ? Py_BuildValue("(O(N))", reinterpret_cast<PyObject*>(g_type), bytes) : nullptr;
}
PyObject* device(PyObject* s, void*) { return device_object(of(s)->device); }
PyObject* false_(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* identity(PyObject* s, void*) { return PyLong_FromVoidPtr(of(s)); }
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != g_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((of(a) == of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* s) { return _Py_HashPointer(of(s)); }

PyMethodDef kMethods[] = {{"nbytes", nbytes, METH_NOARGS, nullptr},
                          {"size", nbytes, METH_NOARGS, nullptr},
                          {"data_ptr", data_ptr, METH_NOARGS, nullptr},
                          {"element_size", element_size, METH_NOARGS, nullptr},
                          {"resize_", resize, METH_O, nullptr},
                          {"resizable", resizable, METH_NOARGS, nullptr},
                          {"clone", clone, METH_NOARGS, nullptr},
                          {"copy_", copy_, METH_VARARGS, nullptr},
                          {"fill_", fill_, METH_O, nullptr},
                          {"__copy__", clone, METH_NOARGS, nullptr},
                          {"__deepcopy__", deepcopy, METH_O, nullptr},
                          {"__reduce__", reduce, METH_NOARGS, nullptr},
                          {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kGetSet[] = {{"device", device, nullptr, nullptr, nullptr},
                         {"is_cuda", false_, nullptr, nullptr, nullptr},
                         {"is_sparse", false_, nullptr, nullptr, nullptr},
                         {"_cdata", identity, nullptr, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};

NewObject untyped_storage(const Tensor& input) { return {wrap(input.storage())}; }

// set_(source, offset, size, stride): the tensor on other memory.
Tensor set_(const Tensor& self, Object source, int64_t offset, std::optional<Ints> size, std::optional<Ints> stride) {
  TensorObject* t = self.get();
  Tensor from;
  if (is_tensor(source.p)) from = Tensor::borrow(source.p);
  else
    CHECK(source.p == Py_None || Py_TYPE(source.p) == g_type, Type,
          "set_(): argument 'source' must be Tensor or UntypedStorage, not ", Py_TYPE(source.p)->tp_name);
  Storage* s = source.p == Py_None ? nullptr : from.defined() ? from.storage() : of(source.p);
  int64_t item = self.item_size();
  CHECK(!s || s->device == self.device(), Runtime, "Attempted to set the storage of a tensor on device \"",
        to_text(self.device()), "\" to a storage on different device \"", to_text(s ? s->device : self.device()),
        "\". This is no longer allowed; the devices must match.");
  CHECK(!from.defined() || from.dtype() == self.dtype(), Runtime, "Could not set tensor of type ",
        info(from.dtype()).name, " to a tensor of type ", info(self.dtype()).name);
  Ints sizes = size ? *size : from.defined() ? Ints(from.sizes()) : Ints{s ? s->bytes / item - offset : 0};
  Ints strides = stride ? *stride : from.defined() && !size ? Ints(from.strides()) : contiguous_strides(sizes);
  if (from.defined() && !size) offset = from->offset;
  check_inplace(self, true);
  CHECK(offset >= 0, Runtime, "Tensor: invalid storage offset ", offset);
  CHECK(sizes.size() == strides.size(), Runtime, "mismatch in length of strides and shape");
  for (int64_t v : strides) CHECK(v >= 0, Runtime, "negative strides are not supported");
  int64_t end = checked_numel(sizes) == 0 ? 0 : checked_add(checked_extent(sizes, strides), offset);
  int64_t needed = checked_mul(end, item);
  if (!s) {
    s = Storage::make(needed, self.device());
  } else {
    s->ref();
    if (s->bytes < needed) {
      if (!s->resizable) {
        int64_t have = s->bytes;
        s->unref();
        fail(ErrorKind::Runtime, "setStorage: sizes ", to_text(sizes), ", strides ", to_text(strides),
             ", storage offset ", offset, ", and itemsize ", item, " requiring a storage size of ", needed,
             " are out of bounds for storage of size ", have);
      }
      s->resize(needed);
    }
  }
  Edge history;
  if (grad_enabled() && (self.requires_grad() || (from.defined() && from.requires_grad())))
    history = not_differentiable("set_", self, {self, from});
  bump_version(self);  // before it leaves the counter that it shares with its views
  set_storage(t, s);
  s->unref();
  set_geometry(t, sizes, strides, offset);
  t->accumulator = nullptr;  // graphs from before know the leaf as it was
  if (history.node) {
    history.node->results[0] = ResultMeta(self);
    rebase_history(self, std::move(history));
  }
  return self;
}

Tensor resize_(const Tensor& self, const Ints& size, std::optional<MemoryFormat> format) {
  CHECK(!self.requires_grad() || t_grad_mode.inference, Runtime, "cannot resize variables that require grad");
  const bool resized = !(self.sizes() == IntSpan(size));
  if (!resized && (!format || *format == MemoryFormat::Preserve)) return self;  // the strides stay, too
  Ints strides = contiguous_strides(size);
  int64_t needed = checked_mul(checked_add(checked_numel(size), self->offset), self.item_size());
  if (format && *format != MemoryFormat::Contiguous && *format != MemoryFormat::Preserve)
    strides = ops::strides_for(empty(size, self.dtype(), Device{DeviceType::Meta, -1}), *format);
  if (self.storage()->bytes < needed) self.storage()->resize(needed);
  set_geometry(self.get(), size, strides, self->offset);
  if (resized) bump_version(self);
  return self;
}

}  // namespace

int install_storage_type(PyObject* module) {
  static PyMemberDef members[] = {
      {"__weaklistoffset__", T_PYSSIZET, offsetof(StorageObject, weakrefs), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("The bytes under one or more tensors.")},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_new, reinterpret_cast<void*>(make)},
                         {Py_tp_methods, kMethods},
                         {Py_tp_getset, kGetSet},
                         {Py_tp_members, members},
                         {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                         {Py_tp_hash, reinterpret_cast<void*>(hash)},
                         {Py_sq_length, reinterpret_cast<void*>(length)},
                         {Py_sq_item, reinterpret_cast<void*>(get)},
                         {Py_sq_ass_item, reinterpret_cast<void*>(put)},
                         {Py_bf_getbuffer, reinterpret_cast<void*>(getbuffer)},
                         {0, nullptr}};
  PyType_Spec spec = {"rushlight.UntypedStorage", sizeof(StorageObject), 0, Py_TPFLAGS_DEFAULT, slots};
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return g_type ? PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(g_type)) : -1;
}

static const Register registered([](Ops& ops) {
  ops.def("untyped_storage", untyped_storage, "input", kMethod | kNoFunction | kNoOut | kLazyOk,
          "The memory under the tensor.");
  ops.def("set_", set_, "input, source=None, storage_offset=0, size=None, stride=None",
          kMethod | kNoFunction | kNoOut | kLazyOk, "Puts the tensor on other memory.");
  ops.def("resize_", resize_, "input, size..., *, memory_format=None", kMethod | kNoFunction | kNoOut | kLazyOk,
          "Other sizes on the same storage, which grows if it must.");
});

}  // namespace rl
