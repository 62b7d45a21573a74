"""xitorch: root finding with implicit gradients, eigenpairs, an initial-value problem, splines."""

import torch
import xitorch
from common import array, brief
from xitorch.integrate import solve_ivp
from xitorch.interpolate import Interp1D
from xitorch.linalg import solve, symeig
from xitorch.optimize import rootfinder


def run():
    A = (array(3, 3) * 0.3).requires_grad_()
    y0 = torch.zeros(3, 1)

    def f(y, A):
        return torch.tanh(A @ y + 0.1) + y / 2

    y = rootfinder(f, y0, params=(A,))
    y.sum().backward()
    o = [brief(y), brief(A.grad)]
    M = array(4, 4, seed=2)
    M = M @ M.T + torch.eye(4)
    w, v = symeig(xitorch.LinearOperator.m(M, is_hermitian=True))
    o.append(brief(w))
    o.append(brief(solve(xitorch.LinearOperator.m(M, is_hermitian=True), array(4, 2))))
    o.append(brief(solve_ivp(lambda t, y: -y, torch.linspace(0, 1, 5), torch.ones(2))))
    x = torch.linspace(0, 1, 8)
    o.append(brief(Interp1D(x, torch.sin(x), method="cspline")(torch.linspace(0.1, 0.9, 5))))
    return o
