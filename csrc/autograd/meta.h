// The rare things a tensor carries for autograd, kept off the tensor itself.
#pragma once
#include <Python.h>

#include <mutex>

#include "autograd/node.h"

namespace rl {

struct TensorExtra {
  PyObject* hooks = nullptr;                  // dict id -> f(grad); the tensor's register_hook
  PyObject* post_accumulate_hooks = nullptr;  // dict id -> f(tensor)
  bool retains_grad = false;
};
TensorExtra& extra_of(TensorObject* t);

// Kept while one thread reads and writes a gradient: kernels in between release the interpreter lock. Waiting releases
// it too, and the owner may come again (hooks that run a backward).
class GradientLock {
 public:
  explicit GradientLock(std::recursive_mutex& mutex) : mutex_(mutex) {
    if (mutex_.try_lock()) return;
    PyThreadState* state = PyEval_SaveThread();
    mutex_.lock();
    PyEval_RestoreThread(state);
  }
  ~GradientLock() { mutex_.unlock(); }
  GradientLock(const GradientLock&) = delete;

 private:
  std::recursive_mutex& mutex_;
};

// The end of the line for a leaf: adds the gradient to variable.grad.
struct AccumulateGrad : Node {
  static constexpr const char* kName = "AccumulateGrad";
  static constexpr bool kUndefinedOk = true;
  Tensor variable;
  std::recursive_mutex adding;
  Grads backward(const Grads& dy);
  void add(Tensor g);
  ~AccumulateGrad();
};
AccumulateGrad* accumulator_of(TensorObject* leaf);  // a new reference

// How the elements of a view relate to those of its base: .real, .imag and view_as_real show complex numbers as real
// ones, view_as_complex the reverse. Geometry of the complex side is then told in real numbers, with a last dimension
// of 2.
enum class ViewElements : uint8_t { Same, RealOfComplex, ComplexOfReal };
struct ViewGeometry {
  Ints base_sizes, base_strides, sizes, strides;
  int64_t distance = 0;  // of the view's first element from the base's
  ViewElements elements = ViewElements::Same;
  bool conj = false, neg = false;  // the view shows the conjugates or negatives of the base's values
  ViewGeometry() = default;
  ViewGeometry(const TensorObject* base, const TensorObject* view);
};

// dy of a view given by its strides in the base's memory: what lies in one place is summed there.
struct AsStridedBackward : Node {
  static constexpr const char* kName = "AsStridedBackward0";
  static constexpr bool kStacks = true;
  ViewGeometry view;
  Ints size, stride;
  int64_t storage_offset = 0;
  void describe(const TensorObject* base, const TensorObject* view);
  Grads backward(const Grads& dy);
  FIELDS(size, storage_offset, stride)
};

// The few ops that the engine itself needs; filled by the op layer.
struct EngineOps {
  Tensor (*add)(const Tensor&, const Tensor&);
  void (*add_inplace)(const Tensor& into, const Tensor&);
  Tensor (*sum_to)(const Tensor&, IntSpan sizes);
  Tensor (*cast)(const Tensor&, DType);
  Tensor (*zeros)(IntSpan, DType, Device);
  Tensor (*clone)(const Tensor&);
  Tensor (*as_strided)(const Tensor&, IntSpan sizes, IntSpan strides, int64_t offset);
  Tensor (*real)(const Tensor&);
  // A tensor with the base's sizes and strides, dy summed into the elements of the view, zero elsewhere.
  Tensor (*embed)(const Tensor& dy, IntSpan base_sizes, IntSpan base_strides, IntSpan sizes, IntSpan strides,
                  int64_t distance);
  void (*copy)(const Tensor& into, const Tensor& from);      // raw: no history, no counting
  Tensor (*assign)(const Tensor& into, const Tensor& from);  // copy_: recorded
  Tensor (*view_as_real)(const Tensor&);
  Tensor (*view_as_complex)(const Tensor&);
  Tensor (*select)(const Tensor&, int64_t dim, int64_t index);
  Tensor (*stack)(Span<Tensor>, int64_t dim);
  Tensor (*reshape)(const Tensor&, IntSpan sizes);
  Tensor (*conj)(const Tensor&);
  Tensor (*neg)(const Tensor&);
  Tensor (*resolved)(const Tensor&);  // in plain memory (ops/elementwise/lazy_view.h)
};
extern EngineOps g_engine_ops;

// Hooks that saving passes through (torch.autograd.graph.saved_tensors_hooks); null when none are active.
struct SavedHooks {
  PyObject *pack, *unpack;
};
extern thread_local SmallVector<SavedHooks, 2>* t_saved_hooks;
extern const char* t_saved_hooks_disabled;  // the message when hooks are disabled, else null

}  // namespace rl
