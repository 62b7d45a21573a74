// What functions that make new tensors share: the checks of dtype/layout/device arguments and the requires_grad flag.
#pragma once
#include "schema/arguments.h"

namespace rl::ops {

Tensor with_grad_flag(Tensor t, bool requires_grad);
inline bool is_sparse(const std::optional<Layout>& layout) { return layout && *layout != Layout::Strided; }
// A tensor of a sparse layout without entries: all zeros. Made in Python, where sparse tensors live.
Tensor sparse_zeros(const char* name, IntSpan sizes, Layout layout, DType dtype, bool requires_grad);
void check_factory(const std::optional<Layout>& layout, const std::optional<Device>& device);

}  // namespace rl::ops
