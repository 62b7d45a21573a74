"""vmap: a function of single samples as a function of batches. What happens inside is told in batched.py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import _C
from rushlight.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

from .batched import _levels, batched_at, inside, physical, wrap

__all__ = ["vmap"]

Tensor = _C.Tensor


def _flat_dims(func, in_dims, spec, leaves):
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not leaves:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs, which is not supported."
        )
    prefix = in_dims
    dims = _broadcast_to_and_flatten(prefix, spec, is_leaf=lambda d: d is None)
    if dims is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(prefix)[1]} but inputs has structure {spec}."
        )
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap "
                "over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{leaf.dim()} so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
    return dims


def _name(func):
    return getattr(func, "__name__", None) or repr(func)


def _batch_size(leaves, dims):
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over, got None for every in_dim")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, "
            f"got sizes {sizes} for the mapped dimension"
        )
    return sizes[0]


def _map(func, leaves, dims, spec, size, kwargs, out_dims, randomness):
    """One run of func on the whole batch: (results, their dims, spec)."""
    with inside(size, randomness) as number:
        mapped = [
            leaf if dim is None else wrap(leaf if dim == 0 else leaf.movedim(dim, 0), number)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        flat, out_spec = tree_flatten(func(*tree_unflatten(mapped, spec), **kwargs))
        targets = _out_dims(func, out_dims, out_spec, flat)
        given = {
            id(x): (leaf, dim)
            for x, leaf, dim in zip(mapped, leaves, dims, strict=True)
            if batched_at(x, number)
        }
        results = []
        for value, dim in zip(flat, targets, strict=True):
            came = _as_given(value, dim, *given[id(value)]) if id(value) in given else None
            results.append(_leave(func, value, dim, number, size) if came is None else came)
    return results, targets, out_spec


def _as_given(value, out_dim, leaf, in_dim):
    """leaf, the input that a mapped result is, where it leaves as it came; else None."""
    rank = leaf.dim()
    if in_dim is None or out_dim is None or not -rank <= out_dim < rank or in_dim % rank != out_dim % rank:
        return None
    came, now = leaf.movedim(in_dim, 0), value._value  # which may have been transposed in place
    return leaf if (came.shape, came.stride()) == (now.shape, now.stride()) else None


def _out_dims(func, out_dims, spec, flat):
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and spec == tree_flatten(0)[1]:
        (out_dims,) = out_dims  # of a single result
    if not all(d is None or isinstance(d, int) for d in tree_flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "that says where in the outputs the mapped dimension should appear."
        )
    targets = _broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda d: d is None)
    if targets is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return targets


def _leave(func, value, dim, number, size):
    if dim is None:
        if batched_at(value, number):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None: each sample "
                "has its own."
            )
        return value
    if not isinstance(value, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(value)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    full = physical(value, number, size)
    if not -full.dim() <= dim < full.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-full.dim()}, {full.dim() - 1}], but got {dim}): out_dims "
            f"of vmap({_name(func)}, ...)"
        )
    return full if dim == 0 else full.movedim(0, dim)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps func over a dimension of its inputs, computing all samples at once.

    Inside, tensors look like one sample. What has no rule for batches runs sample by sample.

    Args:
        func (callable): from tensors, or trees of them, to tensors.
        in_dims (int or tuple): the dimension of the batch, one for all or one for each input; None is not
            mapped. Default: 0
        out_dims (int or tuple): where the batch stands in the results. Default: 0
        randomness (str): "error" refuses random functions inside; with "different" each sample draws its own
            numbers, with "same" all get the same. Default: "error"
        chunk_size (int): so many samples at a time, to bound the memory; None means all. Default: None

    Example:
        >>> x, y = torch.arange(6.0).reshape(3, 2), torch.tensor([1.0, 10.0])
        >>> torch.vmap(torch.dot, in_dims=(0, None))(x, y)
        tensor([10., 32., 54.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def wrapper(*args, **kwargs):
        leaves, spec = tree_flatten(args)
        dims = _flat_dims(func, in_dims, spec, leaves)
        if _levels.nested or any(isinstance(leaf, Tensor) and leaf.is_nested for leaf in leaves):
            from rushlight.nested._vmap import map_nested

            return map_nested(func, leaves, dims, spec, kwargs, out_dims, randomness, _out_dims)
        size = _batch_size(leaves, dims)
        if chunk_size is None or chunk_size >= size:
            results, _, out_spec = _map(func, leaves, dims, spec, size, kwargs, out_dims, randomness)
            return tree_unflatten(results, out_spec)
        state = rl.get_rng_state() if randomness == "same" else None
        parts = []
        for at in range(0, size, chunk_size):
            if state is not None:
                rl.set_rng_state(state)
            length = min(chunk_size, size - at)
            piece = [
                leaf if dim is None else leaf.narrow(dim, at, length)
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            parts.append(_map(func, piece, dims, spec, length, kwargs, out_dims, randomness))
        joined = [
            column[0] if dim is None else rl.cat(column, dim)
            for dim, *column in zip(parts[0][1], *(p[0] for p in parts), strict=True)
        ]
        return tree_unflatten(joined, parts[0][2])

    return wrapper
