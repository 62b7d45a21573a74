"""Lists of the functions that classes and modes with __torch_function__ may take over (torch.overrides)."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

import rushlight as rl
from rushlight._core import lazy_names

# Functions that take no tensor, or must see the real one.
_IGNORED = [
    "arange",
    "are_deterministic_algorithms_enabled",
    "as_strided",
    "as_tensor",
    "asarray",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "bartlett_window",
    "blackman_window",
    "can_cast",
    "clear_autocast_cache",
    "compile",
    "cond",
    "device",
    "dtype",
    "empty",
    "empty_permuted",
    "empty_quantized",
    "empty_strided",
    "enable_grad",
    "export",
    "eye",
    "fill",
    "finfo",
    "fork",
    "from_dlpack",
    "from_file",
    "from_numpy",
    "frombuffer",
    "full",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_deterministic_debug_mode",
    "get_device_module",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "get_rng_state",
    "hamming_window",
    "hann_window",
    "iinfo",
    "inference_mode",
    "initial_seed",
    "install_as_torch",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_storage",
    "is_tensor",
    "is_warn_always_enabled",
    "kaiser_window",
    "layout",
    "linspace",
    "load",
    "logspace",
    "manual_seed",
    "memory_format",
    "no_grad",
    "normal",
    "ones",
    "promote_types",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "result_type",
    "save",
    "scalar_tensor",
    "seed",
    "set_anomaly_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_grad_enabled",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "typename",
    "use_deterministic_algorithms",
    "vander",
    "vmap",
    "zeros",
    "nn.functional.sigmoid",
    "nn.functional.tanh",
    "nn.functional.hardsigmoid",
    "nn.functional.hardswish",
    "nn.functional.upsample",
    "nn.functional.upsample_bilinear",
    "nn.functional.upsample_nearest",
    "fft.fftfreq",
    "fft.rfftfreq",
    "functional.broadcast_shapes",
    "Tensor.__class__",
    "Tensor.__delattr__",
    "Tensor.__delitem__",
    "Tensor.__dir__",
    "Tensor.__getattribute__",
    "Tensor.__hash__",
    "Tensor.__init__",
    "Tensor.__init_subclass__",
    "Tensor.__iter__",
    "Tensor.__new__",
    "Tensor.__setattr__",
    "Tensor.__subclasshook__",
    "Tensor.__torch_dispatch__",
    "Tensor.__torch_function__",
    "Tensor.__sizeof__",
    "Tensor.__str__",
    "Tensor.__getstate__",
    "Tensor.__reduce__",
    "Tensor.__copy__",
    "Tensor._make_subclass",
    "Tensor._make_wrapper_subclass",
    "Tensor._typed_storage",
    "Tensor.as_subclass",
    "Tensor.new",
    "Tensor.new_empty",
    "Tensor.new_empty_strided",
    "Tensor.new_full",
    "Tensor.new_ones",
    "Tensor.new_tensor",
    "Tensor.new_zeros",
    "Tensor.stride",
    "Tensor.to_sparse_bsc",
    "Tensor.to_sparse_bsr",
    "Tensor.to_sparse_coo",
    "Tensor.to_sparse_csc",
    "Tensor.to_sparse_csr",
    "Tensor.unflatten",
]
_COLLECTIVES = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "broadcast", "gather", "irecv", "isend", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "send",
)  # fmt: skip
_SPACES = ("", "functional", "nn.functional", "nn.init", "Tensor", "linalg", "fft", "special")
# Those of nn.init that take a tensor and are overridable.
_INITS = {"uniform_", "normal_", "constant_", "kaiming_uniform_"}


def _at(path):
    found: Any = rl
    for name in path.split("."):
        found = getattr(found, name, None)
        if found is None:
            return None
    return found


@functools.cache
def _ignored():
    return {f for f in map(_at, _IGNORED) if f is not None and f.__hash__ is not None}


def get_ignored_functions():
    """Functions that never look for overrides: they take no tensor, or must see the real one."""
    return set(_ignored())


def _is_function(value):
    return (
        callable(value)
        and not isinstance(value, (type, types.ModuleType))
        and not isinstance(getattr(value, "__self__", None), type)
        and getattr(value, "__name__", None) is not None
    )


def _members(path):
    """(name, function) of what can be taken over in a namespace, and of Tensor also its attributes."""
    space = _at(path) if path else rl
    if path == "Tensor":
        yield from _tensor_members(space)
        return
    names = getattr(space, "__all__", None) if path == "functional" else None
    lazy = (
        []
        if path
        else [n for n, home in lazy_names.HOMES.items() if home not in ("jit", "cuda", "amp", "compiler")]
    )
    private = () if path else _PRIVATE_FUNCTIONS
    for name in sorted({*(names or dir(space)), *lazy, *private}):
        if (name.startswith("_") and (path or name not in _PRIVATE_FUNCTIONS)) or (
            path == "nn.init" and name not in _INITS
        ):
            continue
        value = getattr(space, name, None)
        if isinstance(value, type(rl)):
            continue
        home = str(getattr(value, "__module__", None) or "")
        if _is_function(value) and not home.startswith(
            ("typing", "functools", "builtins", "importlib", "rushlight.overrides")
        ):
            yield name, value


def _tensor_members(space):
    for name in sorted(dir(space)):
        if not name.isidentifier() or (name[0] == "_" and name[1] != "_" and name not in _PRIVATE):
            continue
        value = inspect.getattr_static(space, name)
        if isinstance(value, (staticmethod, classmethod)):
            continue
        if isinstance(value, (property, types.GetSetDescriptorType)):
            if not name.startswith("__") or name == "__cuda_array_interface__":
                yield name, value.__get__
        elif (name in _SLOTS or not name.startswith("__")) and _is_function(value):
            yield name, value


_PRIVATE_FUNCTIONS = {
    "_assert_async", "_conj_copy", "_functional_assert_async", "_fused_rms_norm", "_indices_copy",
    "_native_batch_norm_legit", "_neg_view_copy", "_reshape_alias_copy", "_wrapped_linear_prepack", "_wrapped_quantized_linear_prepacked",
    "_fw_primal_copy", "_make_dual_copy", "_sparse_broadcast_to_copy", "_rowwise_prune", "_sym_acos", "_sym_asin",
    "_sym_atan", "_sym_cos", "_sym_cosh", "_sym_sin", "_sym_sinh", "_sym_sqrt", "_sym_tan", "_sym_tanh", "_values_copy",
}  # fmt: skip
_PRIVATE = {
    "_autocast_to_full_precision",
    "_autocast_to_reduced_precision",
    "_clear_non_serializable_cached_data",
    "_coalesced_",
    "_dimI",
    "_dimV",
    "_indices",
    "_nested_tensor_size",
    "_nested_tensor_storage_offsets",
    "_nested_tensor_strides",
    "_nnz",
    "_sparse_mask_projection",
    "_to_dense",
    "_values",
    "_backward_hooks",
    "_base",
    "_grad",
    "_version",
    "_is_view",
    "_grad_fn",
    "_cdata",
    "_post_accumulate_grad_hooks",
}
_SLOTS = {f"__{n}__" for n in ["add", "and", "array", "array_wrap", "bool", "complex", "contains", "deepcopy", "div", "dlpack", "dlpack_device", "eq", "float", "floordiv", "format", "ge", "getitem", "gt", "iadd", "iand", "idiv", "ifloordiv", "ilshift", "imod", "imul", "index", "int", "invert", "ior", "irshift", "isub", "ixor", "le", "len", "long", "lshift", "lt", "matmul", "mod", "mul", "ne", "nonzero", "or", "radd", "rand", "rdiv", "reduce_ex", "repr", "reversed", "rfloordiv", "rlshift", "rmatmul", "rmod", "rmul", "ror", "rpow", "rrshift", "rshift", "rsub", "rxor", "setitem", "setstate", "sub", "truediv", "xor"]}  # fmt: skip


@functools.cache
def _tables():
    """({namespace: functions}, {function: its name as an expression})."""
    ignored = _ignored()
    listed: dict[Any, list[Any]] = {}
    names: dict[Any, str] = {}
    for path in _SPACES:
        functions = listed.setdefault(_at(path) if path else rl, [])
        for name, function in _members(path):
            try:
                if function in ignored:
                    continue
                known = function in names
            except TypeError:  # no hash
                continue
            functions.append(function)
            if not known:
                ending = ".__get__" if getattr(function, "__name__", "") == "__get__" else ""
                names[function] = ".".join(filter(None, ("torch", path, name))) + ending
    return listed, names


def get_overridable_functions():
    """{namespace: [functions that look for overrides]}: the package, its namespaces of functions, and Tensor."""
    return {space: list(functions) for space, functions in _tables()[0].items()}


def resolve_name(f):
    """The name of a function as an expression, "torch.Tensor.add"; None if it is not one of them."""
    if isinstance(f, rl.ops.Op | rl.ops.Overload):
        return str(f)
    return _tables()[1].get(f) or next(
        (p for p in (f"torch.{n}" for n in _IGNORED) if _at(p[6:]) is f and f is not None), None
    )


@functools.cache
def _methods():
    return {function for _, function in _tensor_members(rl.Tensor)}


def is_tensor_method_or_property(func):
    """Whether func is one of Tensor's methods, or the getter of one of its attributes."""
    return getattr(func, "__name__", "") == "__get__" or func in _methods()


def _parameters(function):
    """The signature that a stand-in for the function needs; that of a getter is (self)."""
    if getattr(function, "__name__", "") == "__get__":
        return inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature(
            [
                inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
            if not isinstance(function, types.MethodDescriptorType)
            else [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        )


def _stand_in(function):
    def override(*args, **kwargs):
        return -1

    override.__dict__["__signature__"] = _parameters(function)
    return override


def get_testing_overrides():
    """{function: a stand-in with its signature that returns -1} for all functions that look for overrides."""
    listed = [f for functions in get_overridable_functions().values() for f in functions]
    return {f: _stand_in(f) for f in (*listed, *(getattr(rl.distributed, name) for name in _COLLECTIVES))}
