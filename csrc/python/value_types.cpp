#include "python/value_types.h"

#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "python/errors.h"
#include "python/override.h"
#include "schema/arguments.h"
#include "tensor/default_device.h"

namespace rl {

PyTypeObject* g_size_type = nullptr;

namespace {

// dtype, layout and memory_format: named singletons.
struct Named {
  PyObject_HEAD int id;
  const char* text;
};

PyTypeObject *g_dtype_type, *g_layout_type, *g_format_type, *g_device_type;
PyObject *g_layouts[8], *g_formats[4];

PyObject* named_repr(PyObject* self) { return PyUnicode_FromString(reinterpret_cast<Named*>(self)->text); }
PyObject* named_reduce(PyObject* self, PyObject*) {  // pickled by name: rushlight.float32
  return PyUnicode_FromString(std::strchr(reinterpret_cast<Named*>(self)->text, '.') + 1);
}
PyObject* named_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyMethodDef kNamedMethods[] = {{"__reduce__", named_reduce, METH_NOARGS, nullptr},
                               {"__copy__", named_copy, METH_NOARGS, nullptr},
                               {"__deepcopy__", named_copy, METH_O, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

// Element types that no tensor of the core has: quantized tensors are made of integers, in Python. Their ids follow the
// real ones.
constexpr DTypeInfo kForeignDTypes[] = {
    {"qint8", "QInt8", 1, false, false, false, true},        {"quint8", "QUInt8", 1, false, false, false, false},
    {"qint32", "QInt32", 4, false, false, false, true},      {"quint4x2", "QUInt4x2", 1, false, false, false, false},
    {"quint2x4", "QUInt2x4", 1, false, false, false, false},
};
constexpr int kNamedDTypes = kDTypes + static_cast<int>(std::size(kForeignDTypes));

PyObject* g_dtypes[kNamedDTypes];

int dtype_number(PyObject* self) { return reinterpret_cast<Named*>(self)->id; }
const DTypeInfo& named_info(int id) { return id < kDTypes ? kDTypeInfo[id] : kForeignDTypes[id - kDTypes]; }
const DTypeInfo& named_info(PyObject* self) { return named_info(dtype_number(self)); }
PyGetSetDef kDTypeGetSet[] = {
    {"is_floating_point", [](PyObject* s, void*) { return PyBool_FromLong(named_info(s).is_float); }, nullptr, nullptr,
     nullptr},
    {"is_complex", [](PyObject* s, void*) { return PyBool_FromLong(named_info(s).is_complex); }, nullptr, nullptr,
     nullptr},
    {"is_signed",
     [](PyObject* s, void*) {
       return guarded([&]() -> PyObject* {
         CHECK(dtype_number(s) < kDTypes, Runtime, "isSignedType not supported for quantized types");
         return PyBool_FromLong(named_info(s).is_signed);
       });
     },
     nullptr, nullptr, nullptr},
    {"itemsize", [](PyObject* s, void*) { return PyLong_FromLongLong(named_info(s).size); }, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyObject* dtype_to_real(PyObject* s, PyObject*) {
  int id = dtype_number(s);
  return Py_NewRef(id < kDTypes ? dtype_object(to_real(static_cast<DType>(id))) : s);
}
PyObject* dtype_to_complex(PyObject* s, PyObject*) {
  int id = dtype_number(s);
  return guarded([&]() -> PyObject* {
    const auto t = static_cast<DType>(id);
    CHECK(id < kCppDTypes && is_differentiable(t), Runtime, "Unknown Complex ScalarType for ", named_info(s).legacy);
    return Py_NewRef(dtype_object(to_complex(t)));
  });
}
PyMethodDef kDTypeMethods[] = {
    {"__reduce__", named_reduce, METH_NOARGS, nullptr},     {"__copy__", named_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", named_copy, METH_O, nullptr},          {"to_real", dtype_to_real, METH_NOARGS, nullptr},
    {"to_complex", dtype_to_complex, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyTypeObject* named_type(const char* name, const char* doc, PyMethodDef* methods, PyGetSetDef* getset) {
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(doc)},
                         {Py_tp_repr, reinterpret_cast<void*>(named_repr)},
                         {Py_tp_methods, methods},
                         {getset ? Py_tp_getset : 0, getset},
                         {0, nullptr}};
  PyType_Spec spec = {name, sizeof(Named), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyObject* named(PyTypeObject* type, int id, const char* text) {
  Named* n = PyObject_New(Named, type);
  n->id = id;
  n->text = text;
  return reinterpret_cast<PyObject*>(n);
}

// device

// Kinds of devices that can be named and compared, and that no tensor can be on.
constexpr const char* kForeignDevices[] = {"mkldnn", "opengl", "opencl", "ideep",  "hip", "ve",  "fpga",
                                           "maia",   "xla",    "lazy",   "vulkan", "hpu", "ipu", "mtia"};
constexpr int kForeignDeviceTypes = static_cast<int>(std::size(kForeignDevices));

// What device("cuda:1") names; if foreign is not negative, the kind is one of those above.
struct NamedDevice {
  Device device;
  int foreign = -1;
  const char* name() const { return foreign < 0 ? device.name() : kForeignDevices[foreign]; }
  std::string text() const {
    return device.index < 0 ? std::string(name()) : std::string(name()) + ":" + std::to_string(device.index);
  }
  bool operator==(const NamedDevice&) const = default;
};
struct DeviceObject {
  PyObject_HEAD NamedDevice named;
};
const NamedDevice& device_of(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->named; }

NamedDevice parse_device(const char* text) {
  std::string s = text;
  size_t colon = s.find(':');
  std::string name = s.substr(0, colon);
  NamedDevice found;
  bool known = false;
  for (int i = 0; i < kDeviceTypes && !known; ++i)
    if ((known = name == kDeviceNames[i])) found.device = {static_cast<DeviceType>(i), -1};
  for (int i = 0; i < kForeignDeviceTypes && !known; ++i)
    if ((known = name == kForeignDevices[i])) found = {{DeviceType::Cpu, -1}, i};
  CHECK(known, Runtime,
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
        "mps, meta, hpu, mtia, privateuseone device type at start of device string: ",
        name);
  if (colon != std::string::npos) {
    std::string index = s.substr(colon + 1);
    CHECK(!index.empty() && index.size() < 5 && index.find_first_not_of("0123456789") == std::string::npos, Runtime,
          "Invalid device string: '", s, "'");
    found.device.index = static_cast<int16_t>(std::atoi(index.c_str()));
  }
  return found;
}

// The device that is named, with the index of the name.
NamedDevice named_device(PyObject* o) {
  if (Py_TYPE(o) == g_device_type) return device_of(o);
  if (PyUnicode_Check(o)) {
    const char* s = PyUnicode_AsUTF8(o);
    if (!s) python_error();
    return parse_device(s);
  }
  CHECK(PyLong_Check(o), Type, "device(): argument 'type' must be str, int or torch.device, not ", Py_TYPE(o)->tp_name);
  int64_t i = PyLong_AsLongLong(o);
  if (i == -1 && PyErr_Occurred()) python_error();
  CHECK(i >= 0 && i < 1000, Runtime, "Device index must not be negative");
  return {{DeviceType::Cuda, static_cast<int16_t>(i)}, -1};
}

PyObject* named_object(const NamedDevice& d) {
  DeviceObject* o = PyObject_New(DeviceObject, g_device_type);
  if (o) o->named = d;
  return reinterpret_cast<PyObject*>(o);
}

// A mode may take over what device(...) means.
PyObject* device_by_mode(PyObject* args, PyObject* kwargs) {
  std::vector<PyObject*> all;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) all.push_back(PyTuple_GET_ITEM(args, i));
  PyObject* names = PyList_New(0);
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
    PyList_Append(names, key);
    all.push_back(value);
  }
  PyObject* kwnames = PyList_AsTuple(names);
  PyObject* made =
      call_override(reinterpret_cast<PyObject*>(g_device_type), all.data(), PyTuple_GET_SIZE(args), kwnames);
  Py_DECREF(names);
  Py_DECREF(kwnames);
  return made;
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (asks(Py_None, false)) return device_by_mode(args, kwargs);
    PyObject *type = nullptr, *index = nullptr;
    static const char *names[] = {"type", "index", nullptr}, *whole[] = {"device", nullptr};
    static PyObject* device = PyUnicode_InternFromString("device");
    if (kwargs && PyDict_Contains(kwargs, device) == 1) {
      if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(whole), &type)) return nullptr;
    } else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", const_cast<char**>(names), &type, &index)) {
      return nullptr;
    }
    NamedDevice d = named_device(type);
    if (index && index != Py_None) {
      CHECK(d.device.index < 0, Runtime,
            "type (string) must not include an index because index was passed explicitly: ", d.text());
      int64_t i = integer_from(index);
      CHECK(i >= 0 && i < 1000, Runtime, "Device index must be between 0 and 999, got ", i);
      d.device.index = static_cast<int16_t>(i);
    }
    return named_object(d);
  });
}
PyObject* device_repr(PyObject* self) {
  const NamedDevice& d = device_of(self);
  return d.device.index < 0 ? PyUnicode_FromFormat("device(type='%s')", d.name())
                            : PyUnicode_FromFormat("device(type='%s', index=%d)", d.name(), d.device.index);
}
PyObject* device_str(PyObject* self) { return PyUnicode_FromString(device_of(self).text().c_str()); }
Py_hash_t device_hash(PyObject* self) {
  const NamedDevice& d = device_of(self);
  return (d.foreign + 1) * 65536 + static_cast<int>(d.device.type) * 1024 + d.device.index + 2;
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(a, g_device_type) || !PyObject_TypeCheck(b, g_device_type) || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  bool same = device_of(a) == device_of(b);
  return PyBool_FromLong(same == (op == Py_EQ));
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("(O(N))", reinterpret_cast<PyObject*>(g_device_type), device_str(self));
}
PyObject* device_enter(PyObject* self, PyObject*) {
  return guarded([&] {
    push_device(device_from(self));
    return Py_NewRef(self);
  });
}
PyObject* device_exit(PyObject*, PyObject*) {
  pop_device();
  Py_RETURN_NONE;
}
PyGetSetDef kDeviceGetSet[] = {
    {"type", [](PyObject* s, void*) { return PyUnicode_FromString(device_of(s).name()); }, nullptr, nullptr, nullptr},
    {"index",
     [](PyObject* s, void*) -> PyObject* {
       int i = device_of(s).device.index;
       return i < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(i);
     },
     nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef kDeviceMethods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr}, {"__copy__", named_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", named_copy, METH_O, nullptr},       {"__enter__", device_enter, METH_NOARGS, nullptr},
    {"__exit__", device_exit, METH_VARARGS, nullptr},    {nullptr, nullptr, 0, nullptr}};

// Size: a tuple of ints with numel(). The size of a ragged dimension (rushlight.nested) stands for many lengths and
// stays the object that it is.

bool is_ragged(PyObject* item) {
  static PyObject* mark = PyUnicode_InternFromString("_is_ragged_size");
  return PyLong_Check(item) && _PyType_Lookup(Py_TYPE(item), mark);
}
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* made = PyTuple_Type.tp_new(type, args, kwargs);
  if (!made) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made); ++i) {
    PyObject* item = PyTuple_GET_ITEM(made, i);
    if (PyLong_CheckExact(item) || is_ragged(item)) continue;
    PyObject* number = PyNumber_Index(item);
    if (!number) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   Py_TYPE(item)->tp_name);
      Py_DECREF(made);
      return nullptr;
    }
    PyTuple_SET_ITEM(made, i, number);
    Py_DECREF(item);
  }
  return made;
}
PyObject* size_repr(PyObject* self) {
  std::string s = "torch.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    PyObject* r = PyObject_Repr(PyTuple_GET_ITEM(self, i));
    if (!r) return nullptr;
    s += (i ? ", " : "") + std::string(PyUnicode_AsUTF8(r));
    Py_DECREF(r);
  }
  return PyUnicode_FromString((s + "])").c_str());
}
PyObject* as_size(PyObject* tuple) {  // steals
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  PyObject* r = PyObject_CallOneArg(reinterpret_cast<PyObject*>(g_size_type), tuple);
  Py_DECREF(tuple);
  return r;
}
PyObject* size_numel(PyObject* self, PyObject*) {
  return guarded([&] {
    int64_t n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
      n = checked_mul(n, PyLong_AsLongLong(PyTuple_GET_ITEM(self, i)));
    return PyLong_FromLongLong(n);
  });
}
PyObject* size_concat(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* r = PyTuple_New(PyTuple_GET_SIZE(a) + PyTuple_GET_SIZE(b));
  Py_ssize_t k = 0;
  for (PyObject* t : {a, b})
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(t); ++i) PyTuple_SET_ITEM(r, k++, Py_NewRef(PyTuple_GET_ITEM(t, i)));
  return as_size(r);
}
PyObject* size_repeat(PyObject* self, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, n)); }
PyObject* size_subscript(PyObject* self, PyObject* key) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  PyObject* plain = PyTuple_New(PyTuple_GET_SIZE(self));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
    PyTuple_SET_ITEM(plain, i, Py_NewRef(PyTuple_GET_ITEM(self, i)));
  return Py_BuildValue("(O(N))", reinterpret_cast<PyObject*>(g_size_type), plain);
}
PyMethodDef kSizeMethods[] = {{"numel", size_numel, METH_NOARGS, nullptr},
                              {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool g_bare_types = false;

PyObject* dtype_object(DType t) { return g_dtypes[static_cast<int>(t)]; }
bool dtype_from(PyObject* o, DType* out) {
  if (Py_TYPE(o) == g_dtype_type) {
    int id = dtype_number(o);
    CHECK(id < kDTypes, NotImplemented, "tensors of ", reinterpret_cast<Named*>(o)->text,
          " are made of float32 numbers: torch.quantize_per_tensor, or torch.quantize_per_channel");
    g_bare_types |= id >= kCppDTypes;
    *out = static_cast<DType>(id);
    return true;
  }
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type))
    return *out = default_dtype() == DType::Float64 ? DType::Float64 : DType::Float64, true;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return *out = DType::Int64, true;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return *out = DType::Bool, true;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return *out = DType::Complex128, true;
  return false;
}

PyObject* layout_object(Layout l) { return g_layouts[static_cast<int>(l)]; }
bool layout_from(PyObject* o, Layout* out) {
  if (Py_TYPE(o) != g_layout_type) return false;
  *out = static_cast<Layout>(reinterpret_cast<Named*>(o)->id);
  return true;
}
PyObject* memory_format_object(MemoryFormat f) { return g_formats[static_cast<int>(f)]; }
bool memory_format_from(PyObject* o, MemoryFormat* out) {
  if (Py_TYPE(o) != g_format_type) return false;
  *out = static_cast<MemoryFormat>(reinterpret_cast<Named*>(o)->id);
  return true;
}

PyObject* device_object(Device d) { return named_object({d, -1}); }
bool is_device_like(PyObject* o) {
  return Py_TYPE(o) == g_device_type || PyUnicode_Check(o) || (PyLong_Check(o) && !PyBool_Check(o));
}
// Where tensors can be: there is one CPU, "cpu:0" too.
Device device_from(PyObject* o) {
  NamedDevice d = named_device(o);
  CHECK(d.foreign < 0, Runtime, "PyTorch is not linked with support for ", d.name(),
        " devices\n  Tensors live on the CPU here");
  return d.device.is_cpu() ? Device() : d.device;
}

PyObject* size_object(IntSpan sizes) {
  PyObject* s = g_size_type->tp_alloc(g_size_type, sizes.size());
  if (!s) return nullptr;
  for (int64_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(s, i, PyLong_FromLongLong(sizes[i]));
  return s;
}

int install_value_types(PyObject* m) {
  g_dtype_type =
      named_type("rushlight.dtype", "A type of elements: torch.float32, torch.int64 ...", kDTypeMethods, kDTypeGetSet);
  g_layout_type = named_type("rushlight.layout", "How elements are stored: torch.strided, torch.sparse_coo ...",
                             kNamedMethods, nullptr);
  g_format_type = named_type("rushlight.memory_format", "An order of dimensions in memory: torch.channels_last ...",
                             kNamedMethods, nullptr);
  if (!g_dtype_type || !g_layout_type || !g_format_type) return -1;
  for (int i = 0; i < kNamedDTypes; ++i) {
    static std::string texts[kNamedDTypes];
    texts[i] = std::string("torch.") + named_info(i).name;
    g_dtypes[i] = named(g_dtype_type, i, texts[i].c_str());
    if (PyModule_AddObjectRef(m, named_info(i).name, g_dtypes[i]) < 0) return -1;
  }
  static const char* layouts[] = {"torch.strided",    "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc",
                                  "torch.sparse_bsr", "torch.sparse_bsc", "torch._mkldnn",    "torch.jagged"};
  for (int i = 0; i < 8; ++i) {
    g_layouts[i] = named(g_layout_type, i, layouts[i]);
    if (PyModule_AddObjectRef(m, layouts[i] + 6, g_layouts[i]) < 0) return -1;
  }
  static const char* formats[] = {"torch.contiguous_format", "torch.preserve_format", "torch.channels_last",
                                  "torch.channels_last_3d"};
  for (int i = 0; i < 4; ++i) {
    g_formats[i] = named(g_format_type, i, formats[i]);
    if (PyModule_AddObjectRef(m, formats[i] + 6, g_formats[i]) < 0) return -1;
  }
  const char* device_doc = "device(type, index=None)\n--\n\nWhere tensors live: device(\"cpu\"), device(\"meta\").";
  PyType_Slot device_slots[] = {{Py_tp_doc, const_cast<char*>(device_doc)},
                                {Py_tp_new, reinterpret_cast<void*>(device_new)},
                                {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                                {Py_tp_str, reinterpret_cast<void*>(device_str)},
                                {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
                                {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
                                {Py_tp_getset, kDeviceGetSet},
                                {Py_tp_methods, kDeviceMethods},
                                {0, nullptr}};
  PyType_Spec device_spec = {"rushlight.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, device_slots};
  g_device_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&device_spec));
  PyType_Slot size_slots[] = {{Py_tp_doc, const_cast<char*>("The sizes of a tensor: a tuple of ints with numel().")},
                              {Py_tp_new, reinterpret_cast<void*>(size_new)},
                              {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                              {Py_tp_methods, kSizeMethods},
                              {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                              {Py_nb_add, reinterpret_cast<void*>(size_concat)},  // (1,) + size is a Size too
                              {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                              {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                              {0, nullptr}};
  PyType_Spec size_spec = {"rushlight.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, size_slots};
  PyObject* bases = PyTuple_Pack(1, reinterpret_cast<PyObject*>(&PyTuple_Type));
  g_size_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&size_spec, bases));
  Py_XDECREF(bases);
  if (!g_device_type || !g_size_type) return -1;
  struct {
    const char* name;
    PyTypeObject* type;
  } types[] = {{"dtype", g_dtype_type},
               {"layout", g_layout_type},
               {"memory_format", g_format_type},
               {"device", g_device_type},
               {"Size", g_size_type}};
  for (auto& t : types)
    if (PyModule_AddObjectRef(m, t.name, reinterpret_cast<PyObject*>(t.type)) < 0) return -1;
  return 0;
}

}  // namespace rl
