// Type promotion: which type the result of mixed operands has.
#pragma once
#include "base/dtype.h"
#include "base/scalar.h"
#include "tensor/tensor.h"

namespace rl {

DType promote_types(DType a, DType b);
// Whether `from` may be written to `to` without changing kind (float -> int may not, int -> float may).
bool can_cast(DType from, DType to);

// Collects operands: tensors with dimensions decide, then 0-dim tensors, then Python scalars, each only by rising to a
// higher kind (bool < int < float < complex).
class ResultType {
 public:
  void add(const Tensor& t);
  void add(const Scalar& s);
  DType get() const;

 private:
  bool has_dim_ = false, has_zero_ = false, has_number_ = false;
  DType dim_ = DType::Bool, zero_ = DType::Bool, number_ = DType::Bool;
};

}  // namespace rl
