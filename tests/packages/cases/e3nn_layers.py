"""e3nn, opt-einsum-fx: spherical harmonics, an equivariant tensor product and its gradients, through torch.fx."""

import torch
from common import array, brief
from e3nn import o3
from e3nn.nn import FullyConnectedNet, Gate


def run():
    torch.manual_seed(0)
    irreps = o3.Irreps("4x0e + 2x1o")
    sh = o3.spherical_harmonics("0e + 1o + 2e", array(6, 3), normalize=True)
    tp = o3.FullyConnectedTensorProduct(irreps, "1x0e + 1x1o + 1x2e", "3x0e + 2x1o")
    x = array(6, irreps.dim, seed=2).requires_grad_()
    y = tp(x, sh)
    y.pow(2).sum().backward()
    lin = o3.Linear(irreps, "2x0e + 1x1o")
    net = FullyConnectedNet([3, 8, 1], torch.nn.functional.silu)
    gate = Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
    rot = o3.matrix_x(torch.tensor(0.3))
    return {
        "sh": brief(sh),
        "tp": brief(y),
        "grad": brief(x.grad),
        "lin": brief(lin(x)),
        "net": brief(net(array(6, 3))),
        "gate": brief(gate(array(5, gate.irreps_in.dim))),
        "D": brief(o3.Irreps("1x1o+1x2e").D_from_matrix(rot)),
    }
