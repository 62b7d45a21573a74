#include "python/op_devices.h"

#include "python/op_out.h"

namespace rl {

namespace {

[[noreturn]] void fail_on(const OpDef& def, Device a, Device b) {
  fail(ErrorKind::Runtime, "Expected all tensors to be on the same device, but found at least two devices, ",
       to_text(a), " and ", to_text(b), "! (when checking arguments of ", def.name,
       ")\n  Bring them together first: x.to(y.device).");
}

}  // namespace

void check_devices(const OpDef& def, const Overload& o, const Bound& b) {
  if (o.spec.kernel || (o.spec.flags & (kView | kAnyDevice))) return;
  std::optional<Device> first, lead;  // of the first tensor; of the first that is no number of the CPU
  each_tensor(b.slots, o.spec.count, [&](const Tensor& t) {
    if (!first) first = t.device();
    if (first->is_meta()) return;  // shapes are all that its kernels look at
    if (t.device().is_cpu() && t.dim() == 0) return;
    if (!lead) lead = t.device();
    if (!(t.device() == *lead)) fail_on(def, *lead, t.device());
  });
  // The kernels are those of the first tensor's device.
  if (lead && !(*first == *lead)) fail_on(def, *first, *lead);
  if (b.out && lead)
    each_tensor(&b.out, 1, [&](const Tensor& t) {
      CHECK(t.device() == *lead, Runtime, "Expected out tensor to have device ", to_text(*lead), ", but got ",
            to_text(t.device()), " instead");
    });
}

}  // namespace rl
