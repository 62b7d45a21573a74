"""Forward mode: dual numbers, a value with the direction in which it moves.

A tangent is carried by the graph that backward uses: inside a dual level, the inputs made by `make_dual` are recorded
like leaves, and the tangent of a result y is found by two backward passes, of which the second differentiates
u -> J^T u (linear in u) in the directions of the inputs. Every op with derivatives of second order has it for free.
"""

from collections import namedtuple

import rushlight as rl

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])


class _Level:
    def __init__(self):
        self.inputs = []  # duals made in this level: (recorded input, its tangent)


_levels: list = []


def enter_dual_level():
    """Begins a dual level; returns its number. Levels do not nest."""
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.append(_Level())
    return len(_levels) - 1


def exit_dual_level(*, level=None):
    """Ends a dual level: its tangents are forgotten."""
    if not _levels:
        raise RuntimeError("Trying to exit a forward AD level but no level is active")
    if level is not None and level != len(_levels) - 1:
        raise RuntimeError(f"Trying to exit a forward AD level {level} that was not the last one entered")
    _levels.pop()


class dual_level:
    """Context manager of a dual level."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exc):
        exit_dual_level()
        return False


def _current(level, what):
    if not _levels or (level is not None and not 0 <= level < len(_levels)):
        raise RuntimeError(
            f"Trying to {what} a dual Tensor but no level exists. Make sure to enter_dual_level() first."
        )
    return _levels[-1 if level is None else level]


def make_dual(tensor, tangent, *, level=None):
    """tensor, moving in the direction of tangent: what is computed from it has tangents, too."""
    state = _current(level, "create")
    for t, name in ((tensor, "primal"), (tangent, "tangent")):
        if not isinstance(t, rl.Tensor) or not (t.is_floating_point() or t.is_complex()):
            what = t.dtype if isinstance(t, rl.Tensor) else type(t).__name__
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {what}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
            f"not supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tensor.dtype != tangent.dtype:
        raise RuntimeError(
            f"make_dual: the tangent must be {tensor.dtype} as the primal is, got {tangent.dtype}"
        )
    with rl.enable_grad():
        # A result of reverse mode stays one.
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    state.inputs.append((dual, tangent))
    return dual


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None where it does not depend on a dual."""
    if not _levels:
        return UnpackedDualTensor(tensor, None)
    state = _current(level, "unpack")
    for dual, tangent in state.inputs:
        if tensor is dual:
            return UnpackedDualTensor(tensor.detach() if tensor.is_leaf else tensor, tangent)
    if not tensor.requires_grad or not state.inputs:
        return UnpackedDualTensor(tensor, None)
    inputs = [dual for dual, _ in state.inputs]
    tangents = [t for _, t in state.inputs]
    with rl.enable_grad():
        u = rl.zeros_like(tensor).detach().requires_grad_()
        pulled = rl.autograd.grad(tensor, inputs, u, create_graph=True, allow_unused=True)
        live = [(p, t) for p, t in zip(pulled, tangents, strict=True) if p is not None and p.requires_grad]
        if all(p is None for p in pulled):
            return UnpackedDualTensor(tensor, None)
        outside = _depends_on_more(tensor, inputs) or any(t.requires_grad for t in tangents)
        if not live:
            return UnpackedDualTensor(tensor if outside else tensor.detach(), rl.zeros_like(tensor).detach())
        (pushed,) = rl.autograd.grad(
            [p for p, _ in live],
            u,
            [t for _, t in live],
            create_graph=outside,
            allow_unused=True,
        )
    if pushed is None:
        pushed = rl.zeros_like(tensor).detach()
    return UnpackedDualTensor(tensor if outside else tensor.detach(), pushed)


def _depends_on_more(tensor, inputs):
    """Whether reverse mode outside of the level wants a gradient through the tensor."""
    from ..func import _reaches_outside

    return _reaches_outside([tensor], inputs)
