"""Settings of the compiler: kept, and without effect."""

import types

from rushlight._compat.config_modules import as_dict, patches

debug = False
fx_graph_cache = True
coordinate_descent_tuning = False
epilogue_fusion = True
max_autotune = False
max_autotune_gemm = False
freezing = False
force_fuse_int_mm_with_mul = False
shape_padding = True
compile_threads = 1
conv_1x1_as_mm = False
triton = types.SimpleNamespace(unique_kernel_names=True, cudagraphs=False, cudagraph_trees=True)
cpp = types.SimpleNamespace(threads=-1, simdlen=None, weight_prepack=True)

patch, to_dict = patches(globals()), as_dict(globals())
