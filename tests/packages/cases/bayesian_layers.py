"""torchbnn, blitz-bayesian-pytorch: Bayesian layers, their divergences and gradients."""

import torch
import torchbnn as bnn
from blitz.modules import BayesianLinear
from common import array, brief


def run():
    torch.manual_seed(0)
    layer = bnn.BayesLinear(prior_mu=0, prior_sigma=0.1, in_features=4, out_features=3)
    y = layer(array(5, 4))
    kl = bnn.BKLLoss(reduction="mean", last_layer_only=False)(layer)
    (y.pow(2).mean() + kl).backward()
    out = {"bnn": [brief(y), kl.item(), brief(layer.weight_mu.grad)]}
    blitz = BayesianLinear(4, 3)
    out["blitz"] = [brief(blitz(array(5, 4))), float(blitz.log_prior), float(blitz.log_variational_posterior)]
    return out
