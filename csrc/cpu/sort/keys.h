// Every real type as an unsigned number with the same order: NaN above all, -0 as 0. Sorting then knows two
// kinds of item only: a key of up to 32 bits packed with its index, and a 64-bit key beside its index.
#pragma once
#include <bit>
#include <type_traits>

#include "base/dtype.h"
#include "base/parallel.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

template <class T> using KeyBits = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T> inline constexpr bool has_nan = is_floating_v<T>;
template <class T> inline constexpr KeyBits<T> kNanKey = static_cast<KeyBits<T>>(~KeyBits<T>(0));

template <class T> [[gnu::always_inline]] inline KeyBits<T> to_key(T x) {
  using K = KeyBits<T>;
  constexpr K sign = static_cast<K>(K(1) << (8 * sizeof(T) - 1));
  if constexpr (is_floating_v<T>) {
    constexpr K infinity = static_cast<K>(__is_same(T, float16)    ? 0x7c00
                                          : __is_same(T, bfloat16) ? 0x7f80
                                          : __is_same(T, float)    ? 0x7f800000
                                                                   : 0x7ff0000000000000);
    K u = std::bit_cast<K>(x), size = static_cast<K>(u & static_cast<K>(~sign));
    u = size == 0 ? K(0) : u;
    K key = static_cast<K>(u & sign ? ~u : u | sign);
    return size > infinity ? kNanKey<T> : key;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<K>(static_cast<K>(x) ^ sign);
  } else {
    return static_cast<K>(x);
  }
}

// The inverse, but for NaN and -0, which have lost their bits.
template <class T> [[gnu::always_inline]] inline T from_key(KeyBits<T> key) {
  using K = KeyBits<T>;
  constexpr K sign = static_cast<K>(K(1) << (8 * sizeof(T) - 1));
  if constexpr (is_floating_v<T>) return std::bit_cast<T>(static_cast<K>(key & sign ? key ^ sign : ~key));
  else if constexpr (std::is_signed_v<T>) return static_cast<T>(key ^ sign);
  else return static_cast<T>(key);
}
template <class T> inline constexpr KeyBits<T> kZeroKey = static_cast<KeyBits<T>>(KeyBits<T>(1) << (8 * sizeof(T) - 1));

// Key in the high half, index in the low one: comparing the whole is comparing keys, then positions.
using PackedItem = uint64_t;
struct PairItem {
  uint64_t key, index;
  bool operator<(const PairItem& o) const { return key != o.key ? key < o.key : index < o.index; }
};
[[gnu::always_inline]] inline uint64_t key_of(PackedItem item) { return item >> 32; }
[[gnu::always_inline]] inline uint64_t key_of(const PairItem& item) { return item.key; }
[[gnu::always_inline]] inline int64_t index_of(PackedItem item) { return static_cast<int64_t>(item & 0xffffffffu); }
[[gnu::always_inline]] inline int64_t index_of(const PairItem& item) { return static_cast<int64_t>(item.index); }
template <class Item> [[gnu::always_inline]] inline Item make_item(uint64_t key, int64_t index) {
  if constexpr (__is_same(Item, PackedItem)) return key << 32 | static_cast<uint64_t>(index);
  else return {key, static_cast<uint64_t>(index)};
}

// The items of a row; `flip` reverses the order of the keys.
template <class Item, class T>
inline void load_items(const T* p, int64_t stride, int64_t first, int64_t n, bool flip, Item* items) {
  using K = KeyBits<T>;
  K mask = flip ? kNanKey<T> : K(0);
  for (int64_t i = 0; i < n; ++i)
    items[i] = make_item<Item>(static_cast<K>(to_key(p[(first + i) * stride]) ^ mask), first + i);
}

// A long row, by all threads.
template <class Item, class T> inline void load_row(const T* p, int64_t stride, int64_t n, bool flip, Item* items) {
  constexpr int64_t kPiece = 1 << 15;
  if (n <= kPiece) return load_items(p, stride, 0, n, flip, items);
  parallel_for(0, n, kPiece,
               [&](int64_t first, int64_t last) { load_items(p, stride, first, last - first, flip, items + first); });
}

// Sorts by key, equal keys by index; the items come in the order of their indices. `buffer` holds n more items.
// Returns where the result is: `items` or `buffer`.
// A handful of items to their ranks: comparisons without jumps, whose outcome no processor could foresee.
inline constexpr int64_t kHandful = 8;
template <class Item> [[gnu::always_inline]] inline int64_t rank_of(const Item* items, int64_t n, int64_t i) {
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j) rank += items[j] < items[i];
  return rank;
}

PackedItem* sort_items(PackedItem* items, PackedItem* buffer, int64_t n, int key_bits);
PairItem* sort_items(PairItem* items, PairItem* buffer, int64_t n, int key_bits);

// f(type_tag<T>{}) for the real types that have an order.
template <class F> bool visit_ordered(DType t, F&& f) {
  return visit_compute(t,
                       [&](auto tag) {
                         using T = typename decltype(tag)::type;
                         if constexpr (!is_complex_v<T>) f(type_tag<T>{});
                       }) &&
         !is_complex(t);
}

// f(type_tag<Item>{}) for the item that fits n elements of T.
template <class T, class F> void with_item(int64_t n, F&& f) {
  if constexpr (sizeof(T) <= 4) {
    if (n <= UINT32_MAX) return f(type_tag<PackedItem>{});
  }
  f(type_tag<PairItem>{});
}

}  // namespace rl::RL_ISA
