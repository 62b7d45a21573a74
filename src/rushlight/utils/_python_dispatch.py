"""Modes below autograd, and questions about classes with __torch_dispatch__."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import _C, _dispatch
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

_disabled = _C._disabled_torch_dispatch_impl


class TorchDispatchMode:
    """A block in which every primitive goes through the mode's __torch_dispatch__(func, types, args, kwargs).

    func is an overload, torch.ops.aten.add.Tensor. Autograd has already recorded the call; inside the method the mode
    is off, so func can be called.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            self._dispatch_key = _dispatch_key

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _dispatch.push_mode(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _dispatch.pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> Any:
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """The innermost mode of this thread, or None."""
    return _dispatch.state.modes[-1] if _dispatch.state.modes else None


def _get_current_dispatch_mode_stack() -> Any:
    """The modes of this thread, outermost first."""
    return list(_dispatch.state.modes)


def _push_mode(mode: Any) -> None:
    _dispatch.push_mode(mode)


def _pop_mode(k: Any = None) -> Any:
    return _dispatch.pop_mode()


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Any:
    """A block without the innermost mode, which it gives."""
    mode = _dispatch.pop_mode()
    try:
        yield mode
    finally:
        _dispatch.push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Any:
    """A block without any mode; it gives those that were on."""
    before = list(_dispatch.state.modes)
    while _dispatch.state.modes:
        _dispatch.pop_mode()
    try:
        yield before
    finally:
        for mode in before:
            _dispatch.push_mode(mode)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> Any:
    return bool(_dispatch.state.modes)


def is_in_any_mode_without_ignore_compile_internals() -> Any:
    return bool(_dispatch.state.modes)


@contextlib.contextmanager
def no_dispatch() -> Any:
    """A block in which no __torch_dispatch__ is called."""
    before = _C.ops["_set_torch_dispatch"](False)
    try:
        yield
    finally:
        _C.ops["_set_torch_dispatch"](before)


def is_traceable_wrapper_subclass_type(t: Any) -> Any:
    """Whether a class wraps tensors and says how: __tensor_flatten__ and __tensor_unflatten__."""
    return (
        issubclass(t, rl.Tensor)
        and t is not rl.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether t is a tensor that wraps others and says how."""
    return isinstance(t, rl.Tensor) and is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any, callback: Callable[..., Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """t with callback(name, inner) instead of each tensor that it wraps."""
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    attrs, ctx = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in attrs}
    made = type(t).__tensor_unflatten__(inner, ctx, outer_size, outer_stride)
    if made.shape != outer_size:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {outer_size}, but got: "
            f"{made.shape}"
        )
    return made


def get_alias_info(func: Any) -> Any:
    return func._schema


def return_and_correct_aliasing(func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> Any:
    """`out` as a __torch_dispatch__ should return it: what was written to in place is the argument itself."""
    schema = func._schema

    def written(letters: Any) -> Any:
        for i, a in enumerate(schema.arguments):
            if a.alias_info is not None and a.alias_info.is_write and a.alias_info.before_set & letters:
                if not a.kwarg_only and i < len(args):
                    return args[i]
                return (kwargs or {}).get(a.name)
        return None

    def corrected(info: Any, value: Any) -> Any:
        if info.alias_info is None or not info.alias_info.is_write:
            return value
        found = written(info.alias_info.before_set)
        return value if found is None else found

    if len(schema.returns) == 1:
        return corrected(schema.returns[0], out)
    if isinstance(out, (list, tuple)) and len(schema.returns) == len(out):
        return type(out)(map(corrected, schema.returns, out))
    return out


__getattr__ = _unsupported_attribute(__name__)
