// Order statistics along a dimension, and histograms.
#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/loops/rows.h"
#include "cpu/reduce/kernels.h"
#include "cpu/sort/keys.h"

namespace rl::RL_ISA {
namespace {

// Memory for items, without clearing it.
template <class Item> std::unique_ptr<Item[]> buffer_for(int64_t n) {
  return std::make_unique_for_overwrite<Item[]>(static_cast<size_t>(n));
}

// The last position of the first of the longest runs of equal values.
template <class Equal, class Position> int64_t longest_run(int64_t n, Equal&& equal, Position&& index) {
  int64_t best = 0, most = 0;
  for (int64_t i = 0, run = 1; i < n; ++i, ++run) {
    if (i + 1 < n && equal(i, i + 1)) continue;
    if (run > most) most = run, best = index(i);
    run = 0;
  }
  return best;
}

// Where the mode stands in its row: the last of the values that are there most often, the least of those.
template <class T, class Item> int64_t mode_index(Item* items, Item* buffer, int64_t n) {
  const Item* sorted = sort_items(items, buffer, n, 8 * static_cast<int>(sizeof(T)));
  return longest_run(
      n, [&](int64_t i, int64_t j) { return key_of(sorted[i]) == key_of(sorted[j]); },
      [&](int64_t i) { return index_of(sorted[i]); });
}

// PyTorch compares with < alone, so that values on both sides of a NaN stay as they are: the mode of such a row is what
// the standard library's sort makes of that. Its scans end at every pivot, a NaN or not, and stay in the row.
struct Indexed {
  double value;
  int64_t index;
};
int64_t mode_index_among_nans(Indexed* items, int64_t n) {
  std::sort(items, items + n, [](const Indexed& a, const Indexed& b) { return a.value < b.value; });
  return longest_run(
      n, [&](int64_t i, int64_t j) { return items[i].value == items[j].value; },
      [&](int64_t i) { return items[i].index; });
}

constexpr int64_t kFewItems = 2048;  // compared with each other; more are split by their digits first
constexpr int64_t kSelectChunk = 1 << 15, kKeyBlock = 64;
constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;

template <class Item> using KeyOf = std::conditional_t<__is_same(Item, PackedItem), uint32_t, uint64_t>;

// Where items come from, in the order of their positions: a row, or what a digit has left of it.
template <class Item, class T> struct RowItems {
  const T* x;
  int64_t stride;
  Item item(int64_t i) const { return make_item<Item>(to_key(x[i * stride]), i); }
  void load(int64_t n, Item* to) const {
    stride == 1 ? load_items(x, 1, 0, n, false, to) : load_items(x, stride, 0, n, false, to);
  }
  void keys(int64_t first, int64_t n, KeyOf<Item>* to) const {
    if (stride == 1) {
      for (int64_t i = 0; i < n; ++i) to[i] = to_key(x[first + i]);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = to_key(x[(first + i) * stride]);
    }
  }
};
template <class Item> struct KeptItems {
  const Item* items;
  Item item(int64_t i) const { return items[i]; }
  void load(int64_t n, Item* to) const { std::copy(items, items + n, to); }
  void keys(int64_t first, int64_t n, KeyOf<Item>* to) const {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<KeyOf<Item>>(key_of(items[first + i]));
  }
};

// work(chunk, first, n, digits) for all items in blocks, chunk by chunk.
template <class Item, class From, class Work>
void each_digits(const From& from, int64_t n, int low, int64_t chunks, const Work& work) {
  parallel_for(0, chunks, 1, [&](int64_t c, int64_t) {
    KeyOf<Item> digits[kKeyBlock];
    for (int64_t i = c * kSelectChunk, end = std::min(n, i + kSelectChunk); i < end; i += kKeyBlock) {
      const int64_t m = std::min(kKeyBlock, end - i);
      from.keys(i, m, digits);
      for (int64_t j = 0; j < m; ++j) digits[j] = digits[j] >> low & (kDigits - 1);
      work(c, i, m, digits);
    }
  });
}

// Of n items the one that has rank k by key and position; all share the digits from `shift` up. Where they are many,
// only those with the same next digit as the one looked for are kept.
template <class Item, class From> Item item_of_rank(const From& from, int64_t n, int64_t k, int shift) {
  if (n <= kHandful) {
    Item items[kHandful] = {};
    from.load(n, items);
    Item found = items[0];
    for (int64_t i = 1; i < n; ++i) found = rank_of(items, n, i) == k ? items[i] : found;
    return found;
  }
  if (n <= kFewItems) {
    constexpr int64_t kOnStack = 64;
    Item few[kOnStack] = {};
    auto more = n > kOnStack ? buffer_for<Item>(n) : nullptr;
    Item* items = more ? more.get() : few;
    from.load(n, items);
    std::nth_element(items, items + k, items + n);
    return items[k];
  }
  if (shift == 0) return from.item(k);  // equal keys
  const int low = std::max(0, shift - kDigitBits);
  const int64_t chunks = (n + kSelectChunk - 1) / kSelectChunk;
  // Two counters for a digit: equal neighbours need not wait for each other.
  auto counts = std::make_unique<uint32_t[]>(static_cast<size_t>(2 * chunks * kDigits));
  auto count_of = [&](int64_t c, uint32_t digit) {
    const uint32_t* count = counts.get() + 2 * c * kDigits + digit;
    return count[0] + count[kDigits];
  };
  each_digits<Item>(from, n, low, chunks, [&](int64_t c, int64_t, int64_t m, const KeyOf<Item>* digits) {
    uint32_t *count = counts.get() + 2 * c * kDigits, *other = count + kDigits;
    int64_t j = 0;
    for (; j + 2 <= m; j += 2) ++count[digits[j]], ++other[digits[j + 1]];
    if (j < m) ++count[digits[j]];
  });
  uint32_t wanted = 0;
  int64_t kept = 0;
  for (;; ++wanted) {
    kept = 0;
    for (int64_t c = 0; c < chunks; ++c) kept += count_of(c, wanted);
    if (k < kept) break;
    k -= kept;
  }
  if (kept == n) {  // on to the first digit that tells any two apart
    const uint64_t one = key_of(from.item(0));
    KeyOf<Item> differ = 0, block[kKeyBlock];
    for (int64_t i = 0; i < n; i += kKeyBlock) {
      const int64_t m = std::min(kKeyBlock, n - i);
      from.keys(i, m, block);
      for (int64_t j = 0; j < m; ++j) differ |= block[j] ^ static_cast<KeyOf<Item>>(one);
    }
    return item_of_rank<Item>(from, n, k, std::bit_width(differ));
  }
  auto items = buffer_for<Item>(kept);
  auto ends = buffer_for<int64_t>(chunks);  // how far each chunk has written
  for (int64_t c = 0, sum = 0; c < chunks; ++c) {
    ends[static_cast<size_t>(c)] = sum;
    sum += count_of(c, wanted);
  }
  each_digits<Item>(from, n, low, chunks, [&](int64_t c, int64_t first, int64_t m, const KeyOf<Item>* digits) {
    KeyOf<Item> found = 0;
    for (int64_t j = 0; j < m; ++j) found += digits[j] == wanted;
    if (!found) return;
    int64_t& end = ends[static_cast<size_t>(c)];
    for (int64_t j = 0; j < m; ++j)
      if (digits[j] == wanted) items[static_cast<size_t>(end++)] = from.item(first + j);
  });
  return item_of_rank<Item>(KeptItems<Item>{items.get()}, kept, k, low);
}

// The position in its row of what is asked for.
template <class T, class Item> int64_t selected_index(Select what, int64_t k, const T* x, int64_t stride, int64_t n) {
  if (what == Select::Mode) {
    constexpr int64_t kOnStack = 64;
    Item few[2 * kOnStack];
    auto more = n > kOnStack ? buffer_for<Item>(2 * n) : nullptr;
    Item* items = more ? more.get() : few;
    load_items<Item>(x, stride, 0, n, false, items);
    if constexpr (has_nan<T>) {
      if (std::any_of(items, items + n, [](const Item& item) { return key_of(item) == kNanKey<T>; })) {
        auto indexed = buffer_for<Indexed>(n);
        for (int64_t i = 0; i < n; ++i) indexed[i] = {static_cast<double>(x[i * stride]), i};
        return mode_index_among_nans(indexed.get(), n);
      }
    }
    return mode_index<T>(items, items + n, n);
  }
  if (what != Select::Kth) {
    int64_t nans = 0;
    if constexpr (has_nan<T>) {
      if (stride == 1)
        for (int64_t i = 0; i < n; ++i) nans += to_key(x[i]) == kNanKey<T>;
      else
        for (int64_t i = 0; i < n; ++i) nans += to_key(x[i * stride]) == kNanKey<T>;
    }
    if (nans && (what == Select::Median || nans == n)) {
      int64_t first = 0;
      while (to_key(x[first * stride]) != kNanKey<T>) ++first;
      return first;
    }
    k = (n - nans - 1) / 2;
  }
  return index_of(item_of_rank<Item>(RowItems<Item, T>{x, stride}, n, k, 8 * static_cast<int>(sizeof(T))));
}

template <class T>
void select_of(Select what, int64_t k, const View* values, const View* indices, const View& in, int dim) {
  const View* const views[3] = {&in, values ? values : indices, indices ? indices : values};
  Rows<3> rows(views, dim);
  int64_t n = rows.length[0];
  if (n == 0) return;
  auto row = [&](const int64_t* at) {
    const T* x = in.as<T>() + at[0];
    int64_t index = 0;
    with_item<T>(
        n, [&](auto tag) { index = selected_index<T, typename decltype(tag)::type>(what, k, x, rows.stride[0], n); });
    if (values) values->as<T>()[at[1]] = x[index * rows.stride[0]];
    if (indices) indices->as<int64_t>()[at[2]] = index;
  };
  rows.each(4096 / (n + 5), row);  // a row costs something of its own
}

template <class T> void histogram_of(const View& out, const View& in, const View* weights, double low, double high) {
  using C = compute_t<T>;
  int64_t bins = out.sizes[0], n = in.sizes[0];
  C first = static_cast<C>(low), last = static_cast<C>(high);
  auto sums = std::make_unique<double[]>(static_cast<size_t>(std::max<int64_t>(bins, 1)));
  const T* x = in.as<T>();
  const T* w = weights ? weights->as<T>() : nullptr;
  auto bin_of = [=](C v) { return (v - first) * static_cast<C>(bins) / (last - first); };
  constexpr int64_t kBlock = 256;
  if (!w && bins <= 1 << 20 && n >= kBlock) {
    // The bins of a block as vectors, then their counts. What lies outside is counted behind the last.
    auto counts = std::make_unique<int64_t[]>(static_cast<size_t>(bins + 1));
    for (int64_t i = 0; i < n; i += kBlock) {
      int32_t at[kBlock];
      const auto m = static_cast<int32_t>(std::min(kBlock, n - i)), most = static_cast<int32_t>(bins - 1);
      for (int32_t j = 0; j < m; ++j) {
        const C v = static_cast<C>(x[i + j]);
        const bool inside = (v >= first) & (v <= last);
        const auto bin = static_cast<int32_t>(inside ? bin_of(v) : C(0));
        at[j] = inside ? (bin < most ? bin : most) : most + 1;
      }
      for (int32_t j = 0; j < m; ++j) ++counts[static_cast<size_t>(at[j])];
    }
    for (int64_t b = 0; b < bins; ++b)
      sums[static_cast<size_t>(b)] = static_cast<double>(counts[static_cast<size_t>(b)]);
    n = 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    C v = static_cast<C>(x[i]);
    if (!(v >= first && v <= last)) continue;
    const auto bin = static_cast<int64_t>(bin_of(v));
    sums[static_cast<size_t>(std::min(bin, bins - 1))] += w ? static_cast<double>(static_cast<C>(w[i])) : 1.0;
  }
  T* o = out.as<T>();
  for (int64_t b = 0; b < bins; ++b)
    o[b] = static_cast<T>(static_cast<C>(static_cast<double>(static_cast<C>(o[b])) + sums[static_cast<size_t>(b)]));
}

}  // namespace

void select(Select what, int64_t k, const View* values, const View* indices, const View& in, int dim) {
  visit_ordered(in.dtype,
                [&](auto tag) { select_of<typename decltype(tag)::type>(what, k, values, indices, in, dim); });
}

void histogram(const View& out, const View& in, const View* weights, double low, double high) {
  switch (in.dtype) {
    case DType::Float16: return histogram_of<float16>(out, in, weights, low, high);
    case DType::BFloat16: return histogram_of<bfloat16>(out, in, weights, low, high);
    case DType::Float32: return histogram_of<float>(out, in, weights, low, high);
    case DType::Float64: return histogram_of<double>(out, in, weights, low, high);
    default: fail(ErrorKind::Runtime, "histc is not defined for ", info(in.dtype).name);
  }
}

void bincount(const View& out, const View& in, const View* weights) {
  int64_t n = in.sizes[0], bins = out.sizes[0];
  const int64_t* x = in.as<int64_t>();
  constexpr int64_t kTables = 4, kMostBins = 1024;
  if (!weights && in.strides[0] == 1 && bins <= kMostBins && n > 4 * bins) {
    // Several counters for each value, so that equal neighbours do not wait for each other.
    int64_t bad = 0;  // its sign is set once a value or its distance to the end is negative
    for (int64_t i = 0; i < n; ++i) bad |= x[i] | (bins - 1 - x[i]);
    if (bad >= 0) {
      auto counts = std::make_unique<int64_t[]>(static_cast<size_t>(kTables * bins));
      int64_t i = 0;
      for (; i + kTables <= n; i += kTables)
        for (int64_t k = 0; k < kTables; ++k) ++counts[static_cast<size_t>(k * bins + x[i + k])];
      for (; i < n; ++i) ++counts[static_cast<size_t>(x[i])];
      for (int64_t b = 0; b < bins; ++b)
        for (int64_t k = 0; k < kTables; ++k) out.as<int64_t>()[b] += counts[static_cast<size_t>(k * bins + b)];
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    int64_t v = x[i * in.strides[0]];
    CHECK(v >= 0 && v < bins, Index, "bincount: value ", v, " is outside of [0, ", bins, ")");
    if (weights) out.as<double>()[v] += weights->as<double>()[i * weights->strides[0]];
    else ++out.as<int64_t>()[v];
  }
}

}  // namespace rl::RL_ISA
