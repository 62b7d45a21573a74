// Several pointwise ops as one: a pass over memory, a node in the graph.
#pragma once
#include "autograd/node.h"
#include "ops/elementwise/program.h"

namespace rl::ops {

// The results of a program. Its inputs are numbers, and row-major cpu tensors of one type, float32 or float64; the
// results have the sizes that the tensors broadcast to.
Tensors fused(const std::shared_ptr<const Program>& program, Span<Value> inputs);

// y = op(a, b) of two numbers, or of one, for arithmetic; false for other ops.
bool fold(Pointwise op, double a, double b, double& y);

}  // namespace rl::ops
