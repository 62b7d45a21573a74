"""Erasing, mixing, compressing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import rushlight as rl
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision import tv_tensors

from ..._pil import is_pil
from .. import transforms as one
from . import functional as F
from ._transform import Transform, _RandomApplyTransform
from ._utils import (
    _check_sequence_input,
    _parse_labels_getter,
    has_any,
    is_pure_tensor,
    query_chw,
    query_size,
)

_NO_IMAGES = (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints, tv_tensors.Mask)


def warn_passed(transform: Any, inpt: Any) -> None:
    """Warns that a value is left as it is."""
    if isinstance(inpt, _NO_IMAGES):
        warnings.warn(
            f"{type(transform).__name__}() is currently passing through inputs of type "
            f"tv_tensors.{type(inpt).__name__}, which may change.",
            stacklevel=4,
        )


class RandomErasing(_RandomApplyTransform):
    """A rectangle of drawn area and shape replaced by a value, with probability p."""

    _v1_transform_cls = one.RandomErasing

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | str | Sequence[float] = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p=p)
        one.RandomErasing(0.5, scale, ratio, value)  # checks
        self.scale, self.ratio = scale, ratio
        if isinstance(value, (int, float)):
            value = [float(value)]
        self.value = None if isinstance(value, str) else [float(v) for v in value]
        self.inplace = inplace

    def _extract_params_for_v1_transform(self) -> dict[str, Any]:
        params = super()._extract_params_for_v1_transform()
        return {**params, "value": "random" if self.value is None else self.value}

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        warn_passed(self, inpt)
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        shape = rl.empty(query_chw(flat_inputs), device="meta")
        if self.value is not None and len(self.value) not in (1, shape.shape[0]):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {shape.shape[0]} "
                "(number of inpt channels)"
            )
        i, j, h, w, v = one.RandomErasing.get_params(shape, self.scale, self.ratio, self.value)
        return {"i": i, "j": j, "h": h, "w": w, "v": None if v is shape else v}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if params["v"] is None:
            return inpt
        return self._call_kernel(F.erase, inpt, **params, inplace=self.inplace)


class _BaseMixUpCutMix(Transform):
    """Batches of images and labels, each mixed with its neighbour by a part drawn from Beta(alpha, alpha)."""

    _mixed: Callable[..., rl.Tensor]

    def __init__(
        self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Any = "default"
    ) -> None:
        super().__init__()
        self.alpha = float(alpha)
        self._dist = rl.distributions.Beta(rl.tensor([alpha]), rl.tensor([alpha]))
        self.num_classes = num_classes
        self._labels_getter = _parse_labels_getter(labels_getter)

    def _check_labels(self, labels: Any) -> None:
        if not isinstance(labels, rl.Tensor):
            raise ValueError(f"The labels must be a tensor, but got {type(labels)} instead.")
        if labels.ndim not in (1, 2):
            raise ValueError(
                "labels should be index based, (batch_size,), or probabilities, (batch_size, num_classes), "
                f"but got a tensor of shape {labels.shape}"
            )
        if labels.ndim == 2 and self.num_classes is not None and labels.shape[-1] != self.num_classes:
            raise ValueError(
                f"When passing 2D labels, their last dimension is num_classes: {labels.shape[-1]} != {self.num_classes}. "
                "num_classes=None takes it from them."
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")

    def forward(self, *inputs: Any) -> Any:
        inputs = inputs if len(inputs) > 1 else inputs[0]
        flat_inputs, spec = tree_flatten(inputs)
        chosen = self._needs_transform_list(flat_inputs)
        if has_any(flat_inputs, is_pil, *_NO_IMAGES):
            raise ValueError(
                f"{type(self).__name__}() does not support PIL images, bounding boxes, keypoints and masks."
            )
        labels = self._labels_getter(inputs)
        self._check_labels(labels)
        drawn = self.make_params([v for v, good in zip(flat_inputs, chosen) if good])
        params = {"labels": labels, "batch_size": labels.shape[0], **drawn}
        out = [
            self.transform(v, params) if good or v is labels else v for v, good in zip(flat_inputs, chosen)
        ]
        return tree_unflatten(out, spec)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt is params["labels"]:
            return self._mixup_label(inpt, lam=params["lam"])
        if not isinstance(inpt, (tv_tensors.Image, tv_tensors.Video)) and not is_pure_tensor(inpt):
            return inpt
        dims = 5 if isinstance(inpt, tv_tensors.Video) else 4
        if inpt.ndim != dims:
            raise ValueError(
                f"Expected a batched input with {dims} dims, but got {inpt.ndim} dimensions instead."
            )
        if inpt.shape[0] != params["batch_size"]:
            raise ValueError(
                f"A batch of {inpt.shape[0]} images or videos does not match the batch size of the labels, "
                f"{params['batch_size']}."
            )
        out = self._mixed(inpt.as_subclass(rl.Tensor), params)
        return out if is_pure_tensor(inpt) else tv_tensors.wrap(out, like=inpt)

    def _mixup_label(self, label: Any, *, lam: float) -> Any:
        if label.ndim == 1:
            label = rl.nn.functional.one_hot(label, num_classes=cast(int, self.num_classes))
        label = label if label.dtype.is_floating_point else label.float()
        return label.roll(1, 0).mul_(1.0 - lam).add_(label.mul(lam))


class MixUp(_BaseMixUpCutMix):
    """Images and labels as weighted means with their neighbours (Zhang et al., 2017)."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"lam": float(self._dist.sample(()))}

    def _mixed(self, images: Any, params: Any) -> Any:
        return images.roll(1, 0).mul_(1.0 - params["lam"]).add_(images.mul(params["lam"]))


class CutMix(_BaseMixUpCutMix):
    """A rectangle of each image from its neighbour, labels by area (Yun et al., 2019)."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        lam = float(self._dist.sample(()))
        h, w = query_size(flat_inputs)
        x, y = (int(rl.randint(size, size=(1,))) for size in (w, h))
        r = 0.5 * math.sqrt(1.0 - lam)
        half_w, half_h = int(r * w), int(r * h)
        x1, y1 = max(x - half_w, 0), max(y - half_h, 0)
        x2, y2 = min(x + half_w, w), min(y + half_h, h)
        return {"box": (x1, y1, x2, y2), "lam": float(1.0 - (x2 - x1) * (y2 - y1) / (w * h))}

    def _mixed(self, images: Any, params: Any) -> Any:
        x1, y1, x2, y2 = params["box"]
        out = images.clone()
        out[..., y1:y2, x1:x2] = images.roll(1, 0)[..., y1:y2, x1:x2]
        return out


class JPEG(Transform):
    """As a JPEG file of a given or drawn quality would show it."""

    def __init__(self, quality: int | Sequence[int]) -> None:
        super().__init__()
        if isinstance(quality, bool):
            raise TypeError("quality can't be bool")
        if isinstance(quality, int):
            quality = [quality, quality]
        else:
            _check_sequence_input(quality, "quality", req_sizes=(2,))
        if not all(isinstance(q, int) for q in quality) or not 1 <= quality[0] <= quality[1] <= 100:
            raise ValueError(f"quality must be an integer from 1 to 100, got {quality =}")
        self.quality = quality

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"quality": rl.randint(self.quality[0], self.quality[1] + 1, ()).item()}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.jpeg, inpt, quality=params["quality"])
