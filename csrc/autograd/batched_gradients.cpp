#include "autograd/batched_gradients.h"

#include "autograd/meta.h"
#include "autograd/profile.h"

namespace rl {

static thread_local int64_t t_rows = -1;

int64_t stacked_rows() { return t_rows; }
StackedRows::StackedRows(int64_t rows) : outer(std::exchange(t_rows, rows)) {}
StackedRows::~StackedRows() { t_rows = outer; }

Ints stacked_sizes(IntSpan sizes) {
  Ints all{t_rows};
  for (int64_t n : sizes) all.push_back(n);
  return all;
}

Grads stacked_backward(Node& node, const Grads& dy) {
  return node.type->stacked && t_rows > 0 ? node.type->stacked(node, dy) : backward_by_rows(node, dy);
}

Grads backward_by_rows(Node& node, const Grads& dy) {
  const int64_t rows = t_rows, edges = node.edges.size();
  StackedRows plain(-1);
  SmallVector<Tensors, 3> found(edges);
  for (int64_t row = 0; row < rows; ++row) {
    Grads one(dy.size());
    for (int64_t i = 0; i < dy.size(); ++i)
      if (dy[i].defined()) one[i] = g_engine_ops.select(dy[i], 0, row);
    Profiled timed(node.type->name, ProfileKind::Backward, &node.site, node.scope);
    Grads dx = node.type->backward(node, one);
    dx.resize(edges);
    for (int64_t i = 0; i < edges; ++i) found[i].push_back(dx[i]);
  }
  Grads all(edges);
  for (int64_t i = 0; i < edges; ++i) {
    const Edge& e = node.edges[i];
    if (!rows && node.needs(i)) {
      const ResultMeta& meta = e.node->results[e.nr];
      StackedRows none(0);
      all[i] = g_engine_ops.zeros(stacked_sizes(meta.sizes), meta.dtype, meta.device);
    }
    const Tensor* some = nullptr;
    for (const Tensor& t : found[i])
      if (t.defined()) some = &t;
    if (!some) continue;
    for (Tensor& t : found[i])
      if (!t.defined()) t = g_engine_ops.zeros(some->sizes(), some->dtype(), some->device());
    all[i] = g_engine_ops.stack(found[i], 0);
  }
  return all;
}

Tensor stacked_sum_to(const Tensor& g, IntSpan sizes) {
  Ints target = stacked_sizes(sizes), kept(g.dim(), 1);
  kept[0] = t_rows;
  for (int64_t i = 1; i <= sizes.size(); ++i) kept[g.dim() - i] = sizes[sizes.size() - i];
  Tensor sum = g_engine_ops.sum_to(g, kept);
  return sum.dim() == target.size() ? sum : g_engine_ops.reshape(sum, target);
}

PyObject* call_stacked(PyObject* f, PyObject* args) {
  if (t_rows < 0) return PyObject_CallObject(f, args);
  const int64_t rows = t_rows;
  StackedRows plain(-1);
  PyObject* module = PyImport_ImportModule("rushlight._transforms.vmap.batched");
  if (!module) return nullptr;
  PyObject* result = PyObject_CallMethod(module, "call_stacked", "OOL", f, args, static_cast<long long>(rows));
  Py_DECREF(module);
  return result;
}

}  // namespace rl
