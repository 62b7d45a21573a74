"""normflows: a coupling flow and a spline flow, trained on two dimensions."""

import normflows as nf
import torch
from common import array, brief, fill


def run():
    out = {}
    torch.manual_seed(0)
    flows = []
    for _ in range(3):
        flows.append(nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 16, 2], init_zeros=False)))
        flows.append(nf.flows.Permute(2, mode="swap"))
    model = fill(nf.NormalizingFlow(nf.distributions.DiagGaussian(2), flows))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, losses = array(64, 2, low=-2, high=2), []
    for _ in range(5):
        opt.zero_grad()
        loss = model.forward_kld(x)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    out["affine"] = losses
    spline = fill(
        nf.NormalizingFlow(
            nf.distributions.DiagGaussian(2, trainable=False),
            [nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 16)],
        )
    )
    out["spline"] = brief(spline.log_prob(x))
    return out
