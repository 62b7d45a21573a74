#pragma once
#include "autograd/record.h"

namespace rl::ops {

Tensor add(const Value& a, const Value& b, const Scalar& alpha = Scalar(1));
Tensor sub(const Value& a, const Value& b, const Scalar& alpha = Scalar(1));
Tensor mul(const Value& a, const Value& b);
Tensor div(const Value& a, const Value& b);
Tensor neg(const Tensor& a);
Tensor conj(const Tensor& a);  // itself for real types
// Raw: dst += src without history and without counting the write. Same sizes and type.
void add_into(const Tensor& dst, const Tensor& src);

}  // namespace rl::ops
