"""pytorch-optimizer: fifteen optimizers of the collection on a regression, by name."""

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
    # SOAP: a side of 16 has more directions than a gradient of rank 5, and which basis of the rest eigh takes is
    # rounding, in PyTorch too; sides of up to 8 are of full rank here.
    soap = load_optimizer("soap")
    options = {"lr": 0.02, "max_precondition_dim": 8, "precondition_frequency": 3}
    out["soap"] = regression(lambda net: soap(net.parameters(), **options))
    return out
