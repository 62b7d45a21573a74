#include "python/op_object.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>

#include "autograd/profile.h"
#include "python/dispatch.h"
#include "python/errors.h"
#include "python/op_arguments.h"
#include "python/op_call.h"
#include "python/op_traits.h"
#include "python/override.h"

namespace rl {

namespace {

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  OpDef* def;
  Form form;
  const std::string* name;  // under which it was installed: its own or an alias
  PyObject* dict;
};

bool overridden(const Call& call) {
  if (t_overriding != Overriding::On) return false;
  Py_ssize_t all = call.count + (call.names ? PyTuple_GET_SIZE(call.names) : 0);
  for (Py_ssize_t i = 0; i < all; ++i)
    if (overrides(call.args[i])) return true;
  return false;
}

// Somebody looks at all calls: modes and classes with __torch_function__, then those with __torch_dispatch__, then the
// profiler.
[[gnu::cold]] PyObject* watched_call(PyObject* callable, const Call& call) {
  OpDef& def = *reinterpret_cast<OpObject*>(callable)->def;
  // Private ops are steps of others, but vmap must see those that draw random numbers.
  if ((function_mode() && (def.name[0] != '_' || def.flags & kRandom)) || overridden(call))
    return call_override(callable, call.args, call.count, call.names);
  if (dispatching())
    if (PyObject* result = dispatch_call(callable, call.args, call.count, call.names)) return result;
  return profiling() ? run_profiled(def, call) : run_op(def, call);
}

PyObject* op_vectorcall(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* op = reinterpret_cast<OpObject*>(callable);
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  return guarded([&]() -> PyObject* {
    Call call{args, nargs, kwnames, op->form};
    if (watched()) return watched_call(callable, call);
    if (overridden(call)) return call_override(callable, args, nargs, kwnames);
    return run_op(*op->def, call);
  });
}

PyObject* op_repr(PyObject* self) {
  auto* op = reinterpret_cast<OpObject*>(self);
  const char* kind = op->form == Form::Function ? "function" : "method";
  return PyUnicode_FromFormat("<built-in %s %s%s>", kind, op->name->c_str(), op->form == Form::Inplace ? "_" : "");
}

// Namespaces whose functions PyTorch calls linalg_inv, in the module _C._linalg.
bool joined(const std::string& space) { return space == "linalg" || space == "fft" || space == "special"; }
std::string space_of(const OpObject* op) {
  size_t dot = op->name->rfind('.');
  return dot == std::string::npos ? "" : op->name->substr(0, dot);
}
std::string short_name(const OpObject* op) {
  std::string space = space_of(op), last = op->name->substr(space.empty() ? 0 : space.size() + 1);
  return (joined(space) ? space + "_" : "") + last + (op->form == Form::Inplace ? "_" : "");
}

PyObject* op_name(PyObject* self, void*) {
  auto* op = reinterpret_cast<OpObject*>(self);
  // Two functions of PyTorch that are known by another name than their own.
  if (*op->name == "nn.functional.logsigmoid") return PyUnicode_FromString("log_sigmoid");
  if (*op->name == "nn.functional.threshold") return PyUnicode_FromString("_threshold");
  return PyUnicode_FromString(short_name(op).c_str());
}
// "linalg.inv_": with the namespace that it is registered in.
PyObject* op_full_name(PyObject* self, void*) {
  auto* op = reinterpret_cast<OpObject*>(self);
  return PyUnicode_FromFormat("%s%s", op->def->name.c_str(), op->form == Form::Inplace ? "_" : "");
}
PyObject* op_signature(PyObject* self, void*) {
  auto* op = reinterpret_cast<OpObject*>(self);
  const OverloadSpec& first = op->def->overloads[0].spec;
  bool out = op->form == Form::Function && !(first.flags & (kNoOut | kView));
  PyObject* module = PyImport_ImportModule("rushlight._core.signature");
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
const char* form_of(const OpObject* op) {
  return op->form == Form::Function ? "function" : op->form == Form::Method ? "method" : "inplace";
}
PyObject* op_form(PyObject* self, void*) { return PyUnicode_FromString(form_of(reinterpret_cast<OpObject*>(self))); }
PyObject* op_doc(PyObject* self, void*) {
  auto* op = reinterpret_cast<OpObject*>(self);
  Owned module(PyImport_ImportModule("rushlight._core.documentation"));
  if (!module.p) return nullptr;
  Owned signatures(op_signatures(self, nullptr));
  return PyObject_CallMethod(module.p, "of_op", "OsssOs", self, op->def->name.c_str(), op->name->c_str(), form_of(op),
                             signatures.p, op->def->doc.c_str());
}
// For each overload: ((name, type, default or ..., keyword only) of each parameter, flags).
PyObject* op_overloads(PyObject* self, void*) {
  return guarded([&] {
    Owned list(PyList_New(0));
    for (Overload& o : reinterpret_cast<OpObject*>(self)->def->overloads) {
      prepare(o);
      Owned params(PyTuple_New(static_cast<Py_ssize_t>(o.params.size())));
      for (size_t i = 0; i < o.params.size(); ++i) {
        const Param& p = o.params[i];
        PyTuple_SET_ITEM(params.p, static_cast<Py_ssize_t>(i),
                         Py_BuildValue("(OsOO)", p.name, o.spec.type_names[i], p.fallback ? p.fallback : Py_Ellipsis,
                                       p.keyword_only ? Py_True : Py_False));
      }
      Owned row(Py_BuildValue("(OI)", params.p, o.spec.flags));
      PyList_Append(list.p, row.p);
    }
    return Py_NewRef(list.p);
  });
}
// For each overload the types of its parameters and of its results, a letter each: see type_letters.h.
PyObject* op_types(PyObject* self, void*) {
  return guarded([&] {
    Owned list(PyList_New(0));
    for (const Overload& o : reinterpret_cast<OpObject*>(self)->def->overloads) {
      Owned row(Py_BuildValue("(ss)", o.spec.param_types, o.spec.result_types));
      PyList_Append(list.p, row.p);
    }
    return Py_NewRef(list.p);
  });
}
// _bind(args, kwargs): the overload that a call means, its arguments with defaults, and out= (or None).
PyObject* op_bind_call(PyObject* self, PyObject* given) {
  PyObject *args, *kwargs;
  if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
  auto* op = reinterpret_cast<OpObject*>(self);
  return guarded([&]() -> PyObject* {
    SmallVector<PyObject*, 8> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) values.push_back(PyTuple_GET_ITEM(args, i));
    Owned names(PySequence_Tuple(kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.p); ++i)
      values.push_back(PyDict_GetItem(kwargs, PyTuple_GET_ITEM(names.p, i)));
    Call call{values.data(), PyTuple_GET_SIZE(args), names.p, op->form};
    for (size_t k = 0; k < op->def->overloads.size(); ++k) {
      Overload& o = op->def->overloads[k];
      Bound b;
      if (!bind(*op->def, o, call, b, nullptr)) {
        PyErr_Clear();
        continue;
      }
      Owned slots(PyTuple_New(o.spec.count));
      for (int i = 0; i < o.spec.count; ++i) PyTuple_SET_ITEM(slots.p, i, Py_NewRef(b.slots[i]));
      return Py_BuildValue("(nOO)", static_cast<Py_ssize_t>(k), slots.p, b.out ? b.out : Py_None);
    }
    no_overload(*op->def, call);
  });
}
// "values, indices" of an op that returns a named tuple; None of others.
PyObject* op_results(PyObject* self, void*) {
  for (Overload& o : reinterpret_cast<OpObject*>(self)->def->overloads)
    if (o.spec.results) return PyUnicode_FromString(o.spec.results);
  return Py_NewRef(Py_None);
}
PyObject* op_flags(PyObject* self, void*) { return PyLong_FromLong(reinterpret_cast<OpObject*>(self)->def->flags); }
PyObject* op_traits(PyObject* self, void*) {
  const OpDef& def = *reinterpret_cast<OpObject*>(self)->def;
  return traits_object(def.flags, def.kernel);
}
PyObject* op_module(PyObject* self, void*) {
  static constexpr const char* kNative[] = {"avg_pool2d", "avg_pool3d", "gelu",
                                            "linear",     "logsigmoid", "one_hot",
                                            "softplus",   "softshrink", "scaled_dot_product_attention"};
  auto* op = reinterpret_cast<OpObject*>(self);
  std::string space = space_of(op), name = short_name(op);
  for (const char* native : kNative)
    if (space == "nn.functional" && name == native) space = "_C._nn";
  if (space.empty() && name == "split" && op->form == Form::Function) space = "functional";
  if (joined(space)) space = "_C._" + space;
  return PyUnicode_FromFormat(space.empty() ? "rushlight" : "rushlight.%s", space.c_str());
}
PyObject* op_reduce(PyObject* self, PyObject*) {
  auto* op = reinterpret_cast<OpObject*>(self);
  PyObject* getattr = PyObject_GetAttrString(PyImport_AddModule("builtins"), "getattr");
  if (op->form == Form::Function) {
    PyObject* module = PyImport_ImportModule("rushlight._C");
    PyObject* find = module ? PyObject_GetAttrString(module, "_find_op") : nullptr;
    Py_XDECREF(module);
    Py_XDECREF(getattr);
    return find ? Py_BuildValue("(N(s))", find, op->name->c_str()) : nullptr;
  }
  return Py_BuildValue("(N(Os))", getattr, g_tensor_type, short_name(op).c_str());
}

PyGetSetDef kOpGetSet[] = {{"__name__", op_name, nullptr, nullptr, nullptr},
                           {"__qualname__", op_name, nullptr, nullptr, nullptr},
                           {"__doc__", op_doc, nullptr, nullptr, nullptr},
                           {"__module__", op_module, nullptr, nullptr, nullptr},
                           {"__signature__", op_signature, nullptr, nullptr, nullptr},
                           {"_form", op_form, nullptr, nullptr, nullptr},
                           {"_signatures", op_signatures, nullptr, nullptr, nullptr},
                           {"_overloads", op_overloads, nullptr, nullptr, nullptr},
                           {"_types", op_types, nullptr, nullptr, nullptr},
                           {"_results", op_results, nullptr, nullptr, nullptr},
                           {"_op_name", op_full_name, nullptr, nullptr, nullptr},
                           {"_flags", op_flags, nullptr, nullptr, nullptr},
                           {"traits", op_traits, nullptr, "What is known of the op.", nullptr},
                           {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                           {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef kOpMethods[] = {{"__reduce__", op_reduce, METH_NOARGS, nullptr},
                            {"_bind", op_bind_call, METH_VARARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

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

PyObject* make_op(OpDef* def, Form form, const std::string& name) {
  auto* op = PyObject_New(OpObject, form == Form::Function ? &kFunctionType : &kMethodType);
  op->vectorcall = op_vectorcall;
  op->def = def;
  op->form = form;
  op->name = &name;
  op->dict = nullptr;
  return reinterpret_cast<PyObject*>(op);
}

void set_method(const std::string& name, PyObject* op) {
  PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_tensor_type), name.c_str(), op);
  Py_DECREF(op);
}

void install(PyObject* ops, const std::string& name, OpDef* def) {
  if (!(def->flags & kNoFunction)) {
    PyObject* f = make_op(def, Form::Function, name);
    PyDict_SetItemString(ops, name.c_str(), f);
    Py_DECREF(f);
  }
  const bool spaced = name.find('.') != std::string::npos;  // a name in another namespace is no attribute
  if ((def->flags & kMethod) && !spaced) set_method(name, make_op(def, Form::Method, name));
  if (def->flags & kInplace) {
    PyObject* f = make_op(def, Form::Inplace, name);
    if (!(def->flags & kNoFunction)) PyDict_SetItemString(ops, (name + "_").c_str(), f);
    spaced ? Py_DECREF(f) : set_method(name + "_", f);
  }
}

// Of two overloads with the same arguments the second would never be called: two files have one name for their op.
bool has_twins(const OpDef& def) {
  auto same = [](const OverloadSpec& a, const OverloadSpec& b) {
    if (a.count != b.count || std::strcmp(a.signature, b.signature) != 0) return false;
    return std::equal(a.checks, a.checks + a.count, b.checks);
  };
  for (size_t i = 0; i < def.overloads.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (same(def.overloads[i].spec, def.overloads[j].spec)) return true;
  return false;
}

}  // namespace

static PyObject* g_ops = nullptr;
PyObject* op_function(const char* name) { return PyDict_GetItemString(g_ops, name); }

void install_ops(PyObject* module, PyObject* ops) {
  g_ops = ops;
  if (ready(kFunctionType, "rushlight._C.Op", false) < 0 || ready(kMethodType, "rushlight._C.OpMethod", true) < 0)
    return;
  if (install_traits(module) < 0) return;
  PyModule_AddObjectRef(module, "Op", reinterpret_cast<PyObject*>(&kFunctionType));
  PyModule_AddObjectRef(module, "OpMethod", reinterpret_cast<PyObject*>(&kMethodType));
  for (auto& [name, def] : op_table()) {
    if (has_twins(*def)) Py_FatalError(("two ops with the same name and arguments: " + name).c_str());
    install(ops, name, def);
  }
  for (auto& [alias, name] : op_aliases()) {
    auto found = op_table().find(name);
    if (found == op_table().end()) Py_FatalError(("alias of an unknown op: " + alias + " -> " + name).c_str());
    install(ops, alias, found->second);
  }
}

PyObject* call_op(const char* name, PyObject* const* args, Py_ssize_t count) {
  OpDef* def = op_table().at(name);
  Call call{args, count, nullptr, Form::Function};
  for (Overload& o : def->overloads) {
    Bound b;
    if (bind(*def, o, call, b, nullptr))
      return o.spec.invoke(o.spec.fn, b.slots, o.results.empty() ? nullptr : o.results.c_str());
  }
  no_overload(*def, call);
}

}  // namespace rl
