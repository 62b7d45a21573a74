"""vector-quantize-pytorch: a vector quantizer, a residual one, finite scalar and lookup-free quantization."""

import torch
from common import array, brief
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize


def run():
    torch.manual_seed(0)
    x = array(2, 24, 16).requires_grad_()
    out = {}
    vq = VectorQuantize(dim=16, codebook_size=32, decay=0.8, commitment_weight=1.0)
    q, i, loss = vq(x)
    (q.sum() + loss.sum()).backward()
    out["vq"] = [brief(q), i.tolist()[0][:8], loss.sum().item(), brief(x.grad)]
    rvq = ResidualVQ(dim=16, num_quantizers=3, codebook_size=16)
    q, i, loss = rvq(x.detach())
    out["rvq"] = [brief(q), brief(loss)]
    q, i = FSQ([8, 5, 5])(array(2, 6, 3))
    out["fsq"] = [brief(q), i.tolist()]
    q, i, loss = LFQ(codebook_size=16, dim=4)(array(2, 6, 4))
    out["lfq"] = [brief(q), i.tolist(), loss.item()]
    return out
