#include "cpu/loops/scratch.h"

#include <cstdlib>
#include <utility>

#include "base/sanitized.h"

namespace rl {
namespace {

constexpr size_t kHeader = 64;                                     // holds the block's size and keeps the alignment
constexpr size_t kKeepLargest = kSanitized ? 0 : size_t{8} << 20;  // bytes
constexpr int kSlots = 6;

struct Kept {
  void* blocks[kSlots] = {};
  ~Kept() {
    for (void*& b : blocks) {
      std::free(b);
      b = nullptr;
    }
    closed = true;
  }
  static thread_local bool closed;  // blocks given back after the thread's end are freed at once
};
thread_local bool Kept::closed = false;
thread_local Kept kept;

size_t& size_of(void* raw) { return *static_cast<size_t*>(raw); }

}  // namespace

void* scratch_take(size_t bytes) {
  if (!Kept::closed && bytes <= kKeepLargest) {
    int best = -1;
    for (int i = 0; i < kSlots; ++i) {
      void* b = kept.blocks[i];
      if (b && size_of(b) >= bytes && (best < 0 || size_of(b) < size_of(kept.blocks[best]))) best = i;
    }
    if (best >= 0) {
      void* raw = kept.blocks[best];
      kept.blocks[best] = nullptr;
      return static_cast<char*>(raw) + kHeader;
    }
  }
  CHECK(bytes <= SIZE_MAX / 4, OutOfMemory, "cannot allocate ", static_cast<uint64_t>(bytes),
        " bytes of scratch memory");
  size_t rounded = kSanitized ? bytes : (bytes + 63) / 64 * 64;
  void* raw = nullptr;
  CHECK(posix_memalign(&raw, 64, rounded + kHeader) == 0, OutOfMemory, "cannot allocate ", static_cast<uint64_t>(bytes),
        " bytes of scratch memory");
  size_of(raw) = rounded;
  return static_cast<char*>(raw) + kHeader;
}

void scratch_give(void* block) noexcept {
  if (!block) return;
  void* raw = static_cast<char*>(block) - kHeader;
  if (!Kept::closed && size_of(raw) <= kKeepLargest) {
    int smallest = 0;
    for (int i = 0; i < kSlots; ++i) {
      if (!kept.blocks[i]) {
        kept.blocks[i] = raw;
        return;
      }
      if (size_of(kept.blocks[i]) < size_of(kept.blocks[smallest])) smallest = i;
    }
    if (size_of(kept.blocks[smallest]) < size_of(raw)) std::swap(raw, kept.blocks[smallest]);
  }
  std::free(raw);
}

}  // namespace rl
