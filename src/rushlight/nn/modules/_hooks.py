"""The slow path of a module call: the one taken when hooks exist somewhere in the process."""

from __future__ import annotations

import functools
import sys
import warnings
from typing import Any

import rushlight as rl


def home() -> Any:
    """The module whose globals are the tables of global hooks: programs replace them to drop all hooks."""
    return sys.modules["rushlight.nn.modules.module"]


def call(self: rl.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """module(*args, **kwargs) with all hooks."""
    every = home()
    if not (
        self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        or every._global_forward_hooks or every._global_forward_pre_hooks
        or every._global_backward_hooks or every._global_backward_pre_hooks
    ):  # fmt: skip
        return self.forward(*args, **kwargs)
    always_called: set[int] = set()
    try:
        return _inner(self, args, kwargs, always_called)
    except Exception:
        # Hooks registered with always_call=True run once even when the call fails.
        for table, with_kwargs, always in _forward_tables(self):
            for hook_id, hook in table.items():
                if hook_id in always and hook_id not in always_called:
                    _quietly(hook, self, args, None, kwargs if hook_id in with_kwargs else None)
        raise


def _forward_tables(self: rl.nn.Module) -> Any:
    """(hooks, those that take kwargs, those called after a failure too): the global ones, then the module's."""
    every = home()
    return (
        (
            every._global_forward_hooks,
            every._global_forward_hooks_with_kwargs,
            every._global_forward_hooks_always_called,
        ),
        (self._forward_hooks, self._forward_hooks_with_kwargs, self._forward_hooks_always_called),
    )


def _quietly(hook: Any, module: rl.nn.Module, args: Any, result: Any, kwargs: Any) -> None:
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


def _backward_lists(self: rl.nn.Module) -> tuple[list[Any], list[Any], list[Any]]:
    full: list[Any] = []
    old: list[Any] = []
    every = home()
    if every._global_backward_hooks:
        (full if every._global_is_full_backward_hook else old).extend(every._global_backward_hooks.values())
    if self._backward_hooks:
        (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
    return full, old, [*every._global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]


def _inner(self: rl.nn.Module, args: Any, kwargs: Any, always_called: set[int]) -> Any:
    for hook_id, hook in (*home()._global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
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

    for table, with_kwargs, always in _forward_tables(self):
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
        _attach_old(self, old, args, result)
    return result


def _attach_old(self: rl.nn.Module, hooks: Any, args: Any, result: Any) -> None:
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
        _warn_partial(args, result, tensor.grad_fn)


def _warn_partial(args: Any, result: Any, node: Any) -> None:
    """The old kind of hook sits on one node: warns where that is not the whole of the module's boundary."""
    results = (result,) if isinstance(result, rl.Tensor) else result
    if not (isinstance(results, tuple) and all(isinstance(r, rl.Tensor) for r in results)):
        _partial("on a Module that does not return a single Tensor or a tuple of Tensors", "grad_output")
    elif not all(isinstance(a, rl.Tensor) for a in args):
        _partial(
            "on a Module that does not take as input a single Tensor or a tuple of Tensors", "grad_input"
        )
    elif len({r.grad_fn for r in results if r.grad_fn is not None}) > 1:
        _partial("when outputs are generated by different autograd Nodes", "grad_output")
    elif {a.grad_fn for a in args if a.grad_fn is not None} != {n for n, _ in node.next_functions}:
        _partial("when the forward contains multiple autograd Nodes", "grad_input")


def _partial(when: str, what: str) -> None:
    warnings.warn(
        f"Using a non-full backward hook {when} is deprecated: the hook misses some of the {what}. Please use "
        "register_full_backward_hook, which sees all of them.",
        FutureWarning,
        stacklevel=6,
    )
