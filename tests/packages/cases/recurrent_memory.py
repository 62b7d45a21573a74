"""recurrent-memory-transformer-pytorch, block-recurrent-transformer-pytorch: language models with a memory."""

import torch
from block_recurrent_transformer_pytorch import BlockRecurrentTransformer
from common import brief, fill, gradients, labels
from recurrent_memory_transformer_pytorch import RecurrentMemoryTransformer


def run():
    torch.manual_seed(0)
    m = RecurrentMemoryTransformer(
        num_tokens=20,
        num_memory_tokens=4,
        dim=16,
        depth=1,
        causal=True,
        dim_head=8,
        heads=2,
        seq_len=16,
        use_flash_attn=False,
    )
    fill(m)
    lg, mem, _ = m(labels(20, 1, 16), labels=labels(20, 1, 16, seed=1)) if 0 else m(labels(20, 1, 16))
    lg.pow(2).mean().backward()
    b = BlockRecurrentTransformer(
        num_tokens=20,
        dim=16,
        depth=2,
        dim_head=8,
        heads=2,
        max_seq_len=32,
        block_width=16,
        num_state_vectors=16,
        recurrent_layers=(2,),
        use_flash_attn=False,
    )
    fill(b)
    out, mems, st = b(labels(20, 1, 32))
    out.pow(2).mean().backward()
    return [brief(lg), brief(mem), gradients(m), brief(out), gradients(b)]
