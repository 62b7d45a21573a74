"""vmap: its call, what tensors are inside, how autograd.Function runs there, and a rule for each kind of op."""
