"""torchquad, autoray: Simpson, Boole, Gauss-Legendre integrals and a gradient of one."""

import torch
from torchquad import Boole, GaussLegendre, Simpson, Trapezoid


def run():
    def f(x):
        return torch.sin(x[:, 0]) * torch.exp(x[:, 1])

    domain = torch.tensor([[0.0, 1.0], [-1.0, 1.0]])
    out = {
        q.__name__: q().integrate(f, dim=2, N=2025, integration_domain=domain, backend="torch").item()
        for q in (Trapezoid, Simpson, Boole, GaussLegendre)
    }
    d = domain.clone().requires_grad_()
    Simpson().integrate(f, dim=2, N=401, integration_domain=d).backward()
    out["grad"] = d.grad.tolist()
    return out
