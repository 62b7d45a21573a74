"""pypose: Lie groups and their gradients, an inverse problem by Levenberg-Marquardt."""

import pypose as pp
import torch
from common import array, brief


def run():
    x = pp.se3(array(5, 6) * 0.5)
    X = x.Exp()
    p = array(5, 3, seed=3)
    v = torch.nn.Parameter(array(5, 3, seed=4) * 0.3)
    y = pp.so3(v).Exp() @ p
    y.pow(2).sum().backward()
    return {
        "Exp": brief(X.tensor()),
        "Log": brief(X.Log().tensor()),
        "act": brief(X @ p),
        "inv": brief(X.Inv().tensor()),
        "mul": brief((X * X).tensor()),
        "matrix": brief(X.matrix()),
        "grad": brief(v.grad),
    }
