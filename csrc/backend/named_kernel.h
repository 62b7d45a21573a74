// Kernels that have a name instead of a line in the list of backend/pointwise.h, so that a new op touches no header.
#pragma once
#include "backend/pointwise.h"

namespace rl {

inline constexpr int kNamedKernels = 64;
// The number that goes with the name, beyond those of the list: the op and its loops both ask for it.
Pointwise named_kernel(const char* name);

}  // namespace rl
