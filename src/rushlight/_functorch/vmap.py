"""torch._functorch.vmap: vmap, and what it is made of."""

from collections.abc import Callable
from typing import Any

from rushlight import Tensor as Tensor
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._functorch._c import _add_batch_dim as _add_batch_dim
from rushlight._functorch._c import _remove_batch_dim, _unwrap_batched
from rushlight._functorch._c import _vmap_decrement_nesting as _vmap_decrement_nesting
from rushlight._functorch._c import _vmap_increment_nesting as _vmap_increment_nesting
from rushlight._transforms.vmap.batched import inside
from rushlight._transforms.vmap.call import _batch_size, _flat_dims, _out_dims
from rushlight._transforms.vmap.call import _name as _get_name
from rushlight._transforms.vmap.call import vmap as vmap
from rushlight.utils._pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from rushlight.utils._pytree import tree_flatten, tree_unflatten

in_dims_t = int | tuple
out_dims_t = int | tuple[int, ...]


def _process_batched_inputs(in_dims: Any, args: tuple, func: Callable) -> tuple:
    """(batch size, in_dims of the leaves, leaves, spec), checked."""
    leaves, spec = tree_flatten(args)
    dims = _flat_dims(func, in_dims, spec, leaves)
    return _batch_size(leaves, dims), dims, leaves, spec


def _validate_and_get_batch_size(flat_in_dims: list, flat_args: list) -> int:
    return _batch_size(flat_args, flat_in_dims)


def _create_batched_inputs(flat_in_dims: list, flat_args: list, vmap_level: int, args_spec: Any) -> Any:
    """The arguments, with one sample instead of each mapped tensor."""
    mapped = [
        a if d is None else _add_batch_dim(a, d % a.dim(), vmap_level)
        for d, a in zip(flat_in_dims, flat_args, strict=True)
    ]
    return tree_unflatten(mapped, args_spec)


def _maybe_remove_batch_dim(name: str, output: Any, level: int, batch_size: int, out_dim: int | None) -> Any:
    if out_dim is None:
        return output
    if not isinstance(output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    return _remove_batch_dim(output, level, batch_size, out_dim)


def unwrap_batched(args: Any, level: int) -> tuple[Any, Any]:
    """(values, in_dims) of a tree of tensors at a level."""
    flat, spec = tree_flatten(args)
    if not flat:
        return args, ()
    pairs = [_unwrap_batched(a, level) if isinstance(a, Tensor) else (a, None) for a in flat]
    values, dims = zip(*pairs, strict=True)
    return tree_unflatten(list(values), spec), tree_unflatten(list(dims), spec)


def wrap_batched(args: Any, bdims: Any, level: int) -> Any:
    """The tree with one sample instead of each tensor whose dimension in bdims is not None."""
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(bdims, spec, is_leaf=lambda d: d is None)
    if dims is None:
        raise ValueError("wrap_batched: bdims is not compatible with the structure of the arguments")
    return _create_batched_inputs(dims, flat, level, spec)


def restore_vmap(func: Callable, in_dims: Any, batch_size: int, randomness: str) -> Callable:
    """func inside a vmap that may have no mapped input: it gives (results, out_dims), None where a result is not mapped."""

    def inner(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with inside(batch_size, randomness) as level:
            return unwrap_batched(func(*wrap_batched(args, in_dims, level), **kwargs), level)

    return inner


def _unwrap_all(batched_outputs: Any, out_dims: Any, level: int, batch_size: int, func: Callable) -> Any:
    flat, spec = tree_flatten(batched_outputs)
    dims = _out_dims(func, out_dims, spec, flat)
    name = _get_name(func)
    return tree_unflatten(
        [_maybe_remove_batch_dim(name, o, level, batch_size, d) for o, d in zip(flat, dims, strict=True)],
        spec,
    )


__getattr__ = _unsupported_attribute(__name__)
