// Conjugate and negative views: tensors whose values are the conjugates, or negatives, of what lies in memory.
//
// Note [Lazy views]: x.conj() marks an alias of x instead of copying. Kernels do not know the marks:
// python/lazy_call.cpp replaces marked arguments by plain copies before an op sees them, and writes to a marked target
// are made to the plain memory under it, conjugated or negated on the way. Views hand the marks on (alias does), and
// ops with kLazyOk look at them themselves. C++ code that calls ops directly never meets marks.
#pragma once
#include "tensor/tensor.h"

namespace rl::ops {

Tensor conj_view(const Tensor& x);
Tensor neg_view(const Tensor& x);
// The values in plain memory, with x's own place in the graph; x itself where nothing is marked.
Tensor resolved(const Tensor& x);
// The plain memory under x as a view of it, and values as they must be written there.
Tensor under(const Tensor& x);
Tensor as_under(const Tensor& x, const Tensor& values);

}  // namespace rl::ops
