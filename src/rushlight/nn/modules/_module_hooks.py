"""Registering hooks: on all modules, and the methods of Module that register them on one."""

from __future__ import annotations

import weakref

from rushlight import _C
from rushlight.nn.modules import _hooks
from rushlight.utils.hooks import RemovableHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from rushlight.nn.modules.module import Module
    from rushlight.utils.hooks import RemovableHandle

    _M = TypeVar("_M", bound=Module)


def _register(table, hook, prepend=False, extra=(), call_hook=True):
    if call_hook:
        _C._use_module_hooks()
    handle = RemovableHandle(table, extra_dict=list(extra))
    table[handle.id] = hook
    for each in extra:
        each[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, args) before every module's forward; it may return other arguments."""
    return _register(_hooks.home()._global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Adds hook(module, args, result) after every module's forward; it may return another result."""
    extra = [_hooks.home()._global_forward_hooks_with_kwargs] if with_kwargs else []
    extra += [_hooks.home()._global_forward_hooks_always_called] if always_call else []
    return _register(_hooks.home()._global_forward_hooks, hook, extra=extra)


def _set_global_backward(full):
    if _hooks.home()._global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook: "
            "full ones serve for all"
        )
    _hooks.home()._global_is_full_backward_hook = full


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a backward hook of the old kind to every module."""
    _set_global_backward(False)
    return _register(_hooks.home()._global_backward_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, grad_input, grad_output) to every module's backward."""
    _set_global_backward(True)
    return _register(_hooks.home()._global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, grad_output) before every module's backward."""
    return _register(_hooks.home()._global_backward_pre_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, name, buffer), called when a buffer is registered; it may return another one."""
    return _register(_hooks.home()._global_buffer_registration_hooks, hook, call_hook=False)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, name, child), called when a child is registered; it may return another one."""
    return _register(_hooks.home()._global_module_registration_hooks, hook, call_hook=False)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, name, parameter), called when a parameter is registered; it may return another
    one."""
    return _register(_hooks.home()._global_parameter_registration_hooks, hook, call_hook=False)


class _WrappedHook:
    """A load_state_dict pre-hook that may want the module, held weakly so that it can be freed and copied."""

    __module__ = "rushlight.nn.modules.module"  # where files name it

    def __init__(self, hook, module=None):
        self.hook = hook
        self.with_module = module is not None
        self.module = weakref.ref(module) if module is not None else None

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        return {
            "hook": self.hook,
            "with_module": self.with_module,
            "module": self.module() if self.with_module else None,
        }

    def __setstate__(self, state):
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module and state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.module = weakref.ref(state["module"]) if self.with_module else None


def _mixed_kinds():
    return RuntimeError(
        "Cannot use both regular backward hooks and full backward hooks on a single Module: "
        "register_full_backward_hook serves for all"
    )


def register_full_backward_pre_hook(
    self: Module, hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    """Adds hook(module, grad_output), before the module's backward; it may return another grad_output."""
    return _register(self._backward_pre_hooks, hook, prepend)


def register_backward_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a backward hook of the old kind; prefer `register_full_backward_hook`."""
    if self._is_full_backward_hook is True:
        raise _mixed_kinds()
    self._is_full_backward_hook = False
    return _register(self._backward_hooks, hook)


def register_full_backward_hook(
    self: Module, hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    """Adds hook(module, grad_input, grad_output), called when both are known; it may return another
    grad_input."""
    if self._is_full_backward_hook is False:
        raise _mixed_kinds()
    self._is_full_backward_hook = True
    return _register(self._backward_hooks, hook, prepend)


def register_forward_pre_hook(
    self: Module, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
) -> RemovableHandle:
    """Adds hook(module, args), before forward; it may return other args (with_kwargs: args and
    kwargs)."""
    extra = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
    return _register(self._forward_pre_hooks, hook, prepend, extra)


def register_forward_hook(
    self: Module,
    hook: Callable[..., Any],
    *,
    prepend: bool = False,
    with_kwargs: bool = False,
    always_call: bool = False,
) -> RemovableHandle:
    """Adds hook(module, args, result), after forward; it may return another result.

    with_kwargs: hook(module, args, kwargs, result). always_call: also when forward fails.
    """
    extra = [self._forward_hooks_with_kwargs] if with_kwargs else []
    extra += [self._forward_hooks_always_called] if always_call else []
    return _register(self._forward_hooks, hook, prepend, extra)


def register_state_dict_post_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, state_dict, prefix, local_metadata), after state_dict is filled, in place."""
    hook._from_public_api = True  # type: ignore[attr-defined]
    return _register(self._state_dict_hooks, hook, call_hook=False)


def _register_state_dict_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    if getattr(hook, "_from_public_api", False):
        raise RuntimeError(
            f"Cannot register the same function {hook} as the state dict post hook: it was previously "
            "registered via register_state_dict_post_hook"
        )
    return _register(self._state_dict_hooks, hook, call_hook=False)


def register_state_dict_pre_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, prefix, keep_vars), before state_dict."""
    return _register(self._state_dict_pre_hooks, hook, call_hook=False)


def _register_load_state_dict_pre_hook(
    self: Module, hook: Callable[..., Any], with_module: bool = False
) -> RemovableHandle:
    return _register(
        self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None), call_hook=False
    )


def register_load_state_dict_pre_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
    error_msgs)."""
    return self._register_load_state_dict_pre_hook(hook, with_module=True)


def register_load_state_dict_post_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Adds hook(module, incompatible_keys), after load_state_dict; it may change the keys in place."""
    return _register(self._load_state_dict_post_hooks, hook, call_hook=False)
