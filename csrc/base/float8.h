// The 8-bit float formats. They are stored, moved and converted; arithmetic is done in another type.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace rl {

// The 256 values of a format.
const float* float8_values(DType format);

// The nearest value, ties to even. What is too large becomes NaN, or infinity in the format that has one (e5m2).
uint8_t to_float8(float v, DType format);

double largest_float8(DType format);

}  // namespace rl
