// What src/rushlight/jit/_capture.py records with: tapes, and the code that ran meanwhile.
#include "python/recording_calls.h"

#include <unordered_map>
#include <unordered_set>

#include "autograd/profile.h"
#include "compiler/recorder.h"
#include "python/compiled_type.h"
#include "python/dispatch.h"
#include "python/errors.h"

namespace rl {
namespace {

constexpr const char* kTape = "rushlight._C._tape";

void drop_tape(PyObject* capsule) { delete static_cast<compiler::Tape*>(PyCapsule_GetContext(capsule)); }

std::vector<Tensor> tensors_of(PyObject* list) {
  std::vector<Tensor> all;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    CHECK(is_tensor(PyList_GET_ITEM(list, i)), Type, "_record: a list of tensors is wanted");
    all.push_back(Tensor::borrow(PyList_GET_ITEM(list, i)));
  }
  return all;
}

// _record_begin(arguments, state): from here on kernels of this thread are recorded.
PyObject* record_begin(PyObject*, PyObject* args) {
  PyObject *given, *state;
  if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &given, &PyList_Type, &state)) return nullptr;
  return guarded([&]() -> PyObject* {
    CHECK(!compiler::recording(), Runtime, "_record_begin: a recording is under way");
    compiler::begin(tensors_of(given), tensors_of(state));
    Py_RETURN_NONE;
  });
}
// _record_pause(object, method): object.method() comes now, in replays too. _record_resume() after it.
PyObject* record_pause(PyObject*, PyObject* args) {
  PyObject *object, *method;
  if (!PyArg_ParseTuple(args, "OU", &object, &method)) return nullptr;
  return guarded([&]() -> PyObject* {
    if (compiler::active()) compiler::active()->pause(object, method);
    Py_RETURN_NONE;
  });
}
PyObject* record_resume(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (compiler::active()) compiler::active()->resume();
    Py_RETURN_NONE;
  });
}
// _record_refuse(reason), _record_refused(): why the tape cannot be replayed, or "".
PyObject* record_refuse(PyObject*, PyObject* reason) {
  if (compiler::active()) compiler::active()->refuse(PyUnicode_AsUTF8(reason));
  Py_RETURN_NONE;
}
PyObject* record_refused(PyObject*, PyObject*) {
  return PyUnicode_FromString(compiler::active() ? compiler::active()->refused().c_str() : "");
}
// _record_end(results): (tape, trace), or (None, why not).
PyObject* record_end(PyObject*, PyObject* results) {
  return guarded([&]() -> PyObject* {
    compiler::Recorder* r = compiler::active();
    CHECK(r && PyList_Check(results), Runtime, "_record_end: nothing is recorded");
    std::unique_ptr<compiler::Tape> tape = r->finish(tensors_of(results));
    if (!tape) {
      PyObject* reason = Py_BuildValue("(Os)", Py_None, r->refused().c_str());
      compiler::abandon();
      return reason;
    }
    const auto& words = r->trace();
    PyObject* trace = PyBytes_FromStringAndSize(reinterpret_cast<const char*>(words.data()),
                                                static_cast<Py_ssize_t>(words.size() * sizeof(uint64_t)));
    compiler::abandon();
    compiler::fuse(*tape);
    tape->plan();
    static int anything;
    PyObject* capsule = PyCapsule_New(&anything, kTape, drop_tape);
    if (!capsule || !trace) return nullptr;
    PyCapsule_SetContext(capsule, tape.release());
    return Py_BuildValue("(NN)", capsule, trace);
  });
}
PyObject* record_active(PyObject*, PyObject*) { return PyBool_FromLong(compiler::recording()); }
// Whether calls of ops are looked at: a profiler, a mode.
PyObject* is_watched(PyObject*, PyObject*) {
  return PyBool_FromLong((g_watched & ~uint32_t{kWatchDispatch}) || (dispatching() && anybody_dispatches(nullptr, 0)));
}
PyObject* record_abandon(PyObject*, PyObject*) {
  compiler::abandon();
  Py_RETURN_NONE;
}

// The code objects that ran in this thread, each with its globals, and the functions of C that were called.
std::unordered_map<PyObject*, PyObject*>* g_codes = nullptr;
std::unordered_map<void*, PyObject*>* g_callables = nullptr;
std::string* g_closed = nullptr;  // code of files whose names begin so, and what it calls, is not noted
int g_inside = 0;                 // calls, of such code

// A method of an object as its class has it: the object must not live longer for being watched.
PyObject* unbound(PyObject* callable) {
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (!self || PyModule_Check(self) || PyType_Check(self)) return Py_NewRef(callable);
  const char* name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  PyObject* found = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), name);
  if (found) return found;
  PyErr_Clear();
  return Py_NewRef(callable);
}

int note_call(PyObject*, PyFrameObject* frame, int what, PyObject* arg) {
  if (what == PyTrace_CALL) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (g_inside || (file && std::string_view(file).substr(0, g_closed->size()) == *g_closed)) ++g_inside;
    if (g_inside || g_codes->count(reinterpret_cast<PyObject*>(code))) Py_DECREF(code);
    else
      (*g_codes)[reinterpret_cast<PyObject*>(code)] =
          PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_globals");
  } else if (g_inside) {
    g_inside -= what == PyTrace_RETURN;
  } else if (what == PyTrace_C_CALL) {
    void* key = PyCFunction_Check(arg) ? static_cast<void*>(reinterpret_cast<PyCFunctionObject*>(arg)->m_ml) : arg;
    if (!g_callables->count(key)) (*g_callables)[key] = unbound(arg);
  }
  return 0;
}
// _watch_begin(folder): code in that folder, and what it calls, is left out.
PyObject* watch_begin(PyObject*, PyObject* folder) {
  if (!g_codes) {
    g_closed = new std::string(PyUnicode_AsUTF8(folder));
    g_inside = 0;
    g_codes = new std::unordered_map<PyObject*, PyObject*>;
    g_callables = new std::unordered_map<void*, PyObject*>;
    PyEval_SetProfile(note_call, nullptr);
  }
  Py_RETURN_NONE;
}
// ([(code, globals), ...], [callable, ...])
PyObject* watch_end(PyObject*, PyObject*) {
  PyEval_SetProfile(nullptr, nullptr);
  PyObject *codes = PyList_New(0), *callables = PyList_New(0);
  auto add = [](PyObject* list, PyObject* item) {
    PyList_Append(list, item);
    Py_XDECREF(item);
  };
  if (g_codes) {
    for (auto& [code, globals] : *g_codes) add(codes, Py_BuildValue("(NN)", code, globals));
    for (auto& [key, callable] : *g_callables) add(callables, callable);
  }
  delete std::exchange(g_codes, nullptr);
  delete std::exchange(g_closed, nullptr);
  delete std::exchange(g_callables, nullptr);
  return Py_BuildValue("(NN)", codes, callables);
}

PyMethodDef kFunctions[] = {{"_record_begin", record_begin, METH_VARARGS, nullptr},
                            {"_record_pause", record_pause, METH_VARARGS, nullptr},
                            {"_record_resume", record_resume, METH_NOARGS, nullptr},
                            {"_record_refuse", record_refuse, METH_O, nullptr},
                            {"_record_refused", record_refused, METH_NOARGS, nullptr},
                            {"_record_end", record_end, METH_O, nullptr},
                            {"_record_abandon", record_abandon, METH_NOARGS, nullptr},
                            {"_record_active", record_active, METH_NOARGS, nullptr},
                            {"_watched", is_watched, METH_NOARGS, nullptr},
                            {"_watch_begin", watch_begin, METH_O, nullptr},
                            {"_watch_end", watch_end, METH_NOARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::unique_ptr<compiler::Tape> take_tape(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kTape)) return nullptr;
  auto* tape = static_cast<compiler::Tape*>(PyCapsule_GetContext(capsule));
  PyCapsule_SetContext(capsule, nullptr);
  return std::unique_ptr<compiler::Tape>(tape);
}

int install_recording_calls(PyObject* module) { return PyModule_AddFunctions(module, kFunctions); }

}  // namespace rl
