#include "python/op_traits.h"

#include <cctype>
#include <iterator>
#include <string>

#include "schema/registry.h"

namespace rl {

namespace {

struct Flag {
  const char *name, *says;
  uint32_t bit;
};
constexpr Flag kFlags[] = {
#define RL_FLAG(flag, name, bit, says) {#name, says, flag},
    RL_OP_FLAGS(RL_FLAG)
#undef RL_FLAG
};
constexpr int kFlagCount = std::size(kFlags);

constexpr PyStructSequence_Field kOfKernel[] = {
    {"kernel", "the number of the elementwise kernel that the op is, or None"},
    {"operands", "of the kernel: how many tensors it reads"},
    {"cost", "of the kernel: the work of one element, in additions"},
    {"result", "of the kernel: the result's type, given the operands' common type"},
    {"fusable", "whether programs of several ops can hold it"},
};
constexpr const char* kResults[] = {"same", "float", "bool", "real", "real_float", "float_bool"};

PyTypeObject* g_traits = nullptr;

// Named constants, and nothing else.
PyObject* flags_class() {
  PyObject* names = PyDict_New();
  if (!names) return nullptr;
  for (const Flag& flag : kFlags) {
    std::string upper = flag.name;
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    PyObject* value = PyLong_FromUnsignedLong(flag.bit);
    PyDict_SetItemString(names, upper.c_str(), value);
    Py_XDECREF(value);
  }
  PyObject* doc = PyUnicode_FromString("What a registration says of an op: bits of op._flags.");
  PyDict_SetItemString(names, "__doc__", doc);
  Py_XDECREF(doc);
  PyObject* module = PyUnicode_FromString("rushlight._C");
  PyDict_SetItemString(names, "__module__", module);
  Py_XDECREF(module);
  PyObject* made = PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s()N", "OpFlags", names);
  return made;
}

}  // namespace

int install_traits(PyObject* module) {
  static PyStructSequence_Field fields[kFlagCount + std::size(kOfKernel) + 1];
  for (int i = 0; i < kFlagCount; ++i) fields[i] = {kFlags[i].name, kFlags[i].says};
  for (size_t i = 0; i < std::size(kOfKernel); ++i) fields[kFlagCount + i] = kOfKernel[i];
  static PyStructSequence_Desc desc = {"rushlight._C.OpTraits", "What is known of an op, from its registration.",
                                       fields, static_cast<int>(std::size(fields)) - 1};
  g_traits = PyStructSequence_NewType(&desc);
  PyObject* flags = flags_class();
  if (!g_traits || !flags) return -1;
  if (PyModule_AddObjectRef(module, "OpTraits", reinterpret_cast<PyObject*>(g_traits)) < 0) return -1;
  return PyModule_AddObject(module, "OpFlags", flags);
}

PyObject* traits_object(uint32_t flags, const Kernel* kernel) {
  PyObject* made = PyStructSequence_New(g_traits);
  if (!made) return nullptr;
  for (int i = 0; i < kFlagCount; ++i) PyStructSequence_SetItem(made, i, PyBool_FromLong((flags & kFlags[i].bit) != 0));
  PyObject* of_kernel[] = {
      kernel ? PyLong_FromLong(static_cast<long>(kernel->op)) : Py_NewRef(Py_None),
      kernel ? PyLong_FromLong(kernel->operands) : Py_NewRef(Py_None),
      kernel ? PyLong_FromLong(kernel->cost) : Py_NewRef(Py_None),
      kernel ? PyUnicode_FromString(kResults[static_cast<int>(kernel->rule)]) : Py_NewRef(Py_None),
      PyBool_FromLong(kernel && kernel->fusable()),
  };
  for (size_t i = 0; i < std::size(of_kernel); ++i)
    PyStructSequence_SetItem(made, kFlagCount + static_cast<Py_ssize_t>(i), of_kernel[i]);
  return made;
}

}  // namespace rl
