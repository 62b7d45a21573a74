// Rows of reduced-precision types added to rows of a table.
#include <algorithm>

#include "base/parallel.h"
#include "cpu/index/index.h"
#include "cpu/index/offsets.h"
#include "cpu/loops/scratch.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

// Which rows of the values go to which row of the table: `order` lists them by the table's rows, in their own order.
struct RowsByIndex {
  Scratch<int64_t> target_row, order;  // of each row of the values; of each index in the list

  RowsByIndex(const Nest<3>& nest, const OffsetSet<1>& set) : target_row(nest.sizes[1]), order(nest.sizes[1]) {
    const int64_t rows = nest.sizes[1], *next = nest.strides[1];
    const Index& index = set.index[0];
    Scratch<int64_t> first(index.size + 1);
    std::fill_n(first.get(), index.size + 1, int64_t{0});
    for (int64_t i = 0; i < rows; i += kChunk) {
      const int64_t n = std::min(kChunk, rows - i);
      char* const from[1] = {nest.data[2] + i * next[2]};
      set.resolve(from, next + 2, n, target_row.get() + i);
    }
    for (int64_t i = 0; i < rows; ++i) ++first[(target_row[i] /= index.stride) + 1];
    for (int64_t p = 0; p < index.size; ++p) first[p + 1] += first[p];
    for (int64_t i = 0; i < rows; ++i) order[first[target_row[i]]++] = i;
  }
};

template <class H> [[gnu::always_inline]] inline void add_widened(float* sums, const H* values, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) store_vec(sums + i, load_vec(sums + i) + load_vec(values + i));
  for (; i < n; ++i) sums[i] += static_cast<float>(values[i]);
}

template <class H> void add_rows_as(const Nest<3>& nest, const OffsetSet<1>& set) {
  const int64_t width = nest.sizes[0], rows = nest.sizes[1];
  const RowsByIndex by(nest, set);
  auto row_of = [&](int64_t k) { return by.target_row[by.order[k]]; };
  parallel_for(0, rows, std::max<int64_t>(1, 16384 / width), [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 1024;
    alignas(64) float sums[kBlock];
    // Rows that meet belong to the piece that has the first of them.
    while (begin < end && begin > 0 && row_of(begin) == row_of(begin - 1)) ++begin;
    for (int64_t k = begin, stop; k < end; k = stop) {
      for (stop = k + 1; stop < rows && row_of(stop) == row_of(k);) ++stop;
      H* to = reinterpret_cast<H*>(nest.data[0] + row_of(k) * set.index[0].stride);
      for (int64_t c = 0; c < width; c += kBlock) {
        const int64_t n = std::min(kBlock, width - c);
        widen(to + c, sums, n);
        for (int64_t j = k; j < stop; ++j)
          add_widened(sums, reinterpret_cast<const H*>(nest.data[1] + by.order[j] * nest.strides[1][1]) + c, n);
        narrow(sums, to + c, n);
      }
    }
  });
}

}  // namespace

bool add_half_rows(const View& target, const View& values, const IndexSpec& spec) {
  if (spec.count != 1 || !spec.strides || values.numel() == 0) return false;
  const View* views[3] = {&target, &values, &spec.indices[0]};
  const Nest<3> nest(views, Order::Repeated);
  const OffsetSet<1> set(spec, itemsize(target.dtype));
  const int64_t *step = nest.strides[0], *next = nest.strides[1];
  if (nest.ndim != 2 || step[0] != 2 || step[1] != 2 || step[2] != 0 || next[0] != 0 || set.index[0].stride <= 0)
    return false;
  if (target.dtype == DType::BFloat16) add_rows_as<bfloat16>(nest, set);
  else add_rows_as<float16>(nest, set);
  return true;
}

}  // namespace rl::RL_ISA
