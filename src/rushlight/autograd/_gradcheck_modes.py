"""What gradcheck asks beside the jacobian: batched and undefined gradients, zero gradients, forward mode."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as rl

from .gradcheck import GradcheckError, _along, _direction, _is_differentiable, _tensors

_BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation: several gradients at once, under vmap. "
    "It was asked for by check_batched_grad=True or check_batched_forward_grad=True: leave that out if the function is not "
    "meant for it, or look at the ops that vmap refuses."
)


def check_batched(variable: Any, outputs: Any) -> None:
    """Several gradients at once must be what each gives alone."""
    for out_number, output in outputs:
        rows = [_direction(output) for _ in range(2)]
        alone = [rl.autograd.grad(output, variable, v, retain_graph=True, allow_unused=True) for v in rows]
        try:
            together = rl.autograd.grad(
                output, variable, rl.stack(rows), retain_graph=True, allow_unused=True, is_grads_batched=True
            )
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{_BATCHED}") from error
        for k, single in enumerate(alone):
            for a, b in zip(single, together, strict=True):
                if (a is None) != (b is None) or (a is not None and not rl.allclose(a, b[k])):
                    raise GradcheckError(
                        f"For output {out_number}, row {k} of several gradients is not what it is alone.\n\n{_BATCHED}"
                    )


def check_zero(outputs: Any, variable: Any, masked: Any) -> None:
    """A gradient of zero must give zeros, of the input's layout, type and size."""
    live = [o for _, o in outputs]
    zeros = [rl.zeros_like(o, memory_format=rl.contiguous_format) for o in live]
    grads = rl.autograd.grad(live, variable, zeros, retain_graph=True, allow_unused=True)
    for g, x in zip(grads, variable, strict=True):
        if g is None:
            continue
        if g.layout != rl.strided:
            if g.layout != x.layout:
                raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
            if g.layout == rl.sparse_coo:
                if g.sparse_dim() != x.sparse_dim():
                    raise GradcheckError("grad is sparse tensor, but has incorrect sparse_dim")
                if g.dense_dim() != x.dense_dim():
                    raise GradcheckError("grad is sparse tensor, but has incorrect dense_dim")
            g = g.to_dense()
        close = rl.allclose(g, rl.zeros_like(g)) if masked else bool(rl.eq(g, 0).all().item())
        if not close:
            raise GradcheckError("backward not multiplied by grad_output")
        if g.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def check_undefined(func: Callable[..., Any], inputs: Any, variable: Any) -> None:
    """Backward must do without the gradients of some outputs, and of all."""
    from ._functions import UndefinedGrad

    outputs = [o for o in _tensors(func(*inputs)) if _is_differentiable(o)]
    if not outputs:
        return

    def check(missing: Any) -> None:
        roots = [UndefinedGrad()(o) if i in missing else o for i, o in enumerate(outputs)]
        try:
            grads = rl.autograd.grad(
                roots, variable, [rl.zeros_like(o) for o in outputs], retain_graph=True, allow_unused=True
            )
        except RuntimeError as error:
            warnings.warn(
                "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
                "break existing callers of this function. If this is true for you, you can call this function with "
                '"check_undefined_grad=False" to disable the feature',
                stacklevel=5,
            )
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. Please look at the backward: where a gradient "
                "is undefined (None) it stands for zeros."
            ) from error
        for g in grads:
            if g is not None and not bool((g == 0).all()):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
                )

    check(range(len(outputs)))
    for i in range(len(outputs) if len(outputs) > 1 else 0):
        check([i])


def _push(
    func: Callable[..., Any], inputs: Any, x: rl.Tensor, direction: Any, plain: bool = False
) -> list[rl.Tensor | Any]:
    """The tangents of func's outputs when x moves; the other inputs have tangents of zero, or none (`plain`)."""
    from . import forward_ad

    with forward_ad.dual_level():
        args = []
        for y in inputs:
            if y is x:
                y = forward_ad.make_dual(y.detach(), direction)
            elif isinstance(y, rl.Tensor):
                wants = y.requires_grad
                y = y.detach()
                if wants and not plain:
                    y = forward_ad.make_dual(y, rl.zeros_like(y))
            args.append(y)
        found = [o for o in _tensors(func(*args)) if isinstance(o, rl.Tensor)]
        found = [o for o in found if o.dtype.is_floating_point or o.dtype.is_complex]
        tangents = [forward_ad.unpack_dual(o).tangent for o in found]
        return [
            rl.zeros_like(o).detach() if t is None else t.detach()
            for o, t in zip(found, tangents, strict=True)
        ]


def _directions(x: rl.Tensor, fast: Any) -> Iterator[Any]:
    """One direction at random, or those of each element."""
    if fast:
        yield _direction(x)
        return
    for unit in (1, 1j) if x.dtype.is_complex else (1,):
        for k in range(x.numel()):
            u = rl.zeros(x.numel(), dtype=x.dtype)
            u[k] = unit
            yield u.view(x.shape)


def check_forward(
    func: Callable[..., Any],
    inputs: Any,
    variable: Any,
    positions: Any,
    eps: float,
    atol: float,
    rtol: float,
    fast: Any,
) -> None:
    """Forward mode against differences."""
    outputs = _tensors(func(*inputs))
    picked = [
        i
        for i, o in enumerate(outputs)
        if isinstance(o, rl.Tensor) and (o.dtype.is_floating_point or o.dtype.is_complex)
    ]
    for number, x in zip(positions, variable, strict=True):
        for u in _directions(x, fast) if x.numel() else ():
            derivatives = _along(func, inputs, x, u, eps, picked)
            for i, derivative, tangent in zip(picked, derivatives, _push(func, inputs, x, u), strict=True):
                if not rl.allclose(tangent.to(derivative.dtype), derivative, rtol, atol):
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {i} with respect to input {number},\n"
                        f"numerical:{derivative}\nanalytical:{tangent}\n"
                    )


def check_forward_undefined(func: Callable[..., Any], inputs: Any, variable: Any) -> None:
    """A tangent that is missing stands for zeros."""
    for x in variable:
        u = _direction(x)
        absent = _push(func, inputs, x, u, plain=True)
        if len(variable) == 1:
            continue
        for a, b in zip(absent, _push(func, inputs, x, u), strict=True):
            if not rl.allclose(a, b):
                raise GradcheckError(
                    "Expected a tangent that is missing to give what a tangent of zeros gives."
                )


def check_forward_batched(func: Callable[..., Any], inputs: Any, variable: Any) -> None:
    """Several tangents at once must give what each gives alone."""
    for x in variable:
        rows = [_direction(x) for _ in range(2)]
        alone = [_push(func, inputs, x, u) for u in rows]
        try:
            together = rl.vmap(lambda u, x=x: tuple(_push(func, inputs, x, u)))(rl.stack(rows))
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{_BATCHED}") from error
        for k, single in enumerate(alone):
            if not all(rl.allclose(a, b[k]) for a, b in zip(single, together, strict=True)):
                raise GradcheckError(f"Row {k} of several tangents is not what it is alone.\n\n{_BATCHED}")
