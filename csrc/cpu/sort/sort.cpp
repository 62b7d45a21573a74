// sort and topk along a dimension, and the table of sorting kernels.
#include "backend/sort.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

#include "base/check.h"
#include "base/interrupt.h"
#include "cpu/isa.h"
#include "cpu/loops/rows.h"
#include "cpu/simd/vec.h"
#include "cpu/sort/kernels.h"
#include "cpu/sort/keys.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kSortWork = 4096;  // elements of short rows worth a piece
constexpr int64_t kRowCost = 5;      // elements that a row's own costs are worth

// Memory for items, without clearing it.
template <class Item> std::unique_ptr<Item[]> items_for(int64_t n) {
  return std::make_unique_for_overwrite<Item[]>(static_cast<size_t>(std::max<int64_t>(n, 1)));
}

// What a sorted item stands for: its key, unless the key forgot the sign of 0 or the bits of NaN.
template <class T, class Item>
[[gnu::always_inline]] inline T value_of(const Item& item, const T* row, int64_t stride, bool flip) {
  if constexpr (is_floating_v<T>) {
    auto key = static_cast<KeyBits<T>>(key_of(item));
    if (flip) key = static_cast<KeyBits<T>>(~key);
    if (key == kZeroKey<T> || key == kNanKey<T>) return row[index_of(item) * stride];
    return from_key<T>(key);
  } else {
    auto key = static_cast<KeyBits<T>>(key_of(item));
    return from_key<T>(flip ? static_cast<KeyBits<T>>(~key) : key);
  }
}

// Rows of 64-bit elements by the first 32 bits of their distances from the least: half the memory, and half the passes.
// The few that are equal in them are compared in full. Null where they are not few. `items` and `buffer` hold n each.
constexpr int64_t kNarrowFrom = 512, kLongPiece = 1 << 15;
template <class T>
const PackedItem* sort_narrow(const T* x, int64_t stride, int64_t n, bool flip, PackedItem* items, PackedItem* buffer) {
  const uint64_t mask = flip ? ~uint64_t(0) : 0;
  auto key = [=](int64_t i) { return static_cast<uint64_t>(to_key(x[i * stride])) ^ mask; };
  const auto pieces = static_cast<size_t>((n + kLongPiece - 1) / kLongPiece);
  auto bounds = std::make_unique_for_overwrite<uint64_t[]>(2 * pieces);
  parallel_for(0, n, kLongPiece, [&](int64_t first, int64_t last) {
    uint64_t least = key(first), most = least;
    for (int64_t i = first + 1; i < last; ++i) least = std::min(least, key(i)), most = std::max(most, key(i));
    bounds[static_cast<size_t>(2 * (first / kLongPiece))] = least;
    bounds[static_cast<size_t>(2 * (first / kLongPiece) + 1)] = most;
  });
  uint64_t least = bounds[0], most = bounds[1];
  for (size_t k = 1; k < pieces; ++k) least = std::min(least, bounds[2 * k]), most = std::max(most, bounds[2 * k + 1]);
  const int bits = std::bit_width(most - least), shift = std::max(0, bits - 32);
  parallel_for(0, n, kLongPiece, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) items[i] = make_item<PackedItem>((key(i) - least) >> shift, i);
  });
  PackedItem* sorted = sort_items(items, buffer, n, bits <= 8 ? 8 : bits <= 16 ? 16 : 32);
  if (shift == 0) return sorted;
  int64_t tied = 0;
  for (int64_t i = 1; i < n; ++i) tied += key_of(sorted[i]) == key_of(sorted[i - 1]);
  if (tied > n / 8) return nullptr;
  for (int64_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && key_of(sorted[end]) == key_of(sorted[i]);) ++end;
    if (end == i + 1) continue;
    std::sort(sorted + i, sorted + end, [&](PackedItem a, PackedItem b) {
      const uint64_t first = key(index_of(a)), second = key(index_of(b));
      return first != second ? first < second : a < b;
    });
  }
  return sorted;
}

// Integers that lie close together, labels and bytes, are counted: a row of items is never made. digit(x) is less than
// `digits` and in the order of the result. Chunk after chunk writes its positions behind those of the one before.
constexpr int64_t kMostDigits = 1 << 11, kCountedFrom = 256;
template <class T, class Digit> void sort_counted(const T* x, int64_t stride, int64_t n, int64_t digits,
                                                  const Digit& digit, int64_t* positions, int64_t positions_stride,
                                                  FunctionRef<void(int64_t, int64_t, int64_t)> put_run) {
  const int64_t chunk = std::max<int64_t>(1 << 14, 8 * digits), chunks = (n + chunk - 1) / chunk;
  auto counts = std::make_unique<int64_t[]>(static_cast<size_t>(chunks * digits));
  parallel_for(0, chunks, 1, [&](int64_t c, int64_t) {
    int64_t* count = counts.get() + c * digits;
    for (int64_t i = c * chunk, end = std::min(n, i + chunk); i < end; ++i) ++count[digit(x[i * stride])];
  });
  auto ends = items_for<int64_t>(digits);
  int64_t sum = 0;
  for (int64_t d = 0; d < digits; ++d) {
    for (int64_t c = 0; c < chunks; ++c) {
      int64_t& at = counts[static_cast<size_t>(c * digits + d)];
      sum += at;
      at = sum - at;
    }
    ends[static_cast<size_t>(d)] = sum;
  }
  if (positions)
    parallel_for(0, chunks, 1, [&](int64_t c, int64_t) {
      int64_t* start = counts.get() + c * digits;
      for (int64_t i = c * chunk, end = std::min(n, i + chunk); i < end; ++i)
        positions[start[digit(x[i * stride])]++ * positions_stride] = i;
    });
  for (int64_t d = 0, from = 0; d < digits; from = ends[static_cast<size_t>(d++)])
    if (from < ends[static_cast<size_t>(d)]) put_run(d, from, ends[static_cast<size_t>(d)]);
}
// False where they do not lie close together.
template <class T> bool sort_labels(const T* x, int64_t stride, int64_t n, bool flip, T* values, int64_t step,
                                    int64_t* positions, int64_t positions_stride) {
  using U = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;
  T least = x[0], most = x[0];
  auto span = [&] { return static_cast<uint64_t>(static_cast<U>(static_cast<U>(most) - static_cast<U>(least))); };
  constexpr auto kMost = static_cast<uint64_t>(kMostDigits);
  for (int64_t i = 0; i < n && span() < kMost; i += kLongPiece)
    for (int64_t j = i; j < std::min(n, i + kLongPiece); ++j)
      least = std::min(least, x[j * stride]), most = std::max(most, x[j * stride]);
  const uint64_t range = span();
  if (range >= static_cast<uint64_t>(std::min(kMostDigits, n))) return false;
  auto put_run = [&](int64_t d, int64_t from, int64_t to) {
    const T value = static_cast<T>(
        static_cast<U>(flip ? static_cast<U>(most) - static_cast<U>(d) : static_cast<U>(least) + static_cast<U>(d)));
    for (int64_t i = from; values && i < to; ++i) values[i * step] = value;
  };
  auto rising = [=](T v) { return static_cast<U>(static_cast<U>(v) - static_cast<U>(least)); };
  auto falling = [=](T v) { return static_cast<U>(static_cast<U>(most) - static_cast<U>(v)); };
  const auto digits = static_cast<int64_t>(range) + 1;
  if (flip) sort_counted(x, stride, n, digits, falling, positions, positions_stride, put_run);
  else sort_counted(x, stride, n, digits, rising, positions, positions_stride, put_run);
  return true;
}

template <class T> void sort_of(const View* values, const View* indices, const View& in, int dim, bool descending) {
  const View* const views[3] = {&in, values ? values : &in, indices ? indices : &in};
  Rows<3> rows(views, dim);
  int64_t n = rows.length[0];
  if (n == 0) return;
  // Puts out a row whose items have been sorted; value(item, row, stride) is what an item stands for.
  auto put = [&](const int64_t* at, const auto* sorted, auto&& value) {
    const T* x = in.as<T>() + at[0];
    int64_t stride = rows.stride[0];
    std::unique_ptr<T[]> copy;
    if (values && in.data == values->data) {  // in place: what is read after being overwritten comes from a copy
      copy = items_for<T>(n);
      for (int64_t i = 0; i < n; ++i) copy[static_cast<size_t>(i)] = x[i * stride];
      x = copy.get(), stride = 1;
    }
    auto some = [&](int64_t first, int64_t last) {
      if (values) {
        T* v = values->as<T>() + at[1];
        for (int64_t i = first; i < last; ++i) v[i * rows.stride[1]] = value(sorted[i], x, stride);
      }
      if (indices) {
        int64_t* p = indices->as<int64_t>() + at[2];
        for (int64_t i = first; i < last; ++i) p[i * rows.stride[2]] = index_of(sorted[i]);
      }
    };
    if (n <= kLongPiece) some(0, n);
    else parallel_for(0, n, kLongPiece, some);
  };
  with_item<T>(n, [&](auto tag) {
    using Item = typename decltype(tag)::type;
    rows.each(kSortWork / (n + kRowCost), [&](const int64_t* at) {
      if constexpr (std::is_integral_v<T>) {
        T* v = values ? values->as<T>() + at[1] : nullptr;
        int64_t* p = indices ? indices->as<int64_t>() + at[2] : nullptr;
        const T* x = in.as<T>() + at[0];
        if (n >= kCountedFrom && sort_labels(x, rows.stride[0], n, descending, v, rows.stride[1], p, rows.stride[2]))
          return;
      }
      if constexpr (sizeof(T) == 8) {
        if (n >= kNarrowFrom && n <= UINT32_MAX) {
          auto items = items_for<PackedItem>(2 * n);
          const T* x = in.as<T>() + at[0];
          const PackedItem* sorted = sort_narrow(x, rows.stride[0], n, descending, items.get(), items.get() + n);
          auto value = [](PackedItem item, const T* row, int64_t stride) { return row[index_of(item) * stride]; };
          if (sorted) return put(at, sorted, value);
        }
      }
      Item small[256];
      std::unique_ptr<Item[]> large;
      Item* items = small;
      if (n > 128) large = items_for<Item>(2 * n), items = large.get();
      const T* x = in.as<T>() + at[0];
      load_row<Item>(x, rows.stride[0], n, descending, items);
      const Item* sorted = sort_items(items, items + n, n, 8 * static_cast<int>(sizeof(T)));
      put(at, sorted,
          [&](const Item& item, const T* row, int64_t stride) { return value_of<T>(item, row, stride, descending); });
    });
  });
}

void sort(const View* values, const View* indices, const View& in, int dim, bool descending) {
  bool done = visit_ordered(
      in.dtype, [&](auto tag) { sort_of<typename decltype(tag)::type>(values, indices, in, dim, descending); });
  CHECK(done, Runtime, "sort is not defined for ", info(in.dtype).name);
}

constexpr int64_t kFew = 32;

// The k smallest items of a row into `best`, in order, where k is small: each that lies before the last of them is put
// in its position. Vectors of keys of which none does are passed over.
template <class Item, class T>
void smallest_few(const T* x, int64_t stride, int64_t n, int64_t k, bool flip, Item* best) {
  using S = std::conditional_t<__is_same(Item, PackedItem), int32_t, int64_t>;  // keys, for signed comparisons
  using K = KeyBits<T>;
  constexpr int64_t kStep = 256;
  constexpr K kSign = sizeof(K) == sizeof(S) ? static_cast<K>(K(1) << (8 * sizeof(K) - 1)) : K(0);
  const K mask = static_cast<K>(kSign ^ (flip ? kNanKey<T> : K(0)));
  alignas(64) S keys[kStep];
  int64_t held = 0;
  S bar = std::numeric_limits<S>::max();
  auto put = [&](S key, int64_t index) {
    const Item item = make_item<Item>(static_cast<K>(static_cast<K>(key) ^ kSign), index);
    int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && item < best[at - 1]; --at) best[at] = best[at - 1];
    best[at] = item;
    if (held == k) bar = static_cast<S>(static_cast<K>(static_cast<K>(key_of(best[k - 1])) ^ kSign));
  };
  for (int64_t i = 0; i < n; i += kStep) {
    const int64_t m = std::min(kStep, n - i);
    const T* from = x + i * stride;
    if (stride == 1)
      for (int64_t j = 0; j < m; ++j) keys[j] = static_cast<S>(static_cast<K>(to_key(from[j]) ^ mask));
    else
      for (int64_t j = 0; j < m; ++j) keys[j] = static_cast<S>(static_cast<K>(to_key(from[j * stride]) ^ mask));
    int64_t j = 0;
    for (; j < m && held < k; ++j) put(keys[j], i + j);
    for (; j + kLanes<S> <= m; j += kLanes<S>)
      for (unsigned here = lane_bits(load_vec(keys + j) < bar); here; here &= here - 1) {
        const int64_t at = j + __builtin_ctz(here);
        if (keys[at] < bar) put(keys[at], i + at);
      }
    for (; j < m; ++j)
      if (keys[j] < bar) put(keys[j], i + j);
  }
}

// The k smallest items of a row into `best` (room for 2k + 64), in no order. A full buffer is cut to its k
// smallest, whose last is the bar that further elements must pass.
template <class Item, class T>
void smallest_items(const T* x, int64_t stride, int64_t n, int64_t k, bool flip, Item* best) {
  constexpr int64_t kStep = 512;
  int64_t buffer = 2 * k + 64, held = 0;
  uint64_t bar = ~uint64_t(0);
  Item block[kStep];
  for (int64_t i = 0; i < n && !stops_at(i); i += kStep) {
    int64_t m = std::min(kStep, n - i);
    load_items<Item>(x, stride, i, m, flip, block);
    for (int64_t j = 0; j < m; ++j) {
      if (key_of(block[j]) > bar) continue;
      best[held++] = block[j];
      if (held == buffer) {
        std::nth_element(best, best + k - 1, best + held);
        held = k;
        bar = key_of(best[k - 1]);
      }
    }
  }
  if (held > k) std::nth_element(best, best + k - 1, best + held);
}

template <class T>
void topk_of(const View& values, const View& indices, const View& in, int64_t k, int dim, bool largest, bool sorted) {
  const View* const views[3] = {&in, &values, &indices};
  Rows<3> rows(views, dim);
  int64_t n = rows.length[0];
  if (k == 0 || n == 0) return;
  with_item<T>(n, [&](auto tag) {
    using Item = typename decltype(tag)::type;
    rows.each(kSortWork / (n + kRowCost), [&](const int64_t* at) {
      const T* x = in.as<T>() + at[0];
      std::unique_ptr<Item[]> memory;
      Item small[2 * kFew];
      Item* best = small;
      int key_bits = 8 * static_cast<int>(sizeof(T));
      if (k > n / 4) {
        if (n > kFew) memory = items_for<Item>(2 * n), best = memory.get();
        load_row<Item>(x, rows.stride[0], n, largest, best);
        best = sort_items(best, best + n, n, key_bits);
      } else if (k <= kFew) {
        smallest_few<Item>(x, rows.stride[0], n, k, largest, best);
      } else {
        memory = items_for<Item>(2 * k + 64), best = memory.get();
        smallest_items<Item>(x, rows.stride[0], n, k, largest, best);
        if (sorted) std::sort(best, best + k);
      }
      T* v = values.as<T>() + at[1];
      int64_t* p = indices.as<int64_t>() + at[2];
      AsksSeldom asks;
      for (int64_t i = 0; i < k; ++i, asks()) {
        v[i * rows.stride[1]] = x[index_of(best[i]) * rows.stride[0]];
        p[i * rows.stride[2]] = index_of(best[i]);
      }
    });
  });
}

void topk(const View& values, const View& indices, const View& in, int64_t k, int dim, bool largest, bool sorted) {
  bool done = visit_ordered(
      in.dtype, [&](auto tag) { topk_of<typename decltype(tag)::type>(values, indices, in, k, dim, largest, sorted); });
  CHECK(done, Runtime, "topk is not defined for ", info(in.dtype).name);
}

}  // namespace

extern const SortKernels sort_kernels;
const SortKernels sort_kernels{
    .sort = sort,
    .topk = topk,
    .unique = unique,
    .unique_rows = unique_rows,
    .searchsorted = searchsorted,
};

}  // namespace rl::RL_ISA
