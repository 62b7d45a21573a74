#include "python/op_complaints.h"

#include <algorithm>
#include <cstring>

#include "python/op_arguments.h"

namespace rl {

std::string type_name(PyObject* o) {
  if (is_tensor(o)) return "Tensor";
  const char* name = Py_TYPE(o)->tp_name;
  const char* dot = std::strrchr(name, '.');
  name = dot ? dot + 1 : name;
  return std::strcmp(name, "Tensor") == 0 ? "another library's Tensor" : name;
}

namespace {

// Positions are counted without self.
int without_self(const Call& call) { return call.form == Form::Function ? 0 : 1; }

std::string takes(const OpDef& def, const Overload& o) {
  return text("\n  it takes: ", def.name, "(", o.spec.signature, ")");
}

// Which element of a list is of the wrong type, in torch's words; empty if none is.
std::string bad_item(PyObject* list, const char* wanted, int argument) {
  if (!PyTuple_Check(list) && !PyList_Check(list)) return "";
  bool tensors = std::strcmp(wanted, Arg<Tensors>::kName) == 0, ints = std::strcmp(wanted, Arg<Ints>::kName) == 0;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list) && (tensors || ints); ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(list, k);
    if (tensors ? is_tensor(item) : is_list_integer(item, k)) continue;
    const char* name = Py_TYPE(item)->tp_name;
    if (tensors)
      return text("expected Tensor as element ", static_cast<int64_t>(k), " in argument ",
                  static_cast<int64_t>(argument), ", but got ", name);
    return text("type must be tuple of ints,but got ", name, ": element ", static_cast<int64_t>(k), " of the list");
  }
  return "";
}

// How to make a tensor of what was given instead of one.
std::string not_a_tensor(PyObject* given, const char* wanted) {
  if (std::strcmp(wanted, Arg<Tensor>::kName) != 0) return "";
  if (std::strcmp(Py_TYPE(given)->tp_name, "Tensor") == 0)
    return "\n  Make it one of ours first: from_numpy(x.numpy()), or from_dlpack(x).";
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
std::string nearest(std::string_view name, const Overload& o) {
  std::string best;
  size_t least = std::min<size_t>(name.size() / 2 + 1, 4);
  if (name.size() > 64) return best;
  for (const Param& p : o.params) {
    std::string candidate = utf8(p.name);
    size_t distance = edits(name, candidate);
    if (distance < least || (distance <= least && candidate.find(name) == 0)) best = candidate, least = distance;
  }
  return best;
}

}  // namespace

std::string too_many(const OpDef& def, const Overload& o, const Call& call) {
  int64_t allowed = o.positional - without_self(call), given = call.count - without_self(call);
  return text(def.name, "() takes ", allowed, " positional argument", allowed == 1 ? "" : "s", " but ", given,
              given == 1 ? " was given" : " were given");
}

std::string unknown_name(const OpDef& def, const Overload& o, PyObject* name) {
  const char* given = utf8(name);
  std::string near = nearest(given, o);
  return text(def.name, "() got an unexpected keyword argument '", given, "'",
              near.empty() ? "" : "\n  did you mean '" + near + "'?", takes(def, o));
}

std::string given_twice(const OpDef& def, PyObject* name) {
  return text(def.name, "() got multiple values for argument '", utf8(name), "'");
}

std::string missing(const OpDef& def, const Overload& o, const Param& p) {
  return text(def.name, "() missing 1 required positional arguments: \"", utf8(p.name), "\"", takes(def, o));
}

std::string wrong_type(const OpDef& def, const Overload& o, const Call& call, int param, PyObject* given) {
  const Param& p = o.params[static_cast<size_t>(param)];
  const char* wanted = o.spec.type_names[param];
  int64_t position = param + 1 - without_self(call);
  std::string why = text(def.name, "(): argument '", utf8(p.name), "'",
                         p.keyword_only ? std::string() : text(" (position ", position, ")"), " must be ", wanted,
                         ", not ", type_name(given), not_a_tensor(given, wanted));
  std::string item = bad_item(given, wanted, param);
  return item.empty() ? why : item + "\n  " + why;
}

void no_overload(OpDef& def, const Call& call) {
  std::string why;
  auto shown = [](const Overload& o) { return !(o.spec.flags & kOld); };
  if (std::count_if(def.overloads.begin(), def.overloads.end(), shown) == 1) {
    Bound b;
    bind(def, def.overloads[0], call, b, &why);
    fail(ErrorKind::Type, why);
  }
  std::string got;
  for (Py_ssize_t i = without_self(call); i < call.count; ++i)
    got += (got.empty() ? "" : ", ") + type_name(call.args[i]);
  for (Py_ssize_t k = 0; k < (call.names ? PyTuple_GET_SIZE(call.names) : 0); ++k)
    got += (got.empty() ? "" : ", ") + std::string(utf8(PyTuple_GET_ITEM(call.names, k))) + "=" +
           type_name(call.args[call.count + k]);
  std::string expected;
  for (Overload& o : def.overloads) {
    if (!shown(o)) continue;
    Bound b;
    bind(def, o, call, b, &why);
    expected += "\n * (" + std::string(o.spec.signature) + ")\n      here: " + why;
  }
  fail(ErrorKind::Type, def.name, "() received an invalid combination of arguments - got (", got,
       "), but expected one of:", expected);
}

}  // namespace rl
