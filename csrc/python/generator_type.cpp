#include "python/generator_type.h"

#include <structmember.h>

#include "backend/backend.h"
#include "base/generator.h"
#include "python/errors.h"
#include "schema/arguments.h"

namespace rl {
namespace {

PyTypeObject* g_generator_type = nullptr;

struct GeneratorObject {
  PyObject_HEAD Generator* generator;  // owned, except the default one
  PyObject* weakrefs;
};
Generator& of(PyObject* self) { return *reinterpret_cast<GeneratorObject*>(self)->generator; }

PyObject* make(PyTypeObject* type, Generator* generator) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) {
    if (generator != &default_generator()) delete generator;
    python_error();
  }
  reinterpret_cast<GeneratorObject*>(self)->generator = generator;
  return self;
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"device", nullptr};
    PyObject* device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device)) return nullptr;
    Device d = device && device != Py_None ? device_from(device) : Device();
    CHECK(has_backend(d) && !d.is_meta(), Runtime, "Generator: no random numbers are drawn on device ", to_text(d),
          ": this build draws them on the cpu only");
    return make(type, new Generator(Generator::kDefaultSeed, d));
  });
}

void generator_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<GeneratorObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  if (object->generator != &default_generator()) delete object->generator;
  type->tp_free(self);
  Py_DECREF(type);
}

// Seeds may be written as signed or as unsigned 64-bit integers.
uint64_t seed_from(PyObject* value) {
  CHECK(is_integer(value) && !is_tensor(value), Runtime, "manual_seed expected a long, but got ",
        Py_TYPE(value)->tp_name);
  PyObject* number = PyNumber_Index(value);
  if (!number) python_error();
  uint64_t seed = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    seed = static_cast<uint64_t>(PyLong_AsLongLong(number));
  }
  Py_DECREF(number);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    fail(ErrorKind::Value, "manual_seed: expected a seed between -2^63 and 2^64 - 1");
  }
  return seed;
}

PyObject* manual_seed(PyObject* self, PyObject* value) {
  return guarded([&] {
    of(self).manual_seed(seed_from(value));
    return Py_NewRef(self);
  });
}
PyObject* seed(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(of(self).seed()); }
PyObject* initial_seed(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(of(self).initial_seed()); }

PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    Tensor state = empty({static_cast<int64_t>(Generator::kStateBytes)}, DType::UInt8);
    of(self).get_state(state.data<uint8_t>());
    return state.release();
  });
}
PyObject* set_state(PyObject* self, PyObject* value) {
  return guarded([&] {
    CHECK(is_tensor(value), Type, "expected a torch.ByteTensor, but got ", Py_TYPE(value)->tp_name);
    Tensor state = Tensor::borrow(value);
    CHECK(state.dtype() == DType::UInt8 && state.device().is_cpu() && state.is_contiguous(), Type,
          "RNG state must be a torch.ByteTensor");
    of(self).set_state(state.data<uint8_t>(), static_cast<size_t>(state.numel()));
    return Py_NewRef(self);
  });
}
PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&] { return make(g_generator_type, new Generator(of(self))); });
}

PyObject* no_offset(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "CPU Generator does not use offset");
  return nullptr;
}
// Pickled as torch does: (class, (device,), (seed, offset, state)).
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* state = get_state(self, nullptr);
    if (!state) return nullptr;
    return Py_BuildValue("(O(N)(KON))", reinterpret_cast<PyObject*>(Py_TYPE(self)), device_object(of(self).device()),
                         static_cast<unsigned long long>(of(self).initial_seed()), Py_None, state);
  });
}
PyObject* setstate(PyObject* self, PyObject* saved) {
  if (!PyTuple_Check(saved) || PyTuple_GET_SIZE(saved) != 3) {
    PyErr_SetString(PyExc_TypeError, "Generator.__setstate__ expects (seed, offset, state)");
    return nullptr;
  }
  PyObject* done = set_state(self, PyTuple_GET_ITEM(saved, 2));
  if (!done) return nullptr;
  Py_DECREF(done);
  Py_RETURN_NONE;
}

PyMethodDef kMethods[] = {
    {"manual_seed", manual_seed, METH_O, "Seeds the generator; the same seed gives the same numbers. Returns it."},
    {"seed", seed, METH_NOARGS, "Seeds the generator from the system's entropy and returns the seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed it was last given."},
    {"get_state", get_state, METH_NOARGS, "The state as a ByteTensor."},
    {"set_state", set_state, METH_O, "Continues from a state that get_state returned."},
    {"clone_state", clone_state, METH_NOARGS, "A generator that goes on as this one would."},
    {"get_offset", no_offset, METH_NOARGS, nullptr},
    {"set_offset", no_offset, METH_O, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__setstate__", setstate, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef kMembers[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(GeneratorObject, weakrefs), READONLY, nullptr},
                          {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef kGetSet[] = {
    {"device", [](PyObject* self, void*) { return guarded([&] { return device_object(of(self).device()); }); }, nullptr,
     "The device it draws on.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
constexpr const char* kDoc =
    "Generator(device='cpu')\n\nA source of random numbers with a state of its own. Its streams, and the states it "
    "saves, are those of torch.Generator on the CPU.";

}  // namespace

bool is_generator(PyObject* o) { return PyObject_TypeCheck(o, g_generator_type); }
Generator* generator_from(PyObject* o) { return &of(o); }

int install_generator_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(generator_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
                         {Py_tp_methods, kMethods},
                         {Py_tp_members, kMembers},
                         {Py_tp_getset, kGetSet},
                         {Py_tp_doc, const_cast<char*>(kDoc)},
                         {0, nullptr}};
  PyType_Spec spec = {"rushlight._C.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots};
  g_generator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!g_generator_type) return -1;
  if (PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(g_generator_type)) < 0) return -1;
  PyObject* shared = guarded([] { return make(g_generator_type, &default_generator()); });
  return shared ? PyModule_AddObject(module, "default_generator", shared) : -1;
}

}  // namespace rl
