"""torch._functorch: the modules behind torch.func, under the names that packages import them by."""
