"""ncps: liquid time-constant networks with wirings."""

import torch
from common import array, brief, fill
from ncps.torch import LTC, CfC
from ncps.wirings import AutoNCP


def run():
    o = {}
    for k, m in (
        ("cfc", CfC(3, 8, proj_size=2)),
        ("ltc", LTC(3, AutoNCP(8, 2))),
        ("cfcw", CfC(3, AutoNCP(8, 2))),
    ):
        torch.manual_seed(0)
        y, h = m(array(2, 6, 3))
        y.pow(2).mean().backward()
        o[k] = [list(y.shape), len(list(m.parameters()))]
        fill(m) if k == "cfc" else None
        if k == "cfc":
            o[k + "v"] = brief(m(array(2, 6, 3))[0])
    return o
