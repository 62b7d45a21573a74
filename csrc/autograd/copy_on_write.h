// Tensors kept for backward as if they were copied: a write to one, which would make backward refuse, copies it first.
// For ops that PyTorch computes on a rearranged copy of an operand and we do not: the operand may be written to.
#pragma once
#include "autograd/record.h"
#include "base/interrupt.h"

namespace rl {

Saved save_copy_on_write(Node& node, const Tensor& input);
// As if a view of the tensor were kept: what becomes of the tensor itself (detach_, another shape) is nothing to
// backward; a write to it is.
Saved save_view(const Tensor& input);
void copy_for_nodes(Storage* written);

// To be called before a tensor's memory is written to.
inline void before_write(const Tensor& t) {
  t_interruptible = false;  // half of a write must not stay
  if (t.storage()->copy_on_write) copy_for_nodes(t.storage());
}

}  // namespace rl
