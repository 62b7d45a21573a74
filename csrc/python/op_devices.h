// The tensors of a call are on one device.
#pragma once
#include "schema/op_def.h"

namespace rl {

// Fails with PyTorch's message where they are not. Elementwise ops that are one kernel compare for themselves: they
// take numbers of the CPU, tensors without dimensions, beside any device's.
void check_devices(const OpDef& def, const Overload& o, const Bound& b);

}  // namespace rl
