"""neuraloperator, tensorly-torch: a Fourier neural operator trained for three steps."""

import torch
from common import array
from neuralop.models import FNO


def run():
    torch.manual_seed(0)
    m = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=2, out_channels=1, n_layers=2)
    x = array(2, 2, 16, 16)
    o = torch.optim.Adam(m.parameters(), lr=1e-3)
    ls = []
    for _ in range(3):
        loss = (m(x) - x[:, :1]).pow(2).mean()
        o.zero_grad()
        loss.backward()
        o.step()
        ls.append(loss.item())
    return ls
