"""Distances and similarities of vectors."""

from __future__ import annotations

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["PairwiseDistance", "CosineSimilarity"]


class PairwiseDistance(Module):
    """Computes the p-norm of the difference of vectors: ||x1 - x2 + eps||_p along the last dimension.

    Args:
        p (float): exponent of the norm. Default: 2.0
        eps (float): added to each difference, so that equal vectors are not quite at distance 0. Default: 1e-6
        keepdim (bool): keeps the last dimension, with size 1. Default: False

    Shape:
        x1 (*, D), x2 (*, D) -> (*), or (*, 1) with keepdim; x1 and x2 broadcast

    Example:
        >>> nn.PairwiseDistance()(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([5.0000, 1.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Computes the cosine of the angle between vectors: x1 . x2 / (max(|x1|, eps) max(|x2|, eps)).

    1 means the same direction, 0 orthogonal, -1 opposite. Lengths do not matter.

    Args:
        dim (int): the dimension that holds the vectors. Default: 1
        eps (float): the least length a vector is divided by. Default: 1e-8

    Shape:
        x1 (*, D, *), x2 (*, D, *) -> (*, *) without the dimension D; x1 and x2 broadcast

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
        >>> nn.CosineSimilarity()(x, torch.tensor([[2.0, 0.0]]))
        tensor([1.0000, 0.7071])
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
