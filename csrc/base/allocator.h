// The caching allocator of tensor memory. Blocks are 64-byte aligned and uninitialised.
//
// No lock: every function here is called with the interpreter lock held (or before threads exist). Kernels take
// scratch memory from malloc, never from here, because pieces of a parallel loop run without the lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "base/sanitized.h"

namespace rl {

inline constexpr size_t kMemoryAlignment = 64;

struct MemoryStats {
  int64_t live_bytes = 0;  // as asked for, not as rounded to a size class
  int64_t peak_bytes = 0;  // the most live bytes since the start or the last reset_peak()
  int64_t live_blocks = 0;
  int64_t cached_bytes = 0;  // free blocks kept for reuse
  int64_t allocations = 0;   // so far, from the cache or not
};

namespace detail {

// Size classes: steps of 64 bytes up to 1 KB, then eight per doubling, so that at most 1/8 of a block is unused.
inline constexpr size_t kSmallBytes = 1024;
inline constexpr int kSmallClasses = 17;  // of 64 * index bytes; 0 is unused
inline constexpr int kClasses = kSmallClasses + 8 * 37;
inline constexpr size_t kLargestBlock = size_t{1} << 47;

inline int size_class(size_t bytes) {
  if (bytes <= kSmallBytes) return static_cast<int>((bytes + 63) / 64);
  int octave = 63 - __builtin_clzll(bytes - 1);  // 2^octave <= bytes - 1
  return kSmallClasses + (octave - 10) * 8 + static_cast<int>(((bytes - 1) >> (octave - 3)) & 7);
}
inline size_t class_bytes(int c) {
  if (c < kSmallClasses) return static_cast<size_t>(c) * 64;
  int above = c - kSmallClasses;
  return static_cast<size_t>(9 + above % 8) << (above / 8 + 7);
}

struct FreeBlock {
  FreeBlock* next;
};
struct Cache {
  MemoryStats stats;
  int64_t cache_limit = 0;
  int64_t live_limit = INT64_MAX;
  FreeBlock* free[kClasses] = {};
  int64_t last_use[kClasses] = {};  // in allocations
};
extern Cache cache;

void* allocate_slow(size_t bytes);
void trim_cache();

inline void count_live(size_t bytes) {
  MemoryStats& s = cache.stats;
  s.live_bytes += static_cast<int64_t>(bytes);
  if (s.live_bytes > s.peak_bytes) s.peak_bytes = s.live_bytes;
  ++s.live_blocks;
  ++s.allocations;
}

}  // namespace detail

// At least `bytes` bytes; nullptr for 0. Throws Error(OutOfMemory), after emptying the cache, when the system has no
// more or the limit would be passed.
inline void* allocate(size_t bytes) {
  using namespace detail;
  if (!kSanitized && bytes <= kLargestBlock && bytes != 0) [[likely]] {
    int c = size_class(bytes);
    FreeBlock* block = cache.free[c];
    if (block && cache.stats.live_bytes + static_cast<int64_t>(bytes) <= cache.live_limit) [[likely]] {
      cache.free[c] = block->next;
      cache.stats.cached_bytes -= static_cast<int64_t>(class_bytes(c));
      count_live(bytes);
      return block;
    }
  }
  return allocate_slow(bytes);
}

// `bytes` must be what the block was allocated with. deallocate(nullptr, 0) does nothing.
inline void deallocate(void* memory, size_t bytes) {
  using namespace detail;
  if (!memory) return;
  int c = size_class(bytes);
  cache.free[c] = new (memory) FreeBlock{cache.free[c]};
  cache.last_use[c] = cache.stats.allocations;
  cache.stats.live_bytes -= static_cast<int64_t>(bytes);
  --cache.stats.live_blocks;
  cache.stats.cached_bytes += static_cast<int64_t>(class_bytes(c));
  if (cache.stats.cached_bytes > cache.cache_limit) [[unlikely]]
    trim_cache();
}

inline MemoryStats memory_stats() { return detail::cache.stats; }
void reset_peak();
void raise_peak(int64_t bytes);  // to at least so many, after a measurement that reset it

// Live bytes may not pass `bytes`; 0 for no limit. What is live already stays.
void set_memory_limit(int64_t bytes);
int64_t memory_limit();

// The most bytes kept for reuse; 0 turns caching off. The default is a quarter of the memory, at most 4 GB.
void set_cache_limit(int64_t bytes);
int64_t cache_limit();
void empty_cache();  // gives every cached block back to the system

int64_t physical_bytes();  // of the machine, or of the control group that this process may use

// Called once before an allocation fails, to free what can be freed (the Python layer collects garbage cycles).
void set_reclaim_hook(void (*hook)());

// In messages and reports: "40.0 MB".
struct ByteCount {
  int64_t bytes;
};
std::string to_text(ByteCount count);

}  // namespace rl
