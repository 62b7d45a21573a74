"""torch.compile and its relatives: functions are recorded and replayed (rushlight.jit._replay); where that cannot be,
they stay Python, with their pointwise arithmetic fused (rushlight.jit._fuse).

A compiled module is wrapped as PyTorch wraps it, so that its state has the same names (`_orig_mod.weight`).
"""

from __future__ import annotations
from typing import Any
from collections.abc import Callable
from typing import TypeVar
from typing import overload

import contextlib
import functools

import rushlight as rl

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "substitute_in_graph",
]


_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_BACKENDS = ["cudagraphs", "inductor", "onnxrt", "openxla", "tvm"]
_DEBUG_BACKENDS = [
    "aot_eager",
    "aot_eager_decomp_partition",
    "aot_eager_default_partitioner",
    "eager",
    "eager_noexcept",
]


_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def compile(
    model: _F,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | Callable[..., Any] = ...,
    mode: str | None = ...,
    options: dict[str, Any] | None = ...,
    disable: bool = ...,
) -> _F: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | Callable[..., Any] = ...,
    mode: str | None = ...,
    options: dict[str, Any] | None = ...,
    disable: bool = ...,
) -> Callable[[_F], _F]: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """The same results, faster: a function, a module in an OptimizedModule, or a decorator if nothing is given.

    Whole steps gain most: forward, backward and `optimizer.step()` in one function. After three calls they are replayed
    from a tape of kernel calls, without running their Python; docs/compile.md says when, and when not. What is not
    replayed has its pointwise arithmetic fused.

    Args:
        model (callable): what is compiled. Default: None, which gives a decorator
        fullgraph (bool): values that the host reads are an error. Default: False
        dynamic (bool): accepted; each shape has its own tape. Default: None
        backend (str or callable): accepted; the one compiler is ours. Default: 'inductor'
        mode (str): accepted. Default: None
        options (dict): accepted. Default: None
        disable (bool): gives the model back as it is. Default: False

    Example:
        >>> w = torch.ones(2, requires_grad=True)
        >>> @torch.compile
        ... def step(x):
        ...     w.grad = None
        ...     loss = (w * x).sum()
        ...     loss.backward()
        ...     return loss.detach()
        >>> [step(torch.full((2,), float(i))).item() for i in range(5)]
        [0.0, 2.0, 4.0, 6.0, 8.0]
        >>> w.grad
        tensor([4., 4.])
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode not in (None, *_MODES):
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if not callable(backend) and backend not in _BACKENDS + _DEBUG_BACKENDS:
        from rushlight._dynamo.exc import InvalidBackend

        raise InvalidBackend(
            f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    if backend in _DEBUG_BACKENDS:
        return _wrapped(model, model, fullgraph, False)
    from rushlight.jit._fuse import fuse

    return _wrapped(model, fuse(model), fullgraph, True)


def _wrapped(model: Any, fused: Any, fullgraph: bool, replayed: bool) -> Any:
    """What compile() returns: `fused` computes what `model` does, and is what runs where there is no tape."""
    if isinstance(model, rl.nn.Module):
        from rushlight._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(fused, fullgraph=fullgraph if replayed else None)
    if not replayed:
        return fused
    from rushlight.jit._replay import compiled

    return compiled(model, fused, fullgraph)


def explain(f: Callable[..., Any]) -> Callable[..., Any]:
    """Tells how a function is compiled: explain(f)(*args) calls f up to four times and gives a table.

    Args:
        f (callable): a function, compiled or not.

    Returns:
        A function of f's arguments; its result shows the tapes, or why there is none.

    Example:
        >>> @torch.compile
        ... def f(x):
        ...     return (x * 2).sum()
        >>> print(torch.compiler.explain(f)(torch.ones(3)))
        f: 1 tape
          tape 1: 2 kernel calls, 1 segment, 0 fused into 0 programs
            memory of temporaries: 64 bytes instead of 12
            holds for: 1 argument, 0 tensors of the function's own, ... facts about objects
    """
    from rushlight.jit._explain import explain as told

    return told(f)


def _marker(fn=None, *args, **kwargs):
    return fn if callable(fn) else lambda f: f


allow_in_graph = assume_constant_result = nested_compile_region = _marker


def disable(fn=None, recursive=True, *, reason=None):
    return fn if fn is not None else lambda f: f


def substitute_in_graph(original_fn, **kwargs):
    return lambda fn: fn


def is_compiling():
    return False


def is_dynamo_compiling():
    return False


def is_exporting():
    return False


def reset():
    return None


def cudagraph_mark_step_begin():
    return None


def list_backends(exclude_tags=("debug", "experimental")):
    return sorted(_BACKENDS if exclude_tags else _BACKENDS + _DEBUG_BACKENDS)


def wrap_numpy(fn):
    return fn


def set_enable_guard_collectives(enabled):
    return None


class set_stance(contextlib.ContextDecorator):
    """How strictly to compile: accepted as a call, a block or a decorator."""

    def __init__(self, stance="default", **kwargs):
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
