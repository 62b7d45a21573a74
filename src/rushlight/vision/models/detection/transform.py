"""Images and targets at the size that detectors work at, and results back at the size of the images."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

from .image_list import ImageList
from .roi_heads import paste_masks_in_image


def resize_boxes(boxes: Any, original_size: Any, new_size: Any) -> rl.Tensor:
    """Boxes of an image of (height, width) in one of another size."""
    ratio_h, ratio_w = (float(new) / float(old) for new, old in zip(new_size, original_size))
    x1, y1, x2, y2 = boxes.unbind(1)
    return rl.stack((x1 * ratio_w, y1 * ratio_h, x2 * ratio_w, y2 * ratio_h), dim=1)


def resize_keypoints(keypoints: Any, original_size: Any, new_size: Any) -> rl.Tensor:
    """Key points (N, K, 3) of an image of (height, width) in one of another size."""
    ratio_h, ratio_w = (float(new) / float(old) for new, old in zip(new_size, original_size))
    x, y, visible = keypoints.unbind(-1)
    return rl.stack((x * ratio_w, y * ratio_h, visible), dim=-1)


class GeneralizedRCNNTransform(nn.Module):
    """Normalizes, resizes (the shorter edge to min_size, the longer at most max_size), and pads into one batch."""

    def __init__(
        self,
        min_size: Any,
        max_size: Any,
        image_mean: Any,
        image_std: Any,
        size_divisible: int = 32,
        fixed_size: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.min_size = tuple(min_size) if isinstance(min_size, (list, tuple)) else (min_size,)
        self.max_size, self.fixed_size = max_size, fixed_size
        self.image_mean, self.image_std, self.size_divisible = image_mean, image_std, size_divisible
        self._skip_resize = kwargs.pop("_skip_resize", False)

    def forward(self, images: Any, targets: Any = None) -> Any:
        images = list(images)
        targets = [dict(t) for t in targets] if targets is not None else None
        for i, image in enumerate(images):
            if image.dim() != 3:
                raise ValueError(
                    f"images is expected to be a list of 3d tensors of shape [C, H, W], got {image.shape}"
                )
            images[i], target = self.resize(
                self.normalize(image), targets[i] if targets is not None else None
            )
            if targets is not None:
                targets[i] = target
        sizes = [(image.shape[-2], image.shape[-1]) for image in images]
        return ImageList(self.batch_images(images), sizes), targets

    def normalize(self, image: Any) -> Any:
        if not image.is_floating_point():
            raise TypeError(
                f"Expected input images to be of floating type (in range [0, 1]), but found type {image.dtype} instead"
            )
        mean = rl.as_tensor(self.image_mean, dtype=image.dtype)
        std = rl.as_tensor(self.image_std, dtype=image.dtype)
        return (image - mean[:, None, None]) / std[:, None, None]

    def resize(self, image: Any, target: Any = None) -> tuple[Any, Any] | tuple[Any, None]:
        h, w = image.shape[-2:]
        if self.training:
            if self._skip_resize:
                return image, target
            size = self.min_size[int(rl.empty(1).uniform_(0.0, float(len(self.min_size))).item())]
        else:
            size = self.min_size[-1]
        if self.fixed_size is not None:
            options = {"size": [self.fixed_size[1], self.fixed_size[0]]}
        else:
            scale = min(size / min(h, w), self.max_size / max(h, w))
            options = {"scale_factor": scale, "recompute_scale_factor": True}
        image = F.interpolate(image[None], mode="bilinear", align_corners=False, **options)[0]
        if target is None:
            return image, target
        target["boxes"] = resize_boxes(target["boxes"], (h, w), image.shape[-2:])
        if "masks" in target:
            masks = F.interpolate(target["masks"][:, None].float(), size=image.shape[-2:])
            target["masks"] = masks[:, 0].to(rl.uint8)
        if "keypoints" in target:
            target["keypoints"] = resize_keypoints(target["keypoints"], (h, w), image.shape[-2:])
        return image, target

    def batch_images(self, images: Any) -> Any:
        stride = float(self.size_divisible)
        size = [max(image.shape[d] for image in images) for d in range(3)]
        size[1:] = [int(math.ceil(float(s) / stride) * stride) for s in size[1:]]
        batch = images[0].new_full((len(images), *size), 0)
        for i, image in enumerate(images):  # by index: gradients reach the images through these copies
            batch[i, :, : image.shape[1], : image.shape[2]].copy_(image)
        return batch

    def postprocess(self, result: Any, image_shapes: Any, original_image_sizes: Any) -> Any:
        if self.training:
            return result
        for one, shape, original in zip(result, image_shapes, original_image_sizes):
            one["boxes"] = resize_boxes(one["boxes"], shape, original)
            if "masks" in one:
                one["masks"] = paste_masks_in_image(one["masks"], one["boxes"], original)
            if "keypoints" in one:
                one["keypoints"] = resize_keypoints(one["keypoints"], shape, original)
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n    Normalize(mean={self.image_mean}, std={self.image_std})\n"
            f"    Resize(min_size={self.min_size}, max_size={self.max_size}, mode='bilinear')\n)"
        )
