// What a kernel sees of a tensor: a pointer, a type, sizes and strides. Nothing else.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace rl {

inline constexpr int kMaxDims = 64;

struct View {
  void* data;              // the first element
  const int64_t* sizes;    // ndim of them; owned by the caller
  const int64_t* strides;  // in elements; 0 along broadcast dimensions; never negative
  int32_t ndim;
  DType dtype;

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < ndim; ++i) n *= sizes[i];
    return n;
  }
  bool contiguous() const {
    int64_t expected = 1;
    for (int i = ndim - 1; i >= 0; --i) {
      if (sizes[i] == 0) return true;
      if (sizes[i] != 1 && strides[i] != expected) return false;
      expected *= sizes[i];
    }
    return true;
  }
  template <class T> T* as() const { return static_cast<T*>(data); }
};

}  // namespace rl
