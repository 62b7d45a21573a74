"""gpytorch, linear-operator: exact Gaussian process, training by Adam, predictions with variances."""

import gpytorch
import torch
from common import array, brief


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(nu=2.5)
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def run():
    x = torch.linspace(0, 1, 20)
    y = torch.sin(6 * x) + 0.1 * array(20)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    model.train(), likelihood.train()
    opt = torch.optim.Adam(model.parameters(), lr=0.1)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(10):
        opt.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        losses.append(loss.item())
        opt.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        p = likelihood(model(torch.linspace(0.05, 1.2, 7)))
    return {"losses": losses, "mean": brief(p.mean), "variance": brief(p.variance)}
