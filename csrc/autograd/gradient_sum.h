// Adding gradients: plain tensors by the engine's ops, sparse ones and those of classes with __torch_dispatch__ by
// their class.
#pragma once
#include "autograd/node.h"
#include "autograd/profile.h"

namespace rl {

extern PyTypeObject* g_sparse_type;           // the class of sparse tensors, once it is loaded
extern bool (*g_adds_itself)(PyTypeObject*);  // whether Python adds tensors of a class: __torch_dispatch__
extern PyTypeObject* g_function_node_type;    // nodes of Functions, which get sparse gradients as they are

inline bool is_sparse(PyTypeObject* type) {
  return type != g_tensor_type && g_sparse_type && PyType_IsSubtype(type, g_sparse_type);
}
inline bool is_sparse(const Tensor& t) { return is_sparse(Py_TYPE(t.object())); }
// Sparse, of a class that does, or under a mode that wants to see the sum.
inline bool adds_itself(const Tensor& t) {
  PyTypeObject* type = Py_TYPE(t.object());
  return type == g_tensor_type ? dispatching() && g_adds_itself(type) : is_sparse(type) || g_adds_itself(type);
}
Tensor tensor_of(PyObject* made);  // a new reference, or null with an exception set
Tensor densified(const Tensor& t);
Tensor detached_by_class(const Tensor& t);
Tensor add_by_class(const Tensor& a, const Tensor& b, bool in_place = false);
bool expandable(IntSpan small, IntSpan big);  // whether `small` broadcasts to `big`

}  // namespace rl
