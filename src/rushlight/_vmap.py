"""vmap: a function of single samples as a function of batches.

The function runs once per sample and the results are stacked: right for every function, autograd included,
though it is no faster than the loop it replaces.
"""

import rushlight as rl

from .utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

__all__ = ["vmap"]


def _flat_dims(in_dims, args, spec, leaves):
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"vmap({in_dims=}): expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    prefix = in_dims if isinstance(in_dims, int) else tuple(in_dims)
    dims = _broadcast_to_and_flatten(prefix, spec, is_leaf=lambda d: d is None)
    if dims is None:
        raise ValueError(
            f"vmap: in_dims {in_dims} is not compatible with the structure of the inputs {spec}."
        )
    result = []
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is not None and not isinstance(leaf, rl.Tensor):
            raise ValueError(
                f"vmap: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap "
                "over non-Tensor arguments, please use None as the respective in_dim"
            )
        if dim is not None and not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{leaf.dim()} so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        result.append(dim)
    return result


def _batch_size(leaves, dims):
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: at least one input must have a dimension to map over (in_dims not None)")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, "
            f"got sizes {sizes} for the mapped dimension"
        )
    return sizes[0]


def _sample(leaves, dims, i):
    return [leaf if dim is None else leaf.select(dim, i) for leaf, dim in zip(leaves, dims, strict=True)]


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that maps func over a dimension of its inputs and stacks the results along out_dims.

    `randomness="same"` gives every sample the same random numbers.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )

    def wrapper(*args, **kwargs):
        leaves, spec = tree_flatten(args)
        dims = _flat_dims(in_dims, args, spec, leaves)
        size = _batch_size(leaves, dims)
        state = rl.get_rng_state() if randomness == "same" else None
        results, out_spec = [], None
        for i in range(size or 1):
            if state is not None:
                rl.set_rng_state(state)
            if size:
                sample = _sample(leaves, dims, i)
            else:  # nothing to map over: one run on zeros tells the shapes
                sample = [
                    leaf if dim is None else leaf.new_zeros(leaf.shape[:dim] + leaf.shape[dim:][1:])
                    for leaf, dim in zip(leaves, dims, strict=True)
                ]
            flat, out_spec = tree_flatten(func(*tree_unflatten(sample, spec), **kwargs))
            for value in flat:
                if not isinstance(value, rl.Tensor):
                    raise ValueError(
                        f"vmap(...): `func` must only return Tensors, got type {type(value)}. Did you mean "
                        "to "
                        "set out_dims= to None for output?"
                    )
            results.append(flat)
        targets = _broadcast_to_and_flatten(out_dims, out_spec, is_leaf=lambda d: d is None)
        if targets is None:
            raise ValueError(f"vmap: out_dims {out_dims} is not compatible with the structure of the outputs")
        stacked = []
        for k, dim in enumerate(targets):
            column = [flat[k] for flat in results]
            if dim is None:
                stacked.append(column[0])
            elif size:
                stacked.append(rl.stack(column, dim))
            else:
                stacked.append(rl.stack(column, dim).narrow(dim, 0, 0))
        return tree_unflatten(stacked, out_spec)

    return wrapper
