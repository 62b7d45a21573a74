"""pytorch-wavelets: discrete and dual-tree complex wavelet transforms and their inverses."""

from common import array, brief
from pytorch_wavelets import DTCWTForward, DTCWTInverse, DWTForward, DWTInverse


def run():
    x = array(2, 3, 32, 32).requires_grad_()
    f = DWTForward(J=2, mode="zero", wave="db3")
    yl, yh = f(x)
    i = DWTInverse(mode="zero", wave="db3")
    (yl.pow(2).sum() + yh[0].abs().sum()).backward()
    d = DTCWTForward(J=3)
    a, b = d(x.detach())
    return [
        brief(yl),
        brief(yh),
        brief(i((yl, yh))),
        brief(x.grad),
        brief(a),
        brief(b),
        brief(DTCWTInverse()((a, b))),
    ]
