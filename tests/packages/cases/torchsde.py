"""torchsde: an Ito equation by Euler and Milstein steps, with gradients of the drift."""

import torch
import torchsde
from common import array, brief, fill, gradients


class Sde(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift, self.spread = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def f(self, t, y):
        return torch.tanh(self.drift(y))

    def g(self, t, y):
        return 0.2 * torch.sigmoid(self.spread(y))


def run():
    out = {}
    for method in ("euler", "milstein"):
        torch.manual_seed(1)
        sde = fill(Sde())
        y0, ts = array(4, 3), torch.linspace(0, 1, 5)
        bm = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3), entropy=7)
        ys = torchsde.sdeint(sde, y0, ts, bm=bm, method=method, dt=0.05)
        ys[-1].pow(2).mean().backward()
        out[method] = {"ys": brief(ys), "grad": gradients(sde)}
    return out
