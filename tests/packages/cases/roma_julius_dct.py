"""roma, julius, torch-dct, geomloss, asteroid-filterbanks: rotations, resampling, cosine transforms, Sinkhorn loss, filterbanks."""

import asteroid_filterbanks as af
import geomloss
import julius
import roma
import torch
import torch_dct
from common import array, brief


def run():
    q = torch.nn.functional.normalize(array(6, 4), dim=-1)
    m = roma.unitquat_to_rotmat(q)
    wave = torch.sin(torch.arange(800) * 0.05)[None]
    enc = af.Encoder(af.STFTFB(n_filters=64, kernel_size=64, stride=32))
    x = array(20, 3).requires_grad_()
    loss = geomloss.SamplesLoss("sinkhorn", p=2, blur=0.1, backend="tensorized")(x, array(15, 3, seed=3))
    loss.backward()
    return {
        "rotmat": brief(m),
        "rotvec": brief(roma.rotmat_to_rotvec(m)),
        "slerp": brief(roma.unitquat_slerp(q[:3], q[3:], torch.tensor([0.3]))),
        "procrustes": brief(roma.special_procrustes(array(4, 3, 3, seed=9))),
        "resample": brief(julius.resample_frac(wave, 4, 3)),
        "lowpass": brief(julius.lowpass_filter(wave, 0.1)),
        "dct": brief(torch_dct.dct(array(4, 16))),
        "idct": brief(torch_dct.idct(torch_dct.dct(array(4, 16)))),
        "stft": brief(enc(wave[None])),
        "sinkhorn": [loss.item(), brief(x.grad)],
    }
