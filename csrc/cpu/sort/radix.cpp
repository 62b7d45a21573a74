// Sorting items: by comparison when there are few, else by digits from the lowest up. A pass of digits is
// parallel over chunks of fixed size: each counts its digits, then writes behind its predecessors.
#include <algorithm>
#include <memory>

#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/sort/keys.h"

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

// The bits in which keys differ.
template <class Item> uint64_t differing_bits(const Item* items, int64_t n) {
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  auto parts = std::make_unique_for_overwrite<uint64_t[]>(static_cast<size_t>(chunks));
  const uint64_t one = key_of(items[0]);
  parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      uint64_t differ = 0;
      for (int64_t i = c * kChunk, end = std::min(n, i + kChunk); i < end; ++i) differ |= key_of(items[i]) ^ one;
      parts[static_cast<size_t>(c)] = differ;
    }
  });
  uint64_t differ = 0;
  for (int64_t c = 0; c < chunks; ++c) differ |= parts[static_cast<size_t>(c)];
  return differ;
}

template <class Item> Item* radix_sort_large(Item* items, Item* buffer, int64_t n, int key_bits) {
  const uint64_t differ = differing_bits(items, n);
  auto cells = static_cast<size_t>((n + kChunk - 1) / kChunk * 256);
  auto counts = std::make_unique_for_overwrite<uint32_t[]>(cells);
  auto starts = std::make_unique_for_overwrite<int64_t[]>(cells);
  for (int shift = 0; shift < key_bits; shift += 8)
    if (differ >> shift & 255 && radix_pass<8>(items, buffer, n, shift, counts.get(), starts.get()))
      std::swap(items, buffer);
  return items;
}

// Fits one chunk: all digits are counted in one reading.
template <int kDigitsOfKey, class Item> Item* radix_sort_small(Item* items, Item* buffer, int64_t n) {
  uint32_t counts[kDigitsOfKey][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigitsOfKey; ++d) ++counts[d][digit<8>(items[i], 8 * d)];
  for (int d = 0; d < kDigitsOfKey; ++d) {
    uint32_t* start = counts[d];
    if (start[digit<8>(items[0], 8 * d)] == n) continue;  // one digit only: nothing to do
    uint32_t sum = 0;
    for (int v = 0; v < 256; ++v) {
      uint32_t count = start[v];
      start[v] = sum;
      sum += count;
    }
    for (int64_t i = 0; i < n; ++i) buffer[start[digit<8>(items[i], 8 * d)]++] = items[i];
    std::swap(items, buffer);
  }
  return items;
}

template <class Item> Item* sort_any(Item* items, Item* buffer, int64_t n, int key_bits) {
  if (n <= kHandful) {
    for (int64_t i = 0; i < n; ++i) buffer[rank_of(items, n, i)] = items[i];
    return buffer;
  }
  if (n <= 16) {
    for (int64_t i = 1; i < n; ++i) {
      Item x = items[i];
      int64_t j = i;
      for (; j > 0 && x < items[j - 1]; --j) items[j] = items[j - 1];
      items[j] = x;
    }
    return items;
  }
  if (n < 10 * key_bits / 4) {  // counting costs as much as this many comparisons save
    std::sort(items, items + n);
    return items;
  }
  if (n > kChunk) return radix_sort_large(items, buffer, n, key_bits);
  switch (key_bits) {
    case 8: return radix_sort_small<1>(items, buffer, n);
    case 16: return radix_sort_small<2>(items, buffer, n);
    case 32: return radix_sort_small<4>(items, buffer, n);
    default: return radix_sort_small<8>(items, buffer, n);
  }
}

}  // namespace

PackedItem* sort_items(PackedItem* items, PackedItem* buffer, int64_t n, int key_bits) {
  return sort_any(items, buffer, n, key_bits);
}
PairItem* sort_items(PairItem* items, PairItem* buffer, int64_t n, int key_bits) {
  return sort_any(items, buffer, n, key_bits);
}

}  // namespace rl::RL_ISA
