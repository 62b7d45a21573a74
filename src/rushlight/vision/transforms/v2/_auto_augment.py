"""Augmentation by learned and by random policies. The draws are those of torchvision's v2, which differ from the first version's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision import tv_tensors

from ..._pil import is_pil
from .. import autoaugment as one
from .._interpolation import InterpolationMode
from .._tensor_base import max_value
from . import functional as F
from ._transform import Transform
from ._utils import IMAGES, _get_fill, _setup_fill_arg, check_type


def _draw(n: Any) -> int:
    return int(rl.randint(n, ()).item())


def _even(top: Any) -> Any:
    """So many magnitudes from 0 to a number, or to what a function of (height, width) gives."""

    def magnitudes(num_bins: Any, height: Any, width: Any) -> Any:
        return rl.linspace(0.0, top(height, width) if callable(top) else top, num_bins)

    return magnitudes


def _bits(most: Any, fewer: Any) -> Any:
    def magnitudes(num_bins: Any, height: Any, width: Any) -> Any:
        return (most - rl.arange(num_bins) / ((num_bins - 1) / fewer)).round().int()

    return magnitudes


def _falling(num_bins: Any, height: Any, width: Any) -> rl.Tensor:
    return rl.linspace(1.0, 0.0, num_bins)


def _none(num_bins: Any, height: Any, width: Any) -> None:
    return None


_WARPS = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
_FACTORS = ("Brightness", "Color", "Contrast", "Sharpness")
_LEVELS = ("Posterize", "Solarize", "AutoContrast", "Equalize")


def _space(
    names: Any, shear: Any, move_x: Any, move_y: Any, angle: Any, factor: Any, bits: Any
) -> dict[Any, Any]:
    """{name: (magnitudes(num_bins, height, width), whether the sign is drawn)} in the order of names."""
    known = {
        "ShearX": (_even(shear), True),
        "ShearY": (_even(shear), True),
        "TranslateX": (_even(move_x), True),
        "TranslateY": (_even(move_y), True),
        "Rotate": (_even(angle), True),
        **dict.fromkeys(_FACTORS, (_even(factor), True)),
        "Posterize": (_bits(*bits), False),
        "Solarize": (_falling, False),
    }
    return {name: known.get(name, (_none, False)) for name in names}


_STANDARD = (0.3, lambda h, w: 150.0 / 331.0 * w, lambda h, w: 150.0 / 331.0 * h, 30.0, 0.9, (8, 4))
_MIXED = (0.3, lambda h, w: w / 3.0, lambda h, w: h / 3.0, 30.0, 0.9, (4, 4))


class _AutoAugmentBase(Transform):
    """One image or video of a sample is changed."""

    _augmented: Callable[[Any], Any]

    def __init__(self, *, interpolation: InterpolationMode | str | int = "nearest", fill: Any = None) -> None:
        super().__init__()
        self.interpolation = interpolation
        self.fill = fill
        self._fill = _setup_fill_arg(fill)

    def _extract_params_for_v1_transform(self) -> dict[str, Any]:
        params = super()._extract_params_for_v1_transform()
        if isinstance(params["fill"], dict):
            raise ValueError(f"{type(self).__name__}() can not be scripted for when `fill` is a dictionary.")
        return params

    def _get_random_item(self, dct: Any) -> tuple[Any, Any]:
        key = list(dct)[_draw(len(dct))]
        return key, dct[key]

    def _image_of(self, inputs: Any) -> tuple[list[Any], Any, Any]:
        """(the sample flat, how to build it again, where its image is)"""
        flat, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        found = []
        for i, (value, good) in enumerate(zip(flat, self._needs_transform_list(flat))):
            if good and check_type(value, IMAGES):
                found.append(i)
            elif isinstance(value, (tv_tensors.BoundingBoxes, tv_tensors.Mask, tv_tensors.KeyPoints)):
                raise TypeError(
                    f"Inputs of type {type(value).__name__} are not supported by {type(self).__name__}()"
                )
        if not found:
            raise TypeError("Found no image in the sample.")
        if len(found) > 1:
            raise TypeError(
                f"Found {len(found)} images or videos in the sample, and the drawn operations are for one."
            )
        return flat, spec, found[0]

    def forward(self, *inputs: Any) -> Any:
        flat, spec, i = self._image_of(inputs)
        flat[i] = self._augmented(flat[i])
        return tree_unflatten(flat, spec)

    def _changed(self, image: Any, name: Any, magnitudes: Any, signed: Any, level: Any) -> Any:
        """The image after one change; `level` says which magnitude, and may draw it."""
        magnitude = 0.0
        if magnitudes is not None:
            magnitude = float(magnitudes[level()])
            if signed and rl.rand(()) <= 0.5:
                magnitude *= -1
        return self._apply_image_or_video_transform(
            image, name, magnitude, interpolation=self.interpolation, fill=self._fill
        )

    def _apply_image_or_video_transform(
        self, image: Any, transform_id: Any, magnitude: Any, interpolation: Any, fill: Any
    ) -> Any:
        warp = {"interpolation": interpolation, "fill": _get_fill(fill, type(image))}
        angle = math.degrees(math.atan(magnitude))
        move = int(magnitude)
        changes = {
            "Identity": lambda: image,
            "ShearX": lambda: F.affine(image, 0.0, [0, 0], 1.0, [angle, 0.0], center=[0, 0], **warp),
            "ShearY": lambda: F.affine(image, 0.0, [0, 0], 1.0, [0.0, angle], center=[0, 0], **warp),
            "TranslateX": lambda: F.affine(image, 0.0, [move, 0], 1.0, [0.0, 0.0], **warp),
            "TranslateY": lambda: F.affine(image, 0.0, [0, move], 1.0, [0.0, 0.0], **warp),
            "Rotate": lambda: F.rotate(image, angle=magnitude, **warp),
            "Brightness": lambda: F.adjust_brightness(image, 1.0 + magnitude),
            "Color": lambda: F.adjust_saturation(image, 1.0 + magnitude),
            "Contrast": lambda: F.adjust_contrast(image, 1.0 + magnitude),
            "Sharpness": lambda: F.adjust_sharpness(image, 1.0 + magnitude),
            "Posterize": lambda: F.posterize(image, bits=move),
            "Solarize": lambda: F.solarize(image, threshold=_white(image) * magnitude),
            "AutoContrast": lambda: F.autocontrast(image),
            "Equalize": lambda: F.equalize(image),
            "Invert": lambda: F.invert(image),
        }
        if transform_id not in changes:
            raise ValueError(f"No transform available for {transform_id}")
        return changes[transform_id]()


def _white(image: Any) -> int | float:
    return max_value(image.dtype) if isinstance(image, rl.Tensor) else 255.0


class AutoAugment(_AutoAugmentBase):
    """Two changes of a learned policy, drawn."""

    _v1_transform_cls = one.AutoAugment
    _AUGMENTATION_SPACE = _space([*_WARPS, *_FACTORS, *_LEVELS, "Invert"], *_STANDARD)

    def __init__(
        self,
        policy: Any = one.AutoAugmentPolicy.IMAGENET,
        interpolation: InterpolationMode | str | int = "nearest",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.policy = policy
        self._policies = self._get_policies(policy)

    def _get_policies(self, policy: Any) -> list[Any]:
        nobody: Any = None  # it reads nothing of its transform
        return one.AutoAugment._get_policies(nobody, policy)

    def _augmented(self, image: Any) -> Any:
        size = F.get_size(image)
        for name, probability, level in self._policies[_draw(len(self._policies))]:
            if not rl.rand(()) <= probability:
                continue
            magnitudes, signed = self._AUGMENTATION_SPACE[name]
            image = self._changed(image, name, magnitudes(10, *size), signed, lambda level=level: level)
        return image


class RandAugment(_AutoAugmentBase):
    """num_ops drawn changes of one magnitude."""

    _v1_transform_cls = one.RandAugment
    _AUGMENTATION_SPACE = _space(["Identity", *_WARPS, *_FACTORS, *_LEVELS], *_STANDARD)

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode | str | int = "nearest",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"num_ops should be a non-negative integer, but got {num_ops} instead.")
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def _augmented(self, image: Any) -> Any:
        size = F.get_size(image)
        for _ in range(self.num_ops):
            name, (magnitudes, signed) = self._get_random_item(self._AUGMENTATION_SPACE)
            found = magnitudes(self.num_magnitude_bins, *size)
            image = self._changed(image, name, found, signed, lambda: self.magnitude)
        return image


class TrivialAugmentWide(_AutoAugmentBase):
    """One drawn change of a drawn magnitude."""

    _v1_transform_cls = one.TrivialAugmentWide
    _AUGMENTATION_SPACE = _space(
        ["Identity", *_WARPS, *_FACTORS, *_LEVELS], 0.99, 32.0, 32.0, 135.0, 0.99, (8, 6)
    )

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode | str | int = "nearest",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        self.num_magnitude_bins = num_magnitude_bins

    def _augmented(self, image: Any) -> Any:
        size, bins = F.get_size(image), self.num_magnitude_bins
        name, (magnitudes, signed) = self._get_random_item(self._AUGMENTATION_SPACE)
        return self._changed(image, name, magnitudes(bins, *size), signed, lambda: _draw(bins))


class AugMix(_AutoAugmentBase):
    """The image mixed with several chains of drawn changes of it."""

    _v1_transform_cls = one.AugMix
    _PARAMETER_MAX = 10
    _PARTIAL_AUGMENTATION_SPACE = _space([*_WARPS, *_LEVELS], *_MIXED)
    _AUGMENTATION_SPACE = _space([*_WARPS, *_LEVELS, *_FACTORS], *_MIXED)

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: InterpolationMode | str | int = "bilinear",
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill)
        if not 1 <= severity <= self._PARAMETER_MAX:
            raise ValueError(
                f"The severity must be between [1, {self._PARAMETER_MAX}]. Got {severity} instead."
            )
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def _sample_dirichlet(self, params: Any) -> rl.Tensor:
        return rl._sample_dirichlet(params)

    def _chain(self, image: Any, space: Any, size: Any) -> Any:
        depth = self.chain_depth if self.chain_depth > 0 else int(rl.randint(low=1, high=4, size=(1,)).item())
        for _ in range(depth):
            name, (magnitudes, signed) = self._get_random_item(space)
            found = magnitudes(self._PARAMETER_MAX, *size)
            image = self._changed(image, name, found, signed, lambda: _draw(self.severity))
        return image

    def _augmented(self, original: Any) -> Any:
        space = self._AUGMENTATION_SPACE if self.all_ops else self._PARTIAL_AUGMENTATION_SPACE
        size = F.get_size(original)
        image = F.pil_to_tensor(original) if is_pil(original) else original.as_subclass(rl.Tensor)
        dims = 5 if isinstance(original, tv_tensors.Video) else 4
        batch = image.reshape([1] * max(dims - image.ndim, 0) + list(image.shape))
        count, ones = batch.size(0), [batch.size(0)] + [1] * (batch.ndim - 1)
        m = self._sample_dirichlet(rl.tensor([self.alpha, self.alpha]).expand(count, -1))
        weights = self._sample_dirichlet(rl.tensor([self.alpha] * self.mixture_width).expand(count, -1))
        weights = weights * m[:, 1].reshape(count, -1)
        mix = m[:, 0].reshape(ones) * batch
        for i in range(self.mixture_width):
            mix.add_(weights[:, i].reshape(ones) * self._chain(batch, space, size))
        mix = mix.reshape(image.shape).to(image.dtype)
        if isinstance(original, tv_tensors.TVTensor):
            return tv_tensors.wrap(mix, like=original)
        return F.to_pil_image(mix) if is_pil(original) else mix
