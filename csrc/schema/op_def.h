// What is known of a registered op, and one call of it: shared by matching (op_arguments), out= (op_out), calling
// (op_call) and the Python object (op_object).
#pragma once
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schema/registry.h"

namespace rl {

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
  const Kernel* kernel = nullptr;  // that one of its overloads is
};

// Every op by its name, and other names with the op each stands for.
std::unordered_map<std::string, OpDef*>& op_table();
std::vector<std::pair<std::string, std::string>>& op_aliases();

enum class Form : uint8_t { Function, Method, Inplace };

// The arguments of a call as Python hands them over: `count` positional values, then one for each of `names`.
struct Call {
  PyObject* const* args;
  Py_ssize_t count;
  PyObject* names;  // a tuple, or null
  Form form;
};

// A call matched with an overload: a borrowed value for each parameter, defaults included.
struct Bound {
  PyObject* slots[kMaxParams] = {};
  PyObject* out = nullptr;
  PyObject* collected = nullptr;  // owned: the tuple of a variadic parameter
  ~Bound() { Py_XDECREF(collected); }
};

// The text of a name, for comparing and for messages; one that UTF-8 cannot hold is nobody's.
inline const char* utf8(PyObject* name) {
  const char* s = PyUnicode_AsUTF8(name);
  if (!s) PyErr_Clear();
  return s ? s : "?";
}

inline std::string strip(const std::string& s) {
  size_t a = s.find_first_not_of(' '), b = s.find_last_not_of(' ');
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

}  // namespace rl
