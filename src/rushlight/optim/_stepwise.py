"""What the optimizers share whose step treats each parameter by itself, given its gradient and its state."""

import rushlight as rl
from rushlight.optim.optimizer import Optimizer


class StepwiseOptimizer(Optimizer):
    """step() gathers the tensors of a group and updates them by one call.

    A subclass says what a parameter's state starts as (`_start`) and applies its formula to lists (`_apply`).
    """

    sparse_message = "{} does not support sparse gradients"  # None: they are welcome
    added_options = {}  # options that groups saved by older versions do not have
    step_is_tensor = True

    def _start(self, p, group):
        raise NotImplementedError

    def _remembers(self, group):
        return True

    def _apply(self, group, params, grads, states):
        raise NotImplementedError

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.added_options.items():
                group.setdefault(name, value)
        if self.step_is_tensor:
            for saved in self.state.values():
                if isinstance(saved, dict) and isinstance(saved.get("step"), (int, float)):
                    saved["step"] = rl.tensor(float(saved["step"]), dtype=step_dtype())

    def step(self, closure=None):
        """One step for all parameters that have a gradient; returns what the closure returned."""
        loss = None
        if closure is not None:
            with rl.enable_grad():
                loss = closure()
        all_states, refuse_sparse = self.state, self.sparse_message
        for group in self.param_groups:
            params, grads, states = [], [], []
            remembers = self._remembers(group)
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if refuse_sparse and grad.is_sparse:
                    raise RuntimeError(refuse_sparse.format(type(self).__name__))
                params.append(p)
                grads.append(grad)
                if remembers:
                    state = all_states[p]
                    if not state:
                        state.update(self._start(p, group))
                    states.append(state)
            if params:
                self._apply(group, params, grads, states)
        return loss


def check(condition, message):
    if not condition:
        raise ValueError(message)


def check_rate(lr, message="Invalid learning rate: {}"):
    if isinstance(lr, rl.Tensor):
        check(lr.numel() == 1, "Tensor lr must be 1-element")
    check(lr >= 0.0, message.format(lr))


def check_betas(betas):
    for i, beta in enumerate(betas):
        check(0.0 <= beta < 1.0, f"Invalid beta parameter at index {i}: {beta}")


def check_fused(optimizer, fused, foreach, differentiable):
    if fused:
        optimizer._step_supports_amp_scaling = True
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def step_dtype(fused=False):
    return rl.float64 if not fused and rl.get_default_dtype() == rl.float64 else rl.float32


def step_counter(p, group):
    """A step count of zero: a 0-dim tensor, kept where the group wants it."""
    if group.get("capturable") or group.get("fused"):
        return rl.zeros((), dtype=step_dtype(group.get("fused")), device=p.device)
    return rl.tensor(0.0, dtype=step_dtype())


def zeros_like(p):
    return rl.zeros_like(p, memory_format=rl.preserve_format)


def column(states, name):
    return [state[name] for state in states]


def number(x):
    """A hyperparameter given as a number or as a tensor of one element, as a number."""
    return x.item() if isinstance(x, rl.Tensor) else x


def run_fused(name, *args):
    """Runs the fused step `name` of the core; False when these tensors need the composed formula."""
    step = rl._C.ops.get("_optim." + name)
    return step is not None and step(*args)


def real_rows(maximize, params, grads, *rows):
    """(param, grad, state...) of each parameter for an elementwise formula: complex ones as pairs of real
    numbers.
    """
    for p, grad, *state in zip(params, grads, *rows, strict=True):
        if maximize:
            grad = -grad
        if p.is_complex():
            p, grad, *state = (
                rl.view_as_real(t) if isinstance(t, rl.Tensor) and t.is_complex() else t
                for t in (p, grad, *state)
            )
        yield p, grad, *state
