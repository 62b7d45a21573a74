// Whether this is a build of tools/asan. AddressSanitizer sees a use after free, or past the end, only if every block
// comes from malloc and goes back at once: nothing is kept for reuse then.
#pragma once

namespace rl {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace rl
