"""opacus: differentially private SGD with per-sample gradients, and the privacy accountant."""

import torch
from common import array, fill, labels
from opacus import PrivacyEngine
from opacus.grad_sample import GradSampleModule


def run():
    net = fill(
        torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 3)
        )
    )
    x, y = array(12, 1, 8, 8), labels(3, 12)
    gs = GradSampleModule(net)
    torch.nn.functional.cross_entropy(gs(x), y).backward()
    out = {
        "per_sample": [[*p.grad_sample.shape, p.grad_sample.double().norm().item()] for p in gs.parameters()]
    }
    lin = fill(torch.nn.Linear(6, 2))
    data = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(array(40, 6), labels(2, 40)), batch_size=8
    )
    engine = PrivacyEngine()
    lin, opt, data = engine.make_private(
        module=lin,
        optimizer=torch.optim.SGD(lin.parameters(), lr=0.1),
        data_loader=data,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
    )
    for xb, yb in data:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(lin(xb), yb).backward()
        opt.step()
    out["epsilon"] = engine.get_epsilon(1e-3)
    return out
