// The checksum of zip archives (CRC-32, polynomial 0x04C11DB7 in reflected form).
#pragma once
#include <cstddef>
#include <cstdint>

namespace rl {

uint32_t crc32(const void* data, size_t bytes);

// The checksum of two pieces one after the other, from theirs and the length of the second.
uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace rl
