"""auraloss: spectral and waveform losses of audio and their gradients."""

import auraloss
from common import array, brief


def run():
    a = array(2, 1, 4096).requires_grad_()
    b = array(2, 1, 4096, seed=1)
    o = {}
    for n, loss in (
        (
            "mr",
            auraloss.freq.MultiResolutionSTFTLoss(
                fft_sizes=[256, 512], hop_sizes=[64, 128], win_lengths=[256, 512]
            ),
        ),
        ("sisdr", auraloss.time.SISDRLoss()),
        ("esr", auraloss.time.ESRLoss()),
        ("logcosh", auraloss.time.LogCoshLoss()),
        ("snr", auraloss.time.SNRLoss()),
        ("dc", auraloss.time.DCLoss()),
        ("stft", auraloss.freq.STFTLoss(fft_size=256, hop_size=64, win_length=256)),
    ):
        a.grad = None
        v = loss(a, b)
        v.backward()
        o[n] = [v.item(), brief(a.grad)]
    return o
