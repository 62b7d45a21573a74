"""RoIAlign over a pyramid of feature maps."""

import math

import rushlight as rl
from rushlight import nn

from .boxes import box_area
from .roi import as_rois, roi_align


class MultiScaleRoIAlign(nn.Module):
    """Each box's region of the map whose scale fits the box (Lin et al., 2016)."""

    def __init__(self, featmap_names, output_size, sampling_ratio, *, canonical_scale=224, canonical_level=4):
        super().__init__()
        self.featmap_names = featmap_names
        self.sampling_ratio = sampling_ratio
        self.output_size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        self.scales = None
        self.map_levels = None
        self.canonical_scale = canonical_scale
        self.canonical_level = canonical_level

    def forward(self, x, boxes, image_shapes):
        """x: {name: (N, C, H, W)}, boxes of each image, (height, width) of each image -> (K, C, ph, pw)"""
        maps = [v for k, v in x.items() if k in self.featmap_names]
        largest = [max(shape[d] for shape in image_shapes) for d in (0, 1)]
        self.scales = [2.0 ** round(math.log2(m.shape[-2] / largest[0])) for m in maps]
        rois = as_rois(list(boxes))
        options = {"output_size": self.output_size, "sampling_ratio": self.sampling_ratio}
        if len(maps) == 1:
            return roi_align(maps[0], rois, spatial_scale=self.scales[0], **options)
        low, high = -math.log2(self.scales[0]), -math.log2(self.scales[-1])
        side = rl.sqrt(rl.cat([box_area(b) for b in boxes]))
        level = rl.floor(self.canonical_level + rl.log2(side / self.canonical_scale) + 1e-6)
        level = (level.clamp(low, high) - low).long()
        result = maps[0].new_zeros((len(rois), maps[0].shape[1], *self.output_size))
        for i, (m, scale) in enumerate(zip(maps, self.scales)):
            mine = rl.where(level == i)[0]
            if len(mine):
                result = result.index_put((mine,), roi_align(m, rois[mine], spatial_scale=scale, **options))
        return result

    def __repr__(self):
        return (
            f"{type(self).__name__}(featmap_names={self.featmap_names}, output_size={self.output_size}, "
            f"sampling_ratio={self.sampling_ratio})"
        )
