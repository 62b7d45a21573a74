// The extension module rushlight._C.
#include <Python.h>
#include <signal.h>

#include <cstring>
#include <string>

#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "backend/backend.h"
#include "backend/isolated.h"
#include "backend/precision.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "ops/elementwise/lazy_view.h"
#include "ops/ops.h"
#include "python/compiled_type.h"
#include "python/dispatch.h"
#include "python/errors.h"
#include "python/function_node.h"
#include "python/fused_type.h"
#include "python/generator_type.h"
#include "python/module_call.h"
#include "python/node_type.h"
#include "python/op_object.h"
#include "python/override.h"
#include "python/saved_tensor.h"
#include "python/storage_type.h"
#include "python/tensor_type.h"
#include "python/value_types.h"
#include "schema/registry.h"
#include "tensor/default_device.h"
#include "tensor/promote.h"

namespace rl {

namespace ops {
Tensor copy_(const Tensor& self, const Value& value, bool non_blocking);
Tensor view_as_real(const Tensor& x);
Tensor view_as_complex(const Tensor& x);
}  // namespace ops

// Of tensors without memory, whose class answers.
static bool wrapper_has_nan(const Tensor& t) {
  PyObject* where = PyObject_CallMethod(reinterpret_cast<PyObject*>(t.get()), "isnan", nullptr);
  PyObject* any = where ? PyObject_CallMethod(where, "_is_any_true", nullptr) : nullptr;
  Py_XDECREF(where);
  const int found = any ? PyObject_IsTrue(any) : -1;
  Py_XDECREF(any);
  if (found < 0) python_error();
  return found;
}

bool has_nan(const Tensor& t) {
  bool found = false;
  if (!t.has_values()) return false;
  if (dispatches(Py_TYPE(t.get()))) return wrapper_has_nan(t);
  visit_compute(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_floating_v<T> || is_complex_v<T>) {
      Tensor flat = t;
      if (!t.is_contiguous()) {
        flat = empty(t.sizes(), t.dtype());
        ops::copy_into(flat, t);
      }
      const T* p = flat.data<T>();
      for (int64_t i = 0; i < flat.numel() && !found; ++i) {
        if constexpr (is_complex_v<T>) found = p[i] != p[i];
        else found = static_cast<compute_t<T>>(p[i]) != static_cast<compute_t<T>>(p[i]);
      }
    }
  });
  return found;
}

namespace {

void* release_gil() { return PyEval_SaveThread(); }
void take_gil(void* state) { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }

// Whether Ctrl-C was pressed: then KeyboardInterrupt is set. A handler of the program's own must not run in the middle
// of an op, whose tensors it might change: it is called when the op has ended.
bool interrupted(void* state) {
  if (state) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
  bool stop = PyOS_InterruptOccurred();  // in the main thread only
  if (stop) {
    PyObject* signals = PyImport_ImportModule("_signal");
    PyObject* handler = signals ? PyObject_CallMethod(signals, "getsignal", "i", SIGINT) : nullptr;
    PyObject* plain = signals ? PyObject_GetAttrString(signals, "default_int_handler") : nullptr;
    stop = handler && handler == plain;
    Py_XDECREF(handler);
    Py_XDECREF(plain);
    Py_XDECREF(signals);
    PyErr_Clear();
    if (stop) PyErr_SetNone(PyExc_KeyboardInterrupt);
    else PyErr_SetInterrupt();
  }
  if (state) PyEval_SaveThread();
  return stop;
}

DType get_default_dtype() { return default_dtype(); }
void put_default_dtype(DType t) {
  CHECK(is_float(t), Type, "only floating-point types are supported as the default type");
  set_default_dtype(t);
}
Device get_default_device() { return chosen_device(); }
void put_default_device(Device d) { set_default_device(d); }  // what is made says so where there is no such device
DType promote_op(DType a, DType b) { return promote_types(a, b); }
bool can_cast_op(DType from, DType to) { return can_cast(from, to); }
DType result_type_op(const Value& a, const Value& b) {
  ResultType r;
  for (const Value* v : {&a, &b}) {
    if (v->is_tensor()) r.add(v->tensor);
    else r.add(v->number);
  }
  return r.get();
}
int64_t get_num_threads() { return num_threads(); }
void put_num_threads(int64_t n) {
  CHECK(n > 0 && n < 4096, Runtime, "set_num_threads expects a positive integer");
  set_num_threads(static_cast<int>(n));
}
constexpr const char* kPrecisions[] = {"highest", "high", "medium"};
std::string get_precision() { return kPrecisions[static_cast<int>(g_float_precision)]; }
void put_precision(const std::string& name) {
  for (int i = 0; i < 3; ++i)
    if (name == kPrecisions[i]) {
      g_float_precision = static_cast<FloatPrecision>(i);
      return;
    }
  CHECK(false, Runtime, "set_float32_matmul_precision: expected highest, high or medium, got ", name);
}
void put_plain_convolutions(bool plain) { g_plain_convolutions = plain; }
std::string isa() { return has_backend(Device()) ? backend(Device()).name : "none"; }
void set_library_path(const std::string& path) { Site::set_library_prefix(path.c_str()); }

const Register registered([](Ops& ops) {
  ops.def("get_default_dtype", get_default_dtype, "", kNoOut, R"(
    Returns the type of new float tensors; set_default_dtype() sets it.

    Example:
        >>> torch.get_default_dtype()
        torch.float32)");
  ops.def("_set_default_dtype", put_default_dtype, "d", kNoOut | kAnyType);
  ops.def("_register_isolated_device", register_isolated_backend, "present", kNoOut);
  ops.def("_default_device", get_default_device, "", kNoOut);
  ops.def("_set_default_device", put_default_device, "d", kNoOut);
  ops.def("promote_types", promote_op, "type1, type2", kNoOut | kAnyType, R"(
    Returns the smallest type that holds the values of two types.

    Args:
        type1: one type.
        type2: the other one.

    Example:
        >>> torch.promote_types(torch.int32, torch.float16)
        torch.float16
        >>> torch.promote_types(torch.uint8, torch.int8)
        torch.int16)");
  ops.def("can_cast", can_cast_op, "from_, to", kNoOut | kAnyType, R"(
    Tells whether results of a type may be written to another: int to float may, float to int not.

    Args:
        from_: the type of the values.
        to: the type to write.

    Example:
        >>> torch.can_cast(torch.float64, torch.float32), torch.can_cast(torch.float32, torch.int64)
        (True, False))");
  ops.def("result_type", result_type_op, "tensor, other", kNoOut | kAnyType, R"(
    Returns the type that arithmetic of two operands gives: numbers count less than tensors.

    Args:
        tensor: a tensor or a number.
        other: a tensor or a number.

    Example:
        >>> torch.result_type(torch.tensor([1, 2], dtype=torch.int8), 3)
        torch.int8
        >>> torch.result_type(torch.tensor([1, 2], dtype=torch.int8), 3.5)
        torch.float32)");
  ops.def("get_num_threads", get_num_threads, "", kNoOut, R"(
    Returns how many threads kernels use.

    Example:
        >>> torch.get_num_threads() >= 1
        True)");
  ops.def("set_num_threads", put_num_threads, "int", kNoOut, R"(
    Sets how many threads kernels use. Results do not depend on it.

    Args:
        int: the number, at least 1.

    Example:
        >>> torch.set_num_threads(torch.get_num_threads()))");
  ops.def("get_float32_matmul_precision", get_precision, "", kNoOut, R"(
    Returns how exact matrix products of float32 are; set_float32_matmul_precision() sets it.

    Example:
        >>> torch.get_float32_matmul_precision()
        'highest')");
  ops.def("set_float32_matmul_precision", put_precision, "precision", kNoOut, R"(
    Sets how exact matrix products of float32 are.

    Args:
        precision: 'highest' keeps all 24 bits of the factors; 'high' at least 16, and 'medium' at least 8,
         where the processor is faster that way.

    Example:
        >>> torch.set_float32_matmul_precision("highest"))");
  ops.def("_set_plain_convolutions", put_plain_convolutions, "plain", kNoOut);
  ops.def("_cpu_isa", isa, "", kNoOut);
  ops.def("_set_library_path", set_library_path, "path", kNoOut);
});

PyObject* find_op(PyObject* module, PyObject* name) {
  PyObject* ops = PyObject_GetAttrString(module, "ops");
  PyObject* found = ops ? PyDict_GetItemWithError(ops, name) : nullptr;
  Py_XDECREF(ops);
  if (!found && !PyErr_Occurred()) PyErr_SetObject(PyExc_AttributeError, name);
  return Py_XNewRef(found);
}

PyMethodDef kFunctions[] = {{"_find_op", find_op, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                       "rushlight._C",
                       "The C++ core of rushlight.",
                       -1,
                       kFunctions,
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace
}  // namespace rl

PyMODINIT_FUNC PyInit__C() {
  using namespace rl;
  PyObject* m = PyModule_Create(&kModule);
  if (!m) return nullptr;
  g_out_of_memory_error =
      PyErr_NewExceptionWithDoc("rushlight.OutOfMemoryError", "There is not enough memory, or the limit was reached.",
                                PyExc_RuntimeError, nullptr);
  g_linalg_error = PyErr_NewExceptionWithDoc("rushlight.linalg.LinAlgError", "A matrix does not allow the operation.",
                                             PyExc_RuntimeError, nullptr);
  PyModule_AddObjectRef(m, "OutOfMemoryError", g_out_of_memory_error);
  PyModule_AddObjectRef(m, "LinAlgError", g_linalg_error);
  for (auto install : {install_overrides, install_value_types, install_tensor_type, install_node_type,
                       install_saved_tensor, install_storage_type, install_function_node, install_generator_type,
                       install_module_call, install_fused_type, install_compiled_type, install_recording_calls})
    if (install(m) < 0) return nullptr;
  PyObject* ops_dict = PyDict_New();
  install_ops(m, ops_dict);
  if (PyErr_Occurred()) return nullptr;
  PyModule_AddObject(m, "ops", ops_dict);
  PyObject* file = PyModule_GetFilenameObject(m);
  if (!file) PyErr_Clear();
  set_long_work_hooks({release_gil, take_gil});
  set_interrupt_hook(interrupted);
  g_engine_ops = {[](const Tensor& a, const Tensor& b) { return ops::add(a, b); },
                  [](const Tensor& into, const Tensor& t) {
                    t_destination.wanted = into.get();
                    NoGrad raw;
                    Tensor r = ops::add(into, t);
                    t_destination.wanted = t_destination.taken = nullptr;
                    if (!r.is(into)) ops::copy_into(into, r);
                  },
                  ops::sum_to,
                  ops::cast,
                  [](IntSpan s, DType t, Device d) { return ops::zeros(s, t, d); },
                  [](const Tensor& t) { return ops::clone(t); },
                  [](const Tensor& t, IntSpan a, IntSpan b, int64_t o) { return ops::as_strided(t, a, b, o); },
                  [](const Tensor& t) {
                    PyObject* argument = t.object();
                    return Tensor::own(reinterpret_cast<TensorObject*>(call_op("real", &argument, 1)));
                  },
                  ops::embed,
                  ops::copy_into,
                  [](const Tensor& into, const Tensor& from) { return ops::copy_(into, from, false); },
                  ops::view_as_real,
                  ops::view_as_complex,
                  ops::select,
                  ops::stack,
                  ops::reshape,
                  ops::conj,
                  ops::neg,
                  ops::resolved};
  dispatch_engine_ops();
  return m;
}
