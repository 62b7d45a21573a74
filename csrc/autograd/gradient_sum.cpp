#include "autograd/gradient_sum.h"

namespace rl {

PyTypeObject* g_sparse_type = nullptr;
bool (*g_adds_itself)(PyTypeObject*) = nullptr;
PyTypeObject* g_function_node_type = nullptr;

Tensor tensor_of(PyObject* made) {
  if (!made) throw Error(ErrorKind::Runtime, "");  // the Python exception is set
  return Tensor::own(reinterpret_cast<TensorObject*>(made));
}
Tensor densified(const Tensor& t) { return tensor_of(PyObject_CallMethod(t.object(), "to_dense", nullptr)); }
Tensor detached_by_class(const Tensor& t) { return tensor_of(PyObject_CallMethod(t.object(), "detach", nullptr)); }
Tensor add_by_class(const Tensor& a, const Tensor& b, bool in_place) {
  return tensor_of(in_place ? PyNumber_InPlaceAdd(a.object(), b.object()) : PyNumber_Add(a.object(), b.object()));
}

bool expandable(IntSpan small, IntSpan big) {
  if (small.size() > big.size()) return false;
  for (int64_t i = 1; i <= small.size(); ++i)
    if (small[small.size() - i] != big[big.size() - i] && small[small.size() - i] != 1) return false;
  return true;
}

}  // namespace rl
