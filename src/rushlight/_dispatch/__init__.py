"""The level below autograd: classes and modes with __torch_dispatch__.

A call of an op that meets such a class, or such a mode, comes here from the extension (csrc/python/dispatch.cpp). A
composite function is taken apart into primitives (composites.py); a primitive is found by its name and arguments
(rushlight.ops), recorded if an argument wants gradients (record.py), and given to the innermost mode, then to the
classes of its arguments.
"""

from __future__ import annotations
from typing import Any

import threading

from .. import _C
from .. import ops as _ops

Tensor = _C.Tensor
_set_modes, _set_grad = _C.ops["_set_dispatch_modes"], _C.ops["_set_grad_enabled"]
_disabled = _C._disabled_torch_dispatch_impl
FACTORY, RANDOM = _C.OpFlags.FACTORY, _C.OpFlags.RANDOM
# What looks at a tensor without reading or computing its values.
_PLAIN = {
    "_backward_run", "_edge_in_run", "_edge_tensor", "_fail_on_backward", "_gradient_edge", "_new_wrapper",
    "_run_backward", "_swap_bodies", "_use_count", "_why_no_grad", "can_cast", "get_device", "is_complex",
    "is_conj", "is_floating_point", "is_inference", "is_neg", "is_same_size", "is_set_to", "is_signed",
    "resolve_conj", "resolve_neg", "result_type", "untyped_storage",
}  # fmt: skip


class _State(threading.local):
    def __init__(self):
        self.modes = []  # dispatch modes of this thread, outermost first
        self.outer = []  # grad mode outside of each __torch_dispatch__ that is running


state = _State()


def push_mode(mode: Any) -> None:
    state.modes.append(mode)
    _set_modes(len(state.modes))


def pop_mode() -> Any:
    mode = state.modes.pop()
    _set_modes(len(state.modes))
    return mode


def dispatches(value):
    """Whether a value is a tensor whose class has a __torch_dispatch__."""
    kind = type(value)
    return kind is not Tensor and issubclass(kind, Tensor) and kind.__torch_dispatch__ is not _disabled


def tensors_in(values, depth=0):
    """All tensors among values and in the lists among them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif type(value) in (list, tuple) and depth < 3:
            yield from tensors_in(value, depth + 1)


def call(function, args, kwargs):
    """What the extension calls: the result, or NotImplemented if the plain function is to run."""
    from . import aliases as _aliases, composites as _composites  # noqa: F401  _aliases adds rules

    name: Any = getattr(function, "_op_name", None) or getattr(function, "__name__", "")
    rule = _composites.RULES.get(name)
    if rule is not None:
        return rule(*args, **kwargs)
    flags = getattr(function, "_flags", None)
    if flags is None or name in _PLAIN:
        return NotImplemented
    if not flags & (FACTORY | RANDOM) and next(tensors_in((*args, *kwargs.values())), None) is None:
        return NotImplemented
    overload, args, kwargs = _ops.resolve(function, args, kwargs)
    if flags & FACTORY and next(tensors_in(args), None) is None and "out" not in kwargs:
        kwargs = _with_device(kwargs)
    elif name.endswith("_like") or name.startswith("new_"):
        kwargs = {"pin_memory": False, **kwargs}
    return call_overload(overload, args, kwargs)


def _with_device(kwargs):
    """The options of a function that makes tensors: modes are always told the device."""
    import rushlight as rl

    device = kwargs.pop("device", None)
    return {**kwargs, "device": rl.get_default_device() if device is None else device, "pin_memory": False}


def _method_of(mode):
    method = mode.__torch_dispatch__
    if getattr(method, "__self__", mode) is not mode:
        raise RuntimeError(
            "Defining your mode's `__torch_dispatch__` as a classmethod is not supported, please make it a plain method"
        )
    return method


def call_overload(overload, args, kwargs):
    """A primitive with its arguments in order: recorded, and given to whoever takes over."""
    from . import record as _record

    if _C.ops["is_grad_enabled"]() and any(t.requires_grad for t in tensors_in((*args, *kwargs.values()))):
        return _record.call(overload, args, kwargs)
    return below(overload, args, kwargs)


def active(args, kwargs):
    """Whether somebody takes over a call with these arguments."""
    if not _enabled():
        return False
    return bool(state.modes) or any(map(dispatches, tensors_in((*args, *kwargs.values()))))


def _enabled():
    before = _C.ops["_set_torch_dispatch"](True)
    _C.ops["_set_torch_dispatch"](before)
    return before


def _in_order(tensors):
    """One tensor of each class: subclasses before their bases, otherwise from left to right."""
    found: list[Any] = []
    for t in tensors:
        if dispatches(t) and all(type(t) is not type(other) for other in found):
            at = next((i for i, other in enumerate(found) if issubclass(type(t), type(other))), len(found))
            found.insert(at, t)
    return found


def below(overload, args, kwargs):
    """The primitive below autograd: by the innermost mode, by the classes of its arguments, or itself."""
    found = _in_order(tensors_in((*args, *kwargs.values())))
    types = tuple(map(type, found))
    grad = _set_grad(False)
    state.outer.append(grad)
    asked = []
    try:
        if state.modes:
            mode = pop_mode()
            asked.append(f"  - mode object {mode!r}")
            try:
                own = overload.handler(mode) or _method_of(mode)
                result = own(overload, types, args, kwargs)
            finally:
                push_mode(mode)
            if result is not NotImplemented:
                return overload.checked(result, args, kwargs)
        for t in found:
            asked.append(f"  - tensor subclass {type(t)!r}")
            own = overload.handler(type(t)) or t.__torch_dispatch__
            result = own(overload, types, args, kwargs)
            if result is not NotImplemented:
                return overload.checked(result, args, kwargs)
        if not asked:
            return overload.run(args, kwargs)
    finally:
        state.outer.pop()
        _set_grad(grad)
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{overload}'; all __torch_dispatch__ handlers returned "
        "NotImplemented:\n\n" + "\n".join(asked)
    )


class Reentrant:
    """A block inside a __torch_dispatch__ in which calls are recorded as they are outside of it."""

    def __enter__(self):
        self._before = _set_grad(state.outer[0] if state.outer else _C.ops["is_grad_enabled"]())

    def __exit__(self, *exc):
        _set_grad(self._before)


def make_wrapper_subclass(
    cls, size, strides=None, storage_offset=0, memory_format=None, dtype=None, layout=None, device=None,
    pin_memory=False, requires_grad=False, dispatch_sizes_strides_policy=None, dispatch_device=False,
    dispatch_layout=False, _extra_dispatch_keys=None, storage_size=None,
):  # fmt: skip
    """Tensor._make_wrapper_subclass: a tensor of class cls that has a shape, a dtype and a device, and no memory.
    Its class needs a __torch_dispatch__, which does with it what ops ask for."""
    import rushlight as rl

    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"_make_wrapper_subclass: cls must be a subclass of Tensor, got {cls!r}")
    if cls.__torch_dispatch__ is _disabled:
        raise RuntimeError(
            f"{cls.__name__}: expected a subclass of Tensor with a __torch_dispatch__: _make_wrapper_subclass makes "
            "tensors without memory"
        )
    if dispatch_sizes_strides_policy not in (None, "strides", "sizes"):
        raise RuntimeError(
            f"Unknown sizes_strides_policy: {dispatch_sizes_strides_policy}: expected 'strides' or 'sizes'"
        )
    size = [int(n) for n in (size if isinstance(size, (list, tuple)) else (size,))]
    if strides is None:
        strides, step = [], 1
        for n in reversed(size):
            strides.insert(0, step)
            step *= max(n, 1)
    dtype = rl.get_default_dtype() if dtype is None else dtype
    device = rl.get_default_device() if device is None else rl.device(device)
    made = _C.ops["_new_wrapper"](
        cls, size, [int(n) for n in strides], int(storage_offset or 0), dtype, device,
        -1 if storage_size is None else int(storage_size),
    )  # fmt: skip
    if requires_grad:
        before = _C.ops["_swap_overriding"](2)
        try:
            made.requires_grad_(True)
        finally:
            _C.ops["_swap_overriding"](before)
    return made
