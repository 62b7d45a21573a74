// Which module's forward is running, so that a node knows the layer that recorded it. A call is two pointers on the C
// stack; a Python object is made only if a node is recorded inside.
#pragma once
#include <Python.h>

namespace rl {

struct ModuleCall {
  PyObject* module;  // borrowed: the caller holds it
  ModuleCall* outer;
  PyObject* scope = nullptr;  // owned; see module_scope
};
extern thread_local ModuleCall* t_module_call __attribute__((tls_model("initial-exec")));

// (scope of the calling module or None, weak reference to the module, its class): one tuple per call of a module,
// shared by the nodes recorded in it. Weak, so that a graph does not keep a model alive. Borrowed; null outside
// modules.
PyObject* module_scope();

class InModule {
 public:
  explicit InModule(PyObject* module) : call_{module, t_module_call} { t_module_call = &call_; }
  ~InModule() {
    t_module_call = call_.outer;
    Py_XDECREF(call_.scope);
  }
  InModule(const InModule&) = delete;
  InModule& operator=(const InModule&) = delete;

 private:
  ModuleCall call_;
};

}  // namespace rl
