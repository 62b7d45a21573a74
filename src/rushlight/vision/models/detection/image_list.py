"""Images of different sizes in one batch."""

from __future__ import annotations

from typing import Any


class ImageList:
    """A padded batch (N, C, H, W), and the (height, width) of each image in it."""

    def __init__(self, tensors: Any, image_sizes: Any) -> None:
        self.tensors = tensors
        self.image_sizes = image_sizes

    def to(self, device: Any) -> ImageList:
        return ImageList(self.tensors.to(device), self.image_sizes)
