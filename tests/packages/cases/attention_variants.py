"""conformer, nystrom-attention, g-mlp-pytorch, mlp-mixer-pytorch, egnn-pytorch: forward and backward."""

import torch
from common import array, labels, once
from conformer import ConformerBlock
from egnn_pytorch import EGNN
from g_mlp_pytorch import gMLP
from mlp_mixer_pytorch import MLPMixer
from nystrom_attention import Nystromformer


def run():
    torch.manual_seed(0)
    ids = labels(40, 2, 32)
    mixer = MLPMixer(image_size=16, channels=3, patch_size=4, dim=32, depth=2, num_classes=5)
    egnn = EGNN(dim=16)
    coords = array(1, 8, 3, seed=4)
    return {
        "conformer": once(ConformerBlock(dim=32, dim_head=8, heads=4, conv_kernel_size=7), array(2, 16, 32)),
        "nystrom": once(
            Nystromformer(dim=32, dim_head=8, heads=4, depth=1, num_landmarks=8), array(2, 32, 32)
        ),
        "gmlp": once(gMLP(num_tokens=40, dim=32, depth=2, seq_len=32), ids),
        "mixer": once(mixer, array(2, 3, 16, 16)),
        "egnn": once(egnn, array(1, 8, 16), coords, loss=lambda o: o[0].pow(2).mean() + o[1].pow(2).mean()),
    }
