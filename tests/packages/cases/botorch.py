"""botorch: a single-task Gaussian process and expected improvement, with its gradient."""

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from common import array, brief


def run():
    torch.set_default_dtype(torch.float64)
    x = array(12, 2, low=0.0).double()
    y = (x[:, :1] * 3).sin() + x[:, 1:] ** 2
    model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
    model.eval()
    posterior = model.posterior(array(4, 2, seed=3, low=0.0).double())
    at = array(3, 1, 2, seed=5, low=0.0).double().requires_grad_()
    value = LogExpectedImprovement(model, best_f=y.max())(at)
    value.sum().backward()
    return {
        "mean": brief(posterior.mean),
        "variance": brief(posterior.variance),
        "ei": brief(value),
        "grad": brief(at.grad),
    }
