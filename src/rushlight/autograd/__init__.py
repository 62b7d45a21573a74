"""Gradients: backward, grad, Function, and the modes of recording."""

from __future__ import annotations

from collections.abc import Sequence

from _thread import get_ident

from .. import _C
from .._core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

from .function import Function

_engine = _C.ops["_run_backward"]
_current_run = _C.ops["_backward_run"]
_partial: set[Any] = (
    set()
)  # threads inside a backward that was asked for the gradients of certain inputs only


def _run_all(*args: Any) -> Any:
    """A backward. One that a node of another backward starts goes on in a thread of its own when they are nested deep."""
    if _current_run() < 0:
        return _engine(*args)
    from ._reentrant import run

    return run(_engine, args)


def _run(
    roots: Any, grads: Any, retain: Any, create_graph: bool, inputs: Any, accumulate: Any, rows: int = -1
) -> Any:
    """A backward for certain inputs."""
    thread = get_ident()
    if thread in _partial:
        return _run_all(roots, grads, retain, create_graph, inputs, accumulate, rows)
    _partial.add(thread)
    try:
        return _run_all(roots, grads, retain, create_graph, inputs, accumulate, rows)
    finally:
        _partial.discard(thread)


def _is_checkpoint_valid() -> Any:
    """Whether a node may run a backward of its own that adds to the .grad of all leaves it reaches."""
    return get_ident() not in _partial


Tensor = _C.Tensor
_Batched: type | None = None  # vmap's class of tensors, when vmap is in use


def _tuple(x: Any) -> Any:
    """Tensors, or gradient edges that stand for them (autograd.graph), as a tuple of tensors."""
    if isinstance(x, Tensor) or _stands_for_tensor(x):
        return (x,)
    if _is_edge(x):
        return (_edge_tensor(*x[:2]),)
    return tuple(_edge_tensor(*t[:2]) if _is_edge(t) else t for t in x)


def _stands_for_tensor(x: Any) -> Any:
    """Whether x is no tensor, but of a class that takes over functions of tensors."""
    return not isinstance(x, Tensor) and hasattr(type(x), "__torch_function__")


_edge_tensor = _C.ops["_edge_tensor"]


def _is_edge(x: Any) -> Any:
    return isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], _C.Node)


def backward(
    tensors: Any,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of tensors with respect to the leaves of their graph to the leaves' .grad.

    Args:
        tensors (Tensor or sequence): the roots; scalars, unless grad_tensors are given.
        grad_tensors (Tensor or sequence): the gradient with respect to each root; None stands for 1. Default:
            None
        retain_graph (bool): keeps what the graph saved, for another backward. None means create_graph. Default:
            None
        create_graph (bool): records the backward itself, for higher derivatives. Default: False
        grad_variables (Tensor or sequence): the old name of grad_tensors. Default: None
        inputs (Tensor or sequence): the tensors whose .grad is added to; None means all leaves. Default: None

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward((x**2).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    roots = _tuple(tensors)
    if grad_tensors is None:
        grad_tensors = grad_variables
    if grad_tensors is not None:
        grad_tensors = (grad_tensors,) if isinstance(grad_tensors, Tensor) else tuple(grad_tensors)
        if len(grad_tensors) != len(roots):
            raise RuntimeError(f"got {len(roots)} tensors and {len(grad_tensors)} gradients")
    if inputs is None:
        inputs = ()
    else:
        inputs = _tuple(inputs)
        if not inputs:
            raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    if _Batched is not None and any(type(t) is _Batched for t in (*roots, *(grad_tensors or ()))):
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported: use torch.func.grad or torch.func.vjp "
            "inside, or call backward() on the result of the transform."
        )
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if inputs:
        _run(roots, grad_tensors, retain, bool(create_graph), inputs, True)
    else:
        _run_all(roots, grad_tensors, retain, bool(create_graph), inputs, True)


def _takes_over(t: Any) -> Any:
    """Whether the class of a tensor has a __torch_dispatch__."""
    return isinstance(t, Tensor) and type(t).__torch_dispatch__ is not _C._disabled_torch_dispatch_impl


def _row_by_row(
    roots: Any,
    wanted: Any,
    grad_outputs: Any,
    retain: Any,
    create_graph: bool,
    allow_unused: bool,
    materialize: Any,
) -> Any:
    """grad() with is_grads_batched: primitives see tensors without a further dimension."""
    import rushlight as rl

    rows = len(grad_outputs[0])
    found = [
        grad(roots, wanted, [g[i] for g in grad_outputs], retain or i + 1 < rows, create_graph, True, allow_unused,
             False, materialize)
        for i in range(rows)
    ]  # fmt: skip
    return tuple(None if column[0] is None else rl.stack(column) for column in zip(*found, strict=True))


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor] | Sequence[GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor] | Sequence[GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of outputs with respect to inputs, returned instead of added to .grad.

    Args:
        outputs (Tensor or sequence): scalars, unless grad_outputs are given; or gradient edges.
        inputs (Tensor or sequence): what to differentiate by: leaves, results, or gradient edges.
        grad_outputs (Tensor or sequence): the gradient with respect to each output; None stands for 1. Default:
            None
        retain_graph (bool): keeps what the graph saved, for another backward. None means create_graph. Default:
            None
        create_graph (bool): records the backward itself, for higher derivatives. Default: False
        only_inputs (bool): kept for old programs; only the inputs get gradients in any case. Default: True
        allow_unused (bool): gives None for an input that the outputs do not depend on, instead of an error.
            None means materialize_grads. Default: None
        is_grads_batched (bool): grad_outputs have a further first dimension, a stack of gradients that one
            backward takes through the graph; so have the results. Default: False
        materialize_grads (bool): gives zeros instead of None. Default: False

    Returns:
        A tuple with a tensor for each input.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (first,) = torch.autograd.grad(x**3, x, create_graph=True)
        >>> (second,) = torch.autograd.grad(first, x)
        >>> first.item(), second.item()
        (27.0, 18.0)
    """
    roots, wanted = _tuple(outputs), _tuple(inputs)
    if any(map(_stands_for_tensor, (*roots, *wanted))):
        from ..overrides import handle_torch_function

        result: tuple[Tensor, ...] = handle_torch_function(
            grad,
            (*roots, *wanted),
            roots,
            wanted,
            grad_outputs=grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            only_inputs=only_inputs,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
        return result
    if allow_unused is None:
        allow_unused = materialize_grads
    elif materialize_grads and not allow_unused:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    retain = create_graph if retain_graph is None else bool(retain_graph)
    if grad_outputs is not None:
        grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
        if len(grad_outputs) != len(roots):
            raise RuntimeError(f"got {len(roots)} tensors and {len(grad_outputs)} gradients")
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched and any(_takes_over(t) for t in (*roots, *wanted, *(grad_outputs or ()))):
        out: tuple[Tensor, ...] = _row_by_row(
            roots, wanted, grad_outputs, retain, create_graph, allow_unused, materialize_grads
        )
        return out
    if _Batched is not None and any(type(t) is _Batched for t in (*roots, *wanted, *(grad_outputs or ()))):
        from .._transforms.vmap.batched import gradients

        given: tuple[Tensor, ...] = gradients(
            roots,
            wanted,
            grad_outputs,
            retain,
            create_graph,
            allow_unused,
            is_grads_batched,
            materialize_grads,
        )
        return given
    rows = _rows(roots, grad_outputs) if is_grads_batched else -1
    found = _run(roots, grad_outputs, retain, bool(create_graph), wanted, False, rows)
    if not allow_unused:
        for i, g in enumerate(found):
            if g is None:
                from ._why import unused_input

                raise RuntimeError(unused_input(i, wanted[i], roots))
    if materialize_grads:
        edges = inputs if isinstance(inputs, (tuple, list)) and not _is_edge(inputs) else (inputs,)
        if any(g is None and _is_edge(x) for g, x in zip(found, edges, strict=True)):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge: there is no tensor to be like"
            )
        found = tuple(
            _C.ops["zeros_like"](x).requires_grad_() if g is None else g
            for g, x in zip(found, wanted, strict=True)
        )
    return found


def _rows(roots: Any, stacks: Any) -> Any:
    """How many gradients there are in each of the stacks that is_grads_batched=True speaks of."""
    if stacks is None or any(g is None or not g.dim() for g in stacks):
        raise ValueError(
            "grad(is_grads_batched=True): Got in_dim=0 for some grad_output that is None or of dimensionality 0: expected "
            "(number of gradients, *output.shape) for each output"
        )
    sizes = [len(g) for g in stacks]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return sizes[0]


__all__ = ["Function", "backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]

_HOMES = {
    "GradcheckError": "gradcheck",
    "_disable_profiler": "profiler",
    "_profiler_enabled": "profiler",
    "detect_anomaly": "anomaly_mode",
    "gradgradcheck": "gradcheck",
    "is_multithreading_enabled": "grad_mode",
    "set_multithreading_enabled": "grad_mode",
    "set_detect_anomaly": "anomaly_mode",
    "set_site_recording": "_why",
    "site_recording_enabled": "_why",
    "Variable": "variable",
    "why_no_grad": "_why",
}


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any

    from . import forward_ad as forward_ad
    from . import functional as functional
    from . import graph as graph
    from . import profiler as profiler
    from ._why import why_no_grad as why_no_grad
    from .anomaly_mode import detect_anomaly as detect_anomaly
    from .anomaly_mode import set_detect_anomaly as set_detect_anomaly
    from .gradcheck import gradcheck as gradcheck
    from .gradcheck import gradgradcheck as gradgradcheck
    from .graph import GradientEdge as GradientEdge
else:
    Any = GradientEdge = object


def __getattr__(name: str) -> Any:
    """Rarely used parts are imported when first asked for."""
    import importlib
    import importlib.util

    if name == "SavedTensor":
        return _C.SavedTensor
    if name == "kineto_available":
        return lambda: True
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
