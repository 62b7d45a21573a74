#include "base/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/check.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace rl {
namespace detail {
Cache cache;
}
int64_t physical_bytes() {
  int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  int64_t bytes = pages > 0 && page > 0 ? pages * page : int64_t{4} << 30;
  if (FILE* file = std::fopen("/sys/fs/cgroup/memory.max", "re")) {
    long long quota;
    if (std::fscanf(file, "%lld", &quota) == 1 && quota > 0 && quota < bytes) bytes = quota;
    std::fclose(file);
  }
  return bytes;
}

namespace {

using namespace detail;

// From here on blocks are mapped by ourselves: giving one back returns its pages at once.
constexpr size_t kMappedBytes = size_t{512} << 10;
constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kHugeBlockBytes = size_t{4} << 20;  // from here on in huge pages: one fault for 512

// Note [How much is kept]
// Live and cached bytes together stay below the highest number of live bytes so far plus a slack: whoever would have
// fitted into memory without the cache fits with it. A mapped block that would pass this first pushes out the
// blocks that have not been used for the longest time.
constexpr int64_t kSlackBytes = int64_t{128} << 20;

int64_t high_water = 0;  // of live bytes, never reset
void (*reclaim_hook)() = nullptr;

const bool cache_limit_is_set = [] {
  int64_t quarter = physical_bytes() / 4, most = int64_t{4} << 30;
  cache.cache_limit = kSanitized ? 0 : quarter < most ? quarter : most;
  return true;
}();

void* map_block(size_t bytes) {
  size_t extra = bytes >= kHugeBlockBytes ? kHugePageBytes : 0;
  void* mapped = mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (extra == 0) return mapped;
  // Huge pages need blocks that begin on their boundary: cut what stands over on both sides.
  char* start = static_cast<char*>(mapped);
  size_t before = (kHugePageBytes - reinterpret_cast<uintptr_t>(start) % kHugePageBytes) % kHugePageBytes;
  if (before) munmap(start, before);
  if (extra - before) munmap(start + before + bytes, extra - before);
#ifdef MADV_HUGEPAGE
  madvise(start + before, bytes, MADV_HUGEPAGE);
#endif
  return start + before;
}

void* system_allocate(size_t bytes) {
  return bytes >= kMappedBytes && !kSanitized ? map_block(bytes) : std::aligned_alloc(kMemoryAlignment, bytes);
}
void system_free(void* memory, size_t bytes) {
  if (bytes >= kMappedBytes && !kSanitized) munmap(memory, bytes);
  else std::free(memory);
}

// Frees cached blocks until at most `target` bytes are kept: mapped ones by age, then the rest from the largest down.
void shrink_cache(int64_t target) {
  auto free_class = [&](int c) {
    auto bytes = static_cast<int64_t>(class_bytes(c));
    while (cache.free[c] && cache.stats.cached_bytes > target) {
      FreeBlock* block = cache.free[c];
      cache.free[c] = block->next;
      cache.stats.cached_bytes -= bytes;
      system_free(block, static_cast<size_t>(bytes));
    }
  };
  static const int first_mapped = size_class(kMappedBytes);
  while (cache.stats.cached_bytes > target) {
    int oldest = -1;
    for (int c = kClasses - 1; c >= first_mapped; --c)
      if (cache.free[c] && (oldest < 0 || cache.last_use[c] < cache.last_use[oldest])) oldest = c;
    if (oldest < 0) break;
    free_class(oldest);
  }
  for (int c = first_mapped - 1; c > 0 && cache.stats.cached_bytes > target; --c) free_class(c);
}

[[noreturn, gnu::cold]] void out_of_memory(size_t bytes) {
  std::string message = text("DefaultCPUAllocator: can't allocate memory: you tried to allocate ", uint64_t{bytes},
                             " bytes.\n  ", "out of memory: cannot allocate ");
  message += bytes <= kLargestBlock ? text(ByteCount{static_cast<int64_t>(bytes)}) : text(uint64_t{bytes}, " bytes");
  message += text("; ", cache.stats.live_blocks, cache.stats.live_blocks == 1 ? " block holds " : " blocks hold ",
                  ByteCount{cache.stats.live_bytes});
  if (memory_limit() > 0) message += text(" and the limit set is ", ByteCount{memory_limit()});
  throw Error(ErrorKind::OutOfMemory, message);
}

}  // namespace

namespace detail {

void trim_cache() { shrink_cache(cache.cache_limit - cache.cache_limit / 8); }

void* allocate_slow(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > kLargestBlock) out_of_memory(bytes);
  int c = size_class(bytes);
  auto capacity = static_cast<int64_t>(class_bytes(c));
  MemoryStats& s = cache.stats;
  auto give = [&](void* block) {
    count_live(bytes);
#ifdef __SANITIZE_ADDRESS__
    // What rounding adds to a block is out of bounds too (but for the link of a free block).
    size_t used = bytes < sizeof(FreeBlock) ? sizeof(FreeBlock) : bytes;
    ASAN_UNPOISON_MEMORY_REGION(block, used);  // of one that was kept
    ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + used, static_cast<size_t>(capacity) - used);
#endif
    return block;
  };
  auto attempt = [&]() -> void* {
    if (s.live_bytes + static_cast<int64_t>(bytes) > cache.live_limit) return nullptr;
    if (FreeBlock* block = cache.free[c]) {  // the reclaim hook may have filled it
      cache.free[c] = block->next;
      s.cached_bytes -= capacity;
      return block;
    }
    return system_allocate(static_cast<size_t>(capacity));
  };

  if (s.peak_bytes > high_water) high_water = s.peak_bytes;
  if (capacity >= static_cast<int64_t>(kMappedBytes) && s.cached_bytes > 0) {  // See Note [How much is kept].
    int64_t live = s.live_bytes + capacity, most = live > high_water ? live : high_water;
    int64_t headroom = most + kSlackBytes + most / 8 - live;
    if (headroom > cache.live_limit - live) headroom = cache.live_limit > live ? cache.live_limit - live : 0;
    if (s.cached_bytes > headroom) shrink_cache(headroom);
  }
  if (void* block = attempt()) return give(block);
  empty_cache();
  if (reclaim_hook) {
    reclaim_hook();
    if (void* block = attempt()) return give(block);
    empty_cache();
  }
  if (void* block = attempt()) return give(block);
  out_of_memory(bytes);
}

}  // namespace detail

void reset_peak() {
  if (cache.stats.peak_bytes > high_water) high_water = cache.stats.peak_bytes;
  cache.stats.peak_bytes = cache.stats.live_bytes;
}
void raise_peak(int64_t bytes) {
  if (bytes > cache.stats.peak_bytes) cache.stats.peak_bytes = bytes;
}
void set_memory_limit(int64_t bytes) {
  cache.live_limit = bytes > 0 ? bytes : INT64_MAX;
  if (cache.stats.cached_bytes > cache.live_limit) shrink_cache(cache.live_limit);
}
int64_t memory_limit() { return cache.live_limit == INT64_MAX ? 0 : cache.live_limit; }
void set_cache_limit(int64_t bytes) {
  cache.cache_limit = bytes > 0 ? bytes : 0;
  if (cache.stats.cached_bytes > cache.cache_limit) shrink_cache(cache.cache_limit);
}
int64_t cache_limit() { return cache.cache_limit; }
void empty_cache() { shrink_cache(0); }
void set_reclaim_hook(void (*hook)()) { reclaim_hook = hook; }

std::string to_text(ByteCount count) {
  static constexpr const char* kUnits[] = {"KB", "MB", "GB", "TB"};
  if (count.bytes < 1000) return std::to_string(count.bytes) + " bytes";
  double value = static_cast<double>(count.bytes) / 1e3;
  int unit = 0;
  while (value >= 999.95 && unit < 3) value /= 1e3, ++unit;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f %s", value, kUnits[unit]);
  return buffer;
}

}  // namespace rl
