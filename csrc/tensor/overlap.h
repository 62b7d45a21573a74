// Which tensors may be written to, and beside which others. An overlap is looked for only where that is cheap (strides
// of 0, and tensors without gaps), as in PyTorch: what is refused is the same.
#pragma once
#include "tensor/tensor.h"

namespace rl {

enum class Overlap : uint8_t { None, Same, Partial, Unknown };  // Same: element by element
Overlap overlap(const Tensor& a, const Tensor& b);

void check_no_internal_overlap(const Tensor& written);                     // two elements in one place
void check_no_partial_overlap(const Tensor& written, const Tensor& read);  // the same elements are fine
void check_no_overlap(const Tensor& written, const Tensor& read);

}  // namespace rl
