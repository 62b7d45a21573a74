"""Dropout of blocks (Ghiasi et al., 2018)."""

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F


def _drop_block(input, p, block_size, inplace, eps, training, dims):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}.")
    if input.ndim != dims + 2:
        raise ValueError(f"input should be {dims + 2} dimensional. Got {input.ndim} dimensions.")
    if not training or p == 0.0:
        return input
    sizes = input.shape[2:]
    block = min(block_size, *sizes)
    # As many seeds as make a part p of all positions dropped.
    rate = p / block**dims
    for size in sizes:
        rate = rate * size / (size - block + 1)
    seeds = [size - block + 1 for size in sizes]
    noise = rl.empty((*input.shape[:2], *seeds), dtype=input.dtype, device=input.device).bernoulli_(rate)
    noise = F.pad(noise, [block // 2] * (2 * dims), value=0)
    pool = F.max_pool2d if dims == 2 else F.max_pool3d
    noise = 1 - pool(noise, kernel_size=(block,) * dims, stride=(1,) * dims, padding=block // 2)
    scale = noise.numel() / (eps + noise.sum())
    return input.mul_(noise).mul_(scale) if inplace else input * noise * scale


def drop_block2d(input, p, block_size, inplace=False, eps=1e-6, training=True):
    """Squares of (N, C, H, W) set to zero, about a part p of all positions; the rest scaled up."""
    return _drop_block(input, p, block_size, inplace, eps, training, 2)


def drop_block3d(input, p, block_size, inplace=False, eps=1e-6, training=True):
    """Cubes of (N, C, D, H, W) set to zero, about a part p of all positions; the rest scaled up."""
    return _drop_block(input, p, block_size, inplace, eps, training, 3)


class DropBlock2d(nn.Module):
    """`drop_block2d` as a layer."""

    def __init__(self, p, block_size, inplace=False, eps=1e-6):
        super().__init__()
        self.p = p
        self.block_size = block_size
        self.inplace = inplace
        self.eps = eps

    def forward(self, input):
        return drop_block2d(input, self.p, self.block_size, self.inplace, self.eps, self.training)

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p}, block_size={self.block_size}, inplace={self.inplace})"


class DropBlock3d(DropBlock2d):
    """`drop_block3d` as a layer."""

    def forward(self, input):
        return drop_block3d(input, self.p, self.block_size, self.inplace, self.eps, self.training)
