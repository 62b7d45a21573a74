// Resizing that several files of ops share.
#pragma once
#include <cstdint>

#include "tensor/tensor.h"

namespace rl::ops {

// nearest_dim of floating-point values through a table of indices, whose gradient is a table's too.
Tensor nearest_by_table(const Tensor& x, int64_t dim, int64_t size, double step, bool exact);

}  // namespace rl::ops
