#include "python/note_no_grad.h"

#include "autograd/grad_mode.h"

namespace rl {
namespace {

// Subclasses of Tensor are made at run time; scalars, strings and lists are not.
bool quick_is_tensor(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t == g_tensor_type || ((t->tp_flags & Py_TPFLAGS_HEAPTYPE) && PyType_IsSubtype(t, g_tensor_type));
}

// What the arguments say of the result's history.
struct Arguments {
  TensorObject* first = nullptr;   // any tensor
  TensorObject* wanted = nullptr;  // one that asks for gradients
  TensorObject* cut = nullptr;     // one that was cut off

  void look(PyObject* o) {
    auto* t = reinterpret_cast<TensorObject*>(o);
    if (!first) first = t;
    if (t->wants_grad()) {
      if (!wanted) wanted = t;
    } else if (t->cut && (!cut || (made(cut) && !made(t)))) {
      cut = t;
    }
  }
  // A cut is a better reason than a tensor that never asked.
  static bool made(const TensorObject* t) {
    const Cut* c = t->cut->kind == CutKind::Strided ? t->cut->before : t->cut;
    return !c || c->kind == CutKind::Made;
  }
};

void note(TensorObject* y, const char* op, const Arguments& args) {
  if (y->wants_grad()) return;
  if (!args.first) {
    if (!y->cut) note_cut(y, CutKind::Made, op);
    return;
  }
  if (args.wanted && args.wanted != y) {
    if (!t_grad_mode.enabled) {
      note_cut(y, t_grad_mode.inference ? CutKind::Inference : CutKind::NoGrad, op);
    } else if (!is_differentiable(y->dtype)) {
      note_cut(y, CutKind::Integer, op);
    } else if (y->storage == args.wanted->storage) {
      note_cut(y, CutKind::Detached, op);
    } else {
      note_cut(y, CutKind::Constant, op);
    }
    return;
  }
  if (args.cut) inherit_cut(y, args.cut);
  // Only views are looked at later for the line that changed their order.
  if (!y->contiguous && args.first->contiguous && y->storage == args.first->storage) note_strided(y, args.first, op);
}

}  // namespace

void note_arguments(PyObject* result, const char* op, PyObject* const* args, int count) {
  bool tuple = PyTuple_Check(result);
  if (!tuple && !quick_is_tensor(result)) return;
  Arguments found;
  for (int i = 0; i < count; ++i) {
    PyObject* o = args[i];
    if (!o) continue;
    if (quick_is_tensor(o)) {
      found.look(o);
    } else if (PyTuple_Check(o) || PyList_Check(o)) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
        PyObject* item = PySequence_Fast_GET_ITEM(o, k);
        if (!quick_is_tensor(item)) break;
        found.look(item);
      }
    }
  }
  if (!tuple) return note(reinterpret_cast<TensorObject*>(result), op, found);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) {
    PyObject* item = PyTuple_GET_ITEM(result, i);
    if (item && quick_is_tensor(item)) note(reinterpret_cast<TensorObject*>(item), op, found);
  }
}

}  // namespace rl
