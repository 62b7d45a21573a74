// The backend of meta tensors, which have a shape and no memory.
#pragma once
#include "backend/backend.h"

namespace rl {

extern const Backend meta_backend;

}  // namespace rl
