"""torchode: a batch of oscillators by adaptive Tsit5 and Dopri5 steps."""

import torch
import torchode
from common import array, brief


def run():
    def f(t, y):
        return torch.stack((y[:, 1], -y[:, 0] * 2.0), dim=1)

    y0, t = array(5, 2), torch.linspace(0, 3, 9).repeat(5, 1)
    out = {}
    for method in (torchode.Tsit5, torchode.Dopri5):
        term = torchode.ODETerm(f)
        solver = torchode.AutoDiffAdjoint(
            method(term=term), torchode.IntegralController(atol=1e-6, rtol=1e-4, term=term)
        )
        sol = solver.solve(torchode.InitialValueProblem(y0=y0, t_eval=t))
        out[method.__name__] = {"ys": brief(sol.ys), "status": sol.status.tolist()}
    return out
