"""higher: an inner loop of differentiable SGD steps, and the gradient through it."""

import higher
import torch
from common import array, fill, gradients


def run():
    net = fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
    x, y = array(16, 4), array(16, 1, seed=2)
    inner = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (fnet, diffopt):
        losses = []
        for _ in range(4):
            loss = ((fnet(x) - y) ** 2).mean()
            losses.append(loss.item())
            diffopt.step(loss)
        outer = ((fnet(x) - y) ** 2).mean()
        outer.backward()
    return {"losses": losses, "outer": outer.item(), "grad": gradients(net)}
