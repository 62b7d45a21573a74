// Shared by the kernels that draw random numbers: bulk drawing, and the order in which elements are filled.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>

#include "backend/view.h"
#include "base/check.h"
#include "base/generator.h"
#include "base/parallel.h"

// All of it has internal linkage: files compiled for different instruction sets include it.
namespace rl {
namespace {

struct FreeScratch {
  void operator()(void* memory) const { std::free(memory); }
};
template <class T> std::unique_ptr<T, FreeScratch> scratch(int64_t count) {
  void* memory = nullptr;
  CHECK(posix_memalign(&memory, 64, static_cast<size_t>(count) * sizeof(T)) == 0, OutOfMemory,
        "out of memory: no scratch space for ", count, " random numbers");
  return std::unique_ptr<T, FreeScratch>(static_cast<T*>(memory));
}

// The dimensions of a view from the largest stride to the smallest, runs of adjacent memory joined: filling the last
// dimension fastest visits addresses in ascending order.
struct Order {
  int64_t sizes[kMaxDims], strides[kMaxDims], other[kMaxDims];
  int ndim = 0;
  bool dense() const { return ndim == 0 || (ndim == 1 && strides[0] == 1); }
};
// `follower` has the same sizes and is visited along.
inline Order address_order(const View& view, const View* follower = nullptr) {
  int dims[kMaxDims];
  int count = 0;
  for (int i = 0; i < view.ndim; ++i) {
    if (view.sizes[i] == 1) continue;
    int k = count++;
    for (; k > 0 && view.strides[dims[k - 1]] < view.strides[i]; --k) dims[k] = dims[k - 1];
    dims[k] = i;
  }
  Order order;
  for (int k = 0; k < count; ++k) {
    int d = dims[k];
    int64_t size = view.sizes[d], stride = view.strides[d], other = follower ? follower->strides[d] : stride;
    int last = order.ndim - 1;
    if (last >= 0 && order.strides[last] == size * stride && order.other[last] == size * other) {
      order.sizes[last] *= size;
      order.strides[last] = stride;
      order.other[last] = other;
      continue;
    }
    order.sizes[order.ndim] = size;
    order.strides[order.ndim] = stride;
    order.other[order.ndim++] = other;
  }
  return order;
}

// f(offset in view, offset in follower, size, stride, follower's stride) for each innermost run, in order.
template <class F> void for_each_run(const Order& order, F&& f) {
  if (order.ndim == 0) return f(int64_t{0}, int64_t{0}, int64_t{1}, int64_t{1}, int64_t{1});
  int inner = order.ndim - 1;
  int64_t index[kMaxDims] = {}, at = 0, at_other = 0;
  while (true) {
    f(at, at_other, order.sizes[inner], order.strides[inner], order.other[inner]);
    int d = inner - 1;
    for (; d >= 0; --d) {
      at += order.strides[d];
      at_other += order.other[d];
      if (++index[d] < order.sizes[d]) break;
      at -= order.strides[d] * order.sizes[d];
      at_other -= order.other[d] * order.sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace

namespace cpu {

// fill(contiguous, n) once for all elements, of whatever type; views with gaps are filled through scratch memory.
void fill_in_order(const View& out, FunctionRef<void(void*, int64_t)> fill);

// Elements that are 1, as bits: kernels that write ones and zeros know the width of elements only.
uint64_t one_bits(DType dtype);

}  // namespace cpu

// f(type_tag<unsigned integer of the width of elements>).
template <class F> void visit_width(DType dtype, F&& f) {
  switch (itemsize(dtype)) {
    case 1: return f(type_tag<uint8_t>{});
    case 2: return f(type_tag<uint16_t>{});
    case 4: return f(type_tag<uint32_t>{});
    default: return f(type_tag<uint64_t>{});
  }
}

}  // namespace rl
