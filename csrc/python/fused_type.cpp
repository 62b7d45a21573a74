#include "python/fused_type.h"

#include <structmember.h>

#include <algorithm>
#include <cmath>

#include "autograd/profile.h"
#include "ops/elementwise/fused.h"
#include "ops/elementwise/pointwise.h"
#include "python/dispatch.h"
#include "python/errors.h"
#include "python/note_no_grad.h"
#include "python/override.h"
#include "schema/registry.h"

namespace rl {
namespace {

using ops::Program;
using ops::Term;

PyTypeObject* g_fused_type = nullptr;

// _Fused(inputs, terms, results, plain): a program, and the Python function that computes the same op by op, for all
// that the program is not made for.
struct FusedObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* plain;
  std::shared_ptr<const Program> program;
  std::vector<Program::Bits> reads;  // of each result
};
FusedObject& of(PyObject* self) { return *reinterpret_cast<FusedObject*>(self); }

// A number that a program takes: exact in a double.
bool plain_number(PyObject* o, double& x) {
  if (PyFloat_CheckExact(o)) {
    x = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (!PyLong_CheckExact(o)) return false;
  x = PyLong_AsDouble(o);
  if (x == -1 && PyErr_Occurred()) PyErr_Clear();
  else if (std::abs(x) < 0x1p53) return true;
  return false;
}
bool plain_tensor(PyObject* o, const Tensor* lead) {
  if (!is_tensor(o) || (Py_TYPE(o) != g_tensor_type && overrides(o))) return false;
  const Tensor t = Tensor::borrow(o);
  if ((t.dtype() != DType::Float32 && t.dtype() != DType::Float64) || t->lazy()) return false;
  if (!t.device().is_cpu() || (lead && lead->dtype() != t.dtype())) return false;
  int64_t outer = -1;  // row-major, and nothing expanded: else the result would be laid out otherwise
  for (int64_t d = 0; !t.is_contiguous() && d < t.dim(); ++d) {
    if (t.sizes()[d] == 1) continue;
    if (t.strides()[d] == 0 || (outer >= 0 && t.strides()[d] > outer)) return false;
    outer = t.strides()[d];
  }
  return true;
}

// Whether the terms mean for these inputs what the ops they stand for mean: functions of tensors get tensors, bounds
// are scalars, and what Python computes of scalars alone is a scalar.
bool terms_fit(const Program& program, Span<Value> inputs) {
  struct Known {
    bool is_number = false;
    double number = 0;
  };
  SmallVector<Known, 24> known(program.values());
  for (int v = 0; v < program.values(); ++v) {
    const Term* term = program.term(v);
    if (!term || !term->op) {
      if (term) known[v] = {true, term->number};
      else if (!inputs[v].is_tensor()) known[v] = {true, inputs[v].number.to_double()};
      continue;
    }
    const Known &a = known[term->of[0]], &b = known[term->of[term->op->operands > 1 ? 1 : 0]];
    const Known& c = known[term->of[term->op->operands > 2 ? 2 : 0]];
    const bool all = a.is_number && b.is_number;
    switch (term->op->op) {
      case Pointwise::Clamp:
        if (a.is_number || !b.is_number || !c.is_number || std::isnan(b.number) || std::isnan(c.number)) return false;
        break;
      case Pointwise::Where:
        if (b.is_number && c.is_number) return false;
        break;
      case Pointwise::Maximum:
      case Pointwise::Minimum:
        if (a.is_number || b.is_number) return false;
        break;
      case Pointwise::Div:
      case Pointwise::Pow:
        if (all && (term->op->op == Pointwise::Div ? b.number == 0 : a.number <= 0)) return false;
        [[fallthrough]];
      default:
        if (all && !term->op->number) return false;
        if (all) known[v] = {true, term->op->number(a.number, b.number)};
    }
  }
  return true;
}

// Whether two tensors can be operands of one op.
bool broadcastable(IntSpan a, IntSpan b) {
  for (int64_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const int64_t m = a[a.size() - i], n = b[b.size() - i];
    if (m != n && m != 1 && n != 1) return false;
  }
  return true;
}

// Every result must have the sizes of all: read at least one of the inputs that do. Inputs of separate results need not
// broadcast with each other.
bool sizes_fit(const FusedObject& self, Span<Value> inputs) {
  Ints sizes;
  bool any = false;
  for (const Value& v : inputs)
    if (v.is_tensor()) {
      if (any && !broadcastable(sizes, v.tensor.sizes())) return false;
      sizes = any ? broadcast_sizes(sizes, v.tensor.sizes()) : Ints(v.tensor.sizes());
      any = true;
    }
  for (const Program::Bits& reads : self.reads) {
    bool full = false;
    for (int64_t i = 0; i < inputs.size(); ++i)
      full = full || (reads[i] && inputs[i].is_tensor() && inputs[i].tensor.sizes() == IntSpan(sizes));
    if (!full) return false;
  }
  return any;
}

PyObject* fused_call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  FusedObject& self = of(callable);
  const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  auto plainly = [&] { return PyObject_Vectorcall(self.plain, args, static_cast<size_t>(count), kwnames); };
  const bool taken_over =  // once a class that dispatches exists, its objects must be looked for
      (g_watched & ~static_cast<uint32_t>(kWatchDispatch)) || (dispatching() && anybody_dispatches(args, count));
  if (taken_over || kwnames || count != self.program->inputs()) return plainly();
  return guarded([&]() -> PyObject* {
    SmallVector<Value, 8> inputs;
    const Tensor* lead = nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) {
      double x;
      if (plain_number(args[i], x)) inputs.push_back(Value(x));
      else if (plain_tensor(args[i], lead)) inputs.push_back(Value(Tensor::borrow(args[i])));
      else return plainly();
      lead = nullptr;
      for (const Value& v : inputs)
        if (v.is_tensor()) lead = &v.tensor;
    }
    bool broadcast = false;
    for (const Value& v : inputs) broadcast = broadcast || (lead && v.is_tensor() && v.tensor.sizes() != lead->sizes());
    if (!lead || !terms_fit(*self.program, inputs) ||
        ((broadcast || self.reads.size() > 1) && !sizes_fit(self, inputs)))
      return plainly();
    Tensors results = ops::fused(self.program, inputs);
    PyObject* given = nullptr;
    if (results.size() == 1) {
      given = results[0].release();
    } else {
      given = PyTuple_New(results.size());
      if (!given) python_error();
      for (int64_t i = 0; i < results.size(); ++i) PyTuple_SET_ITEM(given, i, results[i].release());
    }
    note_result(given, "fused", args, static_cast<int>(count));
    return given;
  });
}

// A term in Python is a number, or (name, value, ...).
Term term_from(PyObject* o, const Program& program) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return {nullptr, {}, PyFloat_AsDouble(o)};
  CHECK(PyTuple_Check(o) && PyTuple_GET_SIZE(o) > 0 && PyUnicode_Check(PyTuple_GET_ITEM(o, 0)), Type,
        "a term is a number, or a tuple of a name and its operands");
  Term term{kernel_of(PyUnicode_AsUTF8(PyTuple_GET_ITEM(o, 0)))};
  CHECK(term.op && term.op->fusable() && PyTuple_GET_SIZE(o) == term.op->operands + 1, Value,
        "no such op, or not with as many operands: ", PyUnicode_AsUTF8(PyTuple_GET_ITEM(o, 0)));
  for (int i = 0; i < term.op->operands; ++i) {
    const long value = PyLong_AsLong(PyTuple_GET_ITEM(o, i + 1));
    CHECK(value >= 0 && value < program.values(), Value, "an operand must be an earlier value");
    term.of[i] = static_cast<int>(value);
    const Term* made = program.term(term.of[i]);
    const bool is_mask = made && made->op && made->op->is_mask(),
               wants_mask = term.op->op == Pointwise::Where && i == 0;
    CHECK(is_mask == wants_mask, Value, "comparisons are for where, and where wants one");
  }
  const Term* exponent = term.op->op == Pointwise::Pow ? program.term(term.of[1]) : nullptr;
  CHECK(term.op->op != Pointwise::Pow || (exponent && !exponent->op), Value, "an exponent must be a number");
  return term;
}

PyObject* fused_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"inputs", "terms", "results", "plain", nullptr};
    int inputs;
    PyObject *terms, *results, *plain;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO!O!O:_Fused", const_cast<char**>(names), &inputs, &PyList_Type,
                                     &terms, &PyList_Type, &results, &plain))
      return nullptr;
    CHECK(inputs > 0 && inputs <= 64 && PyList_GET_SIZE(results) > 0, Value, "a program has inputs and results");
    auto program = std::make_shared<Program>(inputs);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(terms); ++i)
      program->add(term_from(PyList_GET_ITEM(terms, i), *program));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); ++i) {
      const long value = PyLong_AsLong(PyList_GET_ITEM(results, i));
      CHECK(value >= inputs && value < program->values(), Value, "a result must be a term");
      program->add_result(static_cast<int>(value));
    }
    program->finish();
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    FusedObject& made = of(self);
    made.vectorcall = fused_call;
    made.plain = Py_NewRef(plain);
    new (&made.program) std::shared_ptr<const Program>(program);
    new (&made.reads) std::vector<Program::Bits>;
    for (int r : program->results()) made.reads.push_back(program->reads(r));
    return self;
  });
}
int fused_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(of(self).plain);
  return 0;
}
int fused_clear(PyObject* self) {
  Py_CLEAR(of(self).plain);
  return 0;
}
void fused_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  fused_clear(self);
  of(self).program.~shared_ptr();
  of(self).reads.~vector();
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef kMembers[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(FusedObject, vectorcall), READONLY, nullptr},
                          {"plain", T_OBJECT, offsetof(FusedObject, plain), READONLY, nullptr},
                          {nullptr, 0, 0, 0, nullptr}};

}  // namespace

int install_fused_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(fused_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(fused_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(fused_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(fused_clear)},
                         {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_members, kMembers},
                         {0, nullptr}};
  PyType_Spec spec = {"rushlight._C._Fused", sizeof(FusedObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  g_fused_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!g_fused_type) return -1;
  return PyModule_AddObjectRef(module, "_Fused", reinterpret_cast<PyObject*>(g_fused_type));
}

}  // namespace rl
