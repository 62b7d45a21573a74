"""pyhessian: the largest eigenvalue of a loss's Hessian; a factorised layer of tensorly-torch."""

import torch
from common import array, brief, fill, gradients, labels


def run():
    import tltorch
    from pyhessian import hessian

    o = {}
    torch.manual_seed(0)
    loss = tltorch.FactorizedLinear(
        in_tensorized_features=(2, 4), out_tensorized_features=(2, 3), rank=0.5, factorization="cp"
    )
    loss.weight.normal_(0, 0.1)
    y = loss(array(4, 8))
    y.pow(2).mean().backward()
    o["tl"] = [brief(y), gradients(loss)]
    m = fill(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)))
    h = hessian(m, torch.nn.CrossEntropyLoss(), data=(array(16, 4), labels(3, 16)), cuda=False)
    ev, _ = h.eigenvalues(maxIter=200, tol=1e-5)
    o["ev"] = ev
    return o
