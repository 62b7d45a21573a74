// Convolutions. See conv.cpp.
#pragma once
#include "schema/arguments.h"

namespace rl::ops {

// Any number of spatial dimensions from 1 to 3; a number in stride, padding, dilation stands for all of them.
Tensor convolution(const Tensor& input, const Tensor& weight, const OptTensor& bias, IntSpan stride, IntSpan padding,
                   IntSpan dilation, bool transposed, IntSpan output_padding, int64_t groups);

}  // namespace rl::ops
