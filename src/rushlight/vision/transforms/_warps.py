"""Transforms that move pixels, or erase them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, cast

import rushlight as rl

from . import functional as F
from ._checks import check_erasing, float_list
from ._interpolation import InterpolationMode, draw_int, mode_of_int, uniform


def _angles(x: Any, name: Any, req_sizes: Any = (2,)) -> list[float]:
    """[low, high] of an angle from one number or two."""
    if isinstance(x, numbers.Number):
        x = cast(float, x)
        if x < 0:
            raise ValueError(f"If {name} is a single number, it must be positive.")
        x = [-x, x]
    else:
        _check_sequence(x, name, req_sizes)
    return [float(d) for d in x]


def _check_sequence(x: Any, name: Any, req_sizes: Any) -> None:
    sizes = str(req_sizes[0]) if len(req_sizes) < 2 else " or ".join(str(s) for s in req_sizes)
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"{name} should be a sequence of length {sizes}.")
    if len(x) not in req_sizes:
        raise ValueError(f"{name} should be a sequence of length {sizes}.")


def _fill_for(img: Any, fill: Any) -> Any:
    """The colour outside, one value a channel for tensors."""
    if not isinstance(img, rl.Tensor):
        return fill
    channels = F.get_dimensions(img)[0]
    return [float(fill)] * channels if isinstance(fill, (int, float)) else [float(f) for f in fill]


def _checked_fill(fill: Any) -> Any:
    if fill is None:
        return 0
    if not isinstance(fill, (list, tuple, numbers.Number)):
        raise TypeError("Fill should be either a sequence or a number.")
    return fill


class RandomRotation(rl.nn.Module):
    """Rotated by a drawn angle in degrees."""

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: InterpolationMode | int = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.interpolation = mode_of_int(interpolation) if isinstance(interpolation, int) else interpolation
        self.degrees = _angles(degrees, "degrees")
        if center is not None:
            _check_sequence(center, "center", (2,))
        self.center = center
        self.expand = expand
        self.fill = _checked_fill(fill)

    @staticmethod
    def get_params(degrees: Any) -> Any:
        """The angle of a draw."""
        return uniform(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill)
        return F.rotate(
            img, self.get_params(self.degrees), self.interpolation, self.expand, self.center, fill
        )

    def __repr__(self) -> str:
        center = f", center={self.center}" if self.center is not None else ""
        fill = f", fill={self.fill}" if self.fill is not None else ""
        return (
            f"{type(self).__name__}(degrees={self.degrees}, interpolation={self.interpolation.value}, "
            f"expand={self.expand}{center}{fill})"
        )


class RandomAffine(rl.nn.Module):
    """Rotated, moved, scaled and sheared by drawn amounts, the middle kept."""

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: InterpolationMode | int = InterpolationMode.NEAREST,
        fill: Any = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.interpolation = mode_of_int(interpolation) if isinstance(interpolation, int) else interpolation
        self.degrees = _angles(degrees, "degrees")
        if translate is not None:
            _check_sequence(translate, "translate", (2,))
            if any(not 0.0 <= t <= 1.0 for t in translate):
                raise ValueError("translation values should be between 0 and 1")
        self.translate = translate
        if scale is not None:
            _check_sequence(scale, "scale", (2,))
            if any(s <= 0 for s in scale):
                raise ValueError("scale values should be positive")
        self.scale = scale
        self.shear = _angles(shear, "shear", (2, 4)) if shear is not None else None
        self.fill = _checked_fill(fill)
        if center is not None:
            _check_sequence(center, "center", (2,))
        self.center = center

    @staticmethod
    def get_params(degrees: Any, translate: Any, scale_ranges: Any, shears: Any, img_size: Any) -> Any:
        """(angle, translation, scale, shear) of a draw, for an image of (w, h)."""
        angle = uniform(degrees[0], degrees[1])
        moves = (0, 0)
        if translate is not None:
            reach = [float(t * s) for t, s in zip(translate, img_size)]
            moves = tuple(int(round(uniform(-r, r))) for r in reach)
        scale = uniform(*scale_ranges) if scale_ranges is not None else 1.0
        shear_x = shear_y = 0.0
        if shears is not None:
            shear_x = uniform(shears[0], shears[1])
            if len(shears) == 4:
                shear_y = uniform(shears[2], shears[3])
        return angle, moves, scale, (shear_x, shear_y)

    def forward(self, img: Any) -> Any:
        _, h, w = F.get_dimensions(img)
        angle, moves, scale, shear = self.get_params(
            self.degrees, self.translate, self.scale, self.shear, [w, h]
        )
        return F.affine(
            img,
            angle,
            moves,
            scale,
            shear,
            interpolation=self.interpolation,
            fill=_fill_for(img, self.fill),
            center=self.center,
        )

    def __repr__(self) -> str:
        text = f"{type(self).__name__}(degrees={self.degrees}"
        text += f", translate={self.translate}" if self.translate is not None else ""
        text += f", scale={self.scale}" if self.scale is not None else ""
        text += f", shear={self.shear}" if self.shear is not None else ""
        if self.interpolation != InterpolationMode.NEAREST:
            text += f", interpolation={self.interpolation.value}"
        text += f", fill={self.fill}" if self.fill != 0 else ""
        text += f", center={self.center}" if self.center is not None else ""
        return text + ")"


class RandomPerspective(rl.nn.Module):
    """Seen from a drawn side, with probability p."""

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.p = p
        self.interpolation = mode_of_int(interpolation) if isinstance(interpolation, int) else interpolation
        self.distortion_scale = distortion_scale
        self.fill = _checked_fill(fill)

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill)
        if rl.rand(1) >= self.p:
            return img
        _, height, width = F.get_dimensions(img)
        start, end = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, start, end, self.interpolation, fill)

    @staticmethod
    def get_params(width: Any, height: Any, distortion_scale: Any) -> Any:
        """(corners, drawn corners): top left, top right, bottom right, bottom left, each (x, y)."""
        dx, dy = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))
        near, far = lambda d, size: draw_int(0, d + 1), lambda d, size: draw_int(size - d - 1, size)
        sides = ((near, near), (far, near), (far, far), (near, far))
        drawn = [[across(dx, width), down(dy, height)] for across, down in sides]
        return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], drawn

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomErasing(rl.nn.Module):
    """A rectangle of drawn area and shape replaced by a value, with probability p."""

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | str | Sequence[float] = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__()
        check_erasing(p, scale, ratio, value)
        self.p, self.scale, self.ratio = p, scale, ratio
        self.value, self.inplace = value, inplace

    @staticmethod
    def get_params(img: Any, scale: Any, ratio: Any, value: Any = None) -> Any:
        """(top, left, height, width, values) of a draw; value None draws normal values too."""
        channels, height, width = img.shape[-3:]
        area = height * width
        log_ratio = rl.log(rl.tensor(ratio))
        for _ in range(10):
            target = area * uniform(scale[0], scale[1])
            aspect = rl.exp(rl.empty(1).uniform_(log_ratio[0].item(), log_ratio[1].item())).item()
            h, w = int(round(math.sqrt(target * aspect))), int(round(math.sqrt(target / aspect)))
            if not (h < height and w < width):
                continue
            if value is None:
                v = rl.empty([channels, h, w], dtype=rl.float32).normal_()
            else:
                v = rl.tensor(value)[:, None, None]
            top = draw_int(0, height - h + 1)
            return top, draw_int(0, width - w + 1), h, w, v
        return 0, 0, height, width, img

    def forward(self, img: Any) -> Any:
        if rl.rand(1) >= self.p:
            return img
        value = self.value
        if isinstance(value, (int, float)):
            value = [float(value)]
        elif isinstance(value, str):
            value = None
        elif len(value) not in (1, img.shape[-3]):
            raise ValueError(
                "If value is a sequence, it should have either a single value or "
                f"{img.shape[-3]} (number of input channels)"
            )
        i, j, h, w, new = self.get_params(
            img, self.scale, self.ratio, list(value) if value is not None else None
        )
        return F.erase(img, i, j, h, w, new, self.inplace)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, "
            f"inplace={self.inplace})"
        )


class ElasticTransform(rl.nn.Module):
    """Pixels moved by a smooth field of drawn displacements."""

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.alpha = self._pair("alpha", alpha)
        self.sigma = self._pair("sigma", sigma)
        self.interpolation = mode_of_int(interpolation) if isinstance(interpolation, int) else interpolation
        self.fill = float_list(fill)

    @staticmethod
    def _pair(name: Any, value: Any) -> list[float]:
        if isinstance(value, (list, tuple)):
            if len(value) not in (1, 2):
                raise ValueError(f"{name} is a sequence its length should be 1 or 2. Got {len(value)}")
            if not all(isinstance(v, float) for v in value):
                raise TypeError(f"{name} should be a sequence of floats. Got {[type(v) for v in value]}")
            return [float(v) for v in value] * (2 // len(value))
        if not isinstance(value, float):
            raise TypeError(f"{name} should be float or a sequence of floats. Got {type(value)}")
        return [value, value]

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Any, size: Any) -> Any:
        """The displacement (1, h, w, 2) of a draw, in [-1, 1] units of the image."""
        fields = []
        for axis in range(2):
            field = rl.rand([1, 1] + list(size)) * 2 - 1
            if sigma[axis] > 0.0:
                width = int(8 * sigma[axis] + 1)
                width += width % 2 == 0
                field = F.gaussian_blur(field, [width, width], sigma)
            fields.append(field * alpha[axis] / size[1 - axis])  # x in widths, y in heights
        return rl.concat(fields, 1).permute([0, 2, 3, 1])

    def forward(self, tensor: Any) -> Any:
        size = F.get_dimensions(tensor)[1:]
        moved = self.get_params(self.alpha, self.sigma, size)
        return F.elastic_transform(tensor, moved, self.interpolation, self.fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(alpha={self.alpha}, sigma={self.sigma}, interpolation={self.interpolation}, "
            f"fill={self.fill})"
        )
