"""Settings of the tracer: kept, and without effect."""

from rushlight._compat.config_modules import as_dict, patches

suppress_errors = False
verbose = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = 256
dynamic_shapes = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
optimize_ddp = True
automatic_dynamic_shapes = True
assume_static_by_default = True
inline_inbuilt_nn_modules = True
guard_nn_modules = True
numpy_default_float = "float64"

patch, to_dict = patches(globals()), as_dict(globals())
