// Work along one dimension: the rows of several tensors of equal sizes, listed and shared out.
#pragma once
#include <algorithm>

#include "backend/view.h"
#include "base/parallel.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

// N tensors that agree in all sizes but that of `dim`. Dimensions other than dim are merged where all N allow it;
// the first tensor's smallest stride comes first.
template <int N> struct Rows {
  int ndim = 0;
  int64_t count = 1;             // rows
  int64_t length[N], stride[N];  // elements of a row, and the step between them
  int64_t size[kMaxDims], step[N][kMaxDims];

  Rows(const View* const (&views)[N], int dim) {
    const View& v = *views[0];
    for (int k = 0; k < N; ++k) {
      length[k] = views[k]->ndim ? views[k]->sizes[dim] : 1;
      stride[k] = views[k]->ndim ? views[k]->strides[dim] : 1;
    }
    for (int i = v.ndim - 1; i >= 0; --i) {
      if (i == dim || v.sizes[i] == 1) continue;
      count *= v.sizes[i];
      int j = ndim++;
      for (; j > 0 && step[0][j - 1] > v.strides[i]; --j) {
        size[j] = size[j - 1];
        for (int k = 0; k < N; ++k) step[k][j] = step[k][j - 1];
      }
      size[j] = v.sizes[i];
      for (int k = 0; k < N; ++k) step[k][j] = views[k]->strides[i];
    }
    int last = 0;
    for (int i = 1; i < ndim; ++i) {
      bool merge = true;
      for (int k = 0; k < N; ++k) merge &= step[k][i] == step[k][last] * size[last];
      if (merge) {
        size[last] *= size[i];
      } else {
        ++last;
        size[last] = size[i];
        for (int k = 0; k < N; ++k) step[k][last] = step[k][i];
      }
    }
    if (ndim) ndim = last + 1;
    else ndim = 1, size[0] = 1;
    if (count == 1 && ndim == 1 && size[0] == 1)
      for (int k = 0; k < N; ++k) step[k][0] = 0;
  }

  // work(offsets) for every row, offsets in elements. `grain` rows make a piece.
  template <class F> void each(int64_t grain, const F& work) const {
    if (count == 0) return;
    parallel_for(0, count, std::max<int64_t>(1, grain), [&](int64_t first, int64_t last) {
      int64_t offset[N];
      for (int64_t row = first; row < last;) {
        locate(row, offset);
        for (int64_t end = std::min(last, row + size[0] - row % size[0]); row < end; ++row) {  // the rest of its line
          work(offset);
          for (int k = 0; k < N; ++k) offset[k] += step[k][0];
        }
      }
    });
  }
  // work(offsets, n) for groups of at most `width` neighbouring rows along the first dimension.
  template <class F> void each_group(int64_t width, int64_t grain, const F& work) const {
    if (count == 0) return;
    int64_t per_line = (size[0] + width - 1) / width;
    parallel_for(0, count / size[0] * per_line, std::max<int64_t>(1, grain), [&](int64_t first, int64_t last) {
      int64_t offset[N];
      for (int64_t i = first; i < last; ++i) {
        int64_t at = i % per_line * width;
        locate(i / per_line * size[0] + at, offset);
        work(offset, std::min(width, size[0] - at));
      }
    });
  }
  void locate(int64_t row, int64_t* offset) const {
    for (int k = 0; k < N; ++k) offset[k] = 0;
    for (int d = 0; d < ndim && row; ++d) {
      int64_t i = row % size[d];
      row /= size[d];
      for (int k = 0; k < N; ++k) offset[k] += i * step[k][d];
    }
  }
};

}  // namespace rl::RL_ISA
