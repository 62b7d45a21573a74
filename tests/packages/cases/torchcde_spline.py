"""torchcde, torchdiffeq: a neural controlled differential equation over a cubic spline, with its gradient."""

import torch
import torchcde
from common import array, brief, fill, gradients


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 12)

    def forward(self, t, z):
        return self.linear(z).tanh().view(-1, 4, 3)


def run():
    x = array(5, 10, 3)
    coeffs = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
    path = torchcde.CubicSpline(coeffs)
    f = fill(Field())
    z = torchcde.cdeint(
        X=path,
        z0=array(5, 4, seed=3),
        func=f,
        t=path.interval,
        method="rk4",
        options={"step_size": 0.5},
        adjoint=False,
    )
    z[:, -1].pow(2).mean().backward()
    natural = torchcde.natural_cubic_coeffs(x)
    return {
        "z": brief(z),
        "grad": gradients(f),
        "natural": brief(natural),
        "linear": brief(torchcde.LinearInterpolation(x).evaluate(torch.tensor(3.3))),
    }
