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


def _register(
    table: Any, hook: Any, prepend: bool = False, extra: Any = (), call_hook: bool = True
) -> RemovableHandle:
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
    """Registers hook(module, args), called before the forward of every module; it may return other args.

    Args:
        hook (callable): what is called.

    Returns:
        A handle whose remove() takes the hook off.
    """
    return _register(_hooks.home()._global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Registers hook(module, args, result), called after the forward of every module; it may return another result.

    Args:
        hook (callable): what is called.
        with_kwargs (bool): calls hook(module, args, kwargs, result). Default: False
        always_call (bool): calls it after a failing forward too, with result None. Default: False

    Returns:
        A handle whose remove() takes the hook off.

    Example:
        >>> names = []
        >>> handle = nn.modules.module.register_module_forward_hook(lambda m, a, r: names.append(type(m).__name__))
        >>> y = nn.Sequential(nn.ReLU(), nn.Tanh())(torch.zeros(1))
        >>> handle.remove()
        >>> names
        ['ReLU', 'Tanh', 'Sequential']
    """
    extra = [_hooks.home()._global_forward_hooks_with_kwargs] if with_kwargs else []
    extra += [_hooks.home()._global_forward_hooks_always_called] if always_call else []
    return _register(_hooks.home()._global_forward_hooks, hook, extra=extra)


def _set_global_backward(full: bool) -> None:
    if _hooks.home()._global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook: "
            "full ones serve for all"
        )
    _hooks.home()._global_is_full_backward_hook = full


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a backward hook of the old kind on every module; prefer register_module_full_backward_hook.

    Args:
        hook (callable): hook(module, grad_input, grad_output), which sees the last operation of forward only.

    Returns:
        A handle whose remove() takes the hook off.
    """
    _set_global_backward(False)
    return _register(_hooks.home()._global_backward_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers hook(module, grad_input, grad_output) on the backward of every module; it may return other grad_input.

    Args:
        hook (callable): what is called.

    Returns:
        A handle whose remove() takes the hook off.
    """
    _set_global_backward(True)
    return _register(_hooks.home()._global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers hook(module, grad_output), called before the backward of every module; it may return another one.

    Args:
        hook (callable): what is called.

    Returns:
        A handle whose remove() takes the hook off.
    """
    return _register(_hooks.home()._global_backward_pre_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers hook(module, name, buffer), called when any module registers a buffer; it may return another one.

    Args:
        hook (callable): what is called.

    Returns:
        A handle whose remove() takes the hook off.
    """
    return _register(_hooks.home()._global_buffer_registration_hooks, hook, call_hook=False)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers hook(module, name, child), called when any module registers a child; it may return another one.

    Args:
        hook (callable): what is called.

    Returns:
        A handle whose remove() takes the hook off.
    """
    return _register(_hooks.home()._global_module_registration_hooks, hook, call_hook=False)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers hook(module, name, parameter), called when any module registers one; it may return another.

    Args:
        hook (callable): what is called.

    Returns:
        A handle whose remove() takes the hook off.
    """
    return _register(_hooks.home()._global_parameter_registration_hooks, hook, call_hook=False)


class _WrappedHook:
    """A load_state_dict pre-hook that may want the module, held weakly so that it can be freed and copied."""

    __module__ = "rushlight.nn.modules.module"  # where files name it

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module: Any = weakref.ref(module) if module is not None else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "hook": self.hook,
            "with_module": self.with_module,
            "module": self.module() if self.with_module else None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module and state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.module = weakref.ref(state["module"]) if self.with_module else None


def _mixed_kinds() -> Any:
    return RuntimeError(
        "Cannot use both regular backward hooks and full backward hooks on a single Module: "
        "register_full_backward_hook serves for all"
    )


def register_full_backward_pre_hook(
    self: Module, hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    """Registers hook(module, grad_output), called before the module's backward; it may return another grad_output.

    Args:
        hook (callable): grad_output is a tuple with an entry for each output.
        prepend (bool): before the hooks there are. Default: False

    Returns:
        A handle whose remove() takes the hook off.
    """
    return _register(self._backward_pre_hooks, hook, prepend)


def register_backward_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a backward hook of the old kind; prefer `register_full_backward_hook`.

    Args:
        hook (callable): hook(module, grad_input, grad_output), which sees the last operation of forward only.

    Returns:
        A handle whose remove() takes the hook off.
    """
    if self._is_full_backward_hook is True:
        raise _mixed_kinds()
    self._is_full_backward_hook = False
    return _register(self._backward_hooks, hook)


def register_full_backward_hook(
    self: Module, hook: Callable[..., Any], prepend: bool = False
) -> RemovableHandle:
    """Registers hook(module, grad_input, grad_output), called once the gradients of the inputs are known.

    It may return a tuple to take the place of grad_input; the tensors themselves must not be changed. In-place
    operations on the module's inputs and outputs are refused while there is such a hook.

    Args:
        hook (callable): the gradients are tuples with an entry for each input and output, None for what has none.
        prepend (bool): before the hooks there are. Default: False

    Returns:
        A handle whose remove() takes the hook off.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> handle = layer.register_full_backward_hook(lambda m, gin, gout: print(gout[0].shape))
        >>> layer(torch.ones(3, 2, requires_grad=True)).sum().backward()
        torch.Size([3, 1])
    """
    if self._is_full_backward_hook is False:
        raise _mixed_kinds()
    self._is_full_backward_hook = True
    return _register(self._backward_hooks, hook, prepend)


def register_forward_pre_hook(
    self: Module, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
) -> RemovableHandle:
    """Registers hook(module, args), called before forward; it may return other args.

    Args:
        hook (callable): args is the tuple of positional arguments; a result that is no tuple is the only one.
        prepend (bool): before the hooks there are. Default: False
        with_kwargs (bool): calls hook(module, args, kwargs), which may return (args, kwargs). Default: False

    Returns:
        A handle whose remove() takes the hook off.

    Example:
        >>> layer = nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: (args[0] - 1,))
        >>> layer(torch.tensor([1.0, 3.0]))
        tensor([0., 2.])
    """
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
    """Registers hook(module, args, result), called after forward; it may return another result.

    The usual way to look at the activations inside a model.

    Args:
        hook (callable): args is the tuple of positional arguments.
        prepend (bool): before the hooks there are. Default: False
        with_kwargs (bool): calls hook(module, args, kwargs, result). Default: False
        always_call (bool): calls it after a failing forward too, with result None. Default: False

    Returns:
        A handle whose remove() takes the hook off.

    Example:
        >>> model, seen = nn.Sequential(nn.Linear(4, 3), nn.ReLU()), {}
        >>> handle = model[0].register_forward_hook(lambda module, args, result: seen.update(hidden=result))
        >>> y = model(torch.randn(2, 4))
        >>> seen["hidden"].shape
        torch.Size([2, 3])
        >>> handle.remove()
    """
    extra = [self._forward_hooks_with_kwargs] if with_kwargs else []
    extra += [self._forward_hooks_always_called] if always_call else []
    return _register(self._forward_hooks, hook, prepend, extra)


def register_state_dict_post_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Registers hook(module, state_dict, prefix, local_metadata), called after state_dict; it changes it in place.

    Args:
        hook (callable): what is called; it returns None.

    Returns:
        A handle whose remove() takes the hook off.
    """
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
    """Registers hook(module, prefix, keep_vars), called before state_dict collects.

    Args:
        hook (callable): what is called.

    Returns:
        A handle whose remove() takes the hook off.
    """
    return _register(self._state_dict_pre_hooks, hook, call_hook=False)


def _register_load_state_dict_pre_hook(
    self: Module, hook: Callable[..., Any], with_module: bool = False
) -> RemovableHandle:
    return _register(
        self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None), call_hook=False
    )


def register_load_state_dict_pre_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a hook called before load_state_dict reads this module; it may rename keys in state_dict, in place.

    Args:
        hook (callable): hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
            error_msgs).

    Returns:
        A handle whose remove() takes the hook off.
    """
    return self._register_load_state_dict_pre_hook(hook, with_module=True)


def register_load_state_dict_post_hook(self: Module, hook: Callable[..., Any]) -> RemovableHandle:
    """Registers hook(module, incompatible_keys), called after load_state_dict; it may clear keys, in place.

    Args:
        hook (callable): incompatible_keys has the lists missing_keys and unexpected_keys; it returns None.

    Returns:
        A handle whose remove() takes the hook off.
    """
    return _register(self._load_state_dict_post_hooks, hook, call_hook=False)
