"""pyro-ppl: stochastic variational inference of a Bayesian regression with an automatic guide."""

import pyro
import pyro.distributions as dist
import torch
from common import array, brief
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal


def run():
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    x = array(40, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * array(40, seed=3)

    def model(x, y=None):
        w = pyro.sample("w", dist.Normal(torch.zeros(3), 1.0).to_event(1))
        b = pyro.sample("b", dist.Normal(0.0, 1.0))
        sigma = pyro.sample("sigma", dist.HalfCauchy(1.0))
        with pyro.plate("data", x.shape[0]):
            return pyro.sample("y", dist.Normal(x @ w + b, sigma), obs=y)

    guide = AutoDiagonalNormal(model)
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.02}), loss=Trace_ELBO())
    losses = [svi.step(x, y) for _ in range(15)]
    return {"losses": losses, "params": {k: brief(v) for k, v in pyro.get_param_store().items()}}
