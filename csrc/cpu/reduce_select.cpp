// Order statistics along a dimension, and histograms.
#include <algorithm>
#include <memory>

#include "base/check.h"
#include "cpu/isa.h"
#include "cpu/reduce_table.h"
#include "cpu/rows.h"
#include "cpu/sort_keys.h"

namespace rl::RL_ISA {
namespace {

// The place in its row of what is asked for. `items` are the row's, in their old order.
template <class T, class Item> int64_t place_of(Select what, int64_t k, Item* items, Item* room, int64_t n) {
  auto is_nan = [](const Item& item) { return has_nan<T> && key_of(item) == kNanKey<T>; };
  if (what == Select::Mode) {
    const Item* sorted = sort_items(items, room, n, 8 * static_cast<int>(sizeof(T)));
    int64_t best = 0, most = 0;
    for (int64_t i = 0, run = 0; i < n; ++i) {
      run = i && key_of(sorted[i]) == key_of(sorted[i - 1]) && !is_nan(sorted[i]) ? run + 1 : 1;
      bool ends = i + 1 == n || key_of(sorted[i + 1]) != key_of(sorted[i]) || is_nan(sorted[i]);
      if (ends && run > most) most = run, best = index_of(sorted[i]);
    }
    return best;
  }
  if (what != Select::Kth) {
    int64_t nans = 0, first_nan = -1;
    if constexpr (has_nan<T>) {
      for (int64_t i = 0; i < n; ++i)
        if (is_nan(items[i]) && nans++ == 0) first_nan = i;
    }
    if (nans && (what == Select::Median || nans == n)) return first_nan;
    k = (n - nans - 1) / 2;
  }
  std::nth_element(items, items + k, items + n);
  return index_of(items[k]);
}

template <class T>
void select_of(Select what, int64_t k, const View* values, const View* indices, const View& in, int dim) {
  const View* const views[3] = {&in, values ? values : indices, indices ? indices : values};
  Rows<3> rows(views, dim);
  int64_t n = rows.length[0];
  if (n == 0) return;
  with_item<T>(n, [&](auto tag) {
    using Item = typename decltype(tag)::type;
    rows.each(4096 / n, [&](const int64_t* at) {
      auto items = std::make_unique_for_overwrite<Item[]>(static_cast<size_t>(2 * n));
      const T* x = in.as<T>() + at[0];
      load_items<Item>(x, rows.apart[0], 0, n, false, items.get());
      int64_t place = place_of<T>(what, k, items.get(), items.get() + n, n);
      if (values) values->as<T>()[at[1]] = x[place * rows.apart[0]];
      if (indices) indices->as<int64_t>()[at[2]] = place;
    });
  });
}

template <class T> void histogram_of(const View& out, const View& in, const View* weights, double low, double high) {
  using C = compute_t<T>;
  int64_t bins = out.sizes[0], n = in.sizes[0];
  C first = static_cast<C>(low), last = static_cast<C>(high);
  auto sums = std::make_unique<double[]>(static_cast<size_t>(std::max<int64_t>(bins, 1)));
  const T* x = in.as<T>();
  const T* w = weights ? weights->as<T>() : nullptr;
  for (int64_t i = 0; i < n; ++i) {
    C v = static_cast<C>(x[i]);
    if (!(v >= first && v <= last)) continue;
    auto bin = static_cast<int64_t>((v - first) * static_cast<C>(bins) / (last - first));
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
