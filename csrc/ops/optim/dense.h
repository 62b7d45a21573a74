// What steps with kernels over dense arrays do with tensors that are not.
#pragma once
#include "ops/ops.h"

namespace rl::ops {

// A tensor as a row-major array of one type: itself, or a copy that `put_back` writes back.
class Dense {
 public:
  Dense(const Tensor& t, DType dtype) : original_(t), dense_(contiguous(cast(t, dtype))) {}
  const Tensor& tensor() const { return dense_; }
  void* data() const { return dense_.memory(); }
  void put_back(const char* op = nullptr) const {
    if (!dense_.is(original_)) copy_into(original_, dense_);
    bump_version(original_, op);
  }

 private:
  Tensor original_, dense_;
};

inline double number_of(const Tensor& t) { return item(t).to_double(); }

}  // namespace rl::ops
