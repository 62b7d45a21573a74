// What rushlight.profiler reads and sets.
#include "autograd/module_scope.h"
#include "autograd/profile_events.h"
#include "python/node_type.h"
#include "schema/registry.h"

namespace rl {
namespace {

void start(bool shapes, bool stack) { profile_start({shapes, stack}); }

// (file, line, function, text) of each frame.
PyObject* frames(const std::vector<Site>& stack) {
  PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(stack.size()));
  for (size_t i = 0; t && i < stack.size(); ++i) {
    PyObject* frame = site_object(stack[i]);
    if (!frame) Py_CLEAR(t);
    else PyTuple_SET_ITEM(t, static_cast<Py_ssize_t>(i), frame);
  }
  return t;
}

// A list of (name, kind, start, end, thread, parent, bytes, frames, scope, shapes); times in ns.
NewObject stop() {
  std::vector<ProfileEvent> events = profile_stop();
  PyObject* list = PyList_New(0);
  for (const ProfileEvent& e : events) {
    PyObject* stack = list ? frames(e.stack) : nullptr;
    PyObject* row = stack ? Py_BuildValue("(siLLkLLNOO)", e.name.c_str(), static_cast<int>(e.kind),
                                          static_cast<long long>(e.start), static_cast<long long>(e.end), e.thread,
                                          static_cast<long long>(e.parent), static_cast<long long>(e.bytes), stack,
                                          e.scope ? e.scope : Py_None, e.shapes ? e.shapes : Py_None)
                          : nullptr;
    if (!row || PyList_Append(list, row) < 0) {
      Py_XDECREF(row);
      Py_XDECREF(list);
      return {nullptr};
    }
    Py_DECREF(row);
  }
  return {list};
}

int64_t begin_region(const std::string& name) {
  return profiling() ? profile_begin(name.c_str(), ProfileKind::Region, nullptr, module_scope(), nullptr) : -1;
}
void end_region(int64_t event) { profile_end(event); }

const Register registered([](Ops& ops) {
  ops.def("_profile_start", start, "shapes, stack", kNoOut, "Begins to time ops and backward nodes.");
  ops.def("_profile_stop", stop, "", kNoOut, "Ends it; the events, in the order they began.");
  ops.def("_profile_begin", begin_region, "name", kNoOut, "Opens a named region; its handle, -1 if nothing is timed.");
  ops.def("_profile_end", end_region, "event", kNoOut, "Closes a region.");
});

}  // namespace
}  // namespace rl
