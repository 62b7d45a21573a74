"""titans-pytorch: a memory that learns while it reads, forward and backward."""

import torch
from common import array, brief, gradients


def run():
    from titans_pytorch import NeuralMemory

    torch.manual_seed(0)
    m = NeuralMemory(dim=16, chunk_size=8)
    y, _ = m(array(2, 32, 16))
    y.pow(2).mean().backward()
    return [brief(y), gradients(m)]
