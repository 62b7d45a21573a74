// The memory of a device: where it comes from, and the ways between it and the host.
#pragma once
#include <cstdint>

#include "base/device.h"

namespace rl {

// Addresses are what views carry: the host's own, or whatever the backend tells blocks and offsets into them by.
// `bytes` is above 0. A device is one of the backend's own, told apart by its index.
struct MemoryKernels {
  // Uninitialised memory, for anything: as aligned as the backend's kernels like it. OutOfMemoryError if there is none.
  void* (*allocate)(Device device, int64_t bytes);
  void (*release)(Device device, void* memory, int64_t bytes);
  // Copies of bytes. They see what kernels called before have written, and those called later see what they wrote.
  void (*to_host)(Device device, void* host, const void* memory, int64_t bytes);  // is done when it returns
  void (*from_host)(Device device, void* memory, const void* host, int64_t bytes);
  void (*within)(Device device, void* to, const void* from, int64_t bytes);  // the two do not overlap
};

}  // namespace rl
