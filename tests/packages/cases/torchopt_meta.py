"""torchopt: functional optimizers and the gradient through steps of one."""

import torch
import torchopt
from common import array, fill


def run():
    net = fill(torch.nn.Linear(3, 2))
    x, y = array(8, 3), array(8, 2, seed=1)
    o = {}
    for n, t in (
        ("adam", torchopt.adam(lr=0.05)),
        ("sgd", torchopt.sgd(lr=0.1, momentum=0.9)),
        ("rms", torchopt.rmsprop(lr=0.01)),
    ):
        params = tuple(p.detach().clone().requires_grad_() for p in net.parameters())
        st = t.init(params)
        ls = []
        for _ in range(4):
            loss = (torch.nn.functional.linear(x, *params) - y).pow(2).mean()
            g = torch.autograd.grad(loss, params)
            u, st = t.update(g, st)
            params = torchopt.apply_updates(params, u)
            ls.append(loss.item())
        o[n] = ls
    meta = torch.tensor(0.5, requires_grad=True)
    inner = torchopt.MetaSGD(net, lr=0.1)
    for _ in range(2):
        inner.step((net(x) * meta - y).pow(2).mean())
    (net(x) - y).pow(2).mean().backward()
    o["meta"] = meta.grad.item()
    return o
