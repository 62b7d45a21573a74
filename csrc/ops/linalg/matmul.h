// Products of matrices and vectors.
#pragma once
#include "autograd/record.h"

namespace rl::ops {

Tensor mm(const Tensor& input, const Tensor& mat2);
Tensor bmm(const Tensor& input, const Tensor& mat2);
Tensor mv(const Tensor& input, const Tensor& vec);
Tensor dot(const Tensor& input, const Tensor& tensor);
Tensor matmul(const Tensor& input, const Tensor& other);                       // all of torch.matmul's rules
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias);  // bias may be undefined
Tensor addmm(const Tensor& input, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha);
Tensor outer(const Tensor& input, const Tensor& vec2);
// x with its last two dimensions exchanged, and conjugated
Tensor mT(const Tensor& x);
Tensor mH(const Tensor& x);

}  // namespace rl::ops
