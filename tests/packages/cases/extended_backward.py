"""backpack-for-pytorch, unfoldNd: per-sample gradients, curvature and variance beside backward."""

import torch
from backpack import backpack, extend
from backpack.extensions import BatchGrad, BatchL2Grad, DiagGGNExact, DiagHessian, Variance
from common import array, brief, fill, labels


def run():
    m = extend(
        fill(
            torch.nn.Sequential(
                torch.nn.Conv2d(1, 2, 3), torch.nn.Sigmoid(), torch.nn.Flatten(), torch.nn.Linear(2 * 16, 3)
            )
        )
    )
    lf = extend(torch.nn.CrossEntropyLoss())
    loss = lf(m(array(5, 1, 6, 6)), labels(3, 5))
    torch.manual_seed(0)
    with backpack(BatchGrad(), BatchL2Grad(), DiagGGNExact(), Variance(), DiagHessian()):
        loss.backward()
    return {
        n: [
            brief(p.grad_batch),
            brief(p.batch_l2),
            brief(p.diag_ggn_exact),
            brief(p.variance),
            brief(p.diag_h),
        ]
        for n, p in m.named_parameters()
    }
