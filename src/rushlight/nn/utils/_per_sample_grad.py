"""Gradients of each sample of a batch, left in `grad_sample` of the parameters by one backward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.utils import _pytree


def call_for_per_sample_grads(
    module: rl.nn.Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """Returns a function that calls a module; backward then leaves a gradient for each sample.

    Parameters get `grad_sample`, (batch, *shape), and no grad.

    Args:
        module (Module): what is called.
        batch_size (int): the size of the batch. Default: None, that of the tensors given
        loss_reduction (str): how the loss is taken over samples: 'sum', or 'mean', whose gradients are scaled by
            the batch's size. Default: 'sum'
        batch_first (bool): the batch is dimension 0, else 1. Default: True
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, rl.nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls without "
                f"clearing gradients. Please clear out the grad_sample parameter of {parameter}"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        size = batch_size or _batch_size(args, kwargs, dim)
        scale = size if loss_reduction == "mean" else 1
        copies = {n: _copies(p, size, scale) for n, p in module.named_parameters() if p.requires_grad}
        return _by_samples(module, copies, args, kwargs, size, dim)

    return call


def _batch_size(args: Any, kwargs: Any, dim: int) -> int:
    """The size along the batch dimension that all tensors have."""
    sizes = {
        t.size(dim) for t in _pytree.tree_leaves((args, kwargs)) if isinstance(t, rl.Tensor) and t.dim() > dim
    }
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able; pass batch_size"
        )
    if len(sizes) > 1:
        raise RuntimeError(
            "When computing batch_size, found at least one input with batch size "
            f"{sorted(sizes)[0]} and one with batch size {sorted(sizes)[1]}. Please specify it explicitly using the batch "
            "size kwarg in call_for_per_sample_grads"
        )
    return sizes.pop()


def _copies(parameter: Any, size: int, scale: float) -> rl.Tensor:
    """A parameter once for each sample, without memory of its own; its gradient becomes grad_sample."""
    leaf = parameter.detach().expand(size, *parameter.shape).requires_grad_()

    def keep(copies: rl.Tensor) -> None:
        assert copies.grad is not None  # what was added just now
        grad, copies.grad = copies.grad * scale, None
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = grad if before is None else before + grad

    leaf.register_post_accumulate_grad_hook(keep)
    out: rl.Tensor = leaf
    return out


def _by_samples(module: rl.nn.Module, copies: Any, args: Any, kwargs: Any, size: int, dim: int) -> Any:
    """Calls the module on each sample with its own copies of the parameters."""
    leaves, form = _pytree.tree_flatten((args, kwargs))
    batched = [isinstance(t, rl.Tensor) and t.dim() > dim and t.size(dim) == size for t in leaves]
    tensors = [t for t, is_batched in zip(leaves, batched, strict=True) if is_batched]

    def one(parameters: Any, samples: Any) -> Any:
        own = iter(samples)
        given = [next(own).unsqueeze(dim) if b else t for t, b in zip(leaves, batched, strict=True)]
        sample_args, sample_kwargs = _pytree.tree_unflatten(given, form)
        outputs = rl.func.functional_call(module, parameters, sample_args, sample_kwargs)
        return _pytree.tree_map_only(rl.Tensor, lambda t: t.squeeze(dim) if t.dim() > dim else t, outputs)

    return rl.vmap(one, in_dims=(0, dim), out_dims=dim, randomness="different")(copies, tensors)
