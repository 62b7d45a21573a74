#include "python/op_object.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "autograd/destination.h"
#include "autograd/meta.h"
#include "autograd/module_scope.h"
#include "autograd/profile.h"
#include "autograd/record.h"
#include "backend/backend.h"
#include "ops/registry.h"
#include "python/autocast.h"
#include "python/errors.h"
#include "python/note_result.h"
#include "python/override.h"
#include "tensor/overlap.h"
#include "tensor/promote.h"

namespace rl {

namespace {

constexpr int kMaxParams = 32;

struct Param {
  PyObject* name;      // interned
  PyObject* fallback;  // null: required
  bool keyword_only;
  bool variadic;
};

struct Overload {
  OverloadSpec spec;
  std::string results;  // "max:values, indices"
  std::vector<Param> params;
  int positional = 0;
  bool parsed = false, warned = false;
};

struct OpDef {
  std::string name, doc;
  std::vector<Overload> overloads;
  uint32_t flags = 0;
};

enum class Form : uint8_t { Function, Method, Inplace };

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  OpDef* def;
  Form form;
  PyObject* dict;
};

std::unordered_map<std::string, OpDef*>& table() {
  static auto* t = new std::unordered_map<std::string, OpDef*>;
  return *t;
}
std::vector<std::pair<std::string, std::string>>& aliases() {
  static auto* a = new std::vector<std::pair<std::string, std::string>>;
  return *a;
}

std::string strip(std::string s) {
  size_t a = s.find_first_not_of(' '), b = s.find_last_not_of(' ');
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

// The default values that signatures use.
PyObject* literal(const std::string& s) {
  if (s == "None") return Py_NewRef(Py_None);
  if (s == "True") return Py_NewRef(Py_True);
  if (s == "False") return Py_NewRef(Py_False);
  if (s == "()") return PyTuple_New(0);
  if (s == "inf") return PyFloat_FromDouble(HUGE_VAL);
  if (s == "-inf") return PyFloat_FromDouble(-HUGE_VAL);
  if (s[0] == '\'' || s[0] == '"')
    return PyUnicode_FromStringAndSize(s.data() + 1, static_cast<Py_ssize_t>(s.size()) - 2);
  if (s[0] == '(') {
    std::vector<std::string> items;
    std::string item;
    for (char c : s.substr(1)) {
      if (c == ',' || c == ')') {
        if (!strip(item).empty()) items.push_back(strip(item));
        item.clear();
      } else {
        item += c;
      }
    }
    PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(items.size()));
    for (size_t i = 0; i < items.size(); ++i) PyTuple_SET_ITEM(t, static_cast<Py_ssize_t>(i), literal(items[i]));
    return t;
  }
  bool is_int = s.find_first_not_of("-0123456789") == std::string::npos;
  return is_int ? PyLong_FromString(s.c_str(), nullptr, 10) : PyFloat_FromDouble(std::atof(s.c_str()));
}

void parse(Overload& o) {
  o.parsed = true;
  bool keyword_only = false;
  std::string item;
  int depth = 0;
  std::string sig = std::string(o.spec.signature) + ",";
  for (char c : sig) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c != ',' || depth) {
      item += c;
      continue;
    }
    item = strip(item);
    if (item == "*") keyword_only = true;
    else if (!item.empty()) {
      Param p{nullptr, nullptr, keyword_only, false};
      size_t eq = item.find('=');
      std::string name = strip(item.substr(0, eq));
      if (eq != std::string::npos) p.fallback = literal(strip(item.substr(eq + 1)));
      if (name.size() > 3 && name.ends_with("...")) {
        p.variadic = true;
        name.resize(name.size() - 3);
      }
      p.name = PyUnicode_InternFromString(name.c_str());
      o.params.push_back(p);
      if (!keyword_only) ++o.positional;
    }
    item.clear();
  }
  if (static_cast<int>(o.params.size()) != o.spec.count || o.spec.count > kMaxParams)
    Py_FatalError((std::string("signature and function disagree: ") + o.spec.signature).c_str());
}

// NumPy's spellings, which torch accepts too.
const char* other_spelling(const char* name) {
  static const std::pair<const char*, const char*> kSpellings[] = {
      {"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"},   {"a", "input"},
      {"x1", "input"}, {"x2", "other"},         {"self", "input"}};
  for (auto& [theirs, ours] : kSpellings)
    if (std::strcmp(theirs, name) == 0) return ours;
  return nullptr;
}

struct Bound {
  PyObject* slots[kMaxParams] = {};
  PyObject* out = nullptr;
  PyObject* collected = nullptr;  // owned: the tuple of a variadic parameter
  ~Bound() { Py_XDECREF(collected); }
};

std::string type_name(PyObject* o) {
  if (is_tensor(o)) return "Tensor";
  const char* name = Py_TYPE(o)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot ? dot + 1 : name;
}

// Which element of a list is of the wrong type, in torch's words; empty if none is.
[[gnu::cold]] std::string bad_item(PyObject* list, const char* wanted, int argument) {
  if (!PyTuple_Check(list) && !PyList_Check(list)) return "";
  bool tensors = std::strcmp(wanted, Arg<Tensors>::kName) == 0, ints = std::strcmp(wanted, Arg<Ints>::kName) == 0;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list) && (tensors || ints); ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(list, k);
    if (tensors ? is_tensor(item) : is_integer(item)) continue;
    const char* name = Py_TYPE(item)->tp_name;
    if (tensors)
      return text("expected Tensor as element ", static_cast<int64_t>(k), " in argument ",
                  static_cast<int64_t>(argument), ", but got ", name);
    return text("type must be tuple of ints,but got ", name, ": element ", static_cast<int64_t>(k), " of the list");
  }
  return "";
}

// How to make a tensor of what was given instead of one.
[[gnu::cold]] std::string not_a_tensor(PyObject* given, const char* wanted) {
  if (std::strcmp(wanted, Arg<Tensor>::kName) != 0) return "";
  if (std::strcmp(Py_TYPE(given)->tp_name, "numpy.ndarray") == 0) return "\n  Make it one first: torch.from_numpy(x).";
  bool data = PyList_Check(given) || PyTuple_Check(given) || PyFloat_Check(given) || PyLong_Check(given);
  return data ? "\n  Make it one first: torch.tensor(x)." : "";
}

// How many letters must be changed, added, dropped or swapped to make b of a.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (!i || !j) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}
// The parameter whose name is most like `name`; empty if none is.
[[gnu::cold]] std::string nearest(std::string_view name, const Overload& o) {
  std::string best;
  size_t least = std::min<size_t>(name.size() / 2 + 1, 4);
  if (name.size() > 64) return best;
  for (const Param& p : o.params) {
    std::string candidate = PyUnicode_AsUTF8(p.name);
    size_t distance = edits(name, candidate);
    if (distance < least || (distance <= least && candidate.find(name) == 0)) best = candidate, least = distance;
  }
  return best;
}

// Matches arguments with parameters. On failure returns false, with the reason in `why` if that is given.
bool bind(OpDef& def, Overload& o, Form form, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, Bound& b,
          std::string* why) {
  if (!o.parsed) parse(o);
  int offset = form == Form::Function ? 0 : 1;  // positions are counted without self
  int n = static_cast<int>(o.params.size());
  int filled = 0;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    if (filled >= o.positional) {
      if (why)
        *why = text(def.name, "() takes ", static_cast<int64_t>(o.positional - offset), " positional argument",
                    o.positional - offset == 1 ? "" : "s", " but ", static_cast<int64_t>(nargs - offset),
                    nargs - offset == 1 ? " was given" : " were given");
      return false;
    }
    if (o.params[static_cast<size_t>(filled)].variadic &&
        (is_integer(args[i]) || is_tensor(args[i]) || i + 1 < nargs)) {
      // view(2, 3): all remaining positions.
      if (nargs - i > 1 || is_integer(args[i])) {
        b.collected = PyTuple_New(nargs - i);
        for (Py_ssize_t k = i; k < nargs; ++k) PyTuple_SET_ITEM(b.collected, k - i, Py_NewRef(args[k]));
        b.slots[filled++] = b.collected;
        break;
      }
    }
    b.slots[filled++] = args[i];
  }
  Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < nkw; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    PyObject* value = args[nargs + k];
    int at = -1;
    for (int i = 0; i < n; ++i)
      if (o.params[static_cast<size_t>(i)].name == name) at = i;
    if (at < 0) {
      const char* wanted = PyUnicode_AsUTF8(name);
      const char* other = other_spelling(wanted);
      for (int pass = 0; pass < 2 && at < 0; ++pass)
        for (int i = 0; i < n && (pass == 0 || other); ++i)
          if (PyUnicode_CompareWithASCIIString(o.params[static_cast<size_t>(i)].name, pass == 0 ? wanted : other) == 0)
            at = i;
      if (at < 0 && std::strcmp(wanted, "out") == 0 && !(o.spec.flags & (kNoOut | kView)) && form == Form::Function) {
        if (value != Py_None) b.out = value;
        continue;
      }
    }
    if (at < 0) {
      if (why) {
        *why = text(def.name, "() got an unexpected keyword argument '", PyUnicode_AsUTF8(name), "'");
        if (std::string near = nearest(PyUnicode_AsUTF8(name), o); !near.empty())
          *why += text("\n  did you mean '", near, "'?");
        *why += text("\n  it takes: ", def.name, "(", o.spec.signature, ")");
      }
      return false;
    }
    if (b.slots[at]) {
      if (why) *why = text(def.name, "() got multiple values for argument '", PyUnicode_AsUTF8(name), "'");
      return false;
    }
    b.slots[at] = value;
  }
  for (int i = 0; i < n; ++i) {
    const Param& p = o.params[static_cast<size_t>(i)];
    if (!b.slots[i]) {
      if (!p.fallback) {
        if (why)
          *why = text(def.name, "() missing 1 required positional arguments: \"", PyUnicode_AsUTF8(p.name),
                      "\"\n  it takes: ", def.name, "(", o.spec.signature, ")");
        return false;
      }
      b.slots[i] = p.fallback;
      continue;
    }
    if (b.slots[i] == p.fallback) continue;
    if (!o.spec.checks[i](b.slots[i])) {
      if (why) {
        *why = text(def.name, "(): argument '", PyUnicode_AsUTF8(p.name), "'");
        if (!p.keyword_only) *why += text(" (position ", static_cast<int64_t>(i + 1 - offset), ")");
        *why += text(" must be ", o.spec.type_names[i], ", not ", type_name(b.slots[i]));
        *why += not_a_tensor(b.slots[i], o.spec.type_names[i]);
        if (std::string item = bad_item(b.slots[i], o.spec.type_names[i], i); !item.empty())
          *why = item + "\n  " + *why;
      }
      return false;
    }
  }
  return true;
}

std::string signature_text(const OpDef& def, const Overload& o) { return def.name + "(" + o.spec.signature + ")"; }

[[noreturn]] void no_overload(OpDef& def, Form form, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  std::string why;
  auto shown = [](const Overload& o) { return !(o.spec.flags & kOld); };
  if (std::count_if(def.overloads.begin(), def.overloads.end(), shown) == 1) {
    Bound b;
    bind(def, def.overloads[0], form, args, nargs, kwnames, b, &why);
    fail(ErrorKind::Type, why);
  }
  std::string got;
  for (Py_ssize_t i = form == Form::Function ? 0 : 1; i < nargs; ++i)
    got += (got.empty() ? "" : ", ") + type_name(args[i]);
  for (Py_ssize_t k = 0; k < (kwnames ? PyTuple_GET_SIZE(kwnames) : 0); ++k)
    got += (got.empty() ? "" : ", ") + std::string(PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k))) + "=" +
           type_name(args[nargs + k]);
  std::string expected;
  for (Overload& o : def.overloads) {
    if (!shown(o)) continue;
    Bound b;
    bind(def, o, form, args, nargs, kwnames, b, &why);
    expected += "\n * (" + std::string(o.spec.signature) + ")\n      here: " + why;
  }
  fail(ErrorKind::Type, def.name, "() received an invalid combination of arguments - got (", got,
       "), but expected one of:", expected);
}

// out=

[[noreturn, gnu::cold]] void fail_out_grad(const OpDef& def) {
  fail(ErrorKind::Runtime, def.name,
       "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
       "requires grad.");
}

void write_out(const OpDef& def, PyObject* out, PyObject* result) {
  CHECK(is_tensor(out), Type, def.name, "(): argument 'out' must be Tensor, not ", type_name(out));
  Tensor to = Tensor::borrow(out), from = Tensor::borrow(result);
  CHECK(!to->inference || t_grad_mode.inference, Runtime,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
        "tensor before doing inplace update.");
  if (grad_enabled() && !(def.flags & kNotDifferentiable) && (from.requires_grad() || to.requires_grad()))
    fail_out_grad(def);
  // PyTorch's class for what joins a list of tensors is another.
  bool joins = !def.overloads.empty() && std::strncmp(def.overloads[0].spec.signature, "tensors", 7) == 0;
  if (!can_cast(from.dtype(), to.dtype()))
    fail(joins ? ErrorKind::Type : ErrorKind::Runtime, "result type ", info(from.dtype()).legacy,
         " can't be cast to the desired output type ", info(to.dtype()).legacy);
  CHECK(from.device() == to.device(), Runtime,
        "Expected all tensors to be on the same device, but found at least two devices, ", to_text(from.device()),
        " and ", to_text(to.device()), "!");
  if (!(to.sizes() == from.sizes())) {
    if (to.numel() != 0 &&
        PyErr_WarnFormat(
            PyExc_UserWarning, 1,
            "An output with one or more elements was resized since it had shape %s, which does not match the required "
            "output shape %s. Resize it to zero elements first (out.resize_(0)) to reuse it without this warning.",
            to_text(to.sizes()).c_str(), to_text(from.sizes()).c_str()) < 0)
      python_error();
    int64_t bytes = checked_mul(from.numel() + to->offset, to.item_size());
    if (to.storage()->bytes < bytes) to.storage()->resize(bytes);
    // Elementwise results keep the order of their operands in memory.
    bool elementwise = !def.overloads.empty() && (def.overloads[0].spec.flags & kElementwise);
    set_geometry(to.get(), from.sizes(), elementwise ? dense_strides_like(from) : contiguous_strides(from.sizes()),
                 to->offset);
  }
  g_engine_ops.copy(to, from);
  bump_version(to);
}

// The type that out= must have.
void check_out_type(PyObject* out, PyObject* result, uint32_t flags) {
  if (PyTuple_Check(result)) {
    if (!PyTuple_Check(out) && !PyList_Check(out)) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result) && i < PySequence_Fast_GET_SIZE(out); ++i)
      check_out_type(PySequence_Fast_GET_ITEM(out, i), PyTuple_GET_ITEM(result, i), flags);
    return;
  }
  if (!is_tensor(out) || !is_tensor(result)) return;
  DType have = reinterpret_cast<TensorObject*>(out)->dtype, wanted = reinterpret_cast<TensorObject*>(result)->dtype;
  bool fits = have == wanted || (flags & kBoolOut ? have == DType::UInt8 : !(flags & kExactOut));
  CHECK(fits, Runtime, "Expected out tensor to have dtype ", info(wanted).name, ", but got ", info(have).name,
        " instead");
}

PyObject* finish_out(const OpDef& def, PyObject* out, PyObject* result) {
  struct Drop {
    PyObject* o;
    ~Drop() { Py_XDECREF(o); }
  } drop{result};
  if (out == Py_None) {
    drop.o = nullptr;
    return result;
  }
  if (PyTuple_Check(result)) {
    CHECK(PyTuple_Check(out) || PyList_Check(out), Type, def.name, "(): argument 'out' must be tuple of Tensors, not ",
          type_name(out));
    Py_ssize_t n = PyTuple_GET_SIZE(result);
    CHECK(PySequence_Size(out) == n, Type, def.name, "(): argument 'out' must be a tuple of ", static_cast<int64_t>(n),
          " Tensors");
    PyObject* same = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(out, i);
      write_out(def, item, PyTuple_GET_ITEM(result, i));
      PyTuple_SET_ITEM(same, i, Py_NewRef(item));
    }
    if (Py_TYPE(result) == &PyTuple_Type) return same;
    PyObject* named = PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(result)), same);
    Py_DECREF(same);
    if (!named) python_error();
    return named;
  }
  write_out(def, out, result);
  return Py_NewRef(out);
}

struct InplaceCall {
  Overload* overload;
  PyObject* const* slots;
};

// Calls f with each tensor among the arguments, those in lists too.
template <class F> void each_tensor(PyObject* const* slots, int count, F f) {
  for (int i = 0; i < count; ++i) {
    if (!slots[i]) continue;
    if (is_tensor(slots[i])) f(Tensor::borrow(slots[i]));
    else if (PyTuple_Check(slots[i]) || PyList_Check(slots[i]))
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(slots[i]); ++k)
        if (PyObject* item = PySequence_Fast_GET_ITEM(slots[i], k); is_tensor(item)) f(Tensor::borrow(item));
  }
}

// Memory that a result may not be written to: places that are one and the same, or that an argument lies across.
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
    flags & kApart && !self ? check_no_overlap(written, read) : check_no_partial_overlap(written, read);
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

// dtype= where it was not given: the type of what is written to.
void take_type(const Overload& o, Bound& b, PyObject* written) {
  for (size_t i = 0; i < o.params.size(); ++i)
    if (b.slots[i] == Py_None && PyUnicode_CompareWithASCIIString(o.params[i].name, "dtype") == 0)
      b.slots[i] = dtype_object(reinterpret_cast<TensorObject*>(written)->dtype);  // borrowed: types live for ever
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
    if (b.slots[i] == b.out) {
      Py_DECREF(result);
      fail(ErrorKind::Runtime, "output with shape ", to_text(to.sizes()), " doesn't match the broadcast shape ",
           to_text(from.sizes()));
    }
}

[[gnu::cold]] void warn_old(const OpObject* op, Overload& o) {
  const OverloadSpec& now = op->def->overloads[0].spec;
  o.warned = true;
  if (PyErr_WarnFormat(
          PyExc_UserWarning, 1, "This overload of %s%s is deprecated. Factors go by name, after the tensors: %s(%s)",
          op->def->name.c_str(), op->form == Form::Inplace ? "_" : "", op->def->name.c_str(), now.signature) < 0)
    python_error();
}

PyObject* invoke(OpObject* op, Overload& o, Bound& b) {
  if ((o.spec.flags & kOld) && !o.warned) warn_old(op, o);
  if (op->form != Form::Inplace) {
    int count = static_cast<int>(o.params.size());
    if (b.out) {
      check_out_grad(*op->def, b, count, o.spec.flags);
      check_out_memory(b.out, b.slots, count, o.spec.flags);
      if ((o.spec.flags & kOutType) && is_tensor(b.out)) take_type(o, b, b.out);
    }
    const bool direct = b.out && (o.spec.flags & kElementwise) && may_write_directly(b.out, b.slots, count);
    PyObject* result = direct ? invoke_into(b.out, o, b.slots)
                              : o.spec.invoke(o.spec.fn, b.slots, o.results.empty() ? nullptr : o.results.c_str());
    if (!result) python_error();
    if (!b.out) note_result(result, op->def->name.c_str(), b.slots, o.spec.count);
    if (result == b.out) {
      bump_version(Tensor::borrow(b.out));
      return result;
    }
    if (b.out && !(o.spec.flags & (kFreeOut | kApart))) check_read_write(b, count, result);
    if (b.out && (o.spec.flags & (kExactOut | kBoolOut))) {
      try {
        check_out_type(b.out, result, o.spec.flags);
      } catch (...) {
        Py_DECREF(result);
        throw;
      }
    }
    return b.out ? finish_out(*op->def, b.out, result) : result;
  }
  Tensor self = Tensor::borrow(b.slots[0]);
  if (o.spec.flags & kOutType) take_type(o, b, b.slots[0]);
  InplaceCall call{&o, b.slots};
  InplaceTraits traits{(o.spec.flags & kElementwise) != 0, (o.spec.flags & kKeepsInput) != 0,
                       (o.spec.flags & kOverlapOk) != 0};
  // Before anything is written: a view among the operands may have lost its history.
  if (grad_enabled())
    for (size_t i = 1; i < o.params.size(); ++i)
      if (b.slots[i] && is_tensor(b.slots[i]))
        if (auto* t = reinterpret_cast<TensorObject*>(b.slots[i]); t->wants_grad()) {
          traits.operands_want_grad = true;
          grad_fn_of(t);
        }
  if (!(o.spec.flags & kFreeOut))  // elementwise ops look for themselves, where they know that they write directly
    each_tensor(b.slots + 1, static_cast<int>(o.params.size()) - 1, [&](const Tensor& read) {
      if (o.spec.flags & kApart) check_no_overlap(self, read);
      else if (!traits.direct) check_no_partial_overlap(self, read);
    });
  Tensor y = apply_inplace(
      op->def->name.c_str(), self, traits,
      [](void* c) {
        auto* call = static_cast<InplaceCall*>(c);
        PyObject* r = call->overload->spec.invoke(call->overload->spec.fn, call->slots, nullptr);
        if (!r) python_error();
        return Tensor::own(reinterpret_cast<TensorObject*>(r));
      },
      &call);
  note_result(y.object(), op->def->name.c_str(), b.slots, o.spec.count);
  return y.release();
}

// Writing to a tensor that is there (in place, out=) keeps to its type.
PyObject* invoke_cast(OpObject* op, Overload& o, Bound& b) {
  Recast recast;
  if ((o.spec.flags & (kCastLow | kCastFull | kCastWidest)) && op->form != Form::Inplace && !b.out)
    recast.apply(o.spec.flags, b.slots, o.spec.count);
  return invoke(op, o, b);
}

PyObject* op_call(OpObject* op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (op->form != Form::Function)
    CHECK(nargs > 0 && is_tensor(args[0]), Type, "descriptor '", op->def->name,
          "' for 'torch.Tensor' objects needs a Tensor as its first argument");
  for (Overload& o : op->def->overloads) {
    Bound b;
    if (bind(*op->def, o, op->form, args, nargs, kwnames, b, nullptr))
      return g_autocast_regions ? invoke_cast(op, o, b) : invoke(op, o, b);
    if (PyErr_Occurred()) PyErr_Clear();
  }
  no_overload(*op->def, op->form, args, nargs, kwnames);
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
std::string profiled_name(const OpObject* op) {
  std::string name = op->def->name;
  if (name == "_run_backward") return "backward";
  size_t dot = name.rfind('.');
  if (dot != std::string::npos) {
    std::string space = name.substr(0, dot);
    bool shown = space == "linalg" || space == "fft" || space == "special";
    name = (shown ? space + "_" : "") + name.substr(dot + 1);
  }
  return "aten::" + name + (op->form == Form::Inplace ? "_" : "");
}

// A call that the profiler times. Queries without tensors are not worth a row.
[[gnu::noinline]] PyObject* profiled_call(OpObject* op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (op->def->name.compare(0, 9, "_profile_") == 0) return op_call(op, args, nargs, kwnames);
  std::string name = profiled_name(op);
  PyObject* shapes = argument_shapes(args, nargs);
  struct Timed {
    ProfileHandle event;
    bool keep = false;
    ~Timed() { keep ? profile_end(event) : profile_drop(event); }
  } timed{profile_begin(name.c_str(), ProfileKind::Op, nullptr, module_scope(), shapes)};
  Py_XDECREF(shapes);
  for (Py_ssize_t i = 0; i < nargs && !timed.keep; ++i) timed.keep = has_tensor(args[i]);
  PyObject* result = op_call(op, args, nargs, kwnames);
  timed.keep = timed.keep || has_tensor(result);
  return result;
}

PyObject* op_vectorcall(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* op = reinterpret_cast<OpObject*>(callable);
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  return guarded([&]() -> PyObject* {
    if (t_overrides) {
      // Private ops are steps of others.
      if (watched() && function_mode() && op->def->name[0] != '_') return call_override(callable, args, nargs, kwnames);
      Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
      for (Py_ssize_t i = 0; i < all; ++i)
        if (overrides(args[i])) return call_override(callable, args, nargs, kwnames);
    }
    return profiling() ? profiled_call(op, args, nargs, kwnames) : op_call(op, args, nargs, kwnames);
  });
}

PyObject* op_repr(PyObject* self) {
  auto* op = reinterpret_cast<OpObject*>(self);
  const char* kind = op->form == Form::Function ? "function" : "method";
  return PyUnicode_FromFormat("<built-in %s %s%s>", kind, op->def->name.c_str(), op->form == Form::Inplace ? "_" : "");
}

std::string short_name(const OpObject* op) {
  size_t dot = op->def->name.rfind('.');
  return op->def->name.substr(dot == std::string::npos ? 0 : dot + 1) + (op->form == Form::Inplace ? "_" : "");
}

PyObject* op_name(PyObject* self, void*) {
  return PyUnicode_FromString(short_name(reinterpret_cast<OpObject*>(self)).c_str());
}
PyObject* op_doc(PyObject* self, void*) {
  OpDef* def = reinterpret_cast<OpObject*>(self)->def;
  std::string s;
  for (Overload& o : def->overloads) {
    if (o.spec.flags & kOld) continue;
    std::string line = signature_text(*def, o) + "\n";
    if (s.find(line) == std::string::npos) s += line;  // overloads may differ in types only
  }
  return PyUnicode_FromString((s + "\n" + def->doc).c_str());
}
PyObject* op_signature(PyObject* self, void*) {
  auto* op = reinterpret_cast<OpObject*>(self);
  const OverloadSpec& first = op->def->overloads[0].spec;
  bool out = op->form == Form::Function && !(first.flags & (kNoOut | kView));
  PyObject* module = PyImport_ImportModule("rushlight._signature");
  PyObject* result =
      module ? PyObject_CallMethod(module, "parse", "sO", first.signature, out ? Py_True : Py_False) : nullptr;
  Py_XDECREF(module);
  return result;
}
PyObject* op_signatures(PyObject* self, void*) {
  OpDef* def = reinterpret_cast<OpObject*>(self)->def;
  PyObject* list = PyList_New(0);
  for (Overload& o : def->overloads) {
    if (o.spec.flags & kOld) continue;
    PyObject* s = PyUnicode_FromString(o.spec.signature);
    PyList_Append(list, s);
    Py_DECREF(s);
  }
  return list;
}
// "values, indices" of an op that returns a named tuple; None of others.
PyObject* op_results(PyObject* self, void*) {
  for (Overload& o : reinterpret_cast<OpObject*>(self)->def->overloads)
    if (o.spec.results) return PyUnicode_FromString(o.spec.results);
  return Py_NewRef(Py_None);
}
PyObject* op_flags(PyObject* self, void*) { return PyLong_FromLong(reinterpret_cast<OpObject*>(self)->def->flags); }
PyObject* op_module(PyObject*, void*) { return PyUnicode_FromString("rushlight"); }
PyObject* op_reduce(PyObject* self, PyObject*) {
  auto* op = reinterpret_cast<OpObject*>(self);
  PyObject* getattr = PyObject_GetAttrString(PyImport_AddModule("builtins"), "getattr");
  if (op->form == Form::Function) {
    PyObject* module = PyImport_ImportModule("rushlight._C");
    PyObject* find = module ? PyObject_GetAttrString(module, "_find_op") : nullptr;
    Py_XDECREF(module);
    Py_XDECREF(getattr);
    return find ? Py_BuildValue("(N(s))", find, op->def->name.c_str()) : nullptr;
  }
  return Py_BuildValue("(N(Os))", getattr, g_tensor_type, short_name(op).c_str());
}

PyGetSetDef kOpGetSet[] = {{"__name__", op_name, nullptr, nullptr, nullptr},
                           {"__qualname__", op_name, nullptr, nullptr, nullptr},
                           {"__doc__", op_doc, nullptr, nullptr, nullptr},
                           {"__module__", op_module, nullptr, nullptr, nullptr},
                           {"__signature__", op_signature, nullptr, nullptr, nullptr},
                           {"_signatures", op_signatures, nullptr, nullptr, nullptr},
                           {"_results", op_results, nullptr, nullptr, nullptr},
                           {"_flags", op_flags, nullptr, nullptr, nullptr},
                           {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                           {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef kOpMethods[] = {{"__reduce__", op_reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyObject* op_bind(PyObject* self, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyTypeObject kFunctionType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject kMethodType = {PyVarObject_HEAD_INIT(nullptr, 0)};

int ready(PyTypeObject& t, const char* name, bool method) {
  t.tp_name = name;
  t.tp_basicsize = sizeof(OpObject);
  t.tp_vectorcall_offset = offsetof(OpObject, vectorcall);
  t.tp_call = PyVectorcall_Call;
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | (method ? Py_TPFLAGS_METHOD_DESCRIPTOR : 0);
  t.tp_repr = op_repr;
  t.tp_getset = kOpGetSet;
  t.tp_methods = kOpMethods;
  t.tp_dictoffset = offsetof(OpObject, dict);
  if (method) t.tp_descr_get = op_bind;
  return PyType_Ready(&t);
}

PyObject* make_op(OpDef* def, Form form) {
  auto* op = PyObject_New(OpObject, form == Form::Function ? &kFunctionType : &kMethodType);
  op->vectorcall = op_vectorcall;
  op->def = def;
  op->form = form;
  op->dict = nullptr;
  return reinterpret_cast<PyObject*>(op);
}

void set_method(const std::string& name, PyObject* op) {
  PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name.c_str(), op);
  Py_DECREF(op);
}

void install(PyObject* ops, const std::string& name, OpDef* def) {
  if (!(def->flags & kNoFunction)) {
    PyObject* f = make_op(def, Form::Function);
    PyDict_SetItemString(ops, name.c_str(), f);
    Py_DECREF(f);
  }
  if (def->flags & kMethod) set_method(name, make_op(def, Form::Method));
  if (def->flags & kInplace) {
    PyObject* f = make_op(def, Form::Inplace);
    if (!(def->flags & kNoFunction)) PyDict_SetItemString(ops, (name + "_").c_str(), f);
    set_method(name + "_", f);
  }
}

}  // namespace

void define_op(const char* name, const OverloadSpec& spec, const char* doc) {
  OpDef*& def = table()[name];
  if (!def) {
    def = new OpDef;
    def->name = name;
  }
  if (doc && *doc) def->doc = doc;
  def->flags |= spec.flags & ~static_cast<uint32_t>(kOld);
  Overload o;
  o.spec = spec;
  if (spec.results) o.results = std::string(name) + ":" + spec.results;
  def->overloads.push_back(std::move(o));
}

void define_alias(const char* alias, const char* name) { aliases().push_back({alias, name}); }

void install_ops(PyObject* module, PyObject* ops) {
  if (ready(kFunctionType, "rushlight._C.Op", false) < 0 || ready(kMethodType, "rushlight._C.OpMethod", true) < 0)
    return;
  PyModule_AddObjectRef(module, "Op", reinterpret_cast<PyObject*>(&kFunctionType));
  PyModule_AddObjectRef(module, "OpMethod", reinterpret_cast<PyObject*>(&kMethodType));
  for (auto& [name, def] : table()) install(ops, name, def);
  for (auto& [alias, name] : aliases()) {
    auto found = table().find(name);
    if (found == table().end()) Py_FatalError(("alias of an unknown op: " + alias + " -> " + name).c_str());
    install(ops, alias, found->second);
  }
}

PyObject* write_result(const char* name, PyObject* out, PyObject* result, bool exact) {
  OpDef named;
  named.name = name;
  check_out_memory(out, nullptr, 0, 0);
  if (exact) check_out_type(out, result, kExactOut);
  return finish_out(named, out, Py_NewRef(result));
}

PyObject* call_op(const char* name, PyObject* const* args, Py_ssize_t count) {
  OpDef* def = table().at(name);
  for (Overload& o : def->overloads) {
    Bound b;
    if (!bind(*def, o, Form::Function, args, count, nullptr, b, nullptr)) continue;
    return o.spec.invoke(o.spec.fn, b.slots, o.results.empty() ? nullptr : o.results.c_str());
  }
  no_overload(*def, Form::Function, args, count, nullptr);
}

namespace detail {

// One field a line, as tensors take several.
static PyObject* named_tuple_repr(PyObject* self) {
  std::string text = std::string(Py_TYPE(self)->tp_name) + "(";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    PyObject* value = PyObject_Repr(PyTuple_GET_ITEM(self, i));
    const char* shown = value ? PyUnicode_AsUTF8(value) : nullptr;
    if (!shown) {
      Py_XDECREF(value);
      return nullptr;
    }
    text += std::string(i ? ",\n" : "\n") + Py_TYPE(self)->tp_members[i].name + "=" + shown;
    Py_DECREF(value);
  }
  return PyUnicode_FromString((text + ")").c_str());
}

// A structseq class per op and result names, made on first use: torch.return_types.max.
PyObject* named_tuple(const char* names, PyObject** items, int count) {
  for (int i = 0; i < count; ++i)
    if (!items[i]) {
      for (int k = 0; k < count; ++k) Py_XDECREF(items[k]);
      python_error();
    }
  if (!names) {
    PyObject* t = PyTuple_New(count);
    for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(t, i, items[i]);
    return t;
  }
  static std::unordered_map<std::string, PyTypeObject*>* made = new std::unordered_map<std::string, PyTypeObject*>;
  PyTypeObject*& type = (*made)[names];
  if (!type) {
    std::string all = names;
    size_t colon = all.find(':');
    // The descriptors must outlive the class, which lives as long as the process.
    std::string op = all.substr(0, colon);
    bool linalg = op.starts_with("linalg.");
    auto* full =
        new std::string((linalg ? "torch.return_types.linalg_" : "torch.return_types.") + op.substr(op.rfind('.') + 1));
    auto* fields = new std::vector<PyStructSequence_Field>;
    std::string rest = all.substr(colon + 1) + ",";
    for (size_t at = 0; (colon = rest.find(',', at)) != std::string::npos; at = colon + 1)
      fields->push_back({(new std::string(strip(rest.substr(at, colon - at))))->c_str(), nullptr});
    fields->push_back({nullptr, nullptr});
    PyStructSequence_Desc desc = {full->c_str(), nullptr, fields->data(), count};
    type = PyStructSequence_NewType(&desc);
    if (!type) python_error();
    type->tp_repr = named_tuple_repr;
    // So that it can be pickled: no module has these classes under their names.
    PyObject* module = PyImport_ImportModule("rushlight.return_types");
    PyObject* done = module ? PyObject_CallMethod(module, "_register", "O", type) : nullptr;
    Py_XDECREF(module);
    if (!done) python_error();
    Py_DECREF(done);
  }
  PyObject* t = PyStructSequence_New(type);
  for (int i = 0; i < count; ++i) PyStructSequence_SetItem(t, i, items[i]);
  return t;
}

}  // namespace detail

}  // namespace rl
