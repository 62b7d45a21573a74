"""Anchors: boxes of given sizes and shapes at every position of feature maps."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn


class AnchorGenerator(nn.Module):
    """For each feature map, boxes of its sizes in all its shapes (height / width), at every position."""

    def __init__(self, sizes: Any = ((128, 256, 512),), aspect_ratios: Any = ((0.5, 1.0, 2.0),)) -> None:
        super().__init__()
        per_map, ratios_per_map = (isinstance(v[0], (list, tuple)) for v in (sizes, aspect_ratios))
        self.sizes = sizes if per_map else tuple((size,) for size in sizes)
        self.aspect_ratios = aspect_ratios if ratios_per_map else (aspect_ratios,) * len(self.sizes)
        self.cell_anchors = list(map(self.generate_anchors, self.sizes, self.aspect_ratios))

    def generate_anchors(
        self, scales: Any, aspect_ratios: Any, dtype: Any = rl.float32, device: str = "cpu"
    ) -> rl.Tensor:
        """(shapes * sizes, 4) around (0, 0), in whole pixels."""
        scales = rl.as_tensor(scales, dtype=dtype, device=device)
        tall = rl.sqrt(rl.as_tensor(aspect_ratios, dtype=dtype, device=device))
        w = ((1 / tall)[:, None] * scales[None, :]).view(-1)
        h = (tall[:, None] * scales[None, :]).view(-1)
        return (rl.stack([-w, -h, w, h], dim=1) / 2).round()

    def num_anchors_per_location(self) -> list[int]:
        return [len(s) * len(a) for s, a in zip(self.sizes, self.aspect_ratios)]

    def forward(self, image_list: Any, feature_maps: Any) -> Any:
        """A tensor (anchors, 4) for each image."""
        height, width = image_list.tensors.shape[-2:]
        if len(feature_maps) != len(self.cell_anchors):
            raise AssertionError(
                f"There needs to be a match between the feature maps passed and the sizes and aspect ratios specified: "
                f"{len(feature_maps)} feature maps, and sizes of anchors for {len(self.cell_anchors)}: pass an AnchorGenerator "
                "with as many sizes as there are maps"
            )
        found = []
        for features, cells in zip(feature_maps, self.cell_anchors):
            h, w = features.shape[-2:]
            y = rl.arange(0, h, dtype=rl.int32) * (height // h)
            x = rl.arange(0, w, dtype=rl.int32) * (width // w)
            y, x = (v.reshape(-1) for v in rl.meshgrid(y, x, indexing="ij"))
            positions = rl.stack((x, y, x, y), dim=1)
            found.append((positions.view(-1, 1, 4) + cells.to(features.dtype).view(1, -1, 4)).reshape(-1, 4))
        anchors = rl.cat(found)
        return [anchors for _ in image_list.image_sizes]


class DefaultBoxGenerator(nn.Module):
    """The boxes that SSD starts from (Liu et al., 2015): at every position of each feature map, of some shapes and sizes."""

    def __init__(
        self,
        aspect_ratios: Any,
        min_ratio: float = 0.15,
        max_ratio: float = 0.9,
        scales: Any = None,
        steps: Any = None,
        clip: bool = True,
    ) -> None:
        super().__init__()
        if steps is not None and len(aspect_ratios) != len(steps):
            raise ValueError("aspect_ratios and steps should have the same length")
        self.aspect_ratios, self.steps, self.clip = aspect_ratios, steps, clip
        count = len(aspect_ratios)
        if scales is None:
            scales = [min_ratio, max_ratio]
            if count > 1:
                spread = max_ratio - min_ratio
                scales = [min_ratio + spread * k / (count - 1.0) for k in range(count)] + [1.0]
        self.scales = scales
        self._wh_pairs = [self._pairs(k) for k in range(count)]

    def _pairs(self, k: Any) -> rl.Tensor:
        """Widths and heights of the boxes of one feature map."""
        scale, between = self.scales[k], (self.scales[k] * self.scales[k + 1]) ** 0.5
        pairs = [[scale, scale], [between, between]]
        for ratio in self.aspect_ratios[k]:
            w, h = scale * ratio**0.5, scale / ratio**0.5
            pairs += [[w, h], [h, w]]
        return rl.tensor(pairs)

    def num_anchors_per_location(self) -> list[int]:
        """How many boxes there are at a position of each feature map."""
        return [2 + 2 * len(ratios) for ratios in self.aspect_ratios]

    def _grid_default_boxes(self, grid_sizes: Any, image_size: Any, dtype: Any = rl.float32) -> rl.Tensor:
        """(x, y, w, h) in units of the image."""
        found = []
        for k, (rows, columns) in enumerate(grid_sizes):
            down, across = rows, columns
            if self.steps is not None:
                down, across = image_size[0] / self.steps[k], image_size[1] / self.steps[k]
            y, x = (rl.arange(rows) + 0.5) / down, (rl.arange(columns) + 0.5) / across
            y, x = rl.meshgrid(y.to(dtype), x.to(dtype), indexing="ij")
            pairs = self._wh_pairs[k].to(dtype)
            pairs = pairs.clamp(min=0, max=1) if self.clip else pairs
            positions = rl.stack([x.reshape(-1), y.reshape(-1)], -1).repeat_interleave(len(pairs), 0)
            found.append(rl.cat([positions, pairs.repeat(rows * columns, 1)], 1))
        return rl.cat(found)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(aspect_ratios={self.aspect_ratios}, clip={self.clip}, scales={self.scales}, "
            f"steps={self.steps})"
        )

    def forward(self, image_list: Any, feature_maps: Any) -> Any:
        sizes = [tuple(map_.shape[-2:]) for map_ in feature_maps]
        height, width = image_list.tensors.shape[-2:]
        boxes = self._grid_default_boxes(sizes, (height, width), feature_maps[0].dtype)
        centre, half = boxes[:, :2], 0.5 * boxes[:, 2:]
        scale = rl.tensor([width, height] * 2, dtype=boxes.dtype)
        corners = rl.cat([centre - half, centre + half], -1) * scale
        return [corners.clone() for _ in image_list.image_sizes]
