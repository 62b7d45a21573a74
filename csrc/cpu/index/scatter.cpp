#include "base/parallel.h"
#include "cpu/features.h"
#include "cpu/index/compress_avx512.h"
#include "cpu/index/index.h"
#include "cpu/index/offsets.h"
#include "cpu/simd/transpose.h"

namespace rl::RL_ISA {

namespace {

// Elements that differ in a dimension where the target has a stride never meet, so those dimensions are split
// over the threads; the others, along which positions may be equal, are walked in order within a piece.
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

// Keeps the offsets within [low, low + span), and their values; without branches, as positions are in no order.
template <class U> int64_t keep_band(const int64_t* offsets, const char* values, int64_t step, int64_t n, int64_t low,
                                     int64_t span, int64_t* kept, void* kept_values) {
  U* to = static_cast<U*>(kept_values);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    kept[count] = offsets[i];
    to[count] = *reinterpret_cast<const U*>(values + i * step);
    count += static_cast<uint64_t>(offsets[i] - low) < static_cast<uint64_t>(span);
  }
  return count;
}

// One long run of positions that may be equal: every piece reads all of them and takes those in its band of the target,
// so that an element sees its values in the same order whatever the number of bands. It is profitable where the target
// is larger than a core's nearest cache, so that most of the time goes on waiting for its lines.
constexpr int64_t kBandedRun = 32768, kBandedBytes = 1 << 16, kMostBands = 8;

void put_in_bands(const Nest<3>& nest, const OffsetSet<1>& set, int64_t item, const PutLoops& loops) {
  const int64_t* step = nest.strides[0];
  const int64_t bands = num_threads() < kMostBands ? num_threads() : kMostBands;
  const int64_t span = (set.index[0].size + bands - 1) / bands * set.index[0].stride;
  const bool padded = cpu::has_avx512() && step[1] == item;
  parallel_for(0, bands, 1, [&](int64_t band, int64_t) {
    int64_t offsets[kChunk], kept[kChunk + 8];
    alignas(64) char values[(kChunk + 8) * 16];
    for (int64_t i = 0; i < nest.total; i += kChunk) {
      const int64_t n = nest.total - i < kChunk ? nest.total - i : kChunk;
      char* const from[1] = {nest.data[2] + i * step[2]};
      set.resolve(from, step + 2, n, offsets);
      const char* value = nest.data[1] + i * step[1];
      const int64_t low = band * span;
      int64_t count = 0;
      visit_size(item, [&](auto u) {
        using U = decltype(u);
        if constexpr (sizeof(U) == 4 || sizeof(U) == 8) {
          if (padded && n % 8 == 0) {
            count = avx512::keep_band<U>(offsets, value, n, low, span, kept, values);
            return;
          }
        }
        count = keep_band<U>(offsets, value, step[1], n, low, span, kept, values);
      });
      loops.each(nest.data[0], 0, values, item, kept, count);
    }
  });
}

// Rows that go to rows of the target, at positions that may be equal: in bands of the target's rows, as above.
constexpr int64_t kRowsInBands = 16384, kFewRows = 64, kRowsAhead = 8;

void put_rows(const Nest<3>& nest, const OffsetSet<1>& set, const PutLoops& loops) {
  const int64_t *step = nest.strides[0], *next = nest.strides[1], rows = nest.sizes[1];
  const Index& index = set.index[0];
  const bool divided = nest.total > kRowsInBands && index.checked && index.stride > 0 && !in_parallel();
  const int64_t bands = divided ? (num_threads() < kMostBands ? num_threads() : kMostBands) : 1;
  const int64_t span = (index.size + bands - 1) / bands * index.stride;
  auto run = [&](int64_t band, int64_t) {
    int64_t offsets[kChunk], kept[kChunk + kRowsAhead];
    for (int64_t i = 0; i < rows; i += kChunk) {
      const int64_t n = rows - i < kChunk ? rows - i : kChunk, low = band * span;
      char* const from[1] = {nest.data[2] + i * next[2]};
      set.resolve(from, next + 2, n, offsets);
      int64_t count = 0;
      for (int64_t j = 0; j < n; ++j) {
        kept[count] = j;
        count += bands == 1 || static_cast<uint64_t>(offsets[j] - low) < static_cast<uint64_t>(span);
      }
      if (count == 0) continue;
      for (int64_t j = 0; j < kRowsAhead; ++j) kept[count + j] = kept[count - 1];
      for (int64_t j = 0; j < count; ++j) {
        __builtin_prefetch(nest.data[0] + offsets[kept[j + kRowsAhead]], 1);
        loops.row(nest.data[0] + offsets[kept[j]], step[0], nest.data[1] + (i + kept[j]) * next[1], step[1],
                  nest.sizes[0]);
      }
    }
  };
  if (bands == 1) run(0, 1);
  else parallel_for(0, bands, 1, run);
}

// A put of K index tensors, walked run by run. Dimensions along which positions cannot be equal are free to be cut
// among threads; along the serial ones every target element sees its values in order.
template <int K> class Put {
 public:
  Put(const View& target, const View& values, const IndexSpec& spec, const PutLoops& put_loops)
      : nest_(views_of(target, values, spec)),
        set_(spec, itemsize(target.dtype)),
        split_(nest_),
        loops_(put_loops),
        item_(itemsize(target.dtype)) {
    // Along a serial run equal positions must be combined one by one, which a vector would not do.
    row_ = step_[0] != 0;
    for (int k = 0; k < K; ++k) row_ &= step_[2 + k] == 0;
    // Short rows whose positions differ within the row only: as many as a chunk holds go as one run, since values and
    // indices of one row continue those of the row before.
    continues_ = split_.free_count > 0 && split_.serial_count == 1 && step_[0] == 0 && nest_.sizes[0] <= kChunk / 4;
    if (!continues_) return;
    const int64_t* next = nest_.strides[split_.free[0]];
    for (int k = 1; k < N; ++k) continues_ &= next[k] == nest_.sizes[0] * step_[k];
  }

  void run() {
    if constexpr (K == 1) {
      const Index& index = set_.index[0];
      const bool one_run = nest_.ndim == 1 && step_[0] == 0 && index.checked && index.stride > 0;
      const bool large = nest_.total > kBandedRun && index.size * index.stride > kBandedBytes;
      if (one_run && large && num_threads() > 1 && !in_parallel()) return put_in_bands(nest_, set_, item_, loops_);
      if (row_ && nest_.ndim == 2 && nest_.strides[1][0] == 0 && nest_.sizes[1] >= kFewRows)
        return put_rows(nest_, set_, loops_);
    }
    // Every target element sees its values in the same order however the free dimensions are cut.
    int64_t grain = kPutWork / split_.serial_total + 1;
    const int64_t share = split_.free_total / (4 * num_threads()) + 1;
    if (share > grain) grain = share;
    if (inner_free() && grain < kPutGrain) grain = kPutGrain;  // neighbours share cache lines
    const int64_t few = inner_free() ? 2 : 4;  // pieces of one size, in multiples that few threads share evenly
    const int64_t pieces = ((split_.free_total + grain - 1) / grain + few - 1) / few * few;
    grain = (split_.free_total + pieces - 1) / pieces;
    if (nest_.total <= kPutSerial || split_.free_total <= grain) return piece(0, split_.free_total);
    parallel_for(0, split_.free_total, grain, [this](int64_t begin, int64_t end) { piece(begin, end); });
  }

 private:
  static constexpr int N = 2 + K;
  static constexpr int64_t kPutWork = 8192, kPutGrain = 128, kPutSerial = 32768;  // elements
  Nest<N> nest_;
  OffsetSet<K> set_;
  Split<N> split_;
  const PutLoops& loops_;
  int64_t item_;
  const int64_t* step_ = nest_.strides[0];
  bool row_ = false, continues_ = false;

  static Nest<N> views_of(const View& target, const View& values, const IndexSpec& spec) {
    const View* views[N] = {&target, &values};
    for (int k = 0; k < K; ++k) views[2 + k] = &spec.indices[k];
    return Nest<N>(views, Order::Repeated);
  }
  bool inner_free() const { return step_[0] != 0; }

  // Positions of n elements from `at` on, along the innermost dimension.
  void resolve(char* const* at, int64_t first, int64_t n, int64_t* offsets) const {
    char* from[K];
    for (int k = 0; k < K; ++k) from[k] = at[2 + k] + first * step_[2 + k];
    set_.resolve(from, step_ + 2, n, offsets);
  }
  void put_run(char* const* at, int64_t n) const {
    if (row_) return loops_.row(at[0] + set_.resolve_one(at + 2), step_[0], at[1], step_[1], n);
    int64_t offsets[kChunk];
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t m = n - i < kChunk ? n - i : kChunk;
      resolve(at, i, m, offsets);
      loops_.each(at[0] + i * step_[0], step_[0], at[1] + i * step_[1], step_[1], offsets, m);
    }
  }
  void put_short_rows(char* const* at, int64_t rows) const {
    const int64_t n = nest_.sizes[0], next = nest_.strides[split_.free[0]][0];
    int64_t offsets[kChunk];
    for (int64_t r = 0, m; r < rows; r += m) {
      m = kChunk / n < rows - r ? kChunk / n : rows - r;
      resolve(at, r * n, m * n, offsets);
      for (int64_t i = 1; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) offsets[i * n + j] += i * next;
      loops_.each(at[0] + r * next, 0, at[1] + r * n * step_[1], step_[1], offsets, m * n);
    }
  }
  // Walks all serial dimensions from the given pointers, `n` elements of the innermost dimension at a time.
  void walk(char* const* start, int64_t n) const {
    char* at[N];
    for (int k = 0; k < N; ++k) at[k] = start[k];
    int64_t index[kMaxDims] = {};
    const int first = inner_free() ? 0 : 1;  // the innermost dimension is the run itself when serial
    for (;;) {
      put_run(at, n);
      int s = first;
      for (; s < split_.serial_count; ++s) {
        const int d = split_.serial[s];
        for (int k = 0; k < N; ++k) at[k] += nest_.strides[d][k];
        if (++index[s] < nest_.sizes[d]) break;
        for (int k = 0; k < N; ++k) at[k] -= nest_.sizes[d] * nest_.strides[d][k];
        index[s] = 0;
      }
      if (s == split_.serial_count) return;
    }
  }
  // Elements [begin, end) of the free dimensions.
  void piece(int64_t begin, int64_t end) const {
    const bool runs = inner_free() || continues_;  // along the innermost free dimension
    while (begin < end) {
      char* at[N];
      for (int k = 0; k < N; ++k) at[k] = nest_.data[k];
      int64_t rest = begin, n = runs ? 0 : nest_.sizes[0];
      for (int f = 0; f < split_.free_count; ++f) {
        const int d = split_.free[f];
        const int64_t i = rest % nest_.sizes[d];
        rest /= nest_.sizes[d];
        for (int k = 0; k < N; ++k) at[k] += i * nest_.strides[d][k];
        if (f == 0 && runs) n = nest_.sizes[d] - i < end - begin ? nest_.sizes[d] - i : end - begin;
      }
      if (continues_) put_short_rows(at, n);
      else walk(at, n);
      begin += runs ? n : 1;
    }
  }
};

}  // namespace

void put(const View& target, const View& values, const IndexSpec& spec, Combine combine) {
  if (values.numel() == 0) return;
  PutLoops loops = put_loops(target.dtype, combine);
  if (spec.count == 1) return Put<1>(target, values, spec, loops).run();
  if (spec.count == 2) return Put<2>(target, values, spec, loops).run();
  Folded folded(spec, itemsize(target.dtype));
  Put<1>(target, values, folded.spec(), loops).run();
}

}  // namespace rl::RL_ISA
