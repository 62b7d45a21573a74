// Python callbacks along the way of a gradient. A Python error leaves as an Error with an empty message.
#pragma once
#include "autograd/node.h"

namespace rl {

void retain_grad(TensorObject* t);             // t keeps its gradient, though it is no leaf
void run_tensor_hooks(Node& node, Grads& dy);  // tensor.register_hook, retain_grad
void run_pre_hooks(Node& node, Grads& dy);     // node.register_prehook
void run_post_hooks(Node& node, Grads& dx, const Grads& dy);
void run_post_accumulate_hooks(const Tensor& leaf);
bool has_nan(const Tensor& t);
// Replaces what is saved by pack(it); backward asks unpack for it.
void pack_saved(Saved& s, PyObject* pack, PyObject* unpack);

}  // namespace rl
