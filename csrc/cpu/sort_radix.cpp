// Sorting items: by comparison when there are few, else by digits from the lowest up. A pass of digits is
// parallel over chunks of fixed size: each counts its digits, then writes behind its predecessors.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/parallel.h"
#include "cpu/sort_keys.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kChunk = 1 << 16;

template <int bits, class Item> [[gnu::always_inline]] inline uint32_t digit(const Item& item, int shift) {
  return static_cast<uint32_t>(key_of(item) >> shift) & ((1u << bits) - 1);
}

template <int bits, class Item>
bool radix_pass(const Item* from, Item* to, int64_t n, int shift, uint32_t* counts, int64_t* starts) {
  constexpr int kDigits = 1 << bits;
  int64_t chunks = (n + kChunk - 1) / kChunk;
  std::fill(counts, counts + chunks * kDigits, 0u);
  parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      uint32_t* count = counts + c * kDigits;
      for (int64_t i = c * kChunk, end = std::min(n, i + kChunk); i < end; ++i) ++count[digit<bits>(from[i], shift)];
    }
  });
  int64_t sum = 0;
  for (int d = 0; d < kDigits; ++d) {
    int64_t before = sum;
    for (int64_t c = 0; c < chunks; ++c) {
      starts[c * kDigits + d] = sum;
      sum += counts[c * kDigits + d];
    }
    if (sum - before == n) return false;  // one digit only: nothing to do
  }
  parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      int64_t* start = starts + c * kDigits;
      for (int64_t i = c * kChunk, end = std::min(n, i + kChunk); i < end; ++i)
        to[start[digit<bits>(from[i], shift)]++] = from[i];
    }
  });
  return true;
}

template <int bits, class Item> Item* radix_sort(Item* items, Item* room, int64_t n, int key_bits) {
  constexpr int kDigits = 1 << bits;
  int64_t chunks = (n + kChunk - 1) / kChunk;
  thread_local std::vector<uint32_t> counts;
  thread_local std::vector<int64_t> starts;
  auto cells = static_cast<size_t>(chunks * kDigits);
  if (counts.size() < cells) counts.resize(cells), starts.resize(cells);
  for (int shift = 0; shift < key_bits; shift += bits)
    if (radix_pass<bits>(items, room, n, shift, counts.data(), starts.data())) std::swap(items, room);
  return items;
}

template <class Item> Item* sort_any(Item* items, Item* room, int64_t n, int key_bits) {
  if (n <= 16) {
    for (int64_t i = 1; i < n; ++i) {
      Item x = items[i];
      int64_t j = i;
      for (; j > 0 && x < items[j - 1]; --j) items[j] = items[j - 1];
      items[j] = x;
    }
    return items;
  }
  if (n < (key_bits <= 32 ? 160 : 700)) {
    std::sort(items, items + n);
    return items;
  }
  if (n >= 16384 && key_bits >= 32) return radix_sort<11>(items, room, n, key_bits);
  return radix_sort<8>(items, room, n, key_bits);
}

}  // namespace

PackedItem* sort_items(PackedItem* items, PackedItem* room, int64_t n, int key_bits) {
  return sort_any(items, room, n, key_bits);
}
WideItem* sort_items(WideItem* items, WideItem* room, int64_t n, int key_bits) { return sort_any(items, room, n, key_bits); }

}  // namespace rl::RL_ISA
