// A flag of registration rows beside those of registry.h, for the few ops that need it.
#pragma once
#include <cstdint>

namespace rl {

// out= must have the result's own type, and memory apart from the inputs.
inline constexpr uint32_t kExactOut = 1u << 16;

}  // namespace rl
