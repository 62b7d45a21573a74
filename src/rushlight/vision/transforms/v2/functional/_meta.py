"""Sizes of images, and formats of boxes."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    KeyPoints,
    Mask,
    Video,
    is_rotated_bounding_format,
    wrap,
)
from rushlight.vision.utils import _log_api_usage_once

from ... import _functional_pil as _FP
from ._rotated import clamp_rotated, corners_to_xywhr, cxcywhr_to_xywhr, xywhr_to_corners, xywhr_to_cxcywhr
from ._utils import _KERNEL_REGISTRY, PIL_IMAGE, functional, is_pure_tensor


def _asks(function: Any, kernels: Any) -> None:
    """Registers kernels that answer a question, and so get their input as it is."""
    _KERNEL_REGISTRY[function] = dict(kernels)


@functional
def get_dimensions(inpt: Any) -> None:
    """[channels, height, width]"""


def get_dimensions_image(image: Any) -> list[Any]:
    """[channels, height, width]"""
    if image.ndim < 2:
        raise TypeError(f"Input tensor should have at least two dimensions, but got {image.ndim}")
    return [1, *image.shape] if image.ndim == 2 else list(image.shape[-3:])


def get_dimensions_video(video: Any) -> list[Any]:
    """[channels, height, width]"""
    return get_dimensions_image(video)


_get_dimensions_image_pil = _FP.get_dimensions
_asks(
    get_dimensions,
    {
        rl.Tensor: get_dimensions_image,
        Image: get_dimensions_image,
        PIL_IMAGE: _get_dimensions_image_pil,
        Video: get_dimensions_video,
    },
)


@functional
def get_num_channels(inpt: Any) -> None:
    """How many channels an image has."""


def get_num_channels_image(image: Any) -> Any:
    """How many channels an image has."""
    return get_dimensions_image(image)[0]


def get_num_channels_video(video: Any) -> Any:
    """How many channels a video has."""
    return get_dimensions_image(video)[0]


_get_num_channels_image_pil = _FP.get_image_num_channels
_asks(
    get_num_channels,
    {
        rl.Tensor: get_num_channels_image,
        Image: get_num_channels_image,
        PIL_IMAGE: _get_num_channels_image_pil,
        Video: get_num_channels_video,
    },
)
get_image_num_channels = get_num_channels


@functional
def get_size(inpt: Any) -> None:
    """[height, width]"""


def get_size_image(image: Any) -> list[Any]:
    """[height, width]"""
    if image.ndim < 2:
        raise TypeError(f"Input tensor should have at least two dimensions, but got {image.ndim}")
    return list(image.shape[-2:])


def _get_size_image_pil(image: Any) -> list[Any]:
    return _FP.get_image_size(image)[::-1]


def get_size_video(video: Any) -> list[Any]:
    """[height, width]"""
    return get_size_image(video)


def get_size_mask(mask: Any) -> list[Any]:
    """[height, width]"""
    return get_size_image(mask)


def get_size_bounding_boxes(bounding_box: Any) -> list[Any]:
    """[height, width] of the image the boxes are in"""
    return list(bounding_box.canvas_size)


def get_size_keypoints(keypoints: Any) -> list[Any]:
    """[height, width] of the image the points are in"""
    return list(keypoints.canvas_size)


_asks(
    get_size,
    {
        rl.Tensor: get_size_image,
        Image: get_size_image,
        PIL_IMAGE: _get_size_image_pil,
        Video: get_size_video,
        Mask: get_size_mask,
        BoundingBoxes: get_size_bounding_boxes,
        KeyPoints: get_size_keypoints,
    },
)


@functional
def get_num_frames(inpt: Any) -> None:
    """How many images a video has."""


def get_num_frames_video(video: Any) -> Any:
    """How many images a video has."""
    return video.shape[-4]


_asks(get_num_frames, {rl.Tensor: get_num_frames_video, Video: get_num_frames_video})


def _result(boxes: Any, values: Any, inplace: bool) -> Any:
    return boxes.copy_(values) if inplace else values.to(boxes.dtype)


def _half(size: Any) -> Any:
    return size / 2 if size.is_floating_point() else size.div(2, rounding_mode="floor")


def _xywh_to_xyxy(xywh: Any, inplace: bool) -> Any:
    start, size = xywh[..., :2], xywh[..., 2:]
    return _result(xywh, rl.cat([start, start + size], -1), inplace)


def _xyxy_to_xywh(xyxy: Any, inplace: bool) -> Any:
    start, end = xyxy[..., :2], xyxy[..., 2:]
    return _result(xyxy, rl.cat([start, end - start], -1), inplace)


def _xywh_to_cxcywh(xywh: Any, inplace: bool) -> Any:
    start, size = xywh[..., :2], xywh[..., 2:]
    return _result(xywh, rl.cat([start + _half(size), size], -1), inplace)


def _cxcywh_to_xyxy(cxcywh: Any, inplace: bool) -> Any:
    exact = cxcywh if cxcywh.is_floating_point() else cxcywh.float()
    center, size = exact[..., :2], exact[..., 2:]
    start = center - size / 2
    return _result(cxcywh, rl.cat([start, start + size], -1).to(cxcywh.dtype), inplace)


def _cxcywh_to_xywh(cxcywh: Any, inplace: bool) -> Any:
    if cxcywh.is_floating_point():
        center, size = cxcywh[..., :2], cxcywh[..., 2:]
        return _result(cxcywh, rl.cat([center - size / 2, size], -1), inplace)
    # integers are rounded as corners, which may change the size by one
    return _result(cxcywh, _xyxy_to_xywh(_cxcywh_to_xyxy(cxcywh, False), False), inplace)


def _xyxy_to_cxcywh(xyxy: Any, inplace: bool) -> Any:
    start, end = xyxy[..., :2], xyxy[..., 2:]
    return _result(xyxy, rl.cat([_half(start + end), end - start], -1), inplace)


_F = BoundingBoxFormat
# every format is converted by way of XYXY or, rotated, XYWHR
_TO_COMMON = {
    _F.XYWH: _xywh_to_xyxy,
    _F.CXCYWH: _cxcywh_to_xyxy,
    _F.CXCYWHR: cxcywhr_to_xywhr,
    _F.XYXYXYXY: corners_to_xywhr,
}
_FROM_COMMON = {
    _F.XYWH: _xyxy_to_xywh,
    _F.CXCYWH: _xyxy_to_cxcywh,
    _F.CXCYWHR: xywhr_to_cxcywhr,
    _F.XYXYXYXY: xywhr_to_corners,
}
_DIRECT = {(_F.XYWH, _F.CXCYWH): _xywh_to_cxcywh, (_F.CXCYWH, _F.XYWH): _cxcywh_to_xywh}


def _convert_bounding_box_format(
    bounding_boxes: Any, old_format: Any, new_format: Any, inplace: bool = False
) -> Any:
    if new_format == old_format:
        return bounding_boxes
    if is_rotated_bounding_format(old_format) != is_rotated_bounding_format(new_format):
        raise ValueError("Cannot convert between rotated and unrotated bounding boxes.")
    direct = _DIRECT.get((old_format, new_format))
    if direct is not None:
        return direct(bounding_boxes, inplace)
    steps: list[Any] = [_TO_COMMON.get(old_format), _FROM_COMMON.get(new_format)]
    for step in steps:
        if step is not None:
            bounding_boxes = step(bounding_boxes, inplace)
    return bounding_boxes


def _format(format: Any) -> Any:
    return BoundingBoxFormat[format.upper()] if isinstance(format, str) else format


def _not_boxes(inpt: Any, kind: Any) -> Any:
    return TypeError(
        f"Input can either be a plain tensor or a {kind} tv_tensor, but got {type(inpt)} instead."
    )


def convert_bounding_box_format(
    inpt: Any, old_format: Any = None, new_format: Any = None, inplace: bool = False
) -> Any:
    """Boxes in another format; old_format is for plain tensors."""
    if new_format is None:
        raise TypeError("convert_bounding_box_format() missing 1 required argument: 'new_format'")
    _log_api_usage_once(convert_bounding_box_format)
    old_format, new_format = _format(old_format), _format(new_format)
    if is_pure_tensor(inpt):
        if old_format is None:
            raise ValueError("For pure tensor inputs, `old_format` has to be passed.")
        return _convert_bounding_box_format(inpt, old_format, new_format, inplace)
    if not isinstance(inpt, BoundingBoxes):
        raise _not_boxes(inpt, "bounding box")
    if old_format is not None:
        raise ValueError("For bounding box tv_tensor inputs, `old_format` must not be passed.")
    output = _convert_bounding_box_format(inpt.as_subclass(rl.Tensor), inpt.format, new_format, inplace)
    return wrap(output, like=inpt, format=new_format)


def clamp(boxes: Any, format: Any, canvas_size: Any, clamping_mode: Any) -> Any:
    """Plain boxes cut to their image."""
    if clamping_mode is None:
        return boxes.clone()
    format = _format(format)
    if is_rotated_bounding_format(format):
        corners = _convert_bounding_box_format(boxes, format, _F.XYXYXYXY).reshape(-1, 8)
        clamped = clamp_rotated(corners.clone(), canvas_size, clamping_mode == "hard")
        return _convert_bounding_box_format(clamped, _F.XYXYXYXY, format).reshape(boxes.shape)
    exact = boxes if boxes.is_floating_point() else boxes.float()
    corners = _convert_bounding_box_format(exact, format, _F.XYXY).clone()
    corners[..., 0::2].clamp_(min=0, max=canvas_size[1])
    corners[..., 1::2].clamp_(min=0, max=canvas_size[0])
    return _convert_bounding_box_format(corners, _F.XYXY, format).to(boxes.dtype)


def clamp_bounding_boxes(
    inpt: Any, format: Any = None, canvas_size: Any = None, clamping_mode: str = "auto"
) -> Any:
    """Boxes cut to their image; the mode "auto" is the boxes' own."""
    _log_api_usage_once(clamp_bounding_boxes)
    if clamping_mode is not None and clamping_mode not in ("soft", "hard", "auto"):
        raise ValueError(f"clamping_mode must be soft, hard, auto or None, got {clamping_mode}")
    if is_pure_tensor(inpt):
        if format is None or canvas_size is None or clamping_mode == "auto":
            raise ValueError(
                "For pure tensor inputs, `format`, `canvas_size` and `clamping_mode` have to be passed."
            )
        return clamp(inpt, format, canvas_size, clamping_mode)
    if not isinstance(inpt, BoundingBoxes):
        raise _not_boxes(inpt, "bounding box")
    if format is not None or canvas_size is not None:
        raise ValueError("For bounding box tv_tensor inputs, `format` and `canvas_size` must not be passed.")
    mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
    return wrap(clamp(inpt.as_subclass(rl.Tensor), inpt.format, inpt.canvas_size, mode), like=inpt)


def _clamp_points(points: Any, canvas_size: Any) -> Any:
    exact = points.clone() if points.is_floating_point() else points.float()
    exact[..., 0].clamp_(min=0, max=canvas_size[1] - 1)
    exact[..., 1].clamp_(min=0, max=canvas_size[0] - 1)
    return exact.to(points.dtype)


def clamp_keypoints(inpt: Any, canvas_size: Any = None) -> Any:
    """Points outside their image moved to its edge."""
    _log_api_usage_once(clamp_keypoints)
    if is_pure_tensor(inpt):
        if canvas_size is None:
            raise ValueError("For pure tensor inputs, `canvas_size` has to be passed.")
        return _clamp_points(inpt, canvas_size)
    if not isinstance(inpt, KeyPoints):
        raise _not_boxes(inpt, "keypoints")
    if canvas_size is not None:
        raise ValueError("For keypoints tv_tensor inputs, `canvas_size` must not be passed.")
    return wrap(_clamp_points(inpt.as_subclass(rl.Tensor), inpt.canvas_size), like=inpt)
