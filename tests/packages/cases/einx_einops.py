"""einx, einops, opt-einsum: rearrangements, reductions, layers and contraction paths on tensors."""

import einops
import einops.layers.torch as layers
import einx
import opt_einsum
import torch
from common import array, brief, once


def run():
    x = array(2, 4, 6)
    out = {
        "rearrange": brief(einops.rearrange(x, "b (h w) c -> b c h w", h=2)),
        "reduce": brief(einops.reduce(x, "b t c -> b c", "max")),
        "pack": brief(einops.pack([x, x[:, 0]], "b * c")[0]),
        "einx": brief(einx.sum("b [t] c", x)),
        "dot": brief(einx.dot("b t [c], [c] d -> b t d", x, array(6, 3, seed=1))),
        "contract": brief(opt_einsum.contract("bij,bjk,kl->bil", x, x.transpose(1, 2), array(4, 5, seed=3))),
    }
    net = torch.nn.Sequential(layers.Rearrange("b t c -> b (t c)"), torch.nn.Linear(24, 3))
    out["layer"] = once(net, x)
    return out
