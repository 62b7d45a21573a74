// A device for tests: its memory may not be touched by the host, and the CPU's kernels compute for it.
#pragma once
#include "backend/backend.h"

namespace rl {

extern const Backend isolated_backend;

}  // namespace rl
