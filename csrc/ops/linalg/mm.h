// What the files of products share.
#pragma once
#include <string>

#include "autograd/record.h"

namespace rl::ops {

// Where there is nothing to multiply, any type will do.
inline bool nothing_to_multiply(const Tensor& a, const Tensor& b) { return a.numel() == 0 || b.numel() == 0; }

// Both operands of one type that can be multiplied, on one device.
void check_same(const char* name, const Tensor& a, const Tensor& b, bool empty_ok = false);

// For an error: the last size of a and the one before the last of b must be equal; a transposition may make them so.
std::string product_hint(IntSpan a, IntSpan b);

// (..., m, n) = (..., m, k) @ (..., k, n); leading sizes agree. With an addend: alpha * product + beta * addend.
Tensor product(const Tensor& a, const Tensor& b, const Tensor& addend = {}, const Scalar& beta = Scalar(1),
               const Scalar& alpha = Scalar(1));

}  // namespace rl::ops
