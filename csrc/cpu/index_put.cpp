#include "base/parallel.h"
#include "cpu/index.h"
#include "cpu/places.h"

namespace rl::RL_ISA {

namespace {

// Elements that differ in a dimension where the target has a stride never meet, so those dimensions are split
// over the threads; the others, along which places may be equal, are walked in order within a piece.
template <int N> struct Split {
  int free_count = 0, serial_count = 0;
  int free[kMaxDims], serial[kMaxDims];
  int64_t free_total = 1, serial_total = 1;

  explicit Split(const Nest<N>& nest) {
    for (int d = 0; d < nest.ndim; ++d) {
      if (nest.strides[d][0] != 0) free[free_count++] = d, free_total *= nest.sizes[d];
      else serial[serial_count++] = d, serial_total *= nest.sizes[d];
    }
  }
};

template <int K> void put_at(const View& target, const View& values, const Places& places, const PutLoops& loops) {
  const View* views[2 + K] = {&target, &values};
  for (int k = 0; k < K; ++k) views[2 + k] = &places.indices[k];
  constexpr int N = 2 + K;
  Nest<N> nest(views, Order::Repeated);
  PlaceSet<K> set(places, itemsize(target.dtype));
  Split<N> split(nest);
  const int64_t* step = nest.strides[0];
  bool row = true;
  for (int k = 0; k < K; ++k) row &= step[2 + k] == 0;
  row &= step[0] != 0;  // along a serial run equal places must be combined one by one, which a vector would not do

  // Short rows whose places differ within the row only: as many as a chunk holds go as one run, since values and
  // indices of one row continue those of the row before.
  bool continues = split.free_count > 0 && split.serial_count == 1 && step[0] == 0 && nest.sizes[0] <= kChunk / 4;
  if (continues) {
    const int64_t* next = nest.strides[split.free[0]];
    for (int k = 1; k < N; ++k) continues &= next[k] == nest.sizes[0] * step[k];
  }
  auto run_rows = [&](char* const* at, int64_t rows) {
    const int64_t n = nest.sizes[0], next = nest.strides[split.free[0]][0];
    int64_t offsets[kChunk];
    char* from[K];
    for (int64_t r = 0, m; r < rows; r += m) {
      m = kChunk / n < rows - r ? kChunk / n : rows - r;
      for (int k = 0; k < K; ++k) from[k] = at[2 + k] + r * n * step[2 + k];
      set.resolve(from, step + 2, m * n, offsets);
      for (int64_t i = 1; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) offsets[i * n + j] += i * next;
      loops.each(at[0] + r * next, 0, at[1] + r * n * step[1], step[1], offsets, m * n);
    }
  };
  auto run = [&](char* const* at, int64_t n) {
    if (row) return loops.row(at[0] + set.resolve_one(at + 2), step[0], at[1], step[1], n);
    int64_t offsets[kChunk];
    char* from[K];
    for (int64_t i = 0; i < n; i += kChunk) {
      int64_t m = n - i < kChunk ? n - i : kChunk;
      for (int k = 0; k < K; ++k) from[k] = at[2 + k] + i * step[2 + k];
      set.resolve(from, step + 2, m, offsets);
      loops.each(at[0] + i * step[0], step[0], at[1] + i * step[1], step[1], offsets, m);
    }
  };

  // Walks all serial dimensions from the given pointers, `n` elements of the innermost dimension at a time.
  bool inner_free = step[0] != 0;
  auto walk = [&](char* const* start, int64_t n) {
    char* at[N];
    for (int k = 0; k < N; ++k) at[k] = start[k];
    int64_t index[kMaxDims] = {};
    int first = inner_free ? 0 : 1;  // the innermost dimension is the run itself when serial
    for (;;) {
      run(at, n);
      int s = first;
      for (; s < split.serial_count; ++s) {
        int d = split.serial[s];
        for (int k = 0; k < N; ++k) at[k] += nest.strides[d][k];
        if (++index[s] < nest.sizes[d]) break;
        for (int k = 0; k < N; ++k) at[k] -= nest.sizes[d] * nest.strides[d][k];
        index[s] = 0;
      }
      if (s == split.serial_count) return;
    }
  };

  auto piece = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      char* at[N];
      for (int k = 0; k < N; ++k) at[k] = nest.data[k];
      int64_t rest = begin, n = inner_free ? 0 : nest.sizes[0];
      for (int f = 0; f < split.free_count; ++f) {
        int d = split.free[f];
        int64_t i = rest % nest.sizes[d];
        rest /= nest.sizes[d];
        for (int k = 0; k < N; ++k) at[k] += i * nest.strides[d][k];
        if (f == 0 && continues) {
          n = nest.sizes[d] - i < end - begin ? nest.sizes[d] - i : end - begin;
          continue;
        }
        if (f == 0 && inner_free) n = nest.sizes[d] - i < end - begin ? nest.sizes[d] - i : end - begin;
      }
      if (continues) run_rows(at, n);
      else walk(at, n);
      begin += inner_free || continues ? n : 1;
    }
  };
  // Every target element sees its values in the same order however the free dimensions are cut.
  int64_t grain = 8192 / split.serial_total + 1;
  int64_t share = split.free_total / (4 * num_threads()) + 1;
  if (share > grain) grain = share;
  if (inner_free && grain < 128) grain = 128;  // neighbours share cache lines
  const int64_t few = inner_free ? 2 : 4;      // pieces of one size, in multiples that few threads share evenly
  const int64_t pieces = ((split.free_total + grain - 1) / grain + few - 1) / few * few;
  grain = (split.free_total + pieces - 1) / pieces;
  if (nest.total <= 32768 || split.free_total <= grain) return piece(0, split.free_total);
  parallel_for(0, split.free_total, grain, piece);
}

}  // namespace

void put(const View& target, const View& values, const Places& places, Combine combine) {
  if (values.numel() == 0) return;
  PutLoops loops = put_loops(target.dtype, combine);
  if (places.count == 1) return put_at<1>(target, values, places, loops);
  if (places.count == 2) return put_at<2>(target, values, places, loops);
  Folded folded(places, itemsize(target.dtype));
  put_at<1>(target, values, folded.places(), loops);
}

}  // namespace rl::RL_ISA
