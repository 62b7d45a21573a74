"""The slow path of a module call: the one taken when hooks exist somewhere in the process."""

import functools
import warnings
from collections import OrderedDict
from typing import Any

import rushlight as rl

# Hooks on all modules; ids in insertion order, as in each module's own dictionaries.
global_forward: OrderedDict[int, Any] = OrderedDict()
global_forward_with_kwargs: OrderedDict[int, Any] = OrderedDict()
global_forward_always: OrderedDict[int, Any] = OrderedDict()
global_forward_pre: OrderedDict[int, Any] = OrderedDict()
global_backward: OrderedDict[int, Any] = OrderedDict()
global_backward_pre: OrderedDict[int, Any] = OrderedDict()
# None until the first backward hook decides: full hooks, or the old kind.
global_backward_is_full = [None]
global_buffer_registration: OrderedDict[int, Any] = OrderedDict()
global_module_registration: OrderedDict[int, Any] = OrderedDict()
global_parameter_registration: OrderedDict[int, Any] = OrderedDict()


def call(self, args, kwargs):
    """module(*args, **kwargs) with all hooks."""
    if not (
        self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        or global_forward or global_forward_pre or global_backward or global_backward_pre
    ):  # fmt: skip
        return self.forward(*args, **kwargs)
    always_called = set()
    try:
        return _inner(self, args, kwargs, always_called)
    except Exception:
        # Hooks registered with always_call=True run once even when the call fails.
        for hook_id, hook in global_forward.items():
            if hook_id in global_forward_always and hook_id not in always_called:
                _quietly(hook, self, args, None, kwargs if hook_id in global_forward_with_kwargs else None)
        for hook_id, hook in self._forward_hooks.items():
            if hook_id in self._forward_hooks_always_called and hook_id not in always_called:
                _quietly(
                    hook, self, args, None, kwargs if hook_id in self._forward_hooks_with_kwargs else None
                )
        raise


def _quietly(hook, module, args, result, kwargs):
    try:
        if kwargs is None:
            hook(module, args, result)
        else:
            hook(module, args, kwargs, result)
    except Exception as e:
        warnings.warn(
            f"module forward hook with always_call=True raised an exception that was silenced: {e}",
            stacklevel=3,
        )


def _backward_lists(self):
    full, old = [], []
    if global_backward:
        (full if global_backward_is_full[0] else old).extend(global_backward.values())
    if self._backward_hooks:
        (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
    return full, old, [*global_backward_pre.values(), *self._backward_pre_hooks.values()]


def _inner(self, args, kwargs, always_called):
    for hook_id, hook in (*global_forward_pre.items(), *self._forward_pre_hooks.items()):
        if hook_id in self._forward_pre_hooks_with_kwargs:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{changed}."
                    )
                args, kwargs = changed
        else:
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)

    full, old, pre = _backward_lists(self)
    boundary = None
    if full or pre:
        from rushlight.nn.modules._backward_hook import BackwardHook

        boundary = BackwardHook(self, full, pre)
        args = boundary.setup_input_hook(args)

    result = self.forward(*args, **kwargs)

    for table, with_kwargs, always in (
        (global_forward, global_forward_with_kwargs, global_forward_always),
        (self._forward_hooks, self._forward_hooks_with_kwargs, self._forward_hooks_always_called),
    ):
        for hook_id, hook in list(table.items()):
            if hook_id in always:
                always_called.add(hook_id)
            changed = hook(self, args, kwargs, result) if hook_id in with_kwargs else hook(self, args, result)
            if changed is not None:
                result = changed

    if boundary is not None:
        if not isinstance(result, (rl.Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}",
                stacklevel=4,
            )
        result = boundary.setup_output_hook(result)
    if old:
        _attach_old(self, old, result)
    return result


def _attach_old(self, hooks, result):
    """The old kind of backward hook: put on the node of the first tensor of the result."""
    tensor = result
    while not isinstance(tensor, rl.Tensor):
        if isinstance(tensor, dict):
            tensor = next((v for v in tensor.values() if isinstance(v, rl.Tensor)), None)
        else:
            tensor = tensor[0]
        if tensor is None:
            return
    if tensor.grad_fn is not None:
        for hook in hooks:
            tensor.grad_fn.register_hook(functools.wraps(hook)(functools.partial(hook, self)))
