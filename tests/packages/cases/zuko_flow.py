"""zuko: neural spline and masked autoregressive flows with a context, and a continuous flow."""

import torch
import zuko
from common import array, brief, fill, gradients


def run():
    out = {}
    for name in ("NSF", "MAF", "NICE", "CNF"):
        torch.manual_seed(0)
        kwargs = {"hidden_features": (16, 16)}
        flow = fill(getattr(zuko.flows, name)(3, 2, **({"transforms": 2} if name != "CNF" else {}), **kwargs))
        c = array(8, 2, seed=4)
        log_prob = flow(c).log_prob(array(8, 3))
        log_prob.mean().neg().backward()
        out[name] = {"log_prob": brief(log_prob), "grad": gradients(flow)}
    return out
