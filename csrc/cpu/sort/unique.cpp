// Distinct elements and rows, and the position of values in sorted rows.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "cpu/isa.h"
#include "cpu/sort/kernels.h"
#include "cpu/sort/keys.h"

namespace rl::RL_ISA {
namespace {

// Elements the groups of equal neighbours in a sequence of n. same(i): element i equals the one before it;
// original(i): its position in the input. begin(group, i) is called at the start of each.
template <class Same, class Original, class Begin> int64_t number_groups(int64_t n, int64_t* inverse, int64_t* counts,
                                                                         const Same& same, const Original& original,
                                                                         const Begin& begin) {
  int64_t groups = 0;
  AsksSeldom asks;
  for (int64_t i = 0; i < n; ++i, asks()) {
    if (i == 0 || !same(i)) {
      begin(groups, i);
      if (counts) counts[groups] = 0;
      ++groups;
    }
    if (counts) ++counts[groups - 1];
    if (inverse) inverse[original(i)] = groups - 1;
  }
  return groups;
}

// Groups of equal neighbours, in blocks: how many begin in each, then where they go.
template <class T> int64_t unique_neighbours(T* values, int64_t* inverse, int64_t* counts, const T* x, int64_t n) {
  using C = compute_t<T>;
  constexpr int64_t kBlock = 1 << 13;
  auto begins = [&](int64_t i) -> int64_t { return i == 0 || static_cast<C>(x[i]) != static_cast<C>(x[i - 1]); };
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<int64_t> before(static_cast<size_t>(blocks) + 1, 0);
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t i0 = b * kBlock, i1 = std::min(n, i0 + kBlock);
      int64_t found = begins(i0);
      for (int64_t i = i0 + 1; i < i1; ++i) found += static_cast<C>(x[i]) != static_cast<C>(x[i - 1]);
      before[static_cast<size_t>(b) + 1] = found;
    }
  });
  for (int64_t b = 0; b < blocks; ++b) before[static_cast<size_t>(b) + 1] += before[static_cast<size_t>(b)];
  const int64_t groups = before[static_cast<size_t>(blocks)];
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t i1 = std::min(n, (b + 1) * kBlock), end = before[static_cast<size_t>(b) + 1];
      int64_t g = before[static_cast<size_t>(b)];
      // What does not begin a group is overwritten by what does; beyond the block's last group nothing is written.
      int64_t i = b * kBlock;
      for (; i < i1 && g < end; ++i) {
        values[g] = x[i];
        if (counts) counts[g] = i;
        g += begins(i);
        if (inverse) inverse[i] = g - 1;
      }
      for (; inverse && i < i1; ++i) inverse[i] = g - 1;
    }
  });
  for (int64_t g = 0; counts && g < groups; ++g) counts[g] = (g + 1 < groups ? counts[g + 1] : n) - counts[g];
  return groups;
}

// Bytes are counted: there are few different ones.
template <class T> int64_t unique_bytes(T* values, int64_t* inverse, int64_t* counts, const T* x, int64_t n) {
  constexpr int64_t kBlock = 1 << 16;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  int64_t found[256] = {}, group[256];
  auto key = [](T value) { return static_cast<size_t>(to_key(value)); };
  std::vector<std::array<int64_t, 256>> parts(static_cast<size_t>(blocks));
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      // Equal neighbours are counted in different positions: one addition need not wait for the other.
      int32_t stride[4][256] = {};
      const int64_t i1 = std::min(n, (b + 1) * kBlock);
      int64_t i = b * kBlock;
      for (; i + 4 <= i1; i += 4)
        for (int64_t k = 0; k < 4; ++k) ++stride[k][key(x[i + k])];
      for (; i < i1; ++i) ++stride[0][key(x[i])];
      for (size_t v = 0; v < 256; ++v)
        parts[static_cast<size_t>(b)][v] = stride[0][v] + stride[1][v] + stride[2][v] + stride[3][v];
    }
  });
  for (const auto& part : parts)
    for (size_t v = 0; v < 256; ++v) found[v] += part[v];
  int64_t groups = 0;
  for (size_t v = 0; v < 256; ++v) {
    if (!found[v]) continue;
    group[v] = groups;
    values[groups] = from_key<T>(static_cast<KeyBits<T>>(v));
    if (counts) counts[groups] = found[v];
    ++groups;
  }
  if (inverse)
    parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first * kBlock; i < std::min(n, last * kBlock); ++i) inverse[i] = group[key(x[i])];
    });
  return groups;
}

// Integers that lie close together, such as labels, are counted too; -1 where they do not.
template <class T> int64_t unique_labels(T* values, int64_t* inverse, int64_t* counts, const T* x, int64_t n) {
  constexpr uint64_t kMost = 1 << 16;
  constexpr int64_t kPiece = 1 << 15;
  if (n == 0) return 0;
  T least = x[0], most = x[0];
  for (int64_t i = 1; i < n; ++i) least = std::min(least, x[i]), most = std::max(most, x[i]);
  const uint64_t range = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
  if (range >= kMost || range / 4 > static_cast<uint64_t>(n)) return -1;
  auto label = [=](T value) {
    return static_cast<size_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(least));
  };
  std::vector<int64_t> found(static_cast<size_t>(range) + 1, 0), group(static_cast<size_t>(range) + 1);
  for (int64_t i = 0; i < n; ++i) ++found[label(x[i])];
  int64_t groups = 0;
  for (size_t v = 0; v <= range; ++v) {
    if (!found[v]) continue;
    group[v] = groups;
    values[groups] = static_cast<T>(static_cast<uint64_t>(least) + v);
    if (counts) counts[groups] = found[v];
    ++groups;
  }
  if (inverse)
    parallel_for(0, n, kPiece, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) inverse[i] = group[label(x[i])];
    });
  return groups;
}

template <class T>
int64_t unique_of(T* values, int64_t* inverse, int64_t* counts, const T* x, int64_t n, bool consecutive) {
  auto is_nan = [](uint64_t key) { return has_nan<T> && key == kNanKey<T>; };
  if (consecutive) return unique_neighbours(values, inverse, counts, x, n);
  if constexpr (sizeof(T) == 1) return unique_bytes(values, inverse, counts, x, n);
  if constexpr (std::is_integral_v<T>)
    if (int64_t groups = unique_labels(values, inverse, counts, x, n); groups >= 0) return groups;
  int64_t groups = 0;
  with_item<T>(n, [&](auto tag) {
    using Item = typename decltype(tag)::type;
    auto memory = std::make_unique_for_overwrite<Item[]>(static_cast<size_t>(std::max<int64_t>(2 * n, 1)));
    load_row<Item>(x, 1, n, false, memory.get());
    const Item* sorted = sort_items(memory.get(), memory.get() + n, n, 8 * static_cast<int>(sizeof(T)));
    groups = number_groups(
        n, inverse, counts,
        [&](int64_t i) { return key_of(sorted[i]) == key_of(sorted[i - 1]) && !is_nan(key_of(sorted[i])); },
        [&](int64_t i) { return index_of(sorted[i]); },
        [&](int64_t g, int64_t i) { values[g] = x[index_of(sorted[i])]; });
  });
  return groups;
}

// Rows of keys, which are in the order of the elements; those that are `nan` equal nothing.
int64_t unique_key_rows(int64_t* first, int64_t* inverse, int64_t* counts, const uint64_t* keys, int64_t rows,
                        int64_t width, bool consecutive, std::optional<uint64_t> nan) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t(0));
  auto row = [&](int64_t i) { return keys + order[static_cast<size_t>(i)] * width; };
  AsksSeldom asks;
  // How many keys two rows begin with that are equal.
  auto equal_keys = [&](const uint64_t* p, const uint64_t* q) {
    int64_t j = 0;
    while (j < width && p[j] == q[j]) ++j;
    asks(j + 1);
    return j;
  };
  if (!consecutive) {
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const uint64_t *p = keys + a * width, *q = keys + b * width;
      const int64_t j = equal_keys(p, q);
      return j < width && p[j] < q[j];
    });
  }
  return number_groups(
      rows, inverse, counts,
      [&](int64_t i) {
        const uint64_t *p = row(i - 1), *q = row(i);
        return equal_keys(p, q) == width && !(nan && std::find(p, p + width, *nan) != p + width);
      },
      [&](int64_t i) { return order[static_cast<size_t>(i)]; },
      [&](int64_t g, int64_t i) { first[g] = order[static_cast<size_t>(i)]; });
}

// out[k] = the number of elements of `row` that stand before values[k], with kSearches positions in out. NaN stands
// after everything. The searches of several values go in step, without branches: their waits for memory overlap. Each
// halves what is left as PyTorch does, so that rows that are not sorted give PyTorch's results too; what is left to two
// searches differs by at most one element, so that only the last step can find a search that has ended.
constexpr int kSearches = 8;
template <bool kRight, bool kSorted, class T>
void find_positions(const T* row, const int64_t* sorter, int64_t n, const T* values, int count, int64_t* out) {
  using C = compute_t<T>;
  C x[kSearches];
  int64_t low[kSearches] = {}, left[kSearches];
  for (int k = 0; k < kSearches; ++k) x[k] = static_cast<C>(values[k < count ? k : 0]), left[k] = n;
  auto before = [&](int k, int64_t at) -> int64_t {
    C y = static_cast<C>(row[kSorted ? at : sorter[at]]);
    return kRight ? !(y > x[k]) : !(y >= x[k]);
  };
  for (; n > 1; n /= 2)
    for (int k = 0; k < kSearches; ++k) {
      int64_t half = left[k] / 2, after = before(k, low[k] + half);
      low[k] += -after & (half + 1);
      left[k] = half - (after & ~left[k] & 1);
    }
  if (n == 1)
    for (int k = 0; k < kSearches; ++k)
      if (left[k]) low[k] += before(k, low[k]);
  for (int k = 0; k < kSearches; ++k) out[k] = low[k];
}

template <class T>
void searchsorted_of(const View& out, const View& sorted, const View& values, const View* sorter, bool right) {
  int64_t total = values.numel(), n = sorted.ndim ? sorted.sizes[sorted.ndim - 1] : 1;
  int64_t per_row = sorted.ndim > 1 ? values.sizes[values.ndim - 1] : std::max<int64_t>(total, 1);
  const T *s = sorted.as<T>(), *v = values.as<T>();
  const int64_t* order = sorter ? sorter->as<int64_t>() : nullptr;
  if (order) {
    int64_t all = sorted.numel();
    for (int64_t i = 0; i < all; ++i)
      CHECK(order[i] >= 0 && order[i] < n, Runtime, "torch.searchsorted(): sorter index out of range");
  }
  const bool narrow = out.dtype == DType::Int32;
  auto* find = right ? (order ? &find_positions<true, false, T> : &find_positions<true, true, T>)
                     : (order ? &find_positions<false, false, T> : &find_positions<false, true, T>);
  int64_t steps = 2 + std::bit_width(static_cast<uint64_t>(n));
  parallel_for(0, total, std::max<int64_t>(kSearches, 16384 / steps / kSearches * kSearches),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last;) {
                   int64_t row = i / per_row, at = row * n, row_end = std::min(last, (row + 1) * per_row);
                   int count = static_cast<int>(std::min<int64_t>(kSearches, row_end - i));
                   int64_t positions[kSearches];
                   find(s + at, order ? order + at : nullptr, n, v + i, count, positions);
                   for (int k = 0; k < count; ++k, ++i) {
                     if (narrow) out.as<int32_t>()[i] = static_cast<int32_t>(positions[k]);
                     else out.as<int64_t>()[i] = positions[k];
                   }
                 }
               });
}

}  // namespace

int64_t unique(const View& values, const View* inverse, const View* counts, const View& in, bool consecutive) {
  int64_t groups = 0;
  bool done = visit_ordered(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    groups = unique_of<T>(values.as<T>(), inverse ? inverse->as<int64_t>() : nullptr,
                          counts ? counts->as<int64_t>() : nullptr, in.as<T>(), in.numel(), consecutive);
  });
  CHECK(done, NotImplemented, "unique is not defined for ", info(in.dtype).name);
  return groups;
}

int64_t unique_rows(const View& first, const View* inverse, const View* counts, const View& in, bool consecutive) {
  const int64_t n = in.numel();
  auto keys = std::make_unique_for_overwrite<uint64_t[]>(static_cast<size_t>(n));
  std::optional<uint64_t> nan;
  bool done = visit_ordered(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, n, 1 << 15, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) keys[static_cast<size_t>(i)] = to_key(in.as<T>()[i]);
    });
    if constexpr (has_nan<T>) nan = kNanKey<T>;
  });
  CHECK(done, NotImplemented, "unique is not defined for ", info(in.dtype).name);
  return unique_key_rows(first.as<int64_t>(), inverse ? inverse->as<int64_t>() : nullptr,
                         counts ? counts->as<int64_t>() : nullptr, keys.get(), in.sizes[0], in.sizes[1], consecutive,
                         nan);
}

void searchsorted(const View& out, const View& sorted, const View& values, const View* sorter, bool right) {
  bool done = visit_ordered(sorted.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    searchsorted_of<T>(out, sorted, values, sorter, right);
  });
  CHECK(done, Runtime, "searchsorted is not defined for ", info(sorted.dtype).name);
}

}  // namespace rl::RL_ISA
