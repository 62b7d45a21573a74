#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace rl::avx512 {
// Casts n contiguous elements to bools; null for types without a loop of their own.
void (*truth_of(DType from))(void* out, const void* in, int64_t n);
}  // namespace rl::avx512
