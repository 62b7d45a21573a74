// Several pointwise ops as one: a pass over memory, a node in the graph.
#pragma once
#include "autograd/node.h"
#include "ops/elementwise/program.h"

namespace rl::ops {

// The results of a program. Its inputs are scalars, and row-major cpu tensors of one type, float32 or float64; the
// results have the sizes that the tensors broadcast to.
Tensors fused(const std::shared_ptr<const Program>& program, Span<Value> inputs);

}  // namespace rl::ops
