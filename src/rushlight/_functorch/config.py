"""torch._functorch.config: settings of PyTorch's tracer, kept and without effect."""

from rushlight._compat.config_modules import as_dict, patches

fake_tensor_propagate_real_tensors = False
functionalize_rng_ops = False
donated_buffer = False
check_custom_op_aliasing = True
fake_tensor_allow_meta = True

patch, to_dict = patches(globals()), as_dict(globals())
