"""mixture-of-experts, soft-moe-pytorch, bitlinear-pytorch: routed layers and one of ternary weights."""

import torch
from bitlinear_pytorch import BitLinear
from common import array, brief, fill, gradients, once
from mixture_of_experts import MoE
from soft_moe_pytorch import SoftMoE


def run():
    torch.manual_seed(0)
    m = MoE(dim=16, num_experts=4)
    fill(m)
    y, a = m(array(2, 16, 16))
    (y.pow(2).mean() + a).backward()
    o = [brief(y), a.item(), gradients(m)]
    s = SoftMoE(dim=16, seq_len=8, num_experts=4)
    o.append(once(s, array(2, 8, 16)))
    b = BitLinear(16, 8)
    o.append(once(b, array(2, 16)))
    return o
