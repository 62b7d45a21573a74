"""Transforms between images, arrays and tensors, and of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl

from . import functional as F


class ToTensor:
    """An image of Pillow or an array (H, W, C) as a tensor (C, H, W); bytes in [0, 255] become floats in [0, 1]."""

    def __call__(self, pic: Any) -> Any:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """An image of Pillow as a tensor (C, H, W) of its own type."""

    def __call__(self, pic: Any) -> Any:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """A tensor (C, H, W) or an array (H, W, C) as an image of Pillow."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({f'mode={self.mode}' if self.mode is not None else ''})"


class ConvertImageDtype(rl.nn.Module):
    """The image in another type, with white kept white."""

    def __init__(self, dtype: rl.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Any) -> Any:
        return F.convert_image_dtype(image, self.dtype)


class Normalize(rl.nn.Module):
    """(tensor - mean) / std by channels."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Any) -> Any:
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class LinearTransformation(rl.nn.Module):
    """(flattened image - mean) @ matrix: whitening."""

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        super().__init__()
        if transformation_matrix.size(0) != transformation_matrix.size(1):
            raise ValueError(
                f"transformation_matrix should be square. Got {tuple(transformation_matrix.size())} rectangular matrix."
            )
        if mean_vector.size(0) != transformation_matrix.size(0):
            raise ValueError(
                f"mean_vector should have the same length {mean_vector.size(0)} as any one of the dimensions of the "
                f"transformation_matrix [{tuple(transformation_matrix.size())}]"
            )
        for name, wanted in (("device", "be on the same device"), ("dtype", "have the same dtype")):
            one, other = (getattr(t, name) for t in (transformation_matrix, mean_vector))
            if one != other:
                raise ValueError(f"Input tensors should {wanted}. Got {one} and {other}")
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def forward(self, tensor: Any) -> Any:
        shape = tensor.shape
        n = shape[-3] * shape[-2] * shape[-1]
        if n != self.transformation_matrix.shape[0]:
            raise ValueError(
                f"Input tensor and transformation matrix have incompatible shape.[{shape[-3]} x {shape[-2]} x {shape[-1]}] "
                f"!= {self.transformation_matrix.shape[0]}"
            )
        if tensor.device.type != self.mean_vector.device.type:
            raise ValueError(
                "Input tensor should be on the same device as transformation matrix and mean vector. "
                f"Got {tensor.device} vs {self.mean_vector.device}"
            )
        flat = tensor.view(-1, n) - self.mean_vector
        return rl.mm(flat, self.transformation_matrix).view(shape)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()}, "
            f"mean_vector={self.mean_vector.tolist()})"
        )
