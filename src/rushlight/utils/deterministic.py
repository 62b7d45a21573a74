"""torch.utils.deterministic: whether new memory is filled. Kept for programs that set it; kernels here are deterministic."""

fill_uninitialized_memory = True
