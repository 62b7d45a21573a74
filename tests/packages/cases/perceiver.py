"""perceiver-pytorch: Perceiver and PerceiverIO, forward and backward."""

from common import array, once
from perceiver_pytorch import Perceiver, PerceiverIO


def run():
    m = Perceiver(
        input_channels=3,
        input_axis=2,
        num_freq_bands=4,
        max_freq=8.0,
        depth=2,
        num_latents=8,
        latent_dim=16,
        cross_heads=1,
        latent_heads=2,
        cross_dim_head=8,
        latent_dim_head=8,
        num_classes=5,
    )
    a = once(m, array(2, 8, 8, 3))
    m = PerceiverIO(
        dim=8,
        queries_dim=8,
        logits_dim=6,
        depth=2,
        num_latents=8,
        latent_dim=16,
        cross_heads=1,
        latent_heads=2,
        cross_dim_head=8,
        latent_dim_head=8,
        seq_dropout_prob=0.0,
    )
    return [a, once(m, array(2, 12, 8), queries=array(4, 8, seed=4))]
