"""Detectors of two stages: proposals, then what stands in them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.jit import is_scripting


class GeneralizedRCNN(nn.Module):
    """A backbone, proposals, heads, and the transform of images before and results after."""

    def __init__(self, backbone: Any, rpn: Any, roi_heads: Any, transform: Any) -> None:
        super().__init__()
        self.transform = transform
        self.backbone = backbone
        self.rpn = rpn
        self.roi_heads = roi_heads

    def forward(self, images: Any, targets: Any = None) -> Any:
        """Losses in training, detections of each image in evaluation; scripted models give both."""
        if self.training:
            self._check(targets)
        sizes = [(image.shape[-2], image.shape[-1]) for image in images]
        images, targets = self.transform(images, targets)
        self._check_sizes(targets)
        features = self.backbone(images.tensors)
        if isinstance(features, rl.Tensor):
            features = OrderedDict([("0", features)])
        proposals, proposal_losses = self.rpn(images, features, targets)
        found, losses = self.roi_heads(features, proposals, images.image_sizes, targets)
        found = self.transform.postprocess(found, images.image_sizes, sizes)
        losses = {**losses, **proposal_losses}
        if is_scripting():
            return losses, found
        return losses if self.training else found

    @staticmethod
    def _check(targets: Any) -> None:
        if targets is None:
            raise AssertionError("targets should not be none when in training mode")
        for target in targets:
            boxes = target["boxes"]
            if not isinstance(boxes, rl.Tensor):
                raise AssertionError(f"Expected target boxes to be of type Tensor, got {type(boxes)}.")
            if boxes.ndim != 2 or boxes.shape[-1] != 4:
                raise AssertionError(
                    f"Expected target boxes to be a tensor of shape [N, 4], got {boxes.shape}."
                )

    @staticmethod
    def _check_sizes(targets: Any) -> None:
        for i, target in enumerate(targets or []):
            flat = target["boxes"][:, 2:] <= target["boxes"][:, :2]
            if flat.any():
                box = target["boxes"][rl.where(flat.any(dim=1))[0][0]].tolist()
                raise AssertionError(
                    f"All bounding boxes should have positive height and width. Found invalid box {box} for target at index {i}."
                )
