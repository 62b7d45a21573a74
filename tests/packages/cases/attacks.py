"""torchattacks: seven adversarial attacks on a network."""

import torch
import torchattacks
from common import array, brief, fill, labels


def run():
    m = fill(
        torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)
        )
    ).eval()
    x = array(4, 3, 8, 8, low=0.0)
    y = labels(4, 4)
    o = {}
    for n, a in (
        ("fgsm", torchattacks.FGSM(m, eps=0.1)),
        ("pgd", torchattacks.PGD(m, eps=0.1, alpha=0.02, steps=4, random_start=True)),
        ("cw", torchattacks.CW(m, c=1, steps=5)),
        ("deepfool", torchattacks.DeepFool(m, steps=5)),
        ("mifgsm", torchattacks.MIFGSM(m, steps=4)),
        ("square", torchattacks.Square(m, n_queries=10)),
        ("apgd", torchattacks.APGD(m, steps=5)),
    ):
        torch.manual_seed(0)
        o[n] = brief(a(x, y))
    return o
