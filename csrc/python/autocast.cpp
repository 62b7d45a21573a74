#include "python/autocast.h"

#include <unordered_map>

#include "autograd/meta.h"
#include "autograd/record.h"
#include "ops/copy/cast.h"
#include "python/errors.h"
#include "tensor/promote.h"

namespace rl {

int g_autocast_regions = 0;

namespace {

// Casts of leaves that require a gradient (weights) are kept until the outermost region ends, unless the leaf is
// written to. The map is never destroyed with its thread, which would not hold the interpreter's lock.
struct Cached {
  Tensor leaf, low;
  uint32_t version;
};
struct State {
  bool enabled = false, keep = true;
  DType low = DType::BFloat16;
  std::unordered_map<TensorObject*, Cached>* cache = nullptr;
};
thread_local State t_autocast;

Tensor cast_low(const Tensor& t) {
  State& s = t_autocast;
  bool keep = s.keep && t.dtype() == DType::Float32 && t.requires_grad() && !t->grad_fn && grad_enabled();
  if (!keep) return ops::cast(t, s.low);
  if (!s.cache) s.cache = new std::unordered_map<TensorObject*, Cached>;
  auto found = s.cache->find(t.get());
  if (found != s.cache->end() && found->second.version == t.version() && found->second.low.dtype() == s.low)
    return found->second.low;
  Tensor low = ops::cast(t, s.low);
  s.cache->insert_or_assign(t.get(), Cached{t, low, t.version()});
  return low;
}

bool takes_part(PyObject* o) {
  if (!is_tensor(o)) return false;
  const Tensor t = Tensor::borrow(o);
  return t.is_float() && t.dtype() != DType::Float64 && t.device().is_cpu();
}

bool is_list(PyObject* o) { return o && (PyTuple_CheckExact(o) || PyList_CheckExact(o)); }

template <class F> void each_tensor(PyObject* const* slots, int count, F&& f) {
  for (int i = 0; i < count; ++i) {
    if (is_list(slots[i])) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(slots[i]); ++k)
        if (PyObject* item = PySequence_Fast_GET_ITEM(slots[i], k); takes_part(item)) f(item);
    } else if (slots[i] && takes_part(slots[i])) {
      f(slots[i]);
    }
  }
}

DType widest(PyObject* const* slots, int count) {
  DType d = t_autocast.low;
  each_tensor(slots, count, [&](PyObject* o) {
    if (Tensor::borrow(o).dtype() != d) d = DType::Float32;  // two short types meet in float32
  });
  return d;
}

}  // namespace

PyObject* Recast::cast(PyObject* o, DType to) {
  const Tensor t = Tensor::borrow(o);
  if (t.dtype() == to) return o;
  Tensor y = to == t_autocast.low ? cast_low(t) : ops::cast(t, to);
  made_.push_back(y.release());
  return made_.back();
}

void Recast::apply(uint32_t flags, PyObject** slots, int count) {
  if (!t_autocast.enabled) return;  // another thread's region
  DType to = flags & kCastLow ? t_autocast.low : flags & kCastFull ? DType::Float32 : widest(slots, count);
  for (int i = 0; i < count; ++i) {
    if (is_list(slots[i])) {
      Py_ssize_t n = PySequence_Fast_GET_SIZE(slots[i]);
      bool any = false;
      for (Py_ssize_t k = 0; k < n; ++k) any = any || takes_part(PySequence_Fast_GET_ITEM(slots[i], k));
      if (!any) continue;
      PyObject* list = PyTuple_New(n);
      if (!list) python_error();
      made_.push_back(list);
      for (Py_ssize_t k = 0; k < n; ++k) {
        PyObject* item = PySequence_Fast_GET_ITEM(slots[i], k);
        PyTuple_SET_ITEM(list, k, Py_NewRef(takes_part(item) ? cast(item, to) : item));
      }
      slots[i] = list;
    } else if (slots[i] && takes_part(slots[i])) {
      slots[i] = cast(slots[i], to);
    }
  }
}

Recast::~Recast() {
  for (PyObject* o : made_) Py_DECREF(o);
}

namespace {

// Returns whether casts were kept.
bool set_autocast(bool enabled, DType low, bool keep) {
  State& s = t_autocast;
  g_autocast_regions += static_cast<int>(enabled) - static_cast<int>(s.enabled);
  s.enabled = enabled;
  s.low = low;
  return std::exchange(s.keep, keep);
}
NewObject autocast_dtype() {
  return {Py_NewRef(g_autocast_regions && t_autocast.enabled ? dtype_object(t_autocast.low) : Py_None)};
}
void clear_cache() { delete std::exchange(t_autocast.cache, nullptr); }

}  // namespace

static const Register registered([](Ops& ops) {
  ops.def("_set_autocast", set_autocast, "enabled, dtype, cache", kNoOut);
  ops.def("_autocast_dtype", autocast_dtype, "", kNoOut);
  ops.def("clear_autocast_cache", clear_cache, "", kNoOut, R"(
    Drops the casts of weights that an autocast region keeps for its calls.

    Example:
        >>> torch.clear_autocast_cache())");
});

}  // namespace rl
