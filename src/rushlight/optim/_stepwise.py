"""What the optimizers share whose step treats each parameter by itself, given its gradient and its state.

An optimizer is a class and a function. The class names its options and what a parameter's state starts as; the function
takes lists, one entry a parameter: the parameters, their gradients, each kind of state, then the options by keyword. It
runs one multi-tensor op of the core over all of them. The formula written out beside it is for what the op refuses:
differentiable steps, sparse gradients, tensors of mixed types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, dtype
from rushlight.optim.optimizer import Optimizer

# Options that came to PyTorch's optimizers over the years, and what a file without them meant.
_LATER = {
    "amsgrad": False,
    "capturable": False,
    "centered": False,
    "decoupled_weight_decay": False,
    "differentiable": False,
    "foreach": None,
    "fused": None,
    "maximize": False,
    "momentum": 0,
    "nesterov": False,
}
_LABELS = {"lr": "learning rate", "eps": "epsilon value"}


class StepwiseOptimizer(Optimizer):
    """step() gathers the tensors of a group and hands them to `function`.

    Class attributes of a subclass:
        layout: the names of its options, in the order of state dicts.
        function: the step on lists of tensors; it gets the options whose names it takes, `betas` as beta1 and beta2.
        lists: the names of the state that follow parameters and gradients, in the function's order.
        not_negative: options that are checked.
    """

    layout: tuple[str, ...] = ()
    function: Callable[..., Any]
    lists: tuple[str, ...] = ()
    not_negative: tuple[str, ...] = ("lr", "eps", "weight_decay")
    scalar_state: tuple[str, ...] = ("step",)  # state that is a 0-dim tensor, a plain number in old files
    refuses_sparse: str | None = "{} does not support sparse gradients"  # None: they are welcome

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        arguments: dict[str, Any],
    ) -> None:
        """`arguments`: the options by name; locals() of the subclass's __init__ will do."""
        options = {name: arguments[name] for name in self.layout}
        check_options(self.not_negative, options)
        super().__init__(params, options)
        if options.get("fused"):
            if options["differentiable"]:
                raise RuntimeError("`fused` does not support `differentiable`")
            if options["foreach"]:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
            self._step_supports_amp_scaling = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        later = {name: value for name, value in _LATER.items() if name in self.layout}
        for group in self.param_groups:
            for name, value in later.items():
                group.setdefault(name, value)
        for saved in self.state.values():
            for name in self.scalar_state if isinstance(saved, dict) else ():
                if isinstance(saved.get(name), (int, float)):
                    saved[name] = rl.tensor(float(saved[name]), dtype=step_dtype())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first step."""
        raise NotImplementedError

    def _remembers(self, group: dict[str, Any]) -> bool:
        """Whether parameters of the group have state at all."""
        return True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step for all parameters that have a gradient; returns what the closure returned."""
        loss = None
        if closure is not None:
            with rl.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            grads = [p.grad for p in params]
            if self.refuses_sparse and any(g.is_sparse for g in grads):
                raise RuntimeError(self.refuses_sparse.format(type(self).__name__))
            if group.get("fused"):
                check_fused(params)
            states = [self._state_of(p, group) for p in params] if self._remembers(group) else []
            self._apply(group, params, grads, states)
        return loss

    def _state_of(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state: dict[str, Any] = self.state[p]
        if not state:
            state.update(self._start(p, group))
        return state

    def _apply(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        function = type(self).function
        options = options_for(function, group)
        function(params, grads, *[column(states, name) for name in self.lists], **options)


def check_fused(params: Iterable[Tensor]) -> None:
    """Refuses parameters that fused=True cannot serve: integers, and tensors without memory."""
    for p in params:
        if not p.is_floating_point() or p.device.type == "meta":
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: ['cpu'] but "
                f"{p.dtype} and {p.device.type}"
            )


_accepted: dict[Callable[..., Any], set[str]] = {}  # function: the names of its parameters


def options_for(function: Callable[..., Any], group: dict[str, Any]) -> dict[str, Any]:
    """The options of a group that a step function takes. How a step runs (foreach, ...) is not for it to choose."""
    names = _accepted.get(function)
    if names is None:
        code = function.__code__
        taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        names = _accepted[function] = set(taken) - {"foreach", "capturable", "fused"}
    options = {name: value for name, value in group.items() if name in names and name != "params"}
    if "beta1" in names:
        options["beta1"], options["beta2"] = group["betas"]
    return options


def check(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def check_options(names: Iterable[str], options: dict[str, Any]) -> None:
    """Options that must not be negative; decay rates `betas`, where there are any, must be in [0, 1)."""
    for name in names:
        value = options[name]
        if name == "lr" and isinstance(value, rl.Tensor):
            check(value.numel() == 1, "Tensor lr must be 1-element")
        check(value >= 0.0, f"Invalid {_LABELS.get(name, name + ' value')}: {value}")
    for i, beta in enumerate(options.get("betas", ())):
        check(0.0 <= beta < 1.0, f"Invalid beta parameter at index {i}: {beta}")


def step_dtype(fused: bool | None = False) -> dtype:
    return rl.float64 if not fused and rl.get_default_dtype() == rl.float64 else rl.float32


def step_counter(p: Tensor, group: dict[str, Any]) -> Tensor:
    """A step count of zero: a 0-dim tensor, kept where the group wants it."""
    placed = group.get("capturable") or group.get("fused")
    return rl.zeros((), dtype=step_dtype(group.get("fused")), device=p.device if placed else None)


def zeros_like(p: Tensor) -> Tensor:
    return rl.zeros_like(p, memory_format=rl.preserve_format)


def column(states: list[dict[str, Any]], name: str) -> list[Tensor]:
    """One kind of state of all parameters; empty if they have none of it."""
    return [state[name] for state in states] if states and name in states[0] else []


def number(x: float | Tensor) -> float:
    """A hyperparameter given as a number or as a tensor of one element, as a number."""
    return x.item() if isinstance(x, rl.Tensor) else x


def run_fused(name: str, *args: Any) -> bool:
    """Runs the step `name` of the core; False when these tensors need the formula written out."""
    ran: bool = rl._C.ops["_optim." + name](*args)
    return ran


def rows(
    maximize: bool, weight_decay: float, params: list[Tensor], grads: list[Tensor], *lists: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    """(parameter, gradient, state ...) of each parameter, the gradient with its sign and decay.

    Complex tensors come as pairs of real numbers, to which every elementwise formula applies.
    """
    for p, grad, *state in zip(params, grads, *lists, strict=True):
        if maximize:
            grad = -grad
        if p.is_complex():
            p, grad, *state = (
                rl.view_as_real(t) if isinstance(t, rl.Tensor) and t.is_complex() else t
                for t in (p, grad, *state)
            )
        yield p, grad + weight_decay * p if weight_decay != 0 else grad, *state
