"""Boxes relative to others, and which truth belongs to which box, by torchvision's names."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from ._boxes import BalancedPositiveNegativeSampler as BalancedPositiveNegativeSampler
from ._boxes import BoxCoder as BoxCoder
from ._boxes import Matcher as Matcher


class BoxLinearCoder:
    """Distances of the four sides from the centre of a box, in units of its size unless told otherwise."""

    def __init__(self, normalize_by_size: bool = True) -> None:
        self.normalize_by_size = normalize_by_size

    def _frame(self, boxes: Any) -> tuple[rl.Tensor, rl.Tensor]:
        """(centres twice, sizes twice)"""
        start, end = boxes[..., :2], boxes[..., 2:]
        centre, size = (start + end) * 0.5, end - start
        return rl.cat([centre, centre], -1), rl.cat([size, size], -1)

    def encode(self, reference_boxes: Any, proposals: Any) -> Any:
        """(left, top, right, bottom) of reference boxes from the centres of proposals."""
        centre, size = self._frame(proposals)
        sides = (reference_boxes - centre) * rl.tensor([-1, -1, 1, 1], dtype=proposals.dtype)
        return sides / size if self.normalize_by_size else sides

    def decode(self, rel_codes: Any, boxes: Any) -> Any:
        """The boxes that encode() made differences of."""
        boxes = boxes.to(dtype=rel_codes.dtype)
        centre, size = self._frame(boxes)
        sides = rel_codes * size if self.normalize_by_size else rel_codes
        return centre + sides * rl.tensor([-1, -1, 1, 1], dtype=sides.dtype)


class SSDMatcher(Matcher):
    """Each truth keeps the box that overlaps it most, whatever else that box overlaps."""

    def __init__(self, threshold: Any) -> None:
        super().__init__(threshold, threshold, allow_low_quality_matches=False)

    def __call__(self, match_quality_matrix: Any) -> Any:
        matches = super().__call__(match_quality_matrix)
        best = match_quality_matrix.max(dim=1).indices
        matches[best] = rl.arange(len(best), dtype=rl.int64)
        return matches


def retrieve_out_channels(model: Any, size: Any) -> list[int | Any]:
    """The channels of each map that a backbone gives for images of (width, height)."""
    was_training = model.training
    model.eval()
    with rl.no_grad():
        parameter = next(model.parameters())
        maps = model(rl.zeros((1, 3, size[1], size[0]), dtype=parameter.dtype))
        maps = {"0": maps} if isinstance(maps, rl.Tensor) else maps
        widths = [m.shape[1] for m in maps.values()]
    model.train(was_training)
    return widths
