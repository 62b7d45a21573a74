"""Boxes relative to others, and which truth belongs to which box, by torchvision's names."""

import rushlight as rl

from ._boxes import BalancedPositiveNegativeSampler as BalancedPositiveNegativeSampler
from ._boxes import BoxCoder as BoxCoder
from ._boxes import Matcher as Matcher


class BoxLinearCoder:
    """Distances of the four sides from the centre of a box, in units of its size unless told otherwise."""

    def __init__(self, normalize_by_size=True):
        self.normalize_by_size = normalize_by_size

    def _frame(self, boxes):
        """(centres twice, sizes twice)"""
        start, end = boxes[..., :2], boxes[..., 2:]
        centre, size = (start + end) * 0.5, end - start
        return rl.cat([centre, centre], -1), rl.cat([size, size], -1)

    def encode(self, reference_boxes, proposals):
        """(left, top, right, bottom) of reference boxes from the centres of proposals."""
        centre, size = self._frame(proposals)
        sides = (reference_boxes - centre) * rl.tensor([-1, -1, 1, 1], dtype=proposals.dtype)
        return sides / size if self.normalize_by_size else sides

    def decode(self, rel_codes, boxes):
        """The boxes that encode() made numbers of."""
        boxes = boxes.to(dtype=rel_codes.dtype)
        centre, size = self._frame(boxes)
        sides = rel_codes * size if self.normalize_by_size else rel_codes
        return centre + sides * rl.tensor([-1, -1, 1, 1], dtype=sides.dtype)
