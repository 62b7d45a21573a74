// Where temporaries lie: lifetimes are known, so memory that is no longer used serves again.
#include <algorithm>

#include "base/allocator.h"
#include "compiler/tape.h"

namespace rl::compiler {

char* Tape::buffer(size_t bytes) {
  constexpr size_t kChunk = size_t{1} << 14, kAlign = 16;
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  if (bytes > left_) {
    left_ = std::max(bytes, kChunk);
    memory.push_back(std::make_unique<char[]>(left_ + kAlign));
    char* start = memory.back().get();
    chunk_ = start + (kAlign - reinterpret_cast<uintptr_t>(start) % kAlign) % kAlign;
  }
  left_ -= bytes;
  return std::exchange(chunk_, chunk_ + bytes);
}

namespace {

struct Block {
  int64_t offset, bytes;
  int last;
};

// The first gap between blocks in use, which are sorted, that has so many bytes.
int64_t position(std::vector<Block>& used, int64_t bytes, int first, int last) {
  std::erase_if(used, [&](const Block& b) { return b.last < first; });
  int64_t at = 0;
  auto gap = used.begin();
  for (; gap != used.end() && gap->offset - at < bytes; ++gap) at = gap->offset + gap->bytes;
  used.insert(gap, {at, bytes, last});
  return at;
}

}  // namespace

void Tape::plan() {
  std::sort(pointers.begin(), pointers.end(), [](const Pointer& a, const Pointer& b) { return a.slot < b.slot; });
  first_pointer.assign(slots.size() + 1, 0);
  for (const Pointer& p : pointers) ++first_pointer[static_cast<size_t>(p.slot) + 1];
  for (size_t i = 0; i < slots.size(); ++i) first_pointer[i + 1] += first_pointer[i];
  bound.assign(slots.size(), nullptr);
  for (Slot& s : slots) s.first = s.last = -1;
  for (const Pointer& p : pointers) {
    Slot& s = slots[static_cast<size_t>(p.slot)];
    if (s.first < 0 || p.step < s.first) s.first = p.step;
    if (p.step > s.last) s.last = p.step;
  }
  std::vector<Slot*> order;
  for (Slot& s : slots)
    if (s.kind == SlotKind::Temporary && s.first >= 0) order.push_back(&s);
  std::sort(order.begin(), order.end(),
            [](const Slot* a, const Slot* b) { return a->first != b->first ? a->first < b->first : a < b; });
  std::vector<Block> used;
  temporary_bytes = arena_bytes = 0;
  constexpr auto kAlign = static_cast<int64_t>(kMemoryAlignment);
  for (Slot* s : order) {
    const int64_t bytes = (s->bytes + kAlign - 1) / kAlign * kAlign;
    s->offset = position(used, bytes, s->first, s->last);
    temporary_bytes += s->bytes;
    arena_bytes = std::max(arena_bytes, s->offset + bytes);
  }
}

}  // namespace rl::compiler
