"""prodigyopt, dadaptation, schedulefree, lion-pytorch, adamp, madgrad: each on a regression."""

import adamp
import dadaptation
import madgrad
import prodigyopt
import schedulefree
from common import regression
from lion_pytorch import Lion


def run():
    def free(net):
        opt = schedulefree.AdamWScheduleFree(net.parameters(), lr=0.02)
        opt.train()
        return opt

    return {
        "prodigy": regression(lambda net: prodigyopt.Prodigy(net.parameters(), lr=1.0)),
        "dadapt": regression(lambda net: dadaptation.DAdaptAdam(net.parameters(), lr=1.0)),
        "free": regression(free),
        "lion": regression(lambda net: Lion(net.parameters(), lr=1e-2)),
        "adamp": regression(lambda net: adamp.AdamP(net.parameters(), lr=0.02)),
        "madgrad": regression(lambda net: madgrad.MADGRAD(net.parameters(), lr=0.02)),
    }
