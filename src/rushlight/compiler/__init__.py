"""torch.compile and its relatives: what they are given stays Python, with its pointwise arithmetic fused."""

import contextlib
import functools

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "substitute_in_graph",
]


def compile(
    model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False
):
    """The function or module, with its pointwise arithmetic fused (rushlight.jit._fuse): the same results, in fewer
    passes over memory. Without one, a decorator. disable=True returns what it is given.
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
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
        raise RuntimeError(f"torch.compile: expected a function or a module, got {type(model).__name__}")
    if disable or backend == "eager":
        return model
    from rushlight.jit._fuse import fuse

    return fuse(model)


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
    return ["inductor"]


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


from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
