// A compiled function: variants, each a tape with what must hold for it, and a function that runs when none fits.
#include "python/compiled_type.h"

#include <structmember.h>

#include <memory>

#include "autograd/grad_mode.h"
#include "autograd/profile.h"
#include "compiler/facts.h"
#include "compiler/recorder.h"
#include "compiler/tape.h"
#include "python/autocast.h"
#include "python/call_shape.h"
#include "python/dispatch.h"
#include "python/errors.h"
#include "python/recording_calls.h"

namespace rl {
namespace {

using compiler::ObjectFact;
using compiler::Ref;
using compiler::StateFact;
using compiler::Tape;
using compiler::TensorFact;

PyTypeObject *g_compiled_type = nullptr, *g_variant_type = nullptr, *g_facts_type = nullptr;

// _Facts(facts, missing): facts about objects. check() returns the first that does not hold, or None.
struct FactsObject {
  PyObject_HEAD std::vector<ObjectFact>* facts;
};
std::vector<ObjectFact>& facts_of(PyObject* self) { return *reinterpret_cast<FactsObject*>(self)->facts; }

PyObject* facts_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *list, *missing;
  if (!PyArg_ParseTuple(args, "O!O:_Facts", &PyList_Type, &list, &missing)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  auto* facts = new std::vector<ObjectFact>;
  reinterpret_cast<FactsObject*>(self)->facts = facts;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) facts->emplace_back(PyList_GET_ITEM(list, i), missing);
  return self;
}
int facts_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (auto* facts = reinterpret_cast<FactsObject*>(self)->facts)
    for (const ObjectFact& fact : *facts)
      if (int result = fact.traverse(visit, arg)) return result;
  return 0;
}
int facts_clear(PyObject* self) {
  if (auto* facts = reinterpret_cast<FactsObject*>(self)->facts) {
    std::vector<ObjectFact> dropped = std::move(*facts);
    facts->clear();
  }
  return 0;
}
void facts_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<FactsObject*>(self)->facts;
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* facts_check(PyObject* self, PyObject*) {
  auto& facts = facts_of(self);
  for (size_t i = 0; i < facts.size(); ++i)
    if (!facts[i].holds()) return PyLong_FromSize_t(i);
  Py_RETURN_NONE;
}

// _Variant(tape, arguments, names of keywords, result, inputs, facts)
struct Variant {
  std::unique_ptr<Tape> tape;
  std::vector<CallShape> arguments;
  Ref names;  // a tuple
  CallShape result;
  std::vector<TensorFact> inputs;
  std::vector<StateFact> state;
  Ref facts;
  compiler::Modes modes;
  int64_t replays = 0, mismatches = 0;
};
struct VariantObject {
  PyObject_HEAD Variant* variant;
};
Variant& variant_of(PyObject* self) { return *reinterpret_cast<VariantObject*>(self)->variant; }

PyObject* variant_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *tape, *arguments, *names, *result, *inputs, *facts;
  if (!PyArg_ParseTuple(args, "OO!O!OO!O!:_Variant", &tape, &PyList_Type, &arguments, &PyTuple_Type, &names, &result,
                        &PyList_Type, &inputs, g_facts_type, &facts))
    return nullptr;
  return guarded([&]() -> PyObject* {
    auto v = std::make_unique<Variant>(
        Variant{take_tape(tape), {}, Ref(names), CallShape::told(result), {}, {}, Ref(facts), compiler::Modes::now()});
    CHECK(v->tape, Runtime, "_Variant: no tape");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arguments); ++i)
      v->arguments.push_back(CallShape::told(PyList_GET_ITEM(arguments, i)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i)
      v->inputs.emplace_back(Tensor::borrow(PyList_GET_ITEM(inputs, i)));
    for (const Tensor& t : v->tape->state) v->state.emplace_back(t);
    PyObject* self = type->tp_alloc(type, 0);
    if (self) reinterpret_cast<VariantObject*>(self)->variant = v.release();
    return self;
  });
}
int variant_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Variant* v = reinterpret_cast<VariantObject*>(self)->variant;
  if (!v) return 0;
  Py_VISIT(v->facts.get());
  for (const StateFact& fact : v->state) Py_VISIT(fact.tensor.object());
  for (const Tensor& t : v->tape->state) Py_VISIT(t.object());
  for (const compiler::Segment& s : v->tape->segments) Py_VISIT(s.object);
  for (const compiler::Made& m : v->tape->made) Py_VISIT(reinterpret_cast<PyObject*>(m.history.node));
  return 0;
}
int variant_clear(PyObject* self) {
  delete std::exchange(reinterpret_cast<VariantObject*>(self)->variant, nullptr);
  return 0;
}
void variant_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<VariantObject*>(self)->variant;
  type->tp_free(self);
  Py_DECREF(type);
}
// Figures for explain(): a dict.
PyObject* variant_figures(PyObject* self, PyObject*) {
  const Variant& v = variant_of(self);
  const Tape& t = *v.tape;
  return Py_BuildValue(
      "{s:n,s:n,s:i,s:i,s:L,s:L,s:L,s:L,s:n,s:n,s:i}", "steps", static_cast<Py_ssize_t>(t.steps.size()), "segments",
      static_cast<Py_ssize_t>(t.segments.size()), "fused_steps", t.fused_steps, "fused_groups", t.fused_groups,
      "arena_bytes", static_cast<long long>(t.arena_bytes), "temporary_bytes",
      static_cast<long long>(t.temporary_bytes), "replays", static_cast<long long>(v.replays), "mismatches",
      static_cast<long long>(v.mismatches), "state", static_cast<Py_ssize_t>(t.state.size()), "facts",
      static_cast<Py_ssize_t>(facts_of(v.facts.get()).size()), "inputs", t.inputs);
}

bool variant_fits(const Variant& v, PyObject* const* args, Py_ssize_t count, PyObject* kwnames,
                  const compiler::Modes& modes, std::vector<Tensor>& given) {
  const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (v.tape->running || count + named != static_cast<Py_ssize_t>(v.arguments.size()) || !(v.modes == modes))
    return false;
  if (named != PyTuple_GET_SIZE(v.names.get())) return false;
  for (Py_ssize_t i = 0; i < named; ++i)
    if (!compiler::same_value(PyTuple_GET_ITEM(kwnames, i), PyTuple_GET_ITEM(v.names.get(), i))) return false;
  given.resize(v.inputs.size());
  for (size_t i = 0; i < v.arguments.size(); ++i)
    if (!v.arguments[i].fits(args[i], v.inputs, given)) return false;
  for (ObjectFact& fact : facts_of(v.facts.get()))
    if (!fact.holds()) return false;
  for (const StateFact& fact : v.state)
    if (!fact.holds()) return false;
  return v.tape->fits(given.data());
}

// _Compiled(miss, fallback): calls a variant that fits, or miss(*args, **kwargs); in a grad mode that is refused, the
// fallback.
struct CompiledObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *miss, *fallback;
  bool refused[2];     // by grad mode
  PyObject* variants;  // a list
};
CompiledObject& compiled_of(PyObject* self) { return *reinterpret_cast<CompiledObject*>(self); }

PyObject* compiled_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  CompiledObject& c = compiled_of(self);
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  auto missed = [&] {
    PyObject* callee = c.refused[grad_enabled()] ? c.fallback : c.miss;
    return PyObject_Vectorcall(callee, args, static_cast<size_t>(count), kwnames);
  };
  const bool taken_over = (g_watched & ~uint32_t{kWatchDispatch}) || (dispatching() && anybody_dispatches(args, count));
  if (PyList_GET_SIZE(c.variants) == 0 || taken_over || g_autocast_regions || compiler::recording()) return missed();
  return guarded([&]() -> PyObject* {
    const compiler::Modes modes = compiler::Modes::now();
    std::vector<Tensor> given;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(c.variants); ++i) {
      Ref held(PyList_GET_ITEM(c.variants, i));
      Variant& v = variant_of(held.get());
      given.clear();
      if (!variant_fits(v, args, count, kwnames, modes, given)) continue;
      std::vector<Tensor> results;
      if (v.tape->run(given.data(), results)) {
        ++v.replays;
        return v.result.make(results);
      }
      if (++v.mismatches > 8 && v.mismatches > v.replays) PyList_SetSlice(c.variants, i, i + 1, nullptr), --i;
    }
    return missed();
  });
}
PyObject* compiled_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *miss, *fallback;
  if (!PyArg_ParseTuple(args, "OO:_Compiled", &miss, &fallback)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  CompiledObject& c = compiled_of(self);
  c.vectorcall = compiled_call;
  c.miss = Py_NewRef(miss);
  c.fallback = Py_NewRef(fallback);
  c.variants = PyList_New(0);
  return self;
}
int compiled_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(compiled_of(self).miss);
  Py_VISIT(compiled_of(self).fallback);
  Py_VISIT(compiled_of(self).variants);
  return 0;
}
int compiled_clear(PyObject* self) {
  Py_CLEAR(compiled_of(self).miss);
  Py_CLEAR(compiled_of(self).fallback);
  if (PyObject* list = compiled_of(self).variants) PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr);
  return 0;
}
void compiled_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(compiled_of(self).miss);
  Py_CLEAR(compiled_of(self).fallback);
  Py_CLEAR(compiled_of(self).variants);
  type->tp_free(self);
  Py_DECREF(type);
}
// refuse(grad mode)
PyObject* compiled_refuse(PyObject* self, PyObject* mode) {
  compiled_of(self).refused[mode == Py_True] = true;
  Py_RETURN_NONE;
}
PyObject* compiled_variants(PyObject* self, void*) { return Py_NewRef(compiled_of(self).variants); }

PyMethodDef kFactsMethods[] = {{"check", facts_check, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMethodDef kVariantMethods[] = {{"figures", variant_figures, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMethodDef kCompiledMethods[] = {{"refuse", compiled_refuse, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kCompiledAttributes[] = {{"variants", compiled_variants, nullptr, nullptr, nullptr}, {}};
PyMemberDef kCompiledMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledObject, vectorcall), READONLY, nullptr}, {}};

constexpr unsigned kTracked = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
template <class F> void* slot(F f) { return reinterpret_cast<void*>(f); }

}  // namespace

int install_compiled_type(PyObject* module) {
  PyType_Slot facts[] = {{Py_tp_new, slot(facts_new)},           {Py_tp_dealloc, slot(facts_dealloc)},
                         {Py_tp_traverse, slot(facts_traverse)}, {Py_tp_clear, slot(facts_clear)},
                         {Py_tp_methods, kFactsMethods},         {0, nullptr}};
  PyType_Slot variant[] = {{Py_tp_new, slot(variant_new)},           {Py_tp_dealloc, slot(variant_dealloc)},
                           {Py_tp_traverse, slot(variant_traverse)}, {Py_tp_clear, slot(variant_clear)},
                           {Py_tp_methods, kVariantMethods},         {0, nullptr}};
  PyType_Slot compiled[] = {{Py_tp_new, slot(compiled_new)},
                            {Py_tp_dealloc, slot(compiled_dealloc)},
                            {Py_tp_traverse, slot(compiled_traverse)},
                            {Py_tp_clear, slot(compiled_clear)},
                            {Py_tp_call, slot(PyVectorcall_Call)},
                            {Py_tp_getset, kCompiledAttributes},
                            {Py_tp_methods, kCompiledMethods},
                            {Py_tp_members, kCompiledMembers},
                            {0, nullptr}};
  PyType_Spec specs[] = {
      {"rushlight._C._Facts", sizeof(FactsObject), 0, kTracked, facts},
      {"rushlight._C._Variant", sizeof(VariantObject), 0, kTracked, variant},
      {"rushlight._C._Compiled", sizeof(CompiledObject), 0, kTracked | Py_TPFLAGS_HAVE_VECTORCALL, compiled}};
  PyTypeObject** types[] = {&g_facts_type, &g_variant_type, &g_compiled_type};
  const char* names[] = {"_Facts", "_Variant", "_Compiled"};
  for (int i = 0; i < 3; ++i) {
    PyObject* type = PyType_FromSpec(&specs[i]);
    if (!type || PyModule_AddObjectRef(module, names[i], type) < 0) return -1;
    *types[i] = reinterpret_cast<PyTypeObject*>(type);
  }
  return 0;
}

}  // namespace rl
