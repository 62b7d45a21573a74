#include "ops/warn_once.h"

#include <unordered_set>

#include "schema/registry.h"

namespace rl {

bool g_warn_always = false;

void warn_once(const std::string& message) {
  static std::unordered_set<std::string>& shown = *new std::unordered_set<std::string>;
  if (!shown.insert(message).second && !g_warn_always) return;
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) python_error();
}

static void set_warn_always(bool on) { g_warn_always = on; }
static bool warn_always() { return g_warn_always; }

static const Register registered([](Ops& ops) {
  ops.def("_set_warn_always", set_warn_always, "on", kNoOut);
  ops.def("_warn_always", warn_always, "", kNoOut);
  ops.def("_warn_once", warn_once, "message", kNoOut);
});

}  // namespace rl
