// Transforms of several dimensions, part by part: what one pass leaves in the cache is there for the next.
#pragma once
#include <algorithm>

#include "backend/view.h"
#include "base/parallel.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {
namespace {

// body(out, in) for parts of both, cut along dimensions outside of those that are transformed. Signals are whole, so
// that no result depends on how they are cut.
template <class F> void for_parts(const View& out, const View& in, const int* dims, int ndims, F body) {
  bool transformed[kMaxDims] = {};
  int64_t widest = 0;
  for (int i = 0; i < ndims; ++i) transformed[dims[i]] = true, widest = std::max(widest, out.strides[dims[i]]);
  int cut[kMaxDims], count = 0;  // by their strides, the largest first
  for (int d = 0; d < out.ndim; ++d) {
    if (transformed[d] || out.sizes[d] == 1 || out.strides[d] < widest) continue;
    int at = count++;
    for (; at > 0 && out.strides[cut[at - 1]] < out.strides[d]; --at) cut[at] = cut[at - 1];
    cut[at] = d;
  }
  const int64_t total = std::max(out.numel(), in.numel());
  constexpr int64_t most = 2048;             // elements of a part, where one image has fewer: they fit the first cache
  int64_t left = total, parts = 1, run = 1;  // elements in one index of the cut dimensions, `run` of the last together
  int used = 0;
  while (used < count && left > most) {
    const int64_t size = out.sizes[cut[used++]];
    left /= size;
    run = std::clamp<int64_t>(most / std::max<int64_t>(left, 1), 1, size);
    parts *= (size + run - 1) / run;
  }
  constexpr int64_t kCached = 131072;  // elements of a part that stay in the second cache
  if (ndims == 1 || parts < 2 * num_threads() || left > kCached) return body(out, in);
  parallel_for(0, parts, 1, [&](int64_t part, int64_t end) {
    for (; part < end; ++part) {
      int64_t out_sizes[kMaxDims], in_sizes[kMaxDims], to = 0, from = 0, rest = part;
      for (int d = 0; d < out.ndim; ++d) out_sizes[d] = out.sizes[d], in_sizes[d] = in.sizes[d];
      for (int i = used - 1; i >= 0; --i) {
        const int d = cut[i];
        const int64_t step = i == used - 1 ? run : 1, pieces = (out.sizes[d] + step - 1) / step;
        const int64_t first = rest % pieces * step;
        rest /= pieces;
        out_sizes[d] = in_sizes[d] = std::min(step, out.sizes[d] - first);
        to += first * out.strides[d], from += first * in.strides[d];
      }
      char *o = static_cast<char*>(out.data), *i = static_cast<char*>(in.data);
      body(View{o + to * itemsize(out.dtype), out_sizes, out.strides, out.ndim, out.dtype},
           View{i + from * itemsize(in.dtype), in_sizes, in.strides, in.ndim, in.dtype});
    }
  });
}

}  // namespace
}  // namespace rl::RL_ISA
