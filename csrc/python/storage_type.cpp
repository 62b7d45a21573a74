// torch.UntypedStorage: the bytes under tensors.
#include "python/storage_type.h"

#include "backend/backend.h"
#include "ops/copy/uninitialized.h"
#include "ops/ops.h"
#include "python/errors.h"
#include "schema/registry.h"

namespace rl {
namespace {

PyTypeObject* g_base = nullptr;  // StorageBase, which programs may derive from
PyTypeObject* g_type = nullptr;

struct StorageObject {
  PyObject_HEAD Storage* storage;
  PyObject* dict;
  PyObject* weakrefs;
};

StorageObject* as_storage(PyObject* o) { return reinterpret_cast<StorageObject*>(o); }
Storage* of(PyObject* o) {
  Storage* s = as_storage(o)->storage;
  CHECK(s, Runtime, "Got a null Storage: the tensors that it belonged to are gone");
  return s;
}

// Note [The object of a storage]
// A storage has one Python object at a time, which owns a reference to the storage. When the last reference to the
// object goes while tensors still use the storage, and there is something on the object that a program may look for
// again (attributes, a class of its own, weak references), the roles change: the storage keeps the object, until
// somebody asks for it.
PyObject* wrap(Storage* s, PyTypeObject* type) {
  if (s->object) {
    auto* self = static_cast<PyObject*>(s->object);
    if (!s->keeps_object) return Py_NewRef(self);
    s->keeps_object = false;  // its reference is the caller's now
    s->ref();
    return self;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) python_error();
  s->ref();
  as_storage(self)->storage = s;
  s->object = self;
  return self;
}
PyObject* wrap(Storage* s) { return wrap(s, g_type); }

bool preserve(PyObject* self) {
  StorageObject* o = as_storage(self);
  Storage* s = o->storage;
  if (!s || s->refs <= 1) return false;
  const bool plain = !o->weakrefs && Py_TYPE(self) == g_type && !(o->dict && PyDict_GET_SIZE(o->dict));
  if (plain) return false;
  Py_SET_REFCNT(self, 1);
  s->keeps_object = true;
  s->unref();
  return true;
}

int clear(PyObject* self) {
  Py_CLEAR(as_storage(self)->dict);
  return 0;
}
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_storage(self)->dict);
  return 0;
}

// Of this class and of those derived from it, whose own would clear attributes before it asks.
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (type->tp_dealloc == dealloc) {
    if (preserve(self)) return;
    if (type->tp_finalize && PyObject_CallFinalizerFromDealloc(self) < 0) return;
  }
  PyObject_GC_UnTrack(self);
  StorageObject* o = as_storage(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  if (type->tp_dealloc == dealloc) type->tp_clear(self);  // also the __slots__ of derived classes
  Py_CLEAR(o->dict);
  if (o->storage) {
    if (o->storage->object == self) o->storage->object = nullptr;
    o->storage->unref();
  }
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* init_subclass(PyObject* type, PyObject*, PyObject*) {
  reinterpret_cast<PyTypeObject*>(type)->tp_dealloc = dealloc;
  Py_RETURN_NONE;
}

// What a storage does with the object that it keeps, when it goes itself.
void drop_object(Storage* s) {
  auto* self = static_cast<PyObject*>(s->object);
  s->object = nullptr;
  as_storage(self)->storage = nullptr;
  if (s->keeps_object) Py_DECREF(self);
}
PyObject* fix_weakref(PyObject* self, PyObject*) {
  Storage* s = as_storage(self)->storage;
  if (s && s->keeps_object) {
    s->keeps_object = false;
    s->ref();
    Py_DECREF(self);
  }
  Py_RETURN_NONE;
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
  if (fits) s->write(0, view.buf, view.len);
  PyBuffer_Release(&view);
  return fits;
}

// UntypedStorage(nbytes) or UntypedStorage(sequence of bytes)
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    CHECK(type != g_base, Runtime, "Cannot directly construct StorageBase; subclass it and then construct that");
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
    PyObject* o = wrap(s, type);
    s->unref();
    if (sequence && s->data && !copy_bytes(first, s)) {
      Owned made(o);  // dropped if an item is no number
      for (int64_t i = 0; i < bytes; ++i) {
        Owned item(PySequence_GetItem(first, i));
        CHECK(is_integer(item.p), Type, "tried to construct a storage from a sequence (", Py_TYPE(first)->tp_name,
              "), but one of the items was of type ", Py_TYPE(item.p)->tp_name, " instead of int");
        const char byte = static_cast<char>(integer_from(item.p));
        s->write(i, &byte, 1);
      }
      return Py_NewRef(o);
    }
    return o;
  });
}

Py_ssize_t length(PyObject* s) {
  Storage* storage = as_storage(s)->storage;
  return storage ? storage->bytes : 0;
}
PyObject* get(PyObject* self, Py_ssize_t i) {
  return guarded([&]() -> PyObject* {
    Storage* s = of(self);
    CHECK(!s->device.is_meta(), NotImplemented, "Not available for 'meta' device type");
    CHECK(i >= 0 && i < s->bytes, Index, "index ", static_cast<int64_t>(i), " out of range for storage of size ",
          s->bytes);
    uint8_t byte;
    s->read(i, &byte, 1);
    return PyLong_FromLong(byte);
  });
}
int put(PyObject* self, Py_ssize_t i, PyObject* v) {
  return guarded_int([&] {
    Storage* s = of(self);
    CHECK(!s->device.is_meta(), NotImplemented, "Not available for 'meta' device type");
    CHECK(i >= 0 && i < s->bytes && v, Index, "index ", static_cast<int64_t>(i), " out of range for storage of size ",
          s->bytes);
    const char byte = static_cast<char>(integer_from(v));
    s->write(i, &byte, 1);
    return 0;
  });
}
int getbuffer(PyObject* self, Py_buffer* view, int flags) {
  static char nothing;
  return guarded_int([&] {
    Storage* s = of(self);
    CHECK(s->device.is_cpu(), Type, "can't convert ", s->device.name(),
          " device type storage to a buffer. Use storage.cpu() to copy it to host memory first.");
    s->materialize();
    return PyBuffer_FillInfo(view, self, s->data ? s->data : &nothing, s->bytes, 0, flags);
  });
}

PyObject* nbytes(PyObject* s, PyObject*) {
  return guarded([&] { return PyLong_FromLongLong(of(s)->bytes); });
}
PyObject* data_ptr(PyObject* s, PyObject*) {
  return guarded([&] {
    of(s)->materialize();
    return PyLong_FromVoidPtr(of(s)->data);
  });
}
PyObject* size_of(PyObject* s, PyObject*) {
  return guarded([&] { return PyLong_FromLongLong(of(s)->bytes + Py_TYPE(s)->tp_basicsize); });
}
PyObject* set_shared(PyObject* s, PyObject* yes) {
  return guarded([&]() -> PyObject* {
    of(s)->shared = yes == Py_True;
    Py_RETURN_NONE;
  });
}
// Takes over the memory of another storage, which goes on sharing it: tensors on this one find themselves there.
PyObject* move_to(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    CHECK(PyObject_TypeCheck(other, g_base), Type, "expected a storage");
    Storage *s = of(self), *to = of(other);
    CHECK(s->bytes == to->bytes, Runtime, "the storages differ in size");
    CHECK(s->device.is_cpu() && to->device.is_cpu(), Runtime, "only memory of the host is shared, got ",
          s->device.name(), " and ", to->device.name());
    s->materialize();
    if (s->data && s->data != to->data) {
      Storage* link = to;
      link->ref();
      s->move_memory(to->data, [](Storage* old) { static_cast<Storage*>(old->owner)->unref(); }, link);
    }
    s->shared = true;
    Py_RETURN_NONE;
  });
}
PyObject* element_size(PyObject*, PyObject*) { return PyLong_FromLong(1); }
PyObject* resize(PyObject* s, PyObject* n) {
  return guarded([&]() -> PyObject* {
    int64_t bytes = integer_from(n);
    CHECK(bytes >= 0, Runtime, "Storage size must be non-negative, got ", bytes);
    of(s)->resize(bytes);
    return Py_NewRef(s);
  });
}
PyObject* resizable(PyObject* s, PyObject*) {
  return guarded([&] { return PyBool_FromLong(of(s)->resizable); });
}
PyObject* clone(PyObject* s, PyObject*) {
  return guarded([&]() -> PyObject* {
    Storage* from = of(s);
    Storage* to = Storage::make(from->bytes, from->device);
    to->copy_from(*from);
    PyObject* o = wrap(to);
    to->unref();
    return o;
  });
}
PyObject* copy_(PyObject* s, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject *from, *blocking = nullptr;
    static const char* names[] = {"source", "non_blocking", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O", const_cast<char**>(names), g_base, &from, &blocking))
      python_error();
    CHECK(of(from)->bytes == of(s)->bytes, Runtime, "size does not match, self was ", of(s)->bytes,
          " bytes but src was ", of(from)->bytes, " bytes");
    CHECK(!of(from)->device.is_meta() || of(s)->device.is_meta(), NotImplemented,
          "Cannot copy out of meta tensor; no data!");
    of(s)->copy_from(*of(from));
    return Py_NewRef(s);
  });
}
PyObject* fill_(PyObject* s, PyObject* v) {
  return guarded([&]() -> PyObject* {
    const char byte = static_cast<char>(integer_from(v));
    of(s)->materialize();
    const int64_t sizes[] = {of(s)->bytes}, strides[] = {1};
    if (of(s)->data) backend(of(s)->device).copy->fill({of(s)->data, sizes, strides, 1, DType::Int8}, &byte);
    return Py_NewRef(s);
  });
}
PyObject* deepcopy(PyObject* s, PyObject* memo) {
  return guarded([&]() -> PyObject* {
    CHECK(PyDict_Check(memo), Type, "__deepcopy__(): argument 'memo' must be dict, not ", Py_TYPE(memo)->tp_name);
    Owned key(PyLong_FromVoidPtr(of(s)));  // views of one storage stay views of one copy
    if (PyObject* done = PyDict_GetItemWithError(memo, key.p)) return Py_NewRef(done);
    if (PyErr_Occurred()) python_error();
    PyObject* result = clone(s, nullptr);
    if (!result || PyDict_SetItem(memo, key.p, result) < 0) {
      Py_XDECREF(result);
      python_error();
    }
    return result;
  });
}
PyObject* reduce(PyObject* s, PyObject*) {
  return guarded([&]() -> PyObject* {
    CHECK(!of(s)->device.is_meta(), NotImplemented, "Cannot copy out of meta tensor; no data!");
    PyObject* bytes = PyBytes_FromStringAndSize(nullptr, of(s)->bytes);
    if (bytes) of(s)->read(0, PyBytes_AS_STRING(bytes), of(s)->bytes);
    if (!bytes || of(s)->device.is_cpu())
      return bytes ? Py_BuildValue("(O(N))", reinterpret_cast<PyObject*>(g_type), bytes) : nullptr;
    return Py_BuildValue("(O(NN))", reinterpret_cast<PyObject*>(g_type), bytes, device_object(of(s)->device));
  });
}
PyObject* device(PyObject* s, void*) {
  return guarded([&] { return device_object(of(s)->device); });
}
PyObject* false_(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* shared(PyObject* s, void*) {
  return guarded([&] { return PyBool_FromLong(of(s)->shared); });
}
PyObject* identity(PyObject* s, void*) { return PyLong_FromVoidPtr(as_storage(s)->storage); }
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, g_base) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const bool same = a == b || (as_storage(a)->storage && as_storage(a)->storage == as_storage(b)->storage);
  return PyBool_FromLong(same == (op == Py_EQ));
}
Py_hash_t hash(PyObject* s) {
  return _Py_HashPointer(as_storage(s)->storage ? static_cast<void*>(as_storage(s)->storage) : s);
}

PyMethodDef kMethods[] = {
    {"nbytes", nbytes, METH_NOARGS, nullptr},
    {"size", nbytes, METH_NOARGS, nullptr},
    {"data_ptr", data_ptr, METH_NOARGS, nullptr},
    {"element_size", element_size, METH_NOARGS, nullptr},
    {"resize_", resize, METH_O, nullptr},
    {"resizable", resizable, METH_NOARGS, nullptr},
    {"clone", clone, METH_NOARGS, nullptr},
    {"copy_", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(copy_)), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"fill_", fill_, METH_O, nullptr},
    {"__copy__", clone, METH_NOARGS, nullptr},
    {"__deepcopy__", deepcopy, METH_O, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__sizeof__", size_of, METH_NOARGS, nullptr},
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(init_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr},
    {"_fix_weakref", fix_weakref, METH_NOARGS, nullptr},
    {"_set_shared", set_shared, METH_O, nullptr},
    {"_move_to", move_to, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kGetSet[] = {
    {"device", device, nullptr, nullptr, nullptr},    {"is_cuda", false_, nullptr, nullptr, nullptr},
    {"is_sparse", false_, nullptr, nullptr, nullptr}, {"_shared", shared, nullptr, nullptr, nullptr},
    {"_cdata", identity, nullptr, nullptr, nullptr},  {nullptr, nullptr, nullptr, nullptr, nullptr}};

NewObject untyped_storage(const Tensor& input) { return {wrap(input.storage())}; }

// The untyped storage of a storage, typed or not. New reference.
PyObject* untyped_of(PyObject* o, DType dtype) {
  if (PyObject_TypeCheck(o, g_base)) return Py_NewRef(o);
  bool typed = PyObject_HasAttrString(o, "_untyped_storage") && PyObject_HasAttrString(o, "_dtype");
  CHECK(typed, Type, "set_(): argument 'source' must be Tensor or a storage, not ", Py_TYPE(o)->tp_name);
  Owned untyped(PyObject_GetAttrString(o, "_untyped_storage"));
  CHECK(PyObject_TypeCheck(untyped.p, g_base), Type, "set_(): argument 'source' must be Tensor or a storage, not ",
        Py_TYPE(o)->tp_name);
  Owned named(PyObject_GetAttrString(o, "_dtype"));
  DType of_storage = dtype;
  CHECK(dtype_from(named.p, &of_storage) && of_storage == dtype, Runtime, "Expected a Storage of type ",
        info(dtype).legacy, " or an UntypedStorage, but got type ", info(of_storage).legacy,
        " for argument 1 'storage'");
  return Py_NewRef(untyped.p);
}

// set_(source, offset, size, stride): the tensor on other memory.
Tensor set_(const Tensor& self, Object source, int64_t offset, std::optional<Ints> size, std::optional<Ints> stride) {
  TensorObject* t = self.get();
  Tensor from;
  if (is_tensor(source.p)) from = Tensor::borrow(source.p);
  Owned typed(source.p == Py_None || from.defined() ? Py_NewRef(Py_None) : untyped_of(source.p, self.dtype()));
  Storage* s = source.p == Py_None ? nullptr : from.defined() ? from.storage() : of(typed.p);
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

// lazy_clone: y = x, on the same memory until either is written to        dx = dy
struct LazyCloneBackward : Node {
  static constexpr const char* kName = "LazyCloneBackward0";
  static constexpr bool kStacks = true;
  Grads backward(const Grads& dy) { return {dy[0]}; }
};
Tensor lazy_clone(const Tensor& input) {
  Tensor y = tensor_over(input.storage()->lazy_clone(), Ints(input.sizes()), Ints(input.strides()), input->offset,
                         input.dtype());
  return record<LazyCloneBackward>(y, {input});
}
bool is_lazy(const Tensor& input) { return input.storage()->lazy != nullptr; }
int64_t data_address(const Tensor& input) {
  return input.numel() && input.storage()->data ? reinterpret_cast<int64_t>(input.memory()) : 0;
}

Tensor resize_(const Tensor& self, const Ints& size, std::optional<MemoryFormat> format) {
  CHECK(!self.requires_grad() || t_grad_mode.inference, Runtime, "cannot resize variables that require grad");
  const bool resized = !(self.sizes() == IntSpan(size));
  if (!resized && (!format || *format == MemoryFormat::Preserve)) return self;  // the strides stay, too
  Ints strides = contiguous_strides(size);
  int64_t needed = checked_add(checked_numel(size), self->offset);
  CHECK(!__builtin_mul_overflow(needed, self.item_size(), &needed), Runtime,
        "Storage size calculation overflowed with sizes=", to_text(size), ": so many elements of ", self.item_size(),
        " bytes cannot be counted in 64 bits");
  if (format && *format != MemoryFormat::Contiguous && *format != MemoryFormat::Preserve)
    strides = ops::strides_for(empty(size, self.dtype(), Device{DeviceType::Meta, -1}), *format);
  const int64_t had = self.storage()->bytes / self.item_size();
  if (self.storage()->bytes < needed) self.storage()->resize(needed);
  set_geometry(self.get(), size, strides, self->offset);
  const int64_t has = self.storage()->bytes / self.item_size();
  if (ops::g_fill_uninitialized && has > had) ops::fill_known(alias(self, {has - had}, {1}, had));
  if (resized) bump_version(self);
  return self;
}

}  // namespace

Storage* storage_of(PyObject* o) { return PyObject_TypeCheck(o, g_base) ? of(o) : nullptr; }

int install_storage_type(PyObject* module) {
  static PyMemberDef members[] = {
      {"__weaklistoffset__", T_PYSSIZET, offsetof(StorageObject, weakrefs), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(StorageObject, dict), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("The bytes under one or more tensors.")},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear)},
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
  constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  PyType_Spec base = {"rushlight.StorageBase", sizeof(StorageObject), 0, kFlags, slots};
  g_base = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&base));
  if (!g_base) return -1;
  // The slots that a derived class does not take over by itself.
  PyType_Slot own[] = {{Py_tp_doc, const_cast<char*>("The bytes under one or more tensors.")},
                       {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};
  PyType_Spec spec = {"rushlight.UntypedStorage", sizeof(StorageObject), 0, kFlags, own};
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(g_base)));
  g_drop_object = drop_object;
  return g_type && PyModule_AddObjectRef(module, "StorageBase", reinterpret_cast<PyObject*>(g_base)) == 0
             ? PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(g_type))
             : -1;
}

static const Register registered([](Ops& ops) {
  ops.def("_lazy_clone", lazy_clone, "input", kMethod | kNoOut | kAnyType,
          "A clone that shares the memory until one of both is written to.");
  ops.def("_is_lazy", is_lazy, "input", kNoOut | kAnyType);
  ops.def("_data_address", data_address, "input", kNoOut | kAnyType);
  ops.def("untyped_storage", untyped_storage, "input", kMethod | kNoFunction | kNoOut | kLazyOk | kAnyType, R"(
    Returns the memory under the tensor, as bytes; views share it.

    Example:
        >>> x = torch.zeros(4)
        >>> x[:2].untyped_storage().nbytes()
        16)");
  ops.def("set_", set_, "input, source=None, storage_offset=0, size=None, stride=None",
          kMethod | kNoFunction | kNoOut | kLazyOk | kAnyType, R"(
    Puts the tensor itself on the memory of another tensor, or of a storage.

    Args:
        source: a tensor or a storage; None for empty memory.
        storage_offset: where in a storage it begins.
        size: the sizes on a storage; None for one row.
        stride: the strides on a storage; None for those of contiguous memory.

    Example:
        >>> x, y = torch.zeros(1), torch.tensor([1.0, 2.0])
        >>> x.set_(y)
        tensor([1., 2.]))");
  ops.def("resize_", resize_, "input, size..., *, memory_format=None",
          kMethod | kNoFunction | kNoOut | kLazyOk | kAnyType, R"(
    Gives the tensor itself other sizes; its memory is kept, and grows if it must.

    Args:
        size: the sizes, one by one or as one sequence. Elements that are new are uninitialised.

    Example:
        >>> torch.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]]))");
});

}  // namespace rl
