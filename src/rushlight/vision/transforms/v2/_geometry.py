"""Sizes and places."""

import rushlight as rl
from rushlight.vision.tv_tensors import BoundingBoxes, wrap

from .. import transforms as one
from .._crops import setup_size
from .._interpolation import draw_int, uniform
from .._warps import _angles, _check_sequence
from . import functional as F
from ._base import RandomApplied, Transform, fill_for, query_size


class RandomHorizontalFlip(RandomApplied):
    """Left and right exchanged with probability p."""

    def transform(self, inpt, params):
        return F.horizontal_flip(inpt)


class RandomVerticalFlip(RandomApplied):
    """Upside down with probability p."""

    def transform(self, inpt, params):
        return F.vertical_flip(inpt)


class Resize(Transform):
    """At another size: (h, w), or the length of the shorter edge; None with max_size: the length of the longer edge."""

    def __init__(self, size, interpolation="bilinear", max_size=None, antialias=True):
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
        self.size = size
        self.interpolation = F.mode(interpolation)
        self.max_size = max_size
        self.antialias = antialias

    def transform(self, inpt, params):
        return F.resize(inpt, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """The middle, padded with black where it is smaller."""

    def __init__(self, size):
        super().__init__()
        self.size = setup_size(size)

    def transform(self, inpt, params):
        return F.center_crop(inpt, self.size)


class RandomResizedCrop(Transform):
    """A rectangle of drawn area and shape, at a given size."""

    def __init__(
        self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation="bilinear", antialias=True
    ):
        super().__init__()
        one.RandomResizedCrop(size, scale, ratio)  # checks
        self.size = setup_size(size)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = F.mode(interpolation)
        self.antialias = antialias

    def make_params(self, flat_inputs):
        size = rl.empty((1, *query_size(flat_inputs)), device="meta")
        return dict(
            zip(
                ("top", "left", "height", "width"),
                one.RandomResizedCrop.get_params(size, self.scale, self.ratio),
            )
        )

    def transform(self, inpt, params):
        return F.resized_crop(
            inpt, **params, size=self.size, interpolation=self.interpolation, antialias=self.antialias
        )


class RandomCrop(Transform):
    """A rectangle at a drawn place, of the picture padded before."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant"):
        super().__init__()
        self.size = tuple(setup_size(size))
        self.padding = F._pil_sides(padding) if padding is not None else None
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    def make_params(self, flat_inputs):
        height, width = query_size(flat_inputs)
        left = top = right = bottom = 0
        if self.padding is not None:
            left, top, right, bottom = self.padding
            height, width = height + top + bottom, width + left + right
        h, w = self.size
        if self.pad_if_needed:
            more_h, more_w = max(h - height, 0), max(w - width, 0)
            left, top, right, bottom = left + more_w, top + more_h, right + more_w, bottom + more_h
            height, width = height + 2 * more_h, width + 2 * more_w
        if height < h or width < w:
            raise ValueError(
                f"Required crop size {(h, w)} is larger than {'padded ' if self.padding is not None else ''}input image size "
                f"{(height, width)}."
            )
        y = draw_int(0, height - h + 1) if height > h else 0
        x = draw_int(0, width - w + 1) if width > w else 0
        return {"padding": [left, top, right, bottom], "place": (y, x, h, w)}

    def transform(self, inpt, params):
        if any(params["padding"]):
            inpt = F.pad(inpt, params["padding"], fill_for(self.fill, inpt), self.padding_mode)
        return F.crop(inpt, *params["place"])


class Pad(Transform):
    """With a border."""

    def __init__(self, padding, fill=0, padding_mode="constant"):
        super().__init__()
        one.Pad(padding, 0, padding_mode)  # checks
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self.padding_mode = padding_mode

    def transform(self, inpt, params):
        return F.pad(inpt, self.padding, fill_for(self.fill, inpt), self.padding_mode)


class FiveCrop(Transform):
    """Four corners and the middle, as a tuple."""

    def __init__(self, size):
        super().__init__()
        self.size = setup_size(size)

    def transform(self, inpt, params):
        if isinstance(inpt, BoundingBoxes):
            raise TypeError(f"BoundingBoxes'es are not supported by {type(self).__name__}()")
        return F.five_crop(inpt, self.size)


class TenCrop(FiveCrop):
    """Four corners and the middle, of the picture and of its mirror image, as a tuple."""

    def __init__(self, size, vertical_flip=False):
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt, params):
        if isinstance(inpt, BoundingBoxes):
            raise TypeError(f"BoundingBoxes'es are not supported by {type(self).__name__}()")
        return F.ten_crop(inpt, self.size, self.vertical_flip)


class RandomRotation(Transform):
    """Turned by a drawn angle in degrees."""

    def __init__(self, degrees, interpolation="nearest", expand=False, center=None, fill=0):
        super().__init__()
        self.degrees = _angles(degrees, "degrees")
        self.interpolation = F.mode(interpolation)
        self.expand = expand
        if center is not None:
            _check_sequence(center, "center", (2,))
        self.fill = fill
        self.center = center

    def make_params(self, flat_inputs):
        return {"angle": uniform(*self.degrees)}

    def transform(self, inpt, params):
        fill = fill_for(self.fill, inpt)
        return F.rotate(
            inpt,
            **params,
            interpolation=self.interpolation,
            expand=self.expand,
            center=self.center,
            fill=fill,
        )


class RandomAffine(Transform):
    """Turned, moved, scaled and sheared by drawn amounts."""

    def __init__(
        self, degrees, translate=None, scale=None, shear=None, interpolation="nearest", fill=0, center=None
    ):
        super().__init__()
        checked = one.RandomAffine(degrees, translate, scale, shear, center=center)
        self.degrees = checked.degrees
        self.translate = translate
        self.scale = scale
        self.shear = checked.shear
        self.interpolation = F.mode(interpolation)
        self.fill = fill
        self.center = center

    def make_params(self, flat_inputs):
        h, w = query_size(flat_inputs)
        drawn = one.RandomAffine.get_params(self.degrees, self.translate, self.scale, self.shear, [w, h])
        return dict(zip(("angle", "translate", "scale", "shear"), drawn))

    def transform(self, inpt, params):
        fill = fill_for(self.fill, inpt)
        return F.affine(inpt, **params, interpolation=self.interpolation, fill=fill, center=self.center)


class RandomPerspective(RandomApplied):
    """Seen from a drawn side, with probability p."""

    def __init__(self, distortion_scale=0.5, p=0.5, interpolation="bilinear", fill=0):
        super().__init__(p)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale = distortion_scale
        self.interpolation = F.mode(interpolation)
        self.fill = fill

    def make_params(self, flat_inputs):
        h, w = query_size(flat_inputs)
        return dict(
            zip(("startpoints", "endpoints"), one.RandomPerspective.get_params(w, h, self.distortion_scale))
        )

    def transform(self, inpt, params):
        return F.perspective(inpt, **params, interpolation=self.interpolation, fill=fill_for(self.fill, inpt))


class ElasticTransform(Transform):
    """Pixels moved by a smooth field of drawn displacements."""

    def __init__(self, alpha=50.0, sigma=5.0, interpolation="bilinear", fill=0):
        super().__init__()
        checked = one.ElasticTransform(alpha, sigma)
        self.alpha, self.sigma = checked.alpha, checked.sigma
        self.interpolation = F.mode(interpolation)
        self.fill = fill

    def make_params(self, flat_inputs):
        return {
            "displacement": one.ElasticTransform.get_params(
                self.alpha, self.sigma, list(query_size(flat_inputs))
            )
        }

    def transform(self, inpt, params):
        return F.elastic(inpt, **params, interpolation=self.interpolation, fill=fill_for(self.fill, inpt))


class RandomZoomOut(RandomApplied):
    """The picture somewhere on a larger canvas, with probability p."""

    def __init__(self, fill=0, side_range=(1.0, 4.0), p=0.5):
        super().__init__(p)
        _check_sequence(side_range, "side_range", (2,))
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")
        self.fill = fill
        self.side_range = side_range

    def make_params(self, flat_inputs):
        h, w = query_size(flat_inputs)
        r = self.side_range[0] + rl.rand(1) * (self.side_range[1] - self.side_range[0])
        height, width = int(h * r), int(w * r)
        place = rl.rand(2)
        left, top = int((width - w) * place[0]), int((height - h) * place[1])
        return {"padding": [left, top, width - (left + w), height - (top + h)]}

    def transform(self, inpt, params):
        return F.pad(inpt, **params, fill=fill_for(self.fill, inpt))


class _DrawnSize(Transform):
    """At a drawn size."""

    def __init__(self, interpolation, antialias, **known):
        super().__init__()
        vars(self).update(known)
        self.interpolation = F.mode(interpolation)
        self.antialias = antialias

    def transform(self, inpt, params):
        return F.resize(inpt, **params, interpolation=self.interpolation, antialias=self.antialias)


class RandomResize(_DrawnSize):
    """At a drawn length of the shorter edge."""

    def __init__(self, min_size, max_size, interpolation="bilinear", antialias=True):
        super().__init__(interpolation, antialias, min_size=min_size, max_size=max_size)

    def make_params(self, flat_inputs):
        return {"size": [draw_int(self.min_size, self.max_size)]}


class RandomShortestSize(_DrawnSize):
    """At one of some lengths of the shorter edge, the longer at most max_size."""

    def __init__(self, min_size, max_size=None, interpolation="bilinear", antialias=True):
        sizes = [min_size] if isinstance(min_size, int) else list(min_size)
        super().__init__(interpolation, antialias, min_size=sizes, max_size=max_size)

    def make_params(self, flat_inputs):
        h, w = query_size(flat_inputs)
        r = self.min_size[draw_int(0, len(self.min_size))] / min(h, w)
        if self.max_size is not None:
            r = min(r, self.max_size / max(h, w))
        return {"size": (int(h * r), int(w * r))}


class ScaleJitter(_DrawnSize):
    """At a drawn scale of what fits a target."""

    def __init__(self, target_size, scale_range=(0.1, 2.0), interpolation="bilinear", antialias=True):
        super().__init__(interpolation, antialias, target_size=target_size, scale_range=scale_range)

    def make_params(self, flat_inputs):
        h, w = query_size(flat_inputs)
        scale = self.scale_range[0] + rl.rand(1) * (self.scale_range[1] - self.scale_range[0])
        r = min(self.target_size[1] / h, self.target_size[0] / w) * scale
        return {"size": (int(h * r), int(w * r))}


class ClampBoundingBoxes(Transform):
    """Boxes within their picture."""

    def handles(self, value):
        return isinstance(value, BoundingBoxes)

    def transform(self, inpt, params):
        return F.clamp_bounding_boxes(inpt)


class ConvertBoundingBoxFormat(Transform):
    """Boxes in another format."""

    def __init__(self, format):
        super().__init__()
        self.format = format

    def handles(self, value):
        return isinstance(value, BoundingBoxes)

    def transform(self, inpt, params):
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class SanitizeBoundingBoxes(Transform):
    """Samples {..., "labels": ..., boxes, masks} without boxes that are too small, or outside of the picture; their labels and
    masks go with them."""

    def __init__(self, min_size=1.0, min_area=1.0, labels_getter="default"):
        super().__init__()
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        self.min_size, self.min_area = min_size, min_area
        self.labels_getter = labels_getter

    def forward(self, *inputs):
        from rushlight.utils import _pytree
        from rushlight.vision.tv_tensors import Mask

        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = _pytree.tree_flatten(sample)
        boxes = next((v for v in flat if isinstance(v, BoundingBoxes)), None)
        if boxes is None:
            raise ValueError("No bounding boxes were found in the sample")
        corners = F.convert_bounding_box_format(boxes, new_format="XYXY").as_subclass(rl.Tensor)
        h, w = boxes.canvas_size
        size = corners[:, 2:] - corners[:, :2]
        good = (size >= self.min_size).all(1) & (size.prod(1) >= self.min_area) & (corners >= 0).all(1)
        good &= (corners[:, 0::2] <= w).all(1) & (corners[:, 1::2] <= h).all(1)
        labels = self._labels(sample)
        out = []
        for v in flat:
            mine = v is boxes or isinstance(v, Mask) or any(v is label for label in labels)
            kept = v.as_subclass(rl.Tensor)[good] if mine else v
            out.append(wrap(kept, like=v) if mine and isinstance(v, (BoundingBoxes, Mask)) else kept)
        return _pytree.tree_unflatten(out, spec)

    def _labels(self, sample):
        if self.labels_getter is None:
            return []
        if callable(self.labels_getter):
            found = self.labels_getter(sample)
            return list(found) if isinstance(found, tuple) else [found]
        key = "labels" if self.labels_getter == "default" else self.labels_getter
        parts = [
            p for p in (sample if isinstance(sample, (list, tuple)) else [sample]) if isinstance(p, dict)
        ]
        found = [v for p in parts for k, v in p.items() if str(k).lower() == key]
        if not found:
            raise ValueError(
                f"Could not infer where the labels are: there is no {key!r} in the sample; pass labels_getter"
            )
        return found
