// What functions that make new tensors share: the checks of dtype/layout/device arguments and the requires_grad flag.
#pragma once
#include "python/arguments.h"

namespace rl::ops {

Tensor with_grad_flag(Tensor t, bool requires_grad);
void check_factory(const std::optional<Layout>& layout, const std::optional<Device>& device);

}  // namespace rl::ops
