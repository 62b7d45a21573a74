"""linformer: a language model with projected attention."""

import torch
from common import labels, once
from linformer import LinformerLM


def run():
    ids = labels(40, 2, 64)
    out = {}
    for reversible in (False, True):
        net = LinformerLM(num_tokens=40, dim=32, seq_len=64, depth=2, heads=4, k=16, reversible=reversible)
        out[str(reversible)] = once(
            net, ids, loss=lambda o: torch.nn.functional.cross_entropy(o.transpose(1, 2), ids)
        )
    return out
