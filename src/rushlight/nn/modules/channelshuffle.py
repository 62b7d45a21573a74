"""Mixing groups of channels."""

from __future__ import annotations

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Interleaves groups of channels: channel g C/groups + i moves to i groups + g.

    After a grouped convolution it lets the next one mix what the groups computed, as in ShuffleNet.

    Args:
        groups (int): number of groups, which divides the number of channels.

    Shape:
        input (N, C, *) -> (N, C, *)

    Example:
        >>> nn.ChannelShuffle(2)(torch.arange(6.0).view(1, 6, 1)).flatten()
        tensor([0., 3., 1., 4., 2., 5.])
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
