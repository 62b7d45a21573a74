"""performer-pytorch, local-attention, axial-positional-embedding: a causal language model with FAVOR+ attention."""

import torch
from common import labels, once
from performer_pytorch import PerformerLM


def run():
    torch.manual_seed(0)
    net = PerformerLM(
        num_tokens=50,
        max_seq_len=32,
        dim=32,
        depth=2,
        heads=4,
        dim_head=8,
        causal=False,
        nb_features=16,
        local_attn_heads=2,
        local_window_size=8,
    )
    ids = labels(50, 2, 32)
    return once(net, ids, loss=lambda o: torch.nn.functional.cross_entropy(o.transpose(1, 2), ids))
