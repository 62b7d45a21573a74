"""reformer-pytorch, product-key-memory: a reversible language model with hashed attention."""

import torch
from common import labels, once
from reformer_pytorch import ReformerLM


def run():
    net = ReformerLM(
        num_tokens=40, dim=32, depth=2, max_seq_len=64, heads=4, bucket_size=16, n_hashes=2, causal=True
    )
    ids = labels(40, 2, 64)
    torch.manual_seed(0)
    return once(net, ids, loss=lambda o: torch.nn.functional.cross_entropy(o.transpose(1, 2), ids))
