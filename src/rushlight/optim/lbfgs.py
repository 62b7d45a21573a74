"""L-BFGS: quasi-Newton steps from the last few changes of parameters and gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._line_search import _cubic_minimum, _Point, strong_wolfe
from rushlight.optim._stepwise import check, check_options
from rushlight.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    # (d, t, loss, grad, derivative, at_end) -> (loss, grad, t, evaluations)
    _Search = Callable[
        [Tensor, float | Tensor, float, Tensor, float | Tensor, bool],
        tuple[float, Tensor, float | Tensor, int],
    ]

__all__ = ["LBFGS"]

_LAYOUT = (
    "lr",
    "max_iter",
    "max_eval",
    "tolerance_grad",
    "tolerance_change",
    "history_size",
    "line_search_fn",
)


class LBFGS(Optimizer):
    """L-BFGS: quasi-Newton steps p += t * d, d = -H g, with H built from the last changes of parameters and gradient.

    step(closure) runs up to max_iter iterations. The closure clears the gradients, computes the loss, calls
    backward() and returns the loss; it is called once or more in each iteration. All parameters form one
    vector, in one group.

    Args:
        params (iterable): the parameters, or (name, parameter) pairs.
        lr (float or Tensor): the step length t, or the first one that a line search tries. Default: 1
        max_iter (int): iterations in a call of step. Default: 20
        max_eval (int): calls of the closure in a call of step. None means 1.25 * max_iter. Default: None
        tolerance_grad (float): stops when no element of the gradient is larger. Default: 1e-7
        tolerance_change (float): stops when parameters or loss change by less. Default: 1e-9
        history_size (int): how many changes are remembered. Default: 100
        line_search_fn (str): "strong_wolfe", or None for steps of length lr. Default: None

    Example:
        >>> w = torch.tensor([-1.0, 2.0], requires_grad=True)
        >>> optimizer = optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        ...     loss.backward()
        ...     return loss
        >>> for _ in range(3):
        ...     loss = optimizer.step(closure)
        >>> w.detach().round(decimals=3)
        tensor([1., 1.])
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_options(("lr",), {"lr": lr})
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        given = locals()
        defaults = {name: given[name] for name in _LAYOUT}
        super().__init__(params, defaults)
        check(len(self.param_groups) == 1, "LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache: int | None = None

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Minimises for up to max_iter iterations; returns the loss it started from."""
        with rl.no_grad():
            return self._minimize(rl.enable_grad()(closure))

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state = self.state[self._params[0]]  # one state for all parameters, kept with the first
        search = self._searcher(group["line_search_fn"], closure)
        first_loss = closure()
        loss, grad, calls = float(first_loss), self._flat_grad(), 1
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        done = self._is_flat(grad)
        last = state["n_iter"] + group["max_iter"]
        while not done and state["n_iter"] < last:
            state["n_iter"] += 1
            d = self._direction(state, grad)
            self._remember(state, grad)
            before = state["prev_loss"] = loss
            state["d"] = d
            state["t"] = t = self._first_step(state, grad)
            derivative = grad.dot(d)
            if derivative > -group["tolerance_change"]:
                break
            # A fixed rate has no use for the gradient where the last step ends.
            at_end = state["n_iter"] == last
            loss, grad, t, more = search(d, t, loss, grad, derivative, at_end)
            state["t"] = t
            calls += more
            state["func_evals"] += more
            done = (
                self._is_flat(grad)
                or calls >= group["max_eval"]
                or (d * t).abs().max() <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            )
        return first_loss

    def _is_flat(self, grad: Tensor) -> bool:
        return bool(grad.abs().max() <= self.param_groups[0]["tolerance_grad"])

    def _first_step(self, state: dict[str, Any], grad: Tensor) -> float | Tensor:
        """The step to begin with: the rate; in the very first iteration no more than moves by the rate in all."""
        lr: float | Tensor = self.param_groups[0]["lr"]
        if state["n_iter"] > 1:
            return lr
        share = 1.0 / grad.abs().sum()
        return (share if share < 1.0 else 1.0) * lr

    def _searcher(self, name: str | None, closure: Callable[[], Any]) -> _Search:
        """f(d, t, loss, grad, derivative, at_end) -> (loss, grad, t, evaluations), having moved by t * d."""
        if name not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported, got line_search_fn={name!r}")

        def fixed(
            d: Tensor, t: float | Tensor, loss: float, grad: Tensor, derivative: float | Tensor, at_end: bool
        ) -> tuple[float, Tensor, float | Tensor, int]:
            self._move(t, d)
            return (loss, grad, t, 0) if at_end else (float(closure()), self._flat_grad(), t, 1)

        def searched(
            d: Tensor, t: float | Tensor, loss: float, grad: Tensor, derivative: float | Tensor, at_end: bool
        ) -> tuple[float, Tensor, float | Tensor, int]:
            loss, grad, t, calls = strong_wolfe(self._probe(closure, d), t, d, loss, grad, derivative)
            self._move(t, d)
            return loss, grad, t, calls

        return fixed if name is None else searched

    def _direction(self, state: dict[str, Any], grad: Tensor) -> Tensor:
        """-H grad, H the inverse Hessian that the remembered pairs (s, y) imply."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        size = self.param_groups[0]["history_size"]
        pairs = state["old_dirs"], state["old_stps"], state["ro"]
        y = grad - state["prev_flat_grad"]
        s = state["d"] * state["t"]
        curvature = y.dot(s)
        if curvature > 1e-10:  # else H would not stay positive
            for memory, value in zip(pairs, (y, s, 1.0 / curvature), strict=True):
                memory.append(value)
                if len(memory) > size:
                    del memory[0]
            state["H_diag"] = curvature / y.dot(y)
        d: Tensor
        d, *al = rl._C.ops["_optim.lbfgs_direction"](grad, *pairs, state["H_diag"])
        state["al"] = al + state.get("al", [None] * size)[len(al) :]
        return d

    def _remember(self, state: dict[str, Any], grad: Tensor) -> None:
        if state.get("prev_flat_grad") is None:
            state["prev_flat_grad"] = grad.clone()
        else:
            state["prev_flat_grad"].copy_(grad)

    def _probe(
        self, closure: Callable[[], Any], d: Tensor
    ) -> Callable[[float | Tensor], tuple[float, Tensor]]:
        """f(t) -> (loss, gradient) at the present parameters + t * d, which are put back afterwards."""
        start = rl._C.ops["_optim.flat"](self._params)

        def at(t: float | Tensor) -> tuple[float, Tensor]:
            self._move(t, d)
            loss, grad = float(closure()), self._flat_grad()
            self._put(start)
            return loss, grad

        return at

    def _numel(self) -> int:
        if self._numel_cache is None:
            self._numel_cache = sum(p.numel() * (2 if p.is_complex() else 1) for p in self._params)
        return self._numel_cache

    def _flat_grad(self) -> Tensor:
        grads: list[Tensor | None] = [p.grad for p in self._params]
        for i, grad in enumerate(grads):
            if grad is None:
                grads[i] = rl.zeros_like(self._params[i])
            elif grad.is_sparse:
                grads[i] = grad.to_dense()
        flat: Tensor = rl._C.ops["_optim.flat"](grads)
        return flat

    def _move(self, t: float | Tensor, d: Tensor) -> None:
        """parameters += t * d"""
        rl._C.ops["_optim.add_flat_"](self._params, d, float(t))

    def _put(self, vector: Tensor) -> None:
        """parameters = their parts of the vector"""
        rl._C.ops["_optim.set_flat_"](self._params, vector)


# The line search by the private names under which packages import it.
def _strong_wolfe(
    obj_func: Callable[..., tuple[float, Tensor]],
    x: Any,
    t: float | Tensor,
    d: Tensor,
    f: float,
    g: Tensor,
    gtd: float | Tensor,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Tensor, float | Tensor, int]:
    """(loss, gradient, step, evaluations); obj_func(x, t, d) is the loss and the gradient at x + t d."""
    return strong_wolfe(lambda t: obj_func(x, t, d), t, d, f, g, gtd, c1, c2, tolerance_change, max_ls)


def _cubic_interpolate(
    x1: float | Tensor,
    f1: float,
    g1: float | Tensor,
    x2: float | Tensor,
    f2: float,
    g2: float | Tensor,
    bounds: tuple[float | Tensor, float | Tensor] | None = None,
) -> float | Tensor:
    """Where the cubic through two points with derivatives is least."""
    return _cubic_minimum(_Point(x1, f1, None, g1), _Point(x2, f2, None, g2), bounds)
