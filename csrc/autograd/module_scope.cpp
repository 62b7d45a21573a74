#include "autograd/module_scope.h"

#include "base/small_vector.h"

namespace rl {

thread_local ModuleCall* t_module_call = nullptr;

PyObject* module_scope() {
  if (!t_module_call) return nullptr;
  if (t_module_call->scope) return t_module_call->scope;
  // From the outermost call that has none yet, inwards.
  SmallVector<ModuleCall*, 8> missing;
  for (ModuleCall* c = t_module_call; c && !c->scope; c = c->outer) missing.push_back(c);
  for (int64_t i = missing.size() - 1; i >= 0; --i) {
    ModuleCall* c = missing[i];
    PyObject* weak = PyWeakref_NewRef(c->module, nullptr);
    if (!weak) {  // a class with __slots__
      PyErr_Clear();
      weak = Py_NewRef(Py_None);
    }
    PyObject* outer = c->outer ? c->outer->scope : Py_None;
    c->scope = PyTuple_Pack(3, outer, weak, reinterpret_cast<PyObject*>(Py_TYPE(c->module)));
    Py_DECREF(weak);
    if (!c->scope) {
      PyErr_Clear();
      return nullptr;
    }
  }
  return t_module_call->scope;
}

}  // namespace rl
