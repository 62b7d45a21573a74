// How exact convolutions of floats are.
#pragma once

namespace rl {

// Plain sums of products in float alone, without Winograd's transforms, whose error is up to three times as large.
inline bool g_plain_convolutions = false;

}  // namespace rl
