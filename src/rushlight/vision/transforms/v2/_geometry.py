"""Sizes and positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight.vision import tv_tensors

from ..._pil import is_pil
from .. import transforms as one
from .._interpolation import InterpolationMode, draw_int, setup_size, uniform
from . import functional as F
from ._augment import warn_passed
from ._transform import Transform, _RandomApplyTransform
from ._utils import (
    _check_padding_arg,
    _check_padding_mode_arg,
    _check_sequence_input,
    _get_fill,
    _setup_angle,
    _setup_fill_arg,
    _setup_number_or_seq,
    get_bounding_boxes,
    has_any,
    is_pure_tensor,
    query_size,
)
from .functional._warp import parse_padding


class RandomHorizontalFlip(_RandomApplyTransform):
    """Left and right exchanged with probability p."""

    _v1_transform_cls = one.RandomHorizontalFlip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.horizontal_flip, inpt)


class RandomVerticalFlip(_RandomApplyTransform):
    """Upside down with probability p."""

    _v1_transform_cls = one.RandomVerticalFlip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.vertical_flip, inpt)


class Resize(Transform):
    """At another size: (h, w), or the length of the shorter edge; None with max_size: the length of the longer edge."""

    _v1_transform_cls = one.Resize

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: InterpolationMode | str | int = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if isinstance(size, int):
            size = [size]
        elif isinstance(size, (list, tuple)) and len(size) in (1, 2):
            size = list(size)
        elif size is None:
            if not isinstance(max_size, int):
                raise ValueError(
                    f"max_size must be an integer when size is None, but got {max_size} instead."
                )
        else:
            raise ValueError(
                f"size can be an integer, a sequence of one or two integers, or None, but got {size} instead."
            )
        self.size, self.interpolation, self.max_size, self.antialias = (
            size,
            interpolation,
            max_size,
            antialias,
        )

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        options = {name: getattr(self, name) for name in ("interpolation", "max_size", "antialias")}
        return self._call_kernel(F.resize, inpt, self.size, **options)


class CenterCrop(Transform):
    """The middle, padded with black where it is smaller."""

    _v1_transform_cls = one.CenterCrop

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = setup_size(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.center_crop, inpt, output_size=self.size)


class RandomResizedCrop(Transform):
    """A rectangle of drawn area and shape, at a given size."""

    _v1_transform_cls = one.RandomResizedCrop

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: InterpolationMode | str | int = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        setup_size(size)
        for name, pair in (("Scale", scale), ("Ratio", ratio)):
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise TypeError(f"{name} should be a sequence of two floats.")
        one.RandomResizedCrop(size, scale, ratio)  # checks
        self.size, self.scale, self.ratio = setup_size(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        shape = rl.empty((1, *query_size(flat_inputs)), device="meta")
        drawn = one.RandomResizedCrop.get_params(shape, self.scale, self.ratio)
        return dict(zip(("top", "left", "height", "width"), drawn))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resized_crop,
            inpt,
            **params,
            size=self.size,
            interpolation=self.interpolation,
            antialias=self.antialias,
        )


class FiveCrop(Transform):
    """Four corners and the middle, as a tuple."""

    _v1_transform_cls = one.FiveCrop

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = setup_size(size)

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        warn_passed(self, inpt)
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, tv_tensors.BoundingBoxes, tv_tensors.Mask):
            raise TypeError(f"BoundingBoxes'es and Mask's are not supported by {type(self).__name__}()")

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.five_crop, inpt, self.size)


class TenCrop(FiveCrop):
    """Four corners and the middle, of the image and of its mirror image, as a tuple."""

    _v1_transform_cls = one.TenCrop  # type: ignore[assignment]

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.ten_crop, inpt, self.size, vertical_flip=self.vertical_flip)


def _scalar_fill(transform: Any, params: Any) -> Any:
    if not (params["fill"] is None or isinstance(params["fill"], (int, float))):
        raise ValueError(
            f"{type(transform).__name__}() can only be scripted for a scalar `fill`, but got {transform.fill}."
        )
    return params


class _Filled(Transform):
    """A transform with a colour for what lies outside: one, or {type: colour, "others": colour}."""

    def _set_fill(self, fill: Any) -> None:
        self.fill = fill
        self._fill = _setup_fill_arg(fill)

    def _fill_of(self, inpt: Any) -> Any:
        return _get_fill(self._fill, type(inpt))


class Pad(_Filled):
    """With a border."""

    _v1_transform_cls = one.Pad

    def __init__(self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        _check_padding_arg(padding)
        _check_padding_mode_arg(padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self._set_fill(fill)
        self.padding_mode = padding_mode

    def _extract_params_for_v1_transform(self) -> Any:
        return _scalar_fill(self, super()._extract_params_for_v1_transform())

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        fill = self._fill_of(inpt)
        return self._call_kernel(F.pad, inpt, padding=self.padding, fill=fill, padding_mode=self.padding_mode)


class RandomZoomOut(_Filled, _RandomApplyTransform):
    """The image somewhere on a larger canvas, with probability p."""

    def __init__(self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5) -> None:
        super().__init__(p=p)
        self._set_fill(fill)
        _check_sequence_input(side_range, "side_range", req_sizes=(2,))
        smallest, largest = self.side_range = side_range
        if not 1.0 <= smallest <= largest:
            raise ValueError(f"Invalid side range provided {side_range}.")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        h, w = query_size(flat_inputs)
        r = self.side_range[0] + rl.rand(1) * (self.side_range[1] - self.side_range[0])
        width, height = int(w * r), int(h * r)
        offset = rl.rand(2)
        left, top = int((width - w) * offset[0]), int((height - h) * offset[1])
        return {"padding": [left, top, width - (left + w), height - (top + h)]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.pad, inpt, **params, fill=self._fill_of(inpt))


class RandomRotation(_Filled):
    """Rotated by a drawn angle in degrees."""

    _v1_transform_cls = one.RandomRotation

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: InterpolationMode | str | int = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.degrees = _setup_angle(degrees, "degrees")
        self.interpolation, self.expand = interpolation, expand
        self._set_fill(fill)
        if center is not None:
            _check_sequence_input(center, "center", req_sizes=(2,))
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"angle": uniform(*self.degrees)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.rotate,
            inpt,
            **params,
            interpolation=self.interpolation,
            expand=self.expand,
            center=self.center,
            fill=self._fill_of(inpt),
        )


class RandomAffine(_Filled):
    """Rotated, moved, scaled and sheared by drawn amounts."""

    _v1_transform_cls = one.RandomAffine

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: InterpolationMode | str | int = "nearest",
        fill: Any = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        checked = one.RandomAffine(degrees, translate, scale, shear, center=center)
        self.degrees, self.translate, self.scale = checked.degrees, translate, scale
        self.shear, self.interpolation = checked.shear, interpolation
        self._set_fill(fill)
        self.center = center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        h, w = query_size(flat_inputs)
        drawn = one.RandomAffine.get_params(self.degrees, self.translate, self.scale, self.shear, [w, h])
        return dict(zip(("angle", "translate", "scale", "shear"), drawn))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.affine,
            inpt,
            **params,
            interpolation=self.interpolation,
            fill=self._fill_of(inpt),
            center=self.center,
        )


class RandomCrop(_Filled):
    """A rectangle at a drawn position, of the image padded before."""

    _v1_transform_cls = one.RandomCrop

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = setup_size(size)
        if padding is not None:
            _check_padding_arg(padding)
        if pad_if_needed or padding is not None:
            _check_padding_mode_arg(padding_mode)
        self.padding = parse_padding(padding) if padding else None
        self.pad_if_needed = pad_if_needed
        self._set_fill(fill)
        self.padding_mode = padding_mode

    def _extract_params_for_v1_transform(self) -> Any:
        params = _scalar_fill(self, super()._extract_params_for_v1_transform())
        if self.padding is not None:
            left, right, top, bottom = self.padding
            params["padding"] = [left, top, right, bottom]
        return params

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        left, right, top, bottom = self.padding or (0, 0, 0, 0)
        height, width = height + top + bottom, width + left + right
        h, w = self.size
        if self.pad_if_needed:
            more_h, more_w = max(h - height, 0), max(w - width, 0)
            left, top, right, bottom = left + more_w, top + more_h, right + more_w, bottom + more_h
            height, width = height + 2 * more_h, width + 2 * more_w
        if height < h or width < w:
            padded = "padded " if self.padding is not None else ""
            raise ValueError(
                f"Required crop size {(h, w)} is larger than {padded}input image size {(height, width)}."
            )
        y = int(rl.randint(0, height - h + 1, size=())) if height > h else 0
        x = int(rl.randint(0, width - w + 1, size=())) if width > w else 0
        padding = [left, top, right, bottom]
        return {
            "needs_crop": height > h or width > w,
            "top": y,
            "left": x,
            "height": h,
            "width": w,
            "needs_pad": any(padding),
            "padding": padding,
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if params["needs_pad"]:
            options = {"fill": self._fill_of(inpt), "padding_mode": self.padding_mode}
            inpt = self._call_kernel(F.pad, inpt, padding=params["padding"], **options)
        if params["needs_crop"]:
            region = {name: params[name] for name in ("top", "left", "height", "width")}
            inpt = self._call_kernel(F.crop, inpt, **region)
        return inpt


class RandomPerspective(_Filled, _RandomApplyTransform):
    """Seen from a drawn side, with probability p."""

    _v1_transform_cls = one.RandomPerspective

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: InterpolationMode | str | int = "bilinear",
        fill: Any = 0,
    ) -> None:
        super().__init__(p=p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale, self.interpolation = distortion_scale, interpolation
        self._set_fill(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        h, w = query_size(flat_inputs)
        points = one.RandomPerspective.get_params(w, h, self.distortion_scale)
        return {"coefficients": F._geometry._get_perspective_coeffs(*points)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.perspective,
            inpt,
            startpoints=None,
            endpoints=None,
            fill=self._fill_of(inpt),
            interpolation=self.interpolation,
            **params,
        )


class ElasticTransform(_Filled):
    """Pixels moved by a smooth field of drawn displacements."""

    _v1_transform_cls = one.ElasticTransform

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: InterpolationMode | str | int = "bilinear",
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.alpha = _setup_number_or_seq(alpha, "alpha")
        self.sigma = _setup_number_or_seq(sigma, "sigma")
        self.interpolation = interpolation
        self._set_fill(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = list(query_size(flat_inputs))
        return {"displacement": one.ElasticTransform.get_params(self.alpha, self.sigma, size)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        fill = self._fill_of(inpt)
        return self._call_kernel(F.elastic, inpt, **params, fill=fill, interpolation=self.interpolation)


class RandomIoUCrop(Transform):
    """A drawn rectangle that overlaps with one of the boxes by a drawn part (SSD, Liu et al., 2015)."""

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: Any = None,
        trials: int = 40,
    ) -> None:
        super().__init__()
        self.min_scale, self.max_scale = min_scale, max_scale
        self.min_aspect_ratio, self.max_aspect_ratio = min_aspect_ratio, max_aspect_ratio
        # an overlap of 1 stands for the whole image
        self.options = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] if sampler_options is None else sampler_options
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        boxes = has_any(flat_inputs, tv_tensors.BoundingBoxes)
        if not boxes or not has_any(flat_inputs, is_pil, tv_tensors.Image, is_pure_tensor):
            raise TypeError(
                f"{type(self).__name__}() requires input sample to contain tensor or PIL images "
                "and bounding boxes. Sample can also contain masks."
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        boxes = get_bounding_boxes(flat_inputs)
        corners = F.convert_bounding_box_format(boxes.as_subclass(rl.Tensor), boxes.format, "XYXY")
        while True:
            overlap = self.options[draw_int(0, len(self.options))]
            if overlap >= 1.0:
                return {}
            for _ in range(self.trials):
                found = self._drawn(height, width, corners, overlap)
                if found is not None:
                    return found

    def _drawn(self, height: Any, width: Any, corners: Any, overlap: Any) -> dict[str, Any] | None:
        from rushlight.vision.ops.boxes import box_iou

        r = self.min_scale + (self.max_scale - self.min_scale) * rl.rand(2)
        w, h = int(width * r[0]), int(height * r[1])
        if not self.min_aspect_ratio <= w / h <= self.max_aspect_ratio:
            return None
        r = rl.rand(2)
        left, top = int((width - w) * r[0]), int((height - h) * r[1])
        if w == 0 or h == 0:
            return None
        x, y = 0.5 * (corners[..., 0] + corners[..., 2]), 0.5 * (corners[..., 1] + corners[..., 3])
        inside = (left < x) & (x < left + w) & (top < y) & (y < top + h)
        if not inside.any():
            return None
        area = rl.tensor([[left, top, left + w, top + h]], dtype=corners.dtype, device=corners.device)
        if box_iou(corners[inside], area).max() < overlap:
            return None
        return {"top": top, "left": left, "height": h, "width": w, "is_within_crop_area": inside}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not params:
            return inpt
        region = {name: params[name] for name in ("top", "left", "height", "width")}
        out = self._call_kernel(F.crop, inpt, **region)
        if isinstance(out, tv_tensors.BoundingBoxes):  # boxes whose centre was cut off are marked by zeros
            plain = out.as_subclass(rl.Tensor)
            plain[~params["is_within_crop_area"]] = 0
            out = tv_tensors.wrap(plain, like=out)
        return out


class _DrawnSize(Transform):
    """At a drawn size."""

    scale_range: Any
    target_size: Any
    min_size: Any
    max_size: Any

    def __init__(
        self, interpolation: InterpolationMode | str | int, antialias: bool | None, **known: Any
    ) -> None:
        super().__init__()
        vars(self).update(known)
        self.interpolation, self.antialias = interpolation, antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        options = {"interpolation": self.interpolation, "antialias": self.antialias}
        return self._call_kernel(F.resize, inpt, size=params["size"], **options)


class ScaleJitter(_DrawnSize):
    """At a drawn scale of what fits a target."""

    def __init__(
        self,
        target_size: Any,
        scale_range: Any = (0.1, 2.0),
        interpolation: InterpolationMode | str | int = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__(interpolation, antialias, target_size=target_size, scale_range=scale_range)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        h, w = query_size(flat_inputs)
        scale = self.scale_range[0] + rl.rand(1) * (self.scale_range[1] - self.scale_range[0])
        r = min(self.target_size[1] / h, self.target_size[0] / w) * scale
        return {"size": (int(h * r), int(w * r))}


class RandomShortestSize(_DrawnSize):
    """At one of some lengths of the shorter edge, the longer at most max_size."""

    def __init__(
        self,
        min_size: Sequence[int] | int,
        max_size: int | None = None,
        interpolation: InterpolationMode | str | int = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        sizes = [min_size] if isinstance(min_size, int) else list(min_size)
        super().__init__(interpolation, antialias, min_size=sizes, max_size=max_size)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        h, w = query_size(flat_inputs)
        r = self.min_size[int(rl.randint(len(self.min_size), ()))] / min(h, w)
        if self.max_size is not None:
            r = min(r, self.max_size / max(h, w))
        return {"size": (int(h * r), int(w * r))}


class RandomResize(_DrawnSize):
    """At a drawn length of the shorter edge."""

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: InterpolationMode | str | int = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__(interpolation, antialias, min_size=min_size, max_size=max_size)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"size": [int(rl.randint(self.min_size, self.max_size, ()))]}
