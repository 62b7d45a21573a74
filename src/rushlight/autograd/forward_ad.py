"""Forward mode: dual numbers, a value with the direction in which it moves.

A tangent is carried by the graph that backward uses: inside a dual level, the inputs made by `make_dual` are recorded
like leaves, and the tangent of a result y is found by two backward passes, of which the second differentiates
u -> J^T u (linear in u) in the directions of the inputs. Every op with derivatives of second order has it for free.
A Function with a `jvp` begins new duals (_forward_function.py).
"""

from __future__ import annotations

import sys
import weakref
from collections import namedtuple
from typing import Any, Literal

import rushlight as rl

from . import function as _function

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = """What unpack_dual returns: a value and its tangent.

Args:
    primal (Tensor): the value.
    tangent (Tensor): its tangent, None where it has none.

Example:
    >>> with torch.autograd.forward_ad.dual_level():
    ...     print(torch.autograd.forward_ad.unpack_dual(torch.ones(1)))
    UnpackedDualTensor(primal=tensor([1.]), tangent=None)
"""
_make_dual_of = rl._C.ops["_dual_of"]
_enabled = True
_current_level = -1


class _Level:
    def __init__(self) -> None:
        self.leaves: list[Any] = []  # weak references to the recorded inputs, which carry their tangents
        # Tangents are found in the graph, so that it is recorded under no_grad(), too: whoever unpacks does not see it.
        self.hidden = not rl.is_grad_enabled()
        if self.hidden:
            rl._C.ops["_set_grad_enabled"](True)

    def end(self) -> None:
        if self.hidden:
            rl._C.ops["_set_grad_enabled"](False)

    def inputs(self) -> list[tuple[Any, Any]]:
        """[(recorded input, its tangent)] of the duals that are still there."""
        found = [
            (leaf, leaf.__dict__["_tangent"]) for leaf in (ref() for ref in self.leaves) if leaf is not None
        ]
        if len(found) < len(self.leaves):
            self.leaves = [ref for ref in self.leaves if ref() is not None]
        return found


_levels: list[Any] = []


def active() -> bool:
    """Whether there are dual tensors in this program now."""
    return bool(_levels) and _enabled and bool(_levels[-1].leaves)


def _is_fwd_grad_enabled() -> bool:
    return _enabled


class _set_fwd_grad_enabled:
    """Whether forward mode is looked at; at once, and as a context until its end."""

    def __init__(self, mode: bool) -> None:
        self.before = _enabled
        _switch(mode)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        _switch(self.before)


def _switch(mode: bool) -> None:
    global _enabled
    _enabled = bool(mode)


def enter_dual_level() -> int:
    """Begins a dual level, in which tensors can have tangents; levels do not nest.

    Returns:
        The number of the level.

    Example:
        >>> level = torch.autograd.forward_ad.enter_dual_level()
        >>> torch.autograd.forward_ad.exit_dual_level(level=level)
    """
    global _current_level
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.append(_Level())
    _current_level = len(_levels) - 1
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends a dual level: its tangents are forgotten.

    Args:
        level (int): must be the last one entered; None means that one. Default: None

    Example:
        >>> _ = torch.autograd.forward_ad.enter_dual_level()
        >>> torch.autograd.forward_ad.exit_dual_level()
    """
    global _current_level
    if not _levels:
        raise RuntimeError("Trying to exit a forward AD level but no level is active")
    if level is not None and level != len(_levels) - 1:
        raise RuntimeError(f"Trying to exit a forward AD level {level} that was not the last one entered")
    _levels.pop().end()
    _current_level = len(_levels) - 1


class dual_level:
    """A region in which tensors can have tangents: forward mode differentiation.

    Example:
        >>> fwAD = torch.autograd.forward_ad
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0))
        ...     print(fwAD.unpack_dual(x**3).tangent)
        tensor(12.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: Any) -> Literal[False]:
        exit_dual_level()
        return False


def _current(level: Any, what: str) -> Any:
    if not _levels or (level is not None and not 0 <= level < len(_levels)):
        raise RuntimeError(
            f"Trying to {what} a dual Tensor but no level exists. Make sure to enter_dual_level() first."
        )
    return _levels[-1 if level is None else level]


def make_dual(tensor: rl.Tensor, tangent: rl.Tensor, *, level: int | None = None) -> rl.Tensor:
    """A tensor with a tangent: what is computed from it has one, too.

    Args:
        tensor (Tensor): the value, floating point or complex.
        tangent (Tensor): the direction it moves in, of the same shape.
        level (int): the dual level; None means the current one. Default: None

    Example:
        >>> fwAD = torch.autograd.forward_ad
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        ...     print(fwAD.unpack_dual(x.sum() ** 2).tangent)
        tensor(6.)
    """
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
    if active() and unpack_dual(tensor).tangent is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{len(_levels) - 1} is not supported: begin from unpack_dual(tensor).primal."
        )
    if active() and unpack_dual(tangent).tangent is not None:
        raise RuntimeError(
            "Trying to set a forward gradient that has a forward gradient at the same level, this is not supported."
        )
    out: rl.Tensor = _begin(state, tensor, _laid_out_like(tangent, tensor))
    return out


def _begin(state: Any, tensor: rl.Tensor, tangent: Any) -> Any:
    """A dual of the level."""
    with rl.enable_grad():
        # A result of reverse mode stays one.
        leaf = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
        leaf.__dict__["_tangent"] = tangent
        dual = _make_dual_of(leaf)
    dual._dual_of = (leaf, dual.grad_fn)
    state.leaves.append(weakref.ref(leaf))
    return dual


def _laid_out_like(tangent: Any, primal: Any) -> Any:
    """The tangent, or a copy of it that lies in memory as the primal does: views of the primal are views of it, too."""
    if type(tangent) is not type(primal):  # the tangents of a vmap have their own
        return tangent
    same = primal.is_conj() == tangent.is_conj() and primal.is_neg() == tangent.is_neg()
    if same and primal.numel() == 0:
        return tangent
    if same and primal.layout == tangent.layout != rl.strided:
        return tangent
    same = same and all(
        n <= 1 or a == b for n, a, b in zip(primal.shape, primal.stride(), tangent.stride(), strict=True)
    )
    if same and primal.untyped_storage().nbytes() == tangent.untyped_storage().nbytes():
        return tangent
    return rl.empty_strided(primal.shape, primal.stride(), dtype=primal.dtype, device=primal.device).copy_(
        tangent
    )


def unpack_dual(tensor: rl.Tensor, *, level: int | None = None) -> Any:
    """The value and the tangent of a tensor.

    Args:
        tensor (Tensor): any.
        level (int): the dual level; None means the current one. Default: None

    Returns:
        A named tuple (primal, tangent); the tangent is None where the tensor does not depend on a dual.

    Example:
        >>> fwAD = torch.autograd.forward_ad
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     print(fwAD.unpack_dual(x * x).tangent, fwAD.unpack_dual(torch.ones(1)).tangent)
        tensor(6.) None
    """
    return _unpack(tensor, level)[0]


def _own_tangent(tensor: rl.Tensor) -> Any:
    """The tangent of an argument of a Function, which may write to it; None if there is none."""
    found, given = _unpack(tensor, None)
    return found.tangent if given is None else given


def _unpack(tensor: rl.Tensor, level: int | None) -> Any:
    """(what unpack_dual gives, the tangent that was given to make_dual if it is a copy of that)."""
    if not _levels or not _enabled:
        return UnpackedDualTensor(tensor, None), None
    state = _current(level, "unpack")
    leaf, node = tensor.__dict__.get("_dual_of", (None, None))
    if leaf is not None and tensor.grad_fn is node and any(ref() is leaf for ref in state.leaves):
        return UnpackedDualTensor(leaf.view_as(leaf) if leaf.grad_fn else leaf.detach(), leaf._tangent), None
    found = state.inputs()
    if not tensor.requires_grad or not found:
        return UnpackedDualTensor(tensor, None), None
    try:
        primal, tangent = _push_forward(tensor, [leaf for leaf, _ in found], [t for _, t in found])
    except NotImplementedError as error:
        raise NotImplementedError(
            f"Trying to use forward AD with an op that does not support it because it has not been implemented yet: {error}"
        ) from error
    given = next((t for _, t in found if t is tangent), None)
    if given is not None:  # a copy of a dual has a tangent of its own
        tangent = tangent.clone()
    if state.hidden and tangent is not None:
        return UnpackedDualTensor(primal.detach(), tangent.detach()), given
    return UnpackedDualTensor(primal, tangent), given


def _push_forward(tensor: rl.Tensor, inputs: Any, tangents: Any) -> Any:
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


def _depends_on_more(tensor: rl.Tensor, inputs: Any) -> Any:
    """Whether reverse mode outside of the level wants a gradient through the tensor."""
    from ..func import _reaches_outside

    return _reaches_outside([tensor], inputs)


_function._forward_mode = sys.modules[__name__]
