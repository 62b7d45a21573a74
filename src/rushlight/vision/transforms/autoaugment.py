"""Augmentation by learned and by random policies."""

from __future__ import annotations

import enum
import math
from typing import Any

import rushlight as rl

from . import functional as F
from ._interpolation import InterpolationMode, draw_int
from ._policies import CIFAR10, IMAGENET, SVHN

__all__ = ["AugMix", "AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]


def apply_change(img: Any, op_name: Any, magnitude: Any, interpolation: Any, fill: Any) -> Any:
    """The image after one of the changes of the policies."""
    name = op_name
    warp = {"interpolation": interpolation, "fill": fill}
    if name in ("ShearX", "ShearY"):
        angle = math.degrees(math.atan(magnitude))
        shear = [angle, 0.0] if name == "ShearX" else [0.0, angle]
        return F.affine(img, angle=0.0, translate=[0, 0], scale=1.0, shear=shear, center=[0, 0], **warp)
    if name in ("TranslateX", "TranslateY"):
        move = [int(magnitude), 0] if name == "TranslateX" else [0, int(magnitude)]
        return F.affine(img, angle=0.0, translate=move, scale=1.0, shear=[0.0, 0.0], **warp)
    if name == "Rotate":
        return F.rotate(img, magnitude, **warp)
    factors = {
        "Brightness": F.adjust_brightness,
        "Color": F.adjust_saturation,
        "Contrast": F.adjust_contrast,
        "Sharpness": F.adjust_sharpness,
    }
    if name in factors:
        return factors[name](img, 1.0 + magnitude)
    if name == "Posterize":
        return F.posterize(img, int(magnitude))
    if name == "Solarize":
        return F.solarize(img, magnitude)
    plain = {
        "AutoContrast": F.autocontrast,
        "Equalize": F.equalize,
        "Invert": F.invert,
        "Identity": lambda img: img,
    }
    if name not in plain:
        raise ValueError(f"The provided operator {name} is not recognized.")
    return plain[name](img)


_apply_op = apply_change  # torchvision's name


def _fill_for(img: Any, fill: Any, channels: Any) -> Any:
    if not isinstance(img, rl.Tensor):
        return fill
    if isinstance(fill, (int, float)):
        return [float(fill)] * channels
    return [float(f) for f in fill] if fill is not None else None


def _posterize_bits(bins: Any, most: Any, least: Any) -> Any:
    """From `most` bits down to `least` in so many steps."""
    return most - (rl.arange(bins) / ((bins - 1) / (most - least))).round().int()


def _space(
    bins: Any, shear: Any, moves: Any, angle: Any, factor: Any, bits: Any, names: Any
) -> dict[Any, Any]:
    """{name: (magnitudes, whether the sign is drawn)} in the order of names."""
    none = (rl.tensor(0.0), False)
    known = {
        "ShearX": (rl.linspace(0.0, shear, bins), True),
        "ShearY": (rl.linspace(0.0, shear, bins), True),
        "TranslateX": (rl.linspace(0.0, moves[0], bins), True),
        "TranslateY": (rl.linspace(0.0, moves[1], bins), True),
        "Rotate": (rl.linspace(0.0, angle, bins), True),
        **{
            n: (rl.linspace(0.0, factor, bins), True)
            for n in ("Brightness", "Color", "Contrast", "Sharpness")
        },
        "Posterize": (_posterize_bits(bins, *bits), False),
        "Solarize": (rl.linspace(255.0, 0.0, bins), False),
    }
    return {n: known.get(n, none) for n in names}


_WARPS = ["ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"]
_FACTORS = ["Brightness", "Color", "Contrast", "Sharpness"]
_LEVELS = ["Posterize", "Solarize", "AutoContrast", "Equalize"]


class AutoAugmentPolicy(enum.Enum):
    """Data sets for which AutoAugment's policies were learned."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


class AutoAugment(rl.nn.Module):
    """Two changes of a learned policy, drawn (Cubuk et al., 2018)."""

    def __init__(
        self,
        policy: Any = AutoAugmentPolicy.IMAGENET,
        interpolation: InterpolationMode | int = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__()
        self.policy = policy
        self.interpolation = interpolation
        self.fill = fill
        self.policies = self._get_policies(policy)

    def _get_policies(self, policy: Any) -> list[Any]:
        tables = {
            AutoAugmentPolicy.IMAGENET: IMAGENET,
            AutoAugmentPolicy.CIFAR10: CIFAR10,
            AutoAugmentPolicy.SVHN: SVHN,
        }
        if policy not in tables:
            raise ValueError(f"The provided policy {policy} is not recognized.")
        return tables[policy]

    def _augmentation_space(self, num_bins: Any, image_size: Any) -> dict[Any, Any]:
        moves = [150.0 / 331.0 * image_size[1], 150.0 / 331.0 * image_size[0]]
        return _space(num_bins, 0.3, moves, 30.0, 0.9, (8, 4), [*_WARPS, *_FACTORS, *_LEVELS, "Invert"])

    @staticmethod
    def get_params(transform_num: Any) -> Any:
        """(policy, probabilities, signs) of a draw."""
        policy = int(rl.randint(transform_num, (1,)).item())
        return policy, rl.rand((2,)), rl.randint(2, (2,))

    def forward(self, img: Any) -> Any:
        channels, height, width = F.get_dimensions(img)
        fill = _fill_for(img, self.fill, channels)
        policy, probabilities, signs = self.get_params(len(self.policies))
        space = self._augmentation_space(10, (height, width))
        for i, (name, p, level) in enumerate(self.policies[policy]):
            if probabilities[i] <= p:
                magnitudes, signed = space[name]
                magnitude = float(magnitudes[level].item()) if level is not None else 0.0
                if signed and signs[i] == 0:
                    magnitude *= -1.0
                img = apply_change(img, name, magnitude, self.interpolation, fill)
        return img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(policy={self.policy}, fill={self.fill})"


class RandAugment(rl.nn.Module):
    """num_ops drawn changes of one magnitude (Cubuk et al., 2019)."""

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode | int = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__()
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins
        self.interpolation = interpolation
        self.fill = fill

    def _augmentation_space(self, num_bins: Any, image_size: Any) -> dict[Any, Any]:
        moves = [150.0 / 331.0 * image_size[1], 150.0 / 331.0 * image_size[0]]
        return _space(num_bins, 0.3, moves, 30.0, 0.9, (8, 4), ["Identity", *_WARPS, *_FACTORS, *_LEVELS])

    def forward(self, img: Any) -> Any:
        channels, height, width = F.get_dimensions(img)
        fill = _fill_for(img, self.fill, channels)
        space = self._augmentation_space(self.num_magnitude_bins, (height, width))
        names = list(space)
        for _ in range(self.num_ops):
            name = names[draw_int(0, len(names))]
            magnitudes, signed = space[name]
            magnitude = float(magnitudes[self.magnitude].item()) if magnitudes.ndim > 0 else 0.0
            if signed and draw_int(0, 2):
                magnitude *= -1.0
            img = apply_change(img, name, magnitude, self.interpolation, fill)
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_ops={self.num_ops}, magnitude={self.magnitude}, "
            f"num_magnitude_bins={self.num_magnitude_bins}, interpolation={self.interpolation}, fill={self.fill})"
        )


class TrivialAugmentWide(rl.nn.Module):
    """One drawn change of a drawn magnitude (Mueller and Hutter, 2021)."""

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode | int = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__()
        self.num_magnitude_bins = num_magnitude_bins
        self.interpolation = interpolation
        self.fill = fill

    def _augmentation_space(self, num_bins: Any) -> dict[Any, Any]:
        return _space(
            num_bins, 0.99, [32.0, 32.0], 135.0, 0.99, (8, 2), ["Identity", *_WARPS, *_FACTORS, *_LEVELS]
        )

    def forward(self, img: Any) -> Any:
        fill = _fill_for(img, self.fill, F.get_dimensions(img)[0])
        space = self._augmentation_space(self.num_magnitude_bins)
        names = list(space)
        name = names[draw_int(0, len(names))]
        magnitudes, signed = space[name]
        magnitude = float(magnitudes[draw_int(0, len(magnitudes))].item()) if magnitudes.ndim > 0 else 0.0
        if signed and draw_int(0, 2):
            magnitude *= -1.0
        return apply_change(img, name, magnitude, self.interpolation, fill)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_magnitude_bins={self.num_magnitude_bins}, "
            f"interpolation={self.interpolation}, fill={self.fill})"
        )


class AugMix(rl.nn.Module):
    """The image mixed with several chains of drawn changes of it (Hendrycks et al., 2019)."""

    _BINS = 10

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        fill: Any = None,
    ) -> None:
        super().__init__()
        if not 1 <= severity <= self._BINS:
            raise ValueError(f"The severity must be between [1, {self._BINS}]. Got {severity} instead.")
        self.severity, self.alpha, self.all_ops = severity, alpha, all_ops
        self.mixture_width, self.chain_depth = mixture_width, chain_depth
        self.interpolation, self.fill = interpolation, fill

    def _augmentation_space(self, num_bins: Any, image_size: Any) -> dict[Any, Any]:
        names = [*_WARPS, *_LEVELS, *(_FACTORS if self.all_ops else [])]
        return _space(num_bins, 0.3, [image_size[1] / 3.0, image_size[0] / 3.0], 30.0, 0.9, (4, 0), names)

    def _sample_dirichlet(self, params: Any) -> rl.Tensor:
        return rl._sample_dirichlet(params)

    def forward(self, orig_img: Any) -> Any:
        channels, height, width = F.get_dimensions(orig_img)
        tensor = isinstance(orig_img, rl.Tensor)
        img = orig_img if tensor else F.pil_to_tensor(orig_img)
        fill = _fill_for(img, self.fill, channels)
        space = self._augmentation_space(self._BINS, (height, width))
        names = list(space)
        shape = list(img.shape)
        batch = img.view([1] * max(4 - img.ndim, 0) + shape)
        ones = [batch.size(0)] + [1] * (batch.ndim - 1)
        # How much of the image itself is kept, and the weight of each chain.
        m = self._sample_dirichlet(rl.tensor([self.alpha, self.alpha]).expand(ones[0], -1))
        weights = self._sample_dirichlet(rl.tensor([self.alpha] * self.mixture_width).expand(ones[0], -1))
        weights = weights * m[:, 1].reshape(ones[0], -1)
        mix = m[:, 0].reshape(ones) * batch
        for i in range(self.mixture_width):
            changed = batch
            for _ in range(self.chain_depth if self.chain_depth > 0 else draw_int(1, 4)):
                name = names[draw_int(0, len(names))]
                magnitudes, signed = space[name]
                magnitude = (
                    float(magnitudes[draw_int(0, self.severity)].item()) if magnitudes.ndim > 0 else 0.0
                )
                if signed and draw_int(0, 2):
                    magnitude *= -1.0
                changed = apply_change(changed, name, magnitude, self.interpolation, fill)
            mix.add_(weights[:, i].reshape(ones) * changed)
        mix = mix.view(shape).to(img.dtype)
        return mix if tensor else F.to_pil_image(mix)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(severity={self.severity}, mixture_width={self.mixture_width}, "
            f"chain_depth={self.chain_depth}, alpha={self.alpha}, all_ops={self.all_ops}, "
            f"interpolation={self.interpolation}, fill={self.fill})"
        )
