"""routing-transformer: a causal language model with clustered attention, and its auxiliary loss."""

import torch
from common import brief, gradients, labels
from routing_transformer import RoutingTransformerLM


def run():
    torch.manual_seed(0)
    m = RoutingTransformerLM(
        num_tokens=20,
        dim=16,
        heads=2,
        depth=2,
        max_seq_len=64,
        causal=True,
        window_size=16,
        n_local_attn_heads=1,
    )
    out, aux = m(labels(20, 2, 64))
    (out.pow(2).mean() + aux).backward()
    return [brief(out), aux.item(), gradients(m)]
