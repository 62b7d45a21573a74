#include "python/op_out.h"

#include <cstring>

#include "autograd/copy_on_write.h"
#include "autograd/destination.h"
#include "autograd/meta.h"
#include "autograd/record.h"
#include "backend/backend.h"
#include "python/errors.h"
#include "python/op_object.h"
#include "tensor/overlap.h"
#include "tensor/promote.h"

namespace rl {

namespace {

[[noreturn, gnu::cold]] void fail_out_grad(const OpDef& def) {
  fail(ErrorKind::Runtime, def.name,
       "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
       "requires grad.\n  An out= function writes to memory that no graph knows: leave out= away, or run it under "
       "no_grad().");
}

void write_out(const OpDef& def, PyObject* out, PyObject* result) {
  CHECK(is_tensor(out), Type, def.name, "(): argument 'out' must be Tensor, not ", type_name(out));
  CHECK(is_tensor(result), Type, def.name, "(): only a tensor can be written to out=, and the result is ",
        type_name(result));
  const bool fresh = Py_REFCNT(result) == 1;  // not an argument that the op gave back
  Tensor to = Tensor::borrow(out), from = Tensor::borrow(result);
  CHECK(!to->inference || t_grad_mode.inference, Runtime,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor before doing inplace update.");
  const uint32_t flags = def.overloads.empty() ? 0 : def.overloads[0].spec.flags;
  // A new leaf that requires grad comes from a factory with requires_grad=True: a wish about what is returned, `out`.
  const bool leaf = fresh && from->requires_grad && !grad_fn_of(from.get());
  if (grad_enabled() && !(def.flags & kNotDifferentiable) && ((from.requires_grad() && !leaf) || to.requires_grad()))
    fail_out_grad(def);
  // PyTorch's class for what joins a list of tensors is another.
  bool joins = !def.overloads.empty() && std::strncmp(def.overloads[0].spec.signature, "tensors", 7) == 0;
  const bool any_type = def.flags & kOutType;  // drawn or filled in whatever type it has
  if (!any_type && !can_cast(from.dtype(), to.dtype()))
    fail(joins ? ErrorKind::Type : ErrorKind::Runtime, "result type ", info(from.dtype()).legacy,
         " can't be cast to the desired output type ", info(to.dtype()).legacy);
  CHECK(from.device() == to.device(), Runtime,
        "Expected all tensors to be on the same device, but found at least two devices, ", to_text(from.device()),
        " and ", to_text(to.device()), "!");
  if (!(to.sizes() == from.sizes())) {
    // Those made of a range.
    if (def.name == "arange" || def.name == "fft.fftfreq" ||
        def.name == "fft.rfftfreq") {  // whose length may be a matter of rounding
      if (to.numel() != 0 &&
          PyErr_WarnFormat(PyExc_UserWarning, 1,
                           "The number of elements in the out tensor of shape %s is %lld which does not match the "
                           "computed number of elements %lld. Rounding of start, end and step can be the cause. The "
                           "out tensor will be resized to a tensor of shape (%lld,).",
                           to_text(to.sizes()).c_str(), static_cast<long long>(to.numel()),
                           static_cast<long long>(from.numel()), static_cast<long long>(from.numel())) < 0)
        python_error();
    } else if (
        to.numel() != 0 &&
        PyErr_WarnFormat(
            PyExc_UserWarning, 1,
            "An output with one or more elements was resized since it had shape %s, which does not match the required "
            "output shape %s. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
            "unless they have zero elements. Resize it first (out.resize_(0)) to reuse it without this warning.",
            to_text(to.sizes()).c_str(), to_text(from.sizes()).c_str()) < 0)
      python_error();
    int64_t bytes = checked_mul(from.numel() + to->offset, to.item_size());
    if (to.storage()->bytes < bytes) to.storage()->resize(bytes);
    // Elementwise results keep the order of their operands in memory, images that of their channels.
    const bool elementwise = flags & kDirect;
    const bool dense = non_overlapping_and_dense(from.sizes(), from.strides());
    const bool keeps = dense && (elementwise || is_channels_last(from.sizes(), from.strides()));
    set_geometry(to.get(), from.sizes(),
                 keeps         ? Ints(from.strides())
                 : elementwise ? dense_strides_like(from)
                               : contiguous_strides(from.sizes()),
                 to->offset);
  }
  if (leaf) {
    NoGrad guard;
    g_engine_ops.copy(to, from);
    bump_version(to);
    to->requires_grad = true;
    return;
  }
  g_engine_ops.copy(to, from);
  bump_version(to);
}

// PyTorch's own words where an op has some for an out= of the wrong type.
const std::pair<const char*, const char*> kOutWords[] = {
    {"isposinf", "isposinf does not support non-boolean outputs."},
    {"isneginf", "isneginf does not support non-boolean outputs."},
    {"heaviside", "heaviside is not yet implemented for complex tensors."},
    {"nonzero_static", "nonzero_static: Expected out tensor to have scalar type Long"},
};
std::string out_message(const OpDef& def, DType wanted, DType have, const char* part) {
  for (auto& [name, words] : kOutWords)
    if (def.name == name) return words;
  if (def.name == "frexp" && !(part && part[0] == 'i'))
    return text("torch.frexp() expects mantissa to have dtype ", info(wanted).legacy, " but got ", info(have).legacy);
  if (def.name == "complex" || def.name == "polar")
    return text("Expected object of scalar type ", info(wanted).legacy, " but got scalar type ", info(have).legacy,
                " for argument 'out'");
  if (def.name == "searchsorted" || def.name == "bucketize")
    return text("output tensor's dtype is wrong: int64, or int32 with out_int32=True");
  if (def.name == "histogram")
    return text("input tensor and ", part && part[0] == 'i' ? "bin_edges" : "hist",
                " tensor should have the same dtype, but got input ", info(wanted).legacy, " and ", info(have).legacy);
  if (def.name == "linalg.multi_dot")
    return text("multi_dot(): expected out tensor to have dtype ", info(wanted).legacy, " but got ", info(have).legacy);
  if (def.name == "frexp" && part && part[0] == 'i')
    return text("torch.frexp() expects exponent to have int dtype but got ", info(have).legacy);
  if (def.name == "float_power") return text("the operation's result requires dtype ", info(wanted).legacy);
  return text("expected scalar_type ", info(wanted).legacy, " but found ", info(have).legacy, "; expected scalar type ",
              info(wanted).legacy, " but got ", info(have).legacy, " for ", part ? part : "out");
}

// The type that out= must have.
void check_out_type(const OpDef& def, PyObject* out, PyObject* result, uint32_t flags, const char* part = nullptr) {
  if (PyTuple_Check(result)) {
    if (!PyTuple_Check(out) && !PyList_Check(out)) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result) && i < PySequence_Fast_GET_SIZE(out); ++i)
      check_out_type(def, PySequence_Fast_GET_ITEM(out, i), PyTuple_GET_ITEM(result, i), flags,
                     i == 0 ? "values" : "indices");
    return;
  }
  if (!is_tensor(out) || !is_tensor(result)) return;
  DType have = reinterpret_cast<TensorObject*>(out)->dtype, wanted = reinterpret_cast<TensorObject*>(result)->dtype;
  if (have == wanted || (flags & kBoolOut ? have == DType::UInt8 : !(flags & kExactOut))) return;
  CHECK(!(flags & kBoolOut), Runtime, def.name, " only supports bool tensor for result, got: ", info(have).legacy);
  fail(ErrorKind::Runtime, "Expected out tensor to have dtype ", info(wanted).name, ", but got ", info(have).name,
       " instead (", def.name, "() out tensor must be same dtype as the input tensor; ",
       out_message(def, wanted, have, part), ")");
}

// Writes `result`, a tensor or a tuple of them, and returns what the call returns: out, or a tuple of what is in it.
PyObject* finish_out(const OpDef& def, PyObject* out, PyObject* result) {
  if (PyTuple_Check(result)) {
    CHECK(def.name != "nonzero", Runtime, "nonzero does not support the out kwarg when as_tuple is True");
    CHECK(PyTuple_Check(out) || PyList_Check(out), Type, def.name, "(): argument 'out' must be tuple of Tensors, not ",
          type_name(out));
    Py_ssize_t n = PyTuple_GET_SIZE(result);
    CHECK(PySequence_Fast_GET_SIZE(out) == n, Type, def.name, "(): argument 'out' must be a tuple of ",
          static_cast<int64_t>(n), " Tensors");
    Owned same(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(out, i);
      write_out(def, item, PyTuple_GET_ITEM(result, i));
      PyTuple_SET_ITEM(same.p, i, Py_NewRef(item));
    }
    if (Py_TYPE(result) == &PyTuple_Type) return Py_NewRef(same.p);
    PyObject* named = PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(result)), same.p);
    if (!named) python_error();
    return named;
  }
  write_out(def, out, result);
  return Py_NewRef(out);
}

// Memory that a result may not be written to: elements that are one and the same, or that an argument lies across.
void check_out_memory(PyObject* out, PyObject* const* slots, int count, uint32_t flags) {
  if (PyTuple_Check(out) || PyList_Check(out)) {
    // One level: a list may hold itself.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(out); ++i)
      if (PyObject* item = PySequence_Fast_GET_ITEM(out, i); is_tensor(item))
        check_out_memory(item, slots, count, flags);
    return;
  }
  if (!is_tensor(out)) return;
  Tensor written = Tensor::borrow(out);
  if (!(flags & kOverlapOk)) check_no_internal_overlap(written);
  if (flags & kFreeOut) return;
  each_tensor(slots, count, [&](const Tensor& read) {
    bool self = (flags & kInplace) && read.get() == reinterpret_cast<TensorObject*>(slots[0]);
    flags & kNoOverlap && !self ? check_no_overlap(written, read) : check_no_partial_overlap(written, read);
  });
}

// May an elementwise op write its result straight into `out`? Not where an argument reads the same memory in another
// order.
bool may_write_directly(PyObject* out, PyObject* const* slots, int count) {
  if (!is_tensor(out)) return false;
  Tensor t = Tensor::borrow(out);
  if (t.requires_grad() || !t.numel()) return false;
  for (int i = 0; i < count; ++i) {
    if (!slots[i] || !is_tensor(slots[i])) continue;
    Tensor x = Tensor::borrow(slots[i]);
    if (x.device() != t.device()) return false;
    if (x.storage() == t.storage() && !(x->offset == t->offset && x.sizes() == t.sizes() && x.strides() == t.strides()))
      return false;
  }
  return true;
}

// Calls the op with `out` offered as the place for its result; the op may take the offer or not.
PyObject* invoke_into(PyObject* out, Overload& o, PyObject* const* slots) {
  Destination outer = std::exchange(t_destination, Destination());
  struct Restore {
    Destination& outer;
    ~Restore() { t_destination = std::move(outer); }
  } restore{outer};
  t_destination.wanted = reinterpret_cast<TensorObject*>(out);
  return o.spec.invoke(o.spec.fn, slots, nullptr);
}

void check_out_grad(const OpDef& def, const Bound& b, int count, uint32_t flags) {
  auto check = [&](const Tensor& t) {
    if (t.requires_grad()) fail_out_grad(def);
  };
  if (!grad_enabled() || (flags & kNotDifferentiable)) return;
  each_tensor(b.slots, count, check);
  each_tensor(&b.out, 1, check);
}

// A tensor that is read and written at once keeps its shape.
void check_read_write(const Bound& b, int count, PyObject* result) {
  if (!is_tensor(b.out) || !is_tensor(result)) return;
  Tensor to = Tensor::borrow(b.out), from = Tensor::borrow(result);
  if (to.sizes() == from.sizes()) return;
  for (int i = 0; i < count; ++i)
    CHECK(b.slots[i] != b.out, Runtime, "output with shape ", to_text(to.sizes()),
          " doesn't match the broadcast shape ", to_text(from.sizes()));
}

}  // namespace

// dtype= where it was not given: the type of what is written to.
void take_type(const Overload& o, Bound& b, PyObject* written) {
  const DType have = reinterpret_cast<TensorObject*>(written)->dtype;
  for (size_t i = 0; i < o.params.size(); ++i) {
    if (PyUnicode_CompareWithASCIIString(o.params[i].name, "layout") == 0 && written == b.out && b.slots[i] != Py_None)
      CHECK(Arg<Layout>::load(b.slots[i]) == Layout::Strided, Runtime,
            "layout does not match layout of out parameter (torch.strided)");
    if (PyUnicode_CompareWithASCIIString(o.params[i].name, "dtype") != 0) continue;
    if (b.slots[i] == Py_None) {
      b.slots[i] = dtype_object(have);  // borrowed: types live for ever
    } else if (DType asked = Arg<DType>::load(b.slots[i]); written == b.out && asked != have) {
      CHECK(!(o.spec.flags & kFactory), Runtime, "dtype ", info(asked).legacy,
            " does not match dtype of out parameter (", info(have).legacy, ")");
      fail(ErrorKind::Runtime, "Expected out tensor to have dtype ", info(asked).name, ", but got ", info(have).name,
           " instead");
    }
  }
}

PyObject* invoke_out(const OpDef& def, Overload& o, Bound& b) {
  const uint32_t flags = o.spec.flags;
  const int count = static_cast<int>(o.params.size());
  check_out_grad(def, b, count, flags);
  check_out_memory(b.out, b.slots, count, flags);
  each_tensor(&b.out, 1, [](const Tensor& t) {
    CHECK(
        !t->inference || t_grad_mode.inference, Runtime,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor before doing inplace update.");
    before_write(t);
  });
  if ((flags & (kOutType | kFactory)) && is_tensor(b.out)) take_type(o, b, b.out);
  const bool direct = (flags & kDirect) && may_write_directly(b.out, b.slots, count);
  PyObject* result = direct ? invoke_into(b.out, o, b.slots)
                            : o.spec.invoke(o.spec.fn, b.slots, o.results.empty() ? nullptr : o.results.c_str());
  if (!result) python_error();
  if (result == b.out) {
    bump_version(Tensor::borrow(b.out));
    return result;
  }
  Owned owned(result);
  if (!(flags & (kFreeOut | kNoOverlap))) check_read_write(b, count, result);
  // Of a complex number abs() makes another type anyway, which may be cast.
  const bool changes_type = def.name == "abs" && Tensor::borrow(b.slots[0]).is_complex();
  if ((flags & (kExactOut | kBoolOut)) && !changes_type) check_out_type(def, b.out, result, flags);
  return finish_out(def, b.out, result);
}

PyObject* write_result(const char* name, PyObject* out, PyObject* result, bool exact) {
  OpDef named;
  named.name = name;
  check_out_memory(out, nullptr, 0, 0);
  if (exact) check_out_type(named, out, result, kExactOut);
  return out == Py_None ? Py_NewRef(result) : finish_out(named, out, result);
}

}  // namespace rl
