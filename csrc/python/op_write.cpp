// What the Python side needs to derive out= and in-place forms of composed ops.
#include <string>
#include <unordered_set>

#include "autograd/meta.h"
#include "ops/ops.h"
#include "python/op_object.h"
#include "schema/registry.h"

namespace rl::ops {

// x.f_(...): moves a computed result, its history included, into x.
static Tensor assign(const std::string& name, const Tensor& self, const Tensor& result) {
  static auto* names = new std::unordered_set<std::string>;  // version counters keep a pointer to the op's name
  return apply_inplace(
      names->insert(name).first->c_str(), self, false, false, [](void* r) { return *static_cast<Tensor*>(r); },
      const_cast<Tensor*>(&result));
}
static NewObject write_out(const std::string& name, Object out, Object result, bool exact) {
  return {write_result(name.c_str(), out.p, result.p, exact)};
}

static const Register registered([](Ops& ops) {
  ops.def("_assign", assign, "name, input, result", kNoOut | kAnyDevice | kAnyType);
  ops.def("_write_out", write_out, "name, out_, result, exact=False", kNoOut | kAnyDevice | kAnyType);
});

}  // namespace rl::ops
