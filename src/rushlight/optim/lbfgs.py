"""L-BFGS: quasi-Newton steps from the last few changes of parameters and gradient."""

import rushlight as rl
from rushlight.optim._line_search import _cubic_minimum, _Point, strong_wolfe
from rushlight.optim._stepwise import check, check_options
from rushlight.optim.optimizer import Optimizer

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """step(closure) runs up to max_iter iterations and needs a closure that computes loss and gradients.

    All parameters form one vector. line_search_fn is None (a fixed rate) or "strong_wolfe".
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check_options(("lr",), {"lr": lr})
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        check(len(self.param_groups) == 1, "LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def step(self, closure):
        """Minimises for up to max_iter iterations; returns the loss it started from."""
        with rl.no_grad():
            return self._minimize(rl.enable_grad()(closure))

    def _minimize(self, closure):
        group = self.param_groups[0]
        state = self.state[self._params[0]]  # one state for all parameters, kept with the first
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, grad = float(first_loss), self._flat_grad()
        evaluations = 1
        state["func_evals"] += 1
        flat_enough = grad.abs().max() <= group["tolerance_grad"]
        if flat_enough:
            return first_loss
        d, t, previous_loss = state.get("d"), state.get("t"), state.get("prev_loss")
        n_iter = 0
        while n_iter < group["max_iter"]:
            n_iter += 1
            state["n_iter"] += 1
            d = self._direction(state, grad, d, t, group["history_size"])
            if state.get("prev_flat_grad") is None:
                state["prev_flat_grad"] = grad.clone()
            else:
                state["prev_flat_grad"].copy_(grad)
            previous_loss = loss
            t = min(1.0, 1.0 / grad.abs().sum()) * group["lr"] if state["n_iter"] == 1 else group["lr"]
            slope = grad.dot(d)
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is None:
                self._move(t, d)
                calls = 0
                if n_iter != group["max_iter"]:  # the last gradient is not needed
                    loss, grad, calls = float(closure()), self._flat_grad(), 1
                    flat_enough = grad.abs().max() <= group["tolerance_grad"]
            elif group["line_search_fn"] == "strong_wolfe":
                loss, grad, t, calls = strong_wolfe(self._probe(closure, d), t, d, loss, grad, slope)
                self._move(t, d)
                flat_enough = grad.abs().max() <= group["tolerance_grad"]
            else:
                raise RuntimeError("only 'strong_wolfe' is supported")
            evaluations += calls
            state["func_evals"] += calls
            if (
                flat_enough
                or evaluations >= group["max_eval"]
                or d.mul(t).abs().max() <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        state["d"], state["t"], state["prev_loss"] = d, t, previous_loss
        return first_loss

    def _direction(self, state, grad, d, t, history_size):
        """-H grad, H the inverse Hessian that the remembered pairs (s, y) imply (two-loop recursion)."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        ys_list, ss_list, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = grad.sub(state["prev_flat_grad"])
        s = d.mul(t)
        curvature = y.dot(s)
        if curvature > 1e-10:
            if len(ys_list) == history_size:
                for memory in (ys_list, ss_list, ro):
                    memory.pop(0)
            ys_list.append(y)
            ss_list.append(s)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / y.dot(y)
        al = state.setdefault("al", [None] * history_size)
        q = grad.neg()
        for i in reversed(range(len(ys_list))):
            al[i] = ss_list[i].dot(q) * ro[i]
            q.add_(ys_list[i], alpha=-al[i].item())
        r = q.mul(state["H_diag"])
        for i in range(len(ys_list)):
            r.add_(ss_list[i], alpha=(al[i] - ys_list[i].dot(r) * ro[i]).item())
        return r

    def _probe(self, closure, d):
        """f(t) -> (loss, gradient) at the present parameters + t * d, which are put back afterwards."""
        start = [p.clone(memory_format=rl.contiguous_format) for p in self._params]

        def at(t):
            self._move(t, d)
            loss, grad = float(closure()), self._flat_grad()
            for p, value in zip(self._params, start, strict=True):
                p.copy_(value)
            return loss, grad

        return at

    def _numel(self):
        if self._numel_cache is None:
            self._numel_cache = sum(p.numel() * (2 if p.is_complex() else 1) for p in self._params)
        return self._numel_cache

    def _flat_grad(self):
        pieces = []
        for p in self._params:
            grad = p.grad
            if grad is None:
                piece = p.new_zeros(p.numel())
            else:
                piece = (grad.to_dense() if grad.is_sparse else grad).reshape(-1)
            pieces.append(rl.view_as_real(piece).reshape(-1) if piece.is_complex() else piece)
        return rl.cat(pieces, 0)

    def _move(self, t, d):
        """parameters += t * d"""
        offset = 0
        t = t.item() if isinstance(t, rl.Tensor) else t
        for p in self._params:
            p = rl.view_as_real(p) if p.is_complex() else p
            p.add_(d[offset : offset + p.numel()].view_as(p), alpha=t)
            offset += p.numel()


# The line search by the private names under which packages import it.
def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """(loss, gradient, step, evaluations); obj_func(x, t, d) is the loss and the gradient at x + t d."""
    return strong_wolfe(lambda t: obj_func(x, t, d), t, d, f, g, gtd, c1, c2, tolerance_change, max_ls)


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with slopes is least."""
    return _cubic_minimum(_Point(x1, f1, None, g1), _Point(x2, f2, None, g2), bounds)
