"""electra-pytorch: a generator and a discriminator, masked and trained together."""

import torch
from common import gradients, labels
from electra_pytorch import Electra


def run():
    from torch import nn

    torch.manual_seed(0)

    class LM(nn.Module):
        def __init__(s, out):
            super().__init__()
            s.token_emb = nn.Embedding(20, 16)
            s.l = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), 1)
            s.o = nn.Linear(16, out)

        def forward(s, x, **k):
            return s.o(s.l(s.token_emb(x)))

    g = LM(20)
    d = LM(1)
    g.token_emb = d.token_emb

    class W(nn.Module):
        def __init__(s, m):
            super().__init__()
            s.m = m

        def forward(s, x, **k):
            return s.m(x)

    e = Electra(
        g,
        d,
        num_tokens=20,
        discr_dim=1,
        discr_layer="o",
        mask_token_id=2,
        pad_token_id=0,
        mask_prob=0.15,
        mask_ignore_token_ids=[],
    )
    r = e(labels(17, 4, 32) + 3)
    r.loss.backward()
    return [r.loss.item(), r.mlm_loss.item(), r.disc_loss.item(), gradients(e)]
