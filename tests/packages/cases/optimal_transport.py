"""POT: exact, entropic, sliced and Gromov-Wasserstein transport on tensors."""

import ot
import torch
from common import array, brief


def run():
    x = array(10, 2).double().requires_grad_()
    y = array(12, 2, seed=1).double()
    a = torch.ones(10, dtype=torch.float64) / 10
    b = torch.ones(12, dtype=torch.float64) / 12
    M = ot.dist(x, y)
    loss = ot.emd2(a, b, M)
    loss.backward()
    return [
        loss.item(),
        brief(x.grad),
        brief(ot.sinkhorn(a, b, M.detach(), 0.5)),
        float(ot.sliced_wasserstein_distance(x.detach(), y, n_projections=20, seed=1)),
        float(ot.gromov_wasserstein2(ot.dist(x.detach(), x.detach()), ot.dist(y, y), a, b)),
    ]
