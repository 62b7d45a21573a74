// What the files behind record.h share: how the history of a tensor is changed.
#pragma once
#include "autograd/node.h"

namespace rl {

// Makes t the nr-th result of a node, whose reference is taken over. Hooks stay with the value they were registered
// for.
void set_history(TensorObject* t, Node* node, uint32_t nr);

// The base of a view was written to after the view was made: the view's history is now that of the base, seen through
// the view. Borrowed.
Node* history_through_base(TensorObject* t);

// The tensor that an op writes to in place while its result is computed; null outside.
extern thread_local TensorObject* t_inplace_target;

}  // namespace rl
