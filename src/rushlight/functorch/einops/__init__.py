"""functorch.einops: rearrange."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight._ops._rearrange import rearrange as _rearrange

from ._parsing import (
    parse_pattern as parse_pattern,
    validate_rearrange_expressions as validate_rearrange_expressions,
)

__all__ = ["rearrange"]


def rearrange(tensor: rl.Tensor | Sequence[rl.Tensor], pattern: str, **axes_lengths: int) -> rl.Tensor:
    """Splits, joins and permutes dimensions by a pattern: rearrange(x, "b c (h w) -> b h w c", h=4).

    Args:
        tensor: a tensor, or several of one shape, which are stacked first.
        axes_lengths: the lengths that do not follow from the shape.
    """
    whole = tensor if isinstance(tensor, rl.Tensor) else rl.stack(tuple(tensor))
    left, right = parse_pattern(pattern, axes_lengths)
    validate_rearrange_expressions(left, right, axes_lengths)
    count = sum(1 for part in left.composition if isinstance(part, list))
    if whole.dim() < count or (whole.dim() != count and not left.has_ellipsis):
        raise ValueError(
            f"Number of dimensions in pattern ({count}) and tensor ({whole.dim()}) must match: {pattern!r}"
        )
    return _rearrange(whole, pattern, **axes_lengths)
