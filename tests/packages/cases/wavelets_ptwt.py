"""ptwt, PyWavelets: fast wavelet transforms in one and two dimensions, packets, gradients."""

import ptwt
import pywt
from common import array, brief


def run():
    x = array(2, 64).requires_grad_()
    c = ptwt.wavedec(x, pywt.Wavelet("db3"), mode="reflect", level=3)
    (sum(t.pow(2).sum() for t in c)).backward()
    r = ptwt.waverec(c, pywt.Wavelet("db3"))
    im = array(2, 16, 16, seed=3)
    c2 = ptwt.wavedec2(im, "haar", level=2)
    pk = ptwt.WaveletPacket(im.reshape(2, -1), "haar", maxlevel=2)
    return [
        brief(list(c)),
        brief(r),
        brief(x.grad),
        brief(c2[0]),
        brief(ptwt.waverec2(c2, "haar")),
        brief(pk["aa"]),
    ]
