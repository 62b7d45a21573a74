"""torch._functorch.config: settings of PyTorch's tracer, kept and without effect."""

from rushlight._compat.config_modules import as_dict, patches

fake_tensor_propagate_real_tensors = False
functionalize_rng_ops = False
donated_buffer = False

patch, to_dict = patches(globals()), as_dict(globals())
