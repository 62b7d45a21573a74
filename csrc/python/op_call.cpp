#include "python/op_call.h"

#include "autograd/destination.h"
#include "autograd/meta.h"
#include "autograd/module_scope.h"
#include "autograd/profile.h"
#include "base/interrupt.h"
#include "ops/warn_once.h"
#include "python/autocast.h"
#include "python/lazy_call.h"
#include "python/note_no_grad.h"
#include "python/op_devices.h"
#include "python/op_out.h"
#include "tensor/overlap.h"
#include "tensor/promote.h"

namespace rl {

namespace {

[[gnu::cold]] void warn_old(const OpDef& def, Overload& o, Form form) {
  o.warned = true;
  if (PyErr_WarnFormat(
          PyExc_UserWarning, 1, "This overload of %s%s is deprecated. Factors go by name, after the tensors: %s(%s)",
          def.name.c_str(), form == Form::Inplace ? "_" : "", def.name.c_str(), def.overloads[0].spec.signature) < 0)
    python_error();
}

struct InplaceCall {
  Overload* overload;
  PyObject* const* slots;
};

// Ops that write where several elements share memory although each is written once for all of them.
[[gnu::cold]] void warn_expanded(const OpDef& def, const Tensor& self) {
  if (def.name != "index_fill" && def.name != "index_put" && def.name != "masked_fill") return;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.strides()[d] == 0 && self.sizes()[d] > 1) {
      if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                           "Use of %s_ on expanded tensors is deprecated. Please clone() the tensor before performing "
                           "this operation. This also applies to advanced indexing e.g. tensor[mask] = scalar",
                           def.name.c_str()) < 0)
        python_error();
      return;
    }
}

// x.op_(...): op(x, ...) with x offered as the place for its result.
PyObject* invoke_inplace(const OpDef& def, Overload& o, Bound& b) {
  const uint32_t flags = o.spec.flags;
  CHECK(is_tensor(b.slots[0]), Type, "descriptor '", def.name,
        "_' for 'torch.Tensor' objects needs a Tensor as its first argument");
  Tensor self = Tensor::borrow(b.slots[0]);
  if (flags & kOutType) take_type(o, b, b.slots[0]);
  if ((flags & kOverlapOk) && !self.is_contiguous()) warn_expanded(def, self);
  InplaceCall call{&o, b.slots};
  InplaceTraits traits{(flags & kDirect) != 0, (flags & kKeepsInput) != 0, (flags & kOverlapOk) != 0};
  // Before anything is written: a view among the operands may have lost its history, and what was made in inference
  // mode cannot be saved.
  if (grad_enabled())
    each_tensor(b.slots + 1, static_cast<int>(o.params.size()) - 1, [&](const Tensor& t) {
      if (t->inference) traits.direct_with_grad = false;
      if (!t->wants_grad()) return;
      traits.operands_want_grad = true;
      grad_fn_of(t.get());
    });
  if (!(flags & kFreeOut))  // elementwise ops look for themselves, where they know that they write directly
    each_tensor(b.slots + 1, static_cast<int>(o.params.size()) - 1, [&](const Tensor& read) {
      if (flags & kNoOverlap) check_no_overlap(self, read);
      else if (!traits.direct) check_no_partial_overlap(self, read);
    });
  Tensor y = apply_inplace(
      def.name.c_str(), self, traits,
      [](void* c) {
        auto* call = static_cast<InplaceCall*>(c);
        PyObject* r = call->overload->spec.invoke(call->overload->spec.fn, call->slots, nullptr);
        if (!r) python_error();
        return Tensor::own(reinterpret_cast<TensorObject*>(r));
      },
      &call);
  note_result(y.object(), def.name.c_str(), b.slots, o.spec.count);
  return y.release();
}

// Kernels are not made for element types without arithmetic, and may take them for something else.
[[gnu::noinline]] void refuse_bare_types(const OpDef& def, const Overload& o, const Bound& b) {
  auto refuse = [&](DType t) {
    if (!has_cpp_type(t)) fail_without_kernel(t, def.name.c_str());
  };
  // Elementwise ops promote their operands first, and say so if there is no common type.
  std::optional<DType> first;
  if (o.spec.flags & kDirect)
    each_tensor(b.slots, o.spec.count,
                [&](const Tensor& t) { first = promote_types(first.value_or(t.dtype()), t.dtype()); });
  each_tensor(b.slots, o.spec.count, [&](const Tensor& t) { refuse(t.dtype()); });
  if (b.out) each_tensor(&b.out, 1, [&](const Tensor& t) { refuse(t.dtype()); });
  DType named;
  for (int i = 0; i < o.spec.count; ++i)
    if (b.slots[i] && !PyType_Check(b.slots[i]) && dtype_from(b.slots[i], &named)) refuse(named);
}

PyObject* invoke(const OpDef& def, Overload& o, Form form, Bound& b) {
  if (g_other_devices) check_devices(def, o, b);
  if (g_bare_types && !(o.spec.flags & (kAnyType | kView | kLazyOk))) refuse_bare_types(def, o, b);
  if ((o.spec.flags & kOld) && (!o.warned || g_warn_always)) warn_old(def, o, form);
  if (form == Form::Inplace) return invoke_inplace(def, o, b);
  if (b.out) return invoke_out(def, o, b);
  Interruptible new_results;
  PyObject* result = o.spec.invoke(o.spec.fn, b.slots, o.results.empty() ? nullptr : o.results.c_str());
  if (!result) python_error();
  note_result(result, def.name.c_str(), b.slots, o.spec.count);
  return result;
}

// Writing to a tensor that is there (in place, out=) keeps to its type.
PyObject* invoke_cast(const OpDef& def, Overload& o, Form form, Bound& b) {
  Recast recast;
  if ((o.spec.flags & (kCastLow | kCastFull | kCastWidest)) && form != Form::Inplace && !b.out)
    recast.apply(o.spec.flags, b.slots, o.spec.count);
  return invoke(def, o, form, b);
}

bool has_tensor(PyObject* o) {
  if (PyTuple_Check(o) || PyList_Check(o))
    return PySequence_Fast_GET_SIZE(o) && is_tensor(PySequence_Fast_GET_ITEM(o, 0));
  return is_tensor(o);
}

// The shape of each positional tensor, () for other arguments; null if nobody asked for them.
PyObject* argument_shapes(PyObject* const* args, Py_ssize_t nargs) {
  if (!profile_wants_shapes()) return nullptr;
  PyObject* shapes = PyTuple_New(nargs);
  for (Py_ssize_t i = 0; shapes && i < nargs; ++i)
    PyTuple_SET_ITEM(shapes, i, is_tensor(args[i]) ? size_object(Tensor::borrow(args[i]).sizes()) : PyTuple_New(0));
  return shapes;
}

// aten::relu, aten::linalg_inv: the names that PyTorch's profiler shows.
std::string profiled_name(const OpDef& def, Form form) {
  std::string name = def.name;
  if (name == "_run_backward") return "backward";
  size_t dot = name.rfind('.');
  if (dot != std::string::npos) {
    std::string space = name.substr(0, dot);
    bool shown = space == "linalg" || space == "fft" || space == "special";
    name = (shown ? space + "_" : "") + name.substr(dot + 1);
  }
  return "aten::" + name + (form == Form::Inplace ? "_" : "");
}

// The same with conjugate or negative views among the arguments.
[[gnu::cold]] PyObject* invoke_plain(const OpDef& def, Overload& o, Form form, Bound& b) {
  PlainArguments arguments(def, form == Form::Inplace, b, o.spec.count);
  return arguments.finish(g_autocast_regions ? invoke_cast(def, o, form, b) : invoke(def, o, form, b));
}

}  // namespace

PyObject* run_op(OpDef& def, const Call& call) {
  if (call.form != Form::Function)
    CHECK(call.count > 0 ? is_tensor(call.args[0]) : call.names != nullptr, Type, "descriptor '", def.name,
          "' for 'torch.Tensor' objects needs a Tensor as its first argument");
  for (Overload& o : def.overloads) {
    Bound b;
    if (bind(def, o, call, b, nullptr)) {
      if (g_lazy_views && !(o.spec.flags & (kView | kLazyOk)) && any_lazy(b, o.spec.count))
        return invoke_plain(def, o, call.form, b);
      return g_autocast_regions ? invoke_cast(def, o, call.form, b) : invoke(def, o, call.form, b);
    }
    if (PyErr_Occurred()) PyErr_Clear();
  }
  no_overload(def, call);
}

PyObject* run_profiled(OpDef& def, const Call& call) {
  if (def.name.starts_with("_profile_")) return run_op(def, call);
  std::string name = profiled_name(def, call.form);
  PyObject* shapes = argument_shapes(call.args, call.count);
  struct Timed {
    ProfileHandle event;
    bool keep = false;
    ~Timed() { keep ? profile_end(event) : profile_drop(event); }
  } timed{profile_begin(name.c_str(), ProfileKind::Op, nullptr, module_scope(), shapes)};
  Py_XDECREF(shapes);
  // Queries without tensors are not worth a row.
  for (Py_ssize_t i = 0; i < call.count && !timed.keep; ++i) timed.keep = has_tensor(call.args[i]);
  PyObject* result = run_op(def, call);
  timed.keep = timed.keep || has_tensor(result);
  return result;
}

}  // namespace rl
