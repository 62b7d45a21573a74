"""torch._functorch.apis: vmap, by the number of chunks too, and first derivatives."""

from collections.abc import Callable
from typing import Any

from rushlight._transforms.vmap.call import _batch_size, _flat_dims
from rushlight._transforms.vmap.call import vmap as vmap
from rushlight.func import grad as grad
from rushlight.func import grad_and_value as grad_and_value
from rushlight.utils._pytree import tree_flatten


def chunk_vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable:
    """vmap in a number of runs, each with a part of the samples; the more of them, the less memory each needs."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(args)
        size = _batch_size(leaves, _flat_dims(func, in_dims, spec, leaves))
        per_chunk = max(-(-size // chunks), 1)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=per_chunk)(*args, **kwargs)

    return wrapper
