"""nnAudio: trainable STFT, mel, constant-Q and cepstral spectrograms with gradients."""

from common import array, brief, gradients
from nnAudio import features


def run():
    x = array(2, 4000)
    out = {}
    s = features.STFT(
        n_fft=256, hop_length=64, sr=4000, output_format="Magnitude", trainable=True, verbose=False
    )
    y = s(x)
    y.mean().backward()
    out["stft"] = brief(y)
    out["g"] = gradients(s)
    out["mel"] = brief(
        features.MelSpectrogram(sr=4000, n_fft=256, n_mels=20, hop_length=64, verbose=False)(x)
    )
    out["cqt"] = brief(features.CQT1992v2(sr=4000, hop_length=64, n_bins=24, fmin=100, verbose=False)(x))
    out["mfcc"] = brief(
        features.MFCC(sr=4000, n_mfcc=10, n_fft=256, n_mels=20, hop_length=64, verbose=False)(x)
    )
    return out
