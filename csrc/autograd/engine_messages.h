// What the engine says when a backward cannot go on.
#pragma once
#include <string>
#include <vector>

#include "autograd/node.h"

namespace rl {

// What to write instead of a second backward through `freed`. `ran_before`: a root of this run took part in an earlier
// one; `order`: the nodes of this run.
std::string advice_on_second_backward(const Node& freed, bool ran_before, const std::vector<Node*>& order);
// Anomaly mode: fails, naming the forward call, where a node returned a NaN.
void check_nan(Node& n, const Grads& dx);

}  // namespace rl
