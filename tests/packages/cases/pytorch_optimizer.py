"""pytorch-optimizer: fourteen optimizers of the collection on a regression, by name."""

from common import regression
from pytorch_optimizer import load_optimizer


def run():
    names = "adabelief adan lion madgrad nero prodigy ranger21 tiger adashift came adapnm lamb yogi muon"
    out = {}
    for n in names.split():
        kwargs = {"num_iterations": 20} if n == "ranger21" else {}
        make = load_optimizer(n)
        if n == "muon":
            out[n] = regression(
                lambda net, make=make: make(
                    [
                        {"params": [p for p in net.parameters() if p.dim() > 1], "use_muon": True},
                        {"params": [p for p in net.parameters() if p.dim() == 1], "use_muon": False},
                    ],
                    lr=0.02,
                )
            )
        else:
            out[n] = regression(
                lambda net, make=make, kwargs=kwargs: make(net.parameters(), lr=0.02, **kwargs)
            )
    return out
