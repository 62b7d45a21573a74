"""pytorch-minimize: seven minimizers on Rosenbrock's function, by gradients and Hessians."""

import torch
from common import brief
from torchmin import minimize
from torchmin.benchmarks import rosen


def run():
    x0 = torch.tensor([1.0, 8.0], dtype=torch.float64)
    o = {}
    for m in ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "trust-ncg", "trust-exact"):
        r = minimize(rosen, x0, method=m, max_iter=30)
        o[m] = [brief(r.x), float(r.fun), int(r.nit)]
    return o
