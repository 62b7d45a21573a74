"""torchjd: aggregated Jacobians of several losses."""

import torch
from common import array, brief, fill, gradients
from torchjd.aggregation import MGDA, Mean, PCGrad
from torchjd.autojac import backward


def run():
    o = {}
    for A in (Mean(),):
        m = fill(torch.nn.Linear(4, 2))
        y = m(array(8, 4))
        loss = [(y[:, 0] ** 2).mean(), (y[:, 1] - 1).pow(2).mean()]
        try:
            backward(loss, A)
        except TypeError:
            backward(loss)
            from torchjd.autojac import jac_to_grad

            jac_to_grad(m.parameters(), A)
        o[str(A)] = gradients(m)
    o["agg"] = brief(Mean()(array(3, 5)))
    for A in (MGDA(), PCGrad()):
        torch.manual_seed(0)
        o[str(A)] = brief(A(array(3, 5)))
    return o
