"""Answers about the graph, in words: why a tensor has no gradient, why an input was not reached."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight._C import Tensor

from .. import _C

_why = _C.ops["_why_no_grad"]
_set_sites = _C.ops["_set_sites"]


class Line(NamedTuple):
    """A line of the program."""

    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}"
        if self.function and self.function != "<module>":
            text += f", in {self.function}"
        return text + (f": `{self.source}`" if self.source else "")


class Reason:
    """Why a tensor has no gradient. `str()` is the explanation.

    Attributes:
        kind: "no_grad", "inference_mode", "detach", "data" or "integer" (a call that left the graph),
            "constant" (values that do not depend on the argument's), "frozen" (requires_grad was switched off),
            "made" (nothing it comes from ever asked for gradients), "unknown", or, for tensors that do ask for
            gradients, "leaf" and "recorded".
        op: the name of the call.
        site: the line of the call (file, line, function, source), or None.
        mode_site: the line that switched grad mode off, or None.
    """

    def __init__(self, kind: str, text: str, op: str = "", site: Any = None, mode_site: Any = None) -> None:
        self.kind, self.op, self.text = kind, op, text
        self.site = Line(*site) if site else None
        self.mode_site = Line(*mode_site) if mode_site else None

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def why_no_grad(tensor: Tensor) -> Any:
    """Says which line cut a tensor off the graph, and what to write instead.

    The answer travels with the values: it holds for everything computed from the tensor that was cut off.

    Args:
        tensor (Tensor): one that does not require grad, although it should.

    Returns:
        A text, with the kind of the cut as its attribute `kind`.

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> loss = (x * 2).argmax().float()
        >>> print(torch.autograd.why_no_grad(loss))
        the graph was cut at ...: argmax() gives int64, and only floating point and complex values have gradients
          A position has no derivative: use its soft form (softmax, a weighted sum), or max().values.
    """
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f"why_no_grad(): expected a Tensor, got {type(tensor).__name__}")
    if tensor.requires_grad:
        return _why_none_yet(tensor)
    known = _why(tensor)
    if known is None:
        text = "nothing is known of where it comes from: it does not ask for gradients (requires_grad=True)"
        if not site_recording_enabled():
            text += ", and site recording is off"
        return Reason("unknown", text)
    kind, op, site, mode, text = known
    return Reason(kind, "\n".join(line.strip() for line in text.strip().split("\n")), op, site, mode)


def _why_none_yet(tensor: Tensor) -> Reason:
    node = tensor.grad_fn
    if node is None:
        text = "it is a leaf that asks for gradients"
        text += (
            ": no backward() has reached it, or the gradient was set to None since"
            if tensor._grad is None
            else ", and has one"
        )
        return Reason("leaf", text)
    text = f"it is in the graph, computed by {type(node).__name__}"
    site = node._site
    if site:
        text += f" at {Line(*site)}"
    if not tensor.retains_grad:
        text += "; only leaves keep their .grad: call retain_grad() before backward()"
    return Reason("recorded", text, type(node).__name__, site)


def unused_input(index: Any, tensor: Tensor, roots: Any) -> str:
    """The message for an input of grad() that no gradient reached."""
    text = (
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
        f"allow_unused=True if this is the desired behavior.\n  its shape is {list(tensor.shape)}"
    )
    node = tensor.grad_fn
    if node is not None and node._site:
        text += f"; it was computed by {type(node).__name__} at {Line(*node._site)}"
    twin = _same_memory(tensor, roots)
    if twin is None:
        return text + (
            "\n  The outputs do not depend on it, or only through a call that cuts the graph (detach(), no_grad(), "
            "an integer): see autograd.why_no_grad()."
        )
    return text + (
        f"\n  The graph holds another tensor on the same memory, a leaf of shape {list(twin.shape)}: this one is a "
        "view, copy or detach() of it that the outputs were not computed from. Ask for the gradient of the tensor "
        "that was used."
    )


def _same_memory(tensor: Tensor, roots: Any) -> Any:
    """A leaf that the roots were computed from and that shares memory with a tensor, or None."""
    seen, stack = set(), [r.grad_fn for r in roots]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and leaf.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr():
            return leaf
        stack.extend(n for n, _ in node.next_functions)
    return None


def set_site_recording(mode: bool) -> bool:
    """Switches on or off that calls remember the line of the program they stand on.

    Errors, reports and drawings of the graph name that line. It is on unless switched off here, and costs some
    ten nanoseconds a call.

    Args:
        mode (bool): whether lines are remembered.

    Returns:
        The setting before.

    Example:
        >>> before = torch.autograd.set_site_recording(False)
        >>> torch.autograd.set_site_recording(before)
        False
    """
    result: bool = _set_sites(bool(mode))
    return result


def site_recording_enabled() -> bool:
    """Tells whether calls remember the line of the program they stand on.

    Example:
        >>> torch.autograd.site_recording_enabled()
        True
    """
    before = _set_sites(True)
    _set_sites(before)
    result: bool = before
    return result
