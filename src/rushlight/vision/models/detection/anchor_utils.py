"""Anchors: boxes of given sizes and shapes at every place of feature maps."""

import rushlight as rl
from rushlight import nn


class AnchorGenerator(nn.Module):
    """For each feature map, boxes of its sizes in all its shapes (height / width), at every place."""

    def __init__(self, sizes=((128, 256, 512),), aspect_ratios=((0.5, 1.0, 2.0),)):
        super().__init__()
        if not isinstance(sizes[0], (list, tuple)):
            sizes = tuple((s,) for s in sizes)
        if not isinstance(aspect_ratios[0], (list, tuple)):
            aspect_ratios = (aspect_ratios,) * len(sizes)
        self.sizes = sizes
        self.aspect_ratios = aspect_ratios
        self.cell_anchors = [self.generate_anchors(s, a) for s, a in zip(sizes, aspect_ratios)]

    def generate_anchors(self, scales, aspect_ratios, dtype=rl.float32, device="cpu"):
        """(shapes * sizes, 4) around (0, 0), in whole pixels."""
        scales = rl.as_tensor(scales, dtype=dtype, device=device)
        tall = rl.sqrt(rl.as_tensor(aspect_ratios, dtype=dtype, device=device))
        w = ((1 / tall)[:, None] * scales[None, :]).view(-1)
        h = (tall[:, None] * scales[None, :]).view(-1)
        return (rl.stack([-w, -h, w, h], dim=1) / 2).round()

    def num_anchors_per_location(self):
        return [len(s) * len(a) for s, a in zip(self.sizes, self.aspect_ratios)]

    def forward(self, image_list, feature_maps):
        """A tensor (anchors, 4) for each picture."""
        height, width = image_list.tensors.shape[-2:]
        if len(feature_maps) != len(self.cell_anchors):
            raise ValueError(
                f"{len(feature_maps)} feature maps, and sizes of anchors for {len(self.cell_anchors)}: pass an AnchorGenerator "
                "with as many sizes as there are maps"
            )
        found = []
        for features, cells in zip(feature_maps, self.cell_anchors):
            h, w = features.shape[-2:]
            y = rl.arange(0, h, dtype=rl.int32) * (height // h)
            x = rl.arange(0, w, dtype=rl.int32) * (width // w)
            y, x = (v.reshape(-1) for v in rl.meshgrid(y, x, indexing="ij"))
            places = rl.stack((x, y, x, y), dim=1)
            found.append((places.view(-1, 1, 4) + cells.to(features.dtype).view(1, -1, 4)).reshape(-1, 4))
        anchors = rl.cat(found)
        return [anchors for _ in image_list.image_sizes]
