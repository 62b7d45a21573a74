#include "python/indexing.h"

#include "autograd/module_scope.h"
#include "autograd/profile.h"
#include "base/interrupt.h"
#include "ops/elementwise/lazy_view.h"
#include "ops/elementwise/scalar_cast.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "python/bridge.h"
#include "python/dispatch.h"
#include "python/errors.h"
#include "python/lazy_call.h"
#include "python/note_no_grad.h"
#include "python/override.h"
#include "schema/arguments.h"
#include "tensor/overlap.h"

namespace rl {

namespace ops {
Tensor fill(const Tensor& input, const Value& value);
Tensor copy_(const Tensor& self, const Value& value, bool non_blocking);
}  // namespace ops

namespace {

bool is_plain_sequence(PyObject* o) { return !is_tensor(o) && !is_array_like(o) && PySequence_Check(o); }

// A list that holds sequences, tensors, slices, None or Ellipsis means what a tuple of them means.
bool acts_as_tuple(PyObject* o) {
  if (PyTuple_Check(o)) return true;
  if (PySlice_Check(o) || PyLong_Check(o) || o == Py_None || o == Py_Ellipsis) return false;
  if (!is_plain_sequence(o) || PyUnicode_Check(o)) return false;
  Py_ssize_t n = PySequence_Size(o);
  if (n < 0) {
    PyErr_Clear();
    return false;
  }
  if (n >= 32) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_GetItem(o, i);
    if (!item) {
      PyErr_Clear();
      return false;
    }
    bool found =
        is_tensor(item) || PySequence_Check(item) || PySlice_Check(item) || item == Py_Ellipsis || item == Py_None;
    Py_DECREF(item);
    if (found) return true;
  }
  return false;
}

// An index on its way: views are applied as they are met, index tensors are collected for the end.
class Walk {
 public:
  explicit Walk(const Tensor& self) : self_(self), result_(self) {}

  void run(PyObject* index) {
    if (!acts_as_tuple(index)) {
      int64_t used = dims_used(index);
      CHECK(used <= self_.dim(), Index, too_many(used));
      left_ = self_.dim() - used;
      return one(index);
    }
    Owned items(PySequence_Tuple(index));  // a copy of a list: what stands in it may change it
    Py_ssize_t n = PyTuple_GET_SIZE(items.p);
    int64_t used = 0;
    for (Py_ssize_t i = 0; i < n; ++i) used += dims_used(PyTuple_GET_ITEM(items.p, i));
    CHECK(used <= self_.dim(), Index, too_many(used));
    left_ = self_.dim() - used;
    for (Py_ssize_t i = 0; i < n; ++i) one(PyTuple_GET_ITEM(items.p, i));
  }

  const Tensor& view() const { return result_; }
  const ops::IndexList& indices() const { return indices_; }
  bool advanced() const { return !indices_.empty(); }

 private:
  std::string too_many(int64_t used) const {
    if (self_.dim() == 0)
      return "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor to a number";
    return text("too many indices for tensor of dimension ", self_.dim(), " (got ", used, ")");
  }

  // How many dimensions of the tensor an item stands for.
  static int64_t dims_used(PyObject* o) {
    if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
    if (PySlice_Check(o) || PyLong_CheckExact(o)) return 1;
    if (is_tensor(o)) {
      Tensor t = Tensor::borrow(o);
      return t.dtype() == DType::Bool || t.dtype() == DType::UInt8 ? t.dim() : 1;
    }
    if (is_array_like(o) || PyList_Check(o) || PyTuple_Check(o)) {  // masks if they hold bools
      Tensor t = index_tensor(o);
      return t.dtype() == DType::Bool || t.dtype() == DType::UInt8 ? t.dim() : 1;
    }
    return 1;
  }

  static Tensor index_tensor(PyObject* o) {
    NoGrad raw;
    Tensor t = tensor_from_data(o, std::nullopt, Device());
    if (t.dtype() == DType::Bool || t.dtype() == DType::UInt8 || t.dtype() == DType::Int64) return t;
    CHECK(!t.is_complex(), Index, "tensors used as indices must be long, int, byte or bool tensors, got ",
          info(t.dtype()).name);
    return ops::cast(t, DType::Int64);
  }

  void add_index(Tensor t, int64_t dims) {
    while (covered_ < dim_) indices_.push_back(Tensor()), ++covered_;
    indices_.push_back(std::move(t));
    covered_ += dims;
    dim_ += dims;
    used_ += dims;
  }

  // True keeps everything under a new dimension of size 1, False nothing under one of size 0.
  void add_bool(bool value) {
    result_ = ops::unsqueeze(result_, dim_);
    add_index(value ? ops::zeros({1}, DType::Int64) : empty({0}, DType::Int64), 1);
    --used_;
  }

  void add_integer(int64_t index) {
    int64_t n = result_.sizes()[dim_];
    CHECK(index >= -n && index < n, Index, "index ", index, " is out of bounds for dimension ", used_, " with size ",
          n);
    ++used_;
    result_ = ops::select(result_, dim_, index);
  }

  void add_tensor(const Tensor& t) {
    bool mask = t.dtype() == DType::Bool || t.dtype() == DType::UInt8;
    if (t.dim() == 0 && is_integral(t.dtype(), true) && !t.device().is_meta()) {
      Scalar value = item(t);
      return mask ? add_bool(value.to_bool()) : add_integer(value.to_int());
    }
    add_index(t, mask ? t.dim() : 1);
  }

  void one(PyObject* o) {
    if (PyLong_CheckExact(o)) {
      int overflow;
      int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
      CHECK(!overflow, Value, "Overflow when unpacking long long: the index does not fit 64 bits");
      return add_integer(v);
    }
    if (PySlice_Check(o)) {
      Py_ssize_t start, stop, step;
      if (PySlice_Unpack(o, &start, &stop, &step) < 0) python_error();
      CHECK(step > 0, Value, "step must be greater than zero");
      if (start != 0 || step != 1 || stop < result_.sizes()[dim_])
        result_ = ops::slice(result_, dim_, start, stop, step);
      ++dim_, ++used_;
      return;
    }
    if (o == Py_None) {
      result_ = ops::unsqueeze(result_, dim_++);
    } else if (o == Py_Ellipsis) {
      dim_ += left_, used_ += left_;
      left_ = 0;
    } else if (PyBool_Check(o)) {
      add_bool(o == Py_True);
    } else if (is_tensor(o)) {
      add_tensor(Tensor::borrow(o));
    } else if (is_array_like(o)) {
      add_tensor(index_tensor(o));
    } else if (is_integer(o)) {
      add_integer(integer_from(o));
    } else if (PySequence_Check(o)) {
      add_tensor(index_tensor(o));
    } else {
      CHECK(PyIndex_Check(o), Index,
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got ",
            Py_TYPE(o)->tp_name, ")");
      Py_ssize_t v = PyNumber_AsSsize_t(o, PyExc_IndexError);
      if (v == -1 && PyErr_Occurred()) python_error();
      add_integer(v);
    }
  }

  Tensor self_, result_;
  ops::IndexList indices_;
  int64_t dim_ = 0;      // of result_: the next item's
  int64_t used_ = 0;     // dimensions of self_ that items have stood for
  int64_t covered_ = 0;  // dimensions that indices_ stands for
  int64_t left_ = 0;     // dimensions that an Ellipsis stands for
};

Tensor get(const Tensor& self, PyObject* index) {
  // The two commonest: x[i] and x[a:b].
  if (PyLong_CheckExact(index) && self.dim() > 0) {
    int overflow;
    int64_t i = PyLong_AsLongLongAndOverflow(index, &overflow), n = self.sizes()[0];
    CHECK(!overflow, Value, "Overflow when unpacking long long: the index does not fit 64 bits");
    CHECK(i >= -n && i < n, Index, "index ", i, " is out of bounds for dimension 0 with size ", n);
    return ops::select(self, 0, i);
  }
  Walk walk(self);
  walk.run(index);
  if (walk.advanced()) return ops::index(ops::resolved(walk.view()), walk.indices());
  return walk.view().is(self) ? ops::record_alias(alias(self), self) : walk.view();
}

// Without leading dimensions of size 1.
Tensor trimmed(const Tensor& value, bool anew = false) {
  int64_t extra = 0;
  while (extra < value.dim() && value.sizes()[extra] == 1) ++extra;
  if (extra == 0 && !anew) return value;
  Ints sizes;
  for (int64_t d = extra; d < value.dim(); ++d) sizes.push_back(value.sizes()[d]);
  return ops::reshape(value, sizes);
}

bool repeats(const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.strides()[d] == 0 && t.sizes()[d] > 1) return true;
  return false;
}

struct Write {
  const Tensor& target;
  const Tensor& value;
  const ops::IndexList* indices;
};

// A view that lost its history is refused before anything is written.
void check_history(const Tensor& value) {
  if (grad_enabled() && value->base && value->wants_grad()) grad_fn_of(value.get());
}

// x[view] = value: what the index leaves is a view of x.
void set_view(const Tensor& target, const Value& value) {
  if (!value.is_tensor()) {
    struct Fill {
      const Tensor& target;
      const Value& value;
    } call{target, value};
    apply_inplace(
        "fill_", target, InplaceTraits{true, true, false},
        [](void* c) { return ops::fill(static_cast<Fill*>(c)->target, static_cast<Fill*>(c)->value); }, &call);
    return;
  }
  Tensor source = value.tensor;
  if (!(source.sizes() == target.sizes())) {
    if (source.dim() == 0 && grad_enabled() && source.requires_grad()) check_view_history(target);  // as fill_ does
    // A dimension of size 1 may get another stride, and the elements do no longer count as the target's own.
    source = trimmed(source, source.storage() == target.storage());
    Tensor spread = ops::expand(source, target.sizes());  // says in its own words when it does not fit
    if (source.storage() == target.storage()) {
      const bool itself = source->offset == target->offset && source.dtype() == target.dtype() &&
                          spread.strides() == target.strides();  // nothing to do
      // x[:] = x[0]: the row is read again and again while it is written.
      const bool copied = value.tensor.dim() == 0 || (!itself && repeats(spread));
      source = copied ? ops::clone(source) : spread;
    }
  }
  check_history(source);
  ops::copy_(target, source, false);
}

// x[mask] = number
void set_masked(const Tensor& target, Tensor mask, const Value& value, bool savable) {
  CHECK(mask.dim() <= target.dim(), Index, "too many indices for tensor of dimension ", target.dim());
  for (int64_t d = 0; d < mask.dim(); ++d)
    CHECK(mask.sizes()[d] == target.sizes()[d], Index, "The shape of the mask ", to_text(mask.sizes()), " at index ", d,
          " does not match the shape of the indexed tensor ", to_text(target.sizes()), " at index ", d);
  while (mask.dim() < target.dim()) mask = ops::unsqueeze(mask, -1);
  struct Fill {
    const Tensor &target, &mask;
    const Value& value;
  } call{target, mask, value};
  apply_inplace(
      "masked_fill_", target, InplaceTraits{true, savable, true},
      [](void* c) {
        auto* f = static_cast<Fill*>(c);
        return ops::masked_fill(f->target, f->mask, f->value);
      },
      &call);
}

// x[indices] = value
void set_indexed(const Tensor& target, const ops::IndexList& indices, const Value& value) {
  // Before anything is written: the value may be a view that has lost its history, and what was made in inference mode
  // cannot be saved.
  bool savable = true;
  if (grad_enabled()) {
    if (value.is_tensor() && value.tensor->wants_grad()) grad_fn_of(value.tensor.get());
    for (const Tensor& i : indices) savable = savable && !(i.defined() && i->inference);
  }
  const bool single = !value.is_tensor() || value.tensor.dim() == 0;
  const bool masked = indices.size() == 1 && indices[0].defined() && indices[0].dtype() == DType::Bool;
  if (single && masked && indices[0].dim() > 0) return set_masked(target, indices[0], value, savable);
  Tensor values;
  if (!value.is_tensor()) values = ops::full({}, value.number, target.dtype(), target.device());
  else values = trimmed(value.tensor);  // leading dimensions of size 1 never count
  const bool fills = masked && values.numel() == 1;
  if (!fills) check_no_overlap(target, values);
  for (const Tensor& i : indices)
    if (i.defined()) fills ? check_no_partial_overlap(target, i) : check_no_overlap(target, i);
  Write call{target, values, &indices};
  apply_inplace(
      "index_put_", target, InplaceTraits{true, savable, true},
      [](void* c) {
        auto* w = static_cast<Write*>(c);
        return ops::index_put(w->target, *w->indices, w->value, false);
      },
      &call);
}

void set(const Tensor& self, PyObject* index, PyObject* given) {
  if (g_lazy_views && (self->lazy() || has_lazy(given))) {
    // Assigning element by element is the same under the marks.
    CHECK(is_tensor(given) || is_number(given), Type, "can't assign a ", Py_TYPE(given)->tp_name, " to a tensor");
    Tensor value =
        is_tensor(given) ? Tensor::borrow(given) : ops::full({}, scalar_from(given), self.dtype(), self.device());
    return set(ops::under(self), index, ops::as_under(self, value).object());
  }
  CHECK(is_tensor(given) || is_number(given), Type, "can't assign a ", Py_TYPE(given)->tp_name, " to a torch.",
        info(self.dtype()).legacy, "Tensor");
  Walk walk(self);
  walk.run(index);
  Value value = Arg<Value>::load(given);
  if (!value.is_tensor()) {
    CHECK(!value.number.above_int64(), Value, "Overflow when unpacking long long: the integer does not fit 64 bits");
    value.number = single_element(value.number, walk.view().dtype());
  }
  if (walk.advanced()) set_indexed(walk.view(), walk.indices(), value);
  else set_view(walk.view(), value);
}

}  // namespace

// Plain indexing skips the look for overrides.
static bool simple(PyObject* o) {
  return Py_TYPE(o) == g_tensor_type || PyLong_CheckExact(o) || PySlice_Check(o) || o == Py_None || o == Py_Ellipsis;
}

PyObject* tensor_getitem(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    if (!simple(self) || !simple(index) || watched()) {
      PyObject* args[] = {self, index};
      if (PyObject* result = slot_override("__getitem__", args, 2)) return result;
      if (PyObject* result = dispatching() ? dispatch_method("__getitem__", args, 2) : nullptr) return result;
    }
    Profiled timed("aten::__getitem__", ProfileKind::Op, nullptr, module_scope());
    Interruptible new_result;
    Tensor y = get(Tensor::borrow(self), index);
    note_result(y.object(), "__getitem__", &self, 1);
    return y.release();
  });
}

int tensor_setitem(PyObject* self, PyObject* index, PyObject* value) {
  return guarded_int([&] {
    CHECK(value, Type, "Tensor does not support deleting items");
    if (!simple(self) || !simple(index) || !simple(value) || watched()) {
      PyObject* args[] = {self, index, value};
      PyObject* result = slot_override("__setitem__", args, 3);
      if (!result && dispatching()) result = dispatch_method("__setitem__", args, 3);
      if (result) {
        Py_DECREF(result);
        return 0;
      }
    }
    Profiled timed("aten::__setitem__", ProfileKind::Op, nullptr, module_scope());
    set(Tensor::borrow(self), index, value);
    PyObject* args[] = {self, value};
    note_result(self, "__setitem__", args, 2);
    return 0;
  });
}

}  // namespace rl
