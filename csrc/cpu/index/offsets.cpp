#include "cpu/index/offsets.h"

namespace rl::RL_ISA {

void fail_at(const Index& index, int dim, ErrorKind kind, const char* at, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; ++i, at += step) {
    int64_t v = index.padded ? *reinterpret_cast<const int64_t*>(at) : *reinterpret_cast<const int32_t*>(at);
    if (v >= index.size || v < (index.wrap ? -index.size : 0))
      fail(kind, "index ", v, " is out of bounds for dimension ", dim, " with size ", index.size);
  }
  fail(kind, "an index is out of bounds for dimension ", dim, " with size ", index.size);
}

Folded::Folded(const IndexSpec& spec, int64_t item) {
  const View& first = spec.indices[0];
  int64_t sizes[kMaxDims], numel = 1;
  for (int d = first.ndim - 1; d >= 0; --d) {
    bool used = false;
    for (int k = 0; k < spec.count; ++k) used |= spec.indices[k].strides[d] != 0;
    strides_[d] = used ? numel : 0;
    sizes[d] = used ? first.sizes[d] : first.sizes[d] != 0;  // an empty result has no positions to check
    numel *= sizes[d];
  }
  offsets_ = std::make_unique<int64_t[]>(numel);
  view_ = {offsets_.get(), first.sizes, strides_, first.ndim, DType::Int64};
  View out{offsets_.get(), sizes, strides_, first.ndim, DType::Int64};
  for (int k = 0; k < spec.count; ++k) {
    View one{spec.indices[k].data, sizes, spec.indices[k].strides, first.ndim, spec.indices[k].dtype};
    IndexSpec single{&one, 1, spec.sizes + k, spec.strides + k, spec.dims + k, spec.error, spec.wrap};
    OffsetSet<1> set(single, item);
    Nest<2> nest({&out, &one});
    int64_t step = nest.strides[0][1];
    nest.parallel_runs(16384, [&](char* const* at, int64_t n) {
      int64_t offsets[kChunk], *o = reinterpret_cast<int64_t*>(at[0]);
      for (int64_t i = 0; i < n; i += kChunk) {
        int64_t m = n - i < kChunk ? n - i : kChunk;
        char* from = at[1] + i * step;
        set.resolve(&from, &step, m, offsets);
        for (int64_t j = 0; j < m; ++j) o[i + j] += offsets[j];
      }
    });
  }
}

}  // namespace rl::RL_ISA
