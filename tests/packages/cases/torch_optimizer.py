"""torch-optimizer: twelve optimizers on a regression."""

import torch_optimizer as to
from common import regression


def run():
    names = [
        "DiffGrad",
        "AdaBound",
        "AdaMod",
        "Lamb",
        "NovoGrad",
        "PID",
        "QHAdam",
        "RAdam",
        "Yogi",
        "SGDW",
        "AggMo",
        "Apollo",
    ]
    return {n: regression(lambda net, n=n: getattr(to, n)(net.parameters(), lr=0.02)) for n in names}
