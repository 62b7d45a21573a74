// backward(): from the roots to the leaves, each node once, when all gradients of its results are there.
#pragma once
#include <vector>

#include "autograd/node.h"

namespace rl {

struct BackwardCall {
  Span<Tensor> roots;
  Span<Tensor> gradients;  // one per root, defined
  bool retain_graph = false;
  bool create_graph = false;
  Span<Tensor> inputs;     // empty: all leaves
  bool accumulate = true;  // into .grad of leaves (backward) or returned (grad)
  int64_t rows = -1;       // >= 0: the gradients are stacks of so many (Note [Stacked gradients])
};

// The gradients of `inputs`, undefined where unreachable; empty when accumulating.
Tensors run_backward(const BackwardCall& call);

// True while a backward runs in this thread.
bool in_backward();
// The number of the backward that runs in this thread (the innermost), 0 outside.
uint64_t current_backward();
bool keeps_graph();            // whether it was asked to retain the graph
const Node* current_node();    // the node that it runs, or null
bool will_reach(Node& node);   // whether a gradient is going to arrive there that is wanted, there or further on
bool will_run(Node& node);     // whether it leads through the node to a gradient that is wanted
bool is_captured(Node& node);  // whether the gradient that arrives there is one of those asked for
std::vector<Node*> execution_order();  // its nodes, borrowed, in the order in which they run
// Calls f when the current backward ends (DDP-style callbacks).
void queue_callback(PyObject* f);

}  // namespace rl
