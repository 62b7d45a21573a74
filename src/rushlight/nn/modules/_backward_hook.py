"""The machinery behind full backward hooks of modules."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import rushlight as rl


@functools.cache
def _identity() -> Any:
    # Made on first use: most programs have no backward hooks.
    class BackwardHookFunction(rl.autograd.Function):
        """Passes tensors through; its node is where a module's boundary can be watched."""

        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
            return args

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads

    return BackwardHookFunction


class BackwardHook:
    """Calls a module's full backward hooks with the gradients of its inputs and outputs.

    An identity node is put around the tensors that enter and around those that leave. The outer node tells the
    gradients of the outputs (and runs the pre-hooks), the inner one the gradients of the inputs.
    """

    def __init__(self, module: rl.nn.Module, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.output_positions = self.input_positions = None
        self.n_inputs = self.n_outputs = -1

    @staticmethod
    def _spread(grads: Any, positions: Any, length: int) -> Any:
        """The gradients at their tensors' positions among all arguments, None elsewhere."""
        out = [None] * length
        for i, grad in zip(positions, grads, strict=True):
            out[i] = grad
        return tuple(out)

    @staticmethod
    def _gather(values: Any, positions: Any) -> Any:
        return tuple(values[i] for i in positions)

    def _checked(self, result: Any, old: Any, what: str) -> Any:
        """A hook's result as a tuple of the right length; `old` where it returned None."""
        if result is None:
            return old
        if not isinstance(result, tuple):
            result = (result,)
        if len(result) != len(old):
            raise RuntimeError(
                f"Backward {what} returned an invalid number of "
                f"grad_{'output' if what == 'pre hook' else 'input'}, "
                f"got {len(result)}, but expected {len(old)}"
            )
        return result

    def _wrap(self, args: Any, attach: Callable[..., None]) -> Any:
        """args with an identity node around their tensors; attach(node, positions, number of args) adds hooks to it."""
        if not isinstance(args, tuple):
            args = (args,)
        positions = [i for i, a in enumerate(args) if isinstance(a, rl.Tensor)]
        if not positions or not rl.is_grad_enabled() or not any(args[i].requires_grad for i in positions):
            return args
        wrapped = _identity().apply(*[args[i] for i in positions])
        nodes = [t.grad_fn for t in wrapped if t.grad_fn is not None]
        if not nodes:
            return args
        attach(nodes[0], positions, len(args))
        out = list(args)
        for i, tensor in zip(positions, wrapped, strict=True):
            out[i] = tensor
        return type(args)(*out) if hasattr(args, "_fields") else tuple(out)  # a named tuple stays one

    def setup_input_hook(self, args: Any) -> Any:
        def attach(node: Any, positions: Any, count: int) -> None:
            self.input_positions, self.n_inputs = positions, count
            node.register_hook(self._on_inputs)

        return self._wrap(args, attach)

    def _on_inputs(self, grad_input: Any, _: Any) -> Any:
        if self.grad_outputs is None:  # the outputs' gradient never came: nothing to tell
            return None
        current = self._spread(grad_input, self.input_positions, self.n_inputs)
        for hook in self.user_hooks:
            current = self._checked(hook(self.module, current, self.grad_outputs), current, "hook")
        self.grad_outputs = None
        return self._gather(current, self.input_positions)

    def setup_output_hook(self, args: Any) -> Any:
        def attach(node: Any, positions: Any, count: int) -> None:
            self.output_positions, self.n_outputs = positions, count
            node.register_prehook(self._on_outputs)

        single = not isinstance(args, tuple)
        wrapped = self._wrap(args, attach)
        return wrapped[0] if single else wrapped

    def _on_outputs(self, grad_output: Any) -> Any:
        current = self._spread(grad_output, self.output_positions, self.n_outputs)
        for hook in self.user_pre_hooks:
            current = self._checked(hook(self.module, current), current, "pre hook")
        self.grad_outputs = current
        if self.input_positions is None:  # no input asks for a gradient, so the hooks run here
            if self.user_hooks:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since "
                    "no inputs require gradients: the hook is given None for each of them",
                    stacklevel=2,
                )
            for hook in self.user_hooks:
                result = hook(self.module, tuple(None for _ in range(max(self.n_inputs, 1))), current)
                if result is not None and not (isinstance(result, tuple) and all(r is None for r in result)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return "
                        "None or None for all gradients."
                    )
            self.grad_outputs = None
        return self._gather(current, self.output_positions)
