#include "cpu/index/index.h"

#include "base/interrupt.h"

namespace rl::RL_ISA {

namespace {

template <class I> void repeat_of(int64_t* out, int64_t total, const I* repeats, int64_t step, int64_t n) {
  int64_t sum = 0;
  AsksSeldom asks;
  for (int64_t i = 0; i < n; ++i) {
    int64_t count = repeats[i * step];
    CHECK(count >= 0, Runtime, "repeat_interleave: repeats can not be negative, got ", count);
    CHECK(count <= total - sum, Runtime, "repeat_interleave: the repeats sum to more than output_size = ", total);
    for (int64_t j = 0; j < count; ++j) out[sum + j] = i;
    sum += count;
    asks(count + 1);
  }
  CHECK(sum == total, Runtime, "repeat_interleave: the repeats sum to ", sum, ", not to output_size = ", total);
}

void repeat_indices(const View& out, const View& repeats) {
  int64_t n = repeats.numel(), step = repeats.ndim ? repeats.strides[0] : 1;
  if (repeats.dtype == DType::Int64) repeat_of(out.as<int64_t>(), out.numel(), repeats.as<int64_t>(), step, n);
  else repeat_of(out.as<int64_t>(), out.numel(), repeats.as<int32_t>(), step, n);
}

template <class I> void triangle_of(const View& out, int64_t rows, int64_t columns, int64_t diagonal, bool upper) {
  I *r = out.as<I>(), *c = r + out.strides[0];
  int64_t n = out.sizes[1], step = out.strides[1], i = 0;
  int64_t edge = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
  AsksSeldom asks;
  for (int64_t row = 0; row < rows && i < n; ++row) {
    asks(columns);
    int64_t split = row + edge + (upper ? 0 : 1);
    split = split < 0 ? 0 : split > columns ? columns : split;
    for (int64_t column = upper ? split : 0; column < (upper ? columns : split) && i < n; ++column, ++i) {
      r[i * step] = static_cast<I>(row);
      c[i * step] = static_cast<I>(column);
    }
  }
}

void triangle_indices(const View& out, int64_t rows, int64_t columns, int64_t diagonal, bool upper) {
  if (out.dtype == DType::Int64) triangle_of<int64_t>(out, rows, columns, diagonal, upper);
  else triangle_of<int32_t>(out, rows, columns, diagonal, upper);
}

}  // namespace

extern const IndexKernels index_kernels;
const IndexKernels index_kernels = {get,
                                    put,
                                    add_half_rows,
                                    masked_fill,
                                    count_nonzero,
                                    masked_select,
                                    masked_scatter,
                                    nonzero,
                                    repeat_indices,
                                    triangle_indices};

}  // namespace rl::RL_ISA
