#include "python/op_arguments.h"

#include <cmath>
#include <cstring>

#include "python/op_complaints.h"

namespace rl {

namespace {

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

// Positions fill parameters in order; view(2, 3) collects all that remain.
bool bind_positions(const OpDef& def, const Overload& o, const Call& call, Bound& b, std::string* why) {
  int filled = 0;
  for (Py_ssize_t i = 0; i < call.count; ++i) {
    if (filled >= o.positional) {
      if (why) *why = too_many(def, o, call);
      return false;
    }
    const Py_ssize_t left = call.count - i;
    if (o.params[static_cast<size_t>(filled)].variadic && (left > 1 || is_integer(call.args[i]))) {
      b.collected = PyTuple_New(left);
      for (Py_ssize_t k = 0; k < left; ++k) PyTuple_SET_ITEM(b.collected, k, Py_NewRef(call.args[i + k]));
      b.slots[filled] = b.collected;
      return true;
    }
    b.slots[filled++] = call.args[i];
  }
  return true;
}

// The parameter called `name`, by identity of the interned string first; -1 if there is none.
int param_called(const Overload& o, PyObject* name) {
  int n = static_cast<int>(o.params.size()), at = -1;
  for (int i = 0; i < n; ++i)
    if (o.params[static_cast<size_t>(i)].name == name) at = i;
  if (at >= 0) return at;
  const char* wanted = utf8(name);
  for (const char* spelling : {wanted, other_spelling(wanted)})
    for (int i = 0; i < n && spelling && at < 0; ++i)
      if (PyUnicode_CompareWithASCIIString(o.params[static_cast<size_t>(i)].name, spelling) == 0) at = i;
  return at;
}

bool bind_names(const OpDef& def, const Overload& o, const Call& call, Bound& b, std::string* why) {
  const bool takes_out = !(o.spec.flags & (kNoOut | kView)) && call.form == Form::Function;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call.names); ++k) {
    PyObject* name = PyTuple_GET_ITEM(call.names, k);
    PyObject* value = call.args[call.count + k];
    int at = param_called(o, name);
    if (at < 0 && takes_out && PyUnicode_CompareWithASCIIString(name, "out") == 0) {
      if (value != Py_None) b.out = value;
      continue;
    }
    if (at < 0 || b.slots[at]) {
      if (why) *why = at < 0 ? unknown_name(def, o, name) : given_twice(def, name);
      return false;
    }
    b.slots[at] = value;
  }
  return true;
}

bool check_values(const OpDef& def, const Overload& o, const Call& call, Bound& b, std::string* why) {
  int n = static_cast<int>(o.params.size());
  for (int i = 0; i < n; ++i) {
    const Param& p = o.params[static_cast<size_t>(i)];
    if (!b.slots[i]) {
      if (!p.fallback) {
        if (why) *why = missing(def, o, p);
        return false;
      }
      b.slots[i] = p.fallback;
    } else if (b.slots[i] != p.fallback && !o.spec.checks[i](b.slots[i])) {
      if (why) *why = wrong_type(def, o, call, i, b.slots[i]);
      return false;
    }
  }
  return true;
}

}  // namespace

void prepare(Overload& o) {
  if (!o.parsed) parse(o);
}

bool bind(OpDef& def, Overload& o, const Call& call, Bound& b, std::string* why) {
  if (!o.parsed) parse(o);
  return bind_positions(def, o, call, b, why) && (!call.names || bind_names(def, o, call, b, why)) &&
         check_values(def, o, call, b, why);
}

}  // namespace rl
