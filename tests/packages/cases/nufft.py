"""torchkbnufft: a nonuniform Fourier transform, its adjoint and gradient."""

import torch
import torchkbnufft as nf
from common import array, brief


def run():
    im = torch.complex(array(1, 1, 16, 16), array(1, 1, 16, 16, seed=1))
    k = array(2, 50, low=-3.1, high=3.1, seed=2)
    f = nf.KbNufft(im_size=(16, 16))
    a = nf.KbNufftAdjoint(im_size=(16, 16))
    im.requires_grad_()
    y = f(im, k)
    z = a(y, k)
    z.abs().sum().backward()
    return [brief(y), brief(z), brief(im.grad), brief(nf.calc_density_compensation_function(k, (16, 16)))]
