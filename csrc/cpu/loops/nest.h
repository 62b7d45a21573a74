// The loop nest over the elements of N operands of equal sizes: dimensions sorted so that the result is
// walked in memory order, neighbours merged where every operand allows it.
#pragma once
#include <cstdint>

#include "backend/view.h"
#include "base/parallel.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

inline constexpr int64_t kPieceBytes = 1 << 17;  // what is worth a second thread in a memory-bound loop: some 8 us

enum class Order : uint8_t {
  Memory,    // as the operands lie in memory, the first one first
  Repeated,  // the same, but dimensions along which the first operand repeats stay in row-major order
  RowMajor,
};

template <int N> struct Nest {
  int ndim = 0;                  // at least 1
  int64_t total = 1;             // elements
  int64_t sizes[kMaxDims];       // dimension 0 is the innermost
  int64_t strides[kMaxDims][N];  // in bytes
  char* data[N];

  explicit Nest(const View* const (&views)[N], Order order = Order::Memory) {
    const View& first = *views[0];
    for (int k = 0; k < N; ++k) data[k] = static_cast<char*>(views[k]->data);
    for (int d = first.ndim - 1; d >= 0; --d) {
      int64_t size = first.sizes[d];
      total *= size;
      if (size == 1) continue;
      int64_t row[N];
      for (int k = 0; k < N; ++k) row[k] = views[k]->strides[d] * itemsize(views[k]->dtype);
      int at = ndim++;
      for (; at > 0 && inner(row, strides[at - 1], order); --at) {
        sizes[at] = sizes[at - 1];
        for (int k = 0; k < N; ++k) strides[at][k] = strides[at - 1][k];
      }
      sizes[at] = size;
      for (int k = 0; k < N; ++k) strides[at][k] = row[k];
    }
    if (ndim == 0) {
      ndim = 1, sizes[0] = 1;
      for (int k = 0; k < N; ++k) strides[0][k] = itemsize(views[k]->dtype);
    }
    merge();
  }

  // The nest of the rows: this one without its innermost dimension.
  Nest rows() const {
    Nest r = *this;
    r.total /= sizes[0];
    if (--r.ndim == 0) {
      r.ndim = 1, r.sizes[0] = 1;
      for (int k = 0; k < N; ++k) r.strides[0][k] = 0;
    }
    for (int d = 0; d + 1 < ndim; ++d) {
      r.sizes[d] = sizes[d + 1];
      for (int k = 0; k < N; ++k) r.strides[d][k] = strides[d + 1][k];
    }
    return r;
  }

  // The pointers at the element of the given linear number; `index` receives its coordinates.
  void seek(int64_t linear, int64_t* index, char** at) const {
    for (int k = 0; k < N; ++k) at[k] = data[k];
    for (int d = 0; d < ndim; ++d) {
      int64_t q = linear / sizes[d];
      index[d] = linear - q * sizes[d];
      linear = q;
      for (int k = 0; k < N; ++k) at[k] += index[d] * strides[d][k];
    }
  }

  // run(pointers, n) for each run along the innermost dimension of elements [first, last).
  template <class Run> void for_runs(int64_t first, int64_t last, Run&& run) const {
    if (first >= last) return;  // a size may be zero
    int64_t index[kMaxDims];
    char* at[N];
    seek(first, index, at);
    while (first < last) {
      int64_t n = sizes[0] - index[0] < last - first ? sizes[0] - index[0] : last - first;
      run(at, n);
      first += n;
      if (first >= last) break;
      for (int k = 0; k < N; ++k) at[k] -= index[0] * strides[0][k];
      index[0] = 0;
      for (int d = 1; d < ndim; ++d) {
        for (int k = 0; k < N; ++k) at[k] += strides[d][k];
        if (++index[d] < sizes[d]) break;
        for (int k = 0; k < N; ++k) at[k] -= sizes[d] * strides[d][k];
        index[d] = 0;
      }
    }
  }

  // The same over all elements, in parallel pieces of `grain` elements.
  template <class Run> void parallel_runs(int64_t grain, Run&& run) const {
    if (total == 0) return;
    // One call for short loops too: the body is compiled once.
    parallel_for(0, total, total <= grain ? grain : even_grain(total, grain),
                 [&](int64_t first, int64_t last) { for_runs(first, last, run); });
  }

 private:
  // True when a dimension with strides `a` belongs inside one with strides `b`.
  static bool inner(const int64_t* a, const int64_t* b, Order order) {
    if (order == Order::RowMajor || (order == Order::Repeated && a[0] == 0 && b[0] == 0)) return false;
    for (int k = 0; k < N; ++k) {
      if (a[k] == 0 || b[k] == 0) continue;  // a broadcast dimension has no opinion
      int64_t x = a[k] < 0 ? -a[k] : a[k], y = b[k] < 0 ? -b[k] : b[k];
      if (x != y) return x < y;
    }
    return false;
  }
  void merge() {
    int last = 0;
    for (int d = 1; d < ndim; ++d) {
      bool fits = true;
      for (int k = 0; k < N; ++k) fits &= strides[d][k] == strides[last][k] * sizes[last];
      if (fits) {
        sizes[last] *= sizes[d];
      } else if (++last != d) {
        sizes[last] = sizes[d];
        for (int k = 0; k < N; ++k) strides[last][k] = strides[d][k];
      }
    }
    ndim = last + 1;
  }
};

}  // namespace rl::RL_ISA
