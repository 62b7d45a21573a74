"""Colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl

from .. import transforms as one
from .._checks import factor_ends
from .._interpolation import uniform
from . import functional as F
from ._transform import Transform, _RandomApplyTransform
from ._utils import query_chw


class Grayscale(Transform):
    """Without colours, in one or three channels."""

    _v1_transform_cls = one.Grayscale

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.rgb_to_grayscale, inpt, num_output_channels=self.num_output_channels)


class RandomGrayscale(_RandomApplyTransform):
    """Without colours with probability p, in as many channels as before."""

    _v1_transform_cls = one.RandomGrayscale

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=p)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"num_input_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.rgb_to_grayscale, inpt, num_output_channels=params["num_input_channels"])


class RGB(Transform):
    """In three channels."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.grayscale_to_rgb, inpt)


_JITTER = ("brightness", "contrast", "saturation", "hue")
_ADJUST = dict(zip(_JITTER, (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)))


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed by drawn factors, in a drawn order."""

    _v1_transform_cls = one.ColorJitter

    def __init__(
        self,
        brightness: float | Sequence[float] | None = None,
        contrast: float | Sequence[float] | None = None,
        saturation: float | Sequence[float] | None = None,
        hue: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        for name, value in zip(_JITTER, (brightness, contrast, saturation)):
            setattr(self, name, self._check_input(value, name))
        self.hue = self._check_input(hue, "hue", 0, (-0.5, 0.5), clip_first_on_zero=False)

    def _extract_params_for_v1_transform(self) -> dict[str, Any | int]:
        return {name: value or 0 for name, value in super()._extract_params_for_v1_transform().items()}

    def _check_input(
        self,
        value: Any,
        name: Any,
        center: Any = 1.0,
        bound: Any = (0, float("inf")),
        clip_first_on_zero: bool = True,
    ) -> tuple[float, float] | None:
        if value is None:
            return None
        wanted = f"{name}={value} should be a single number or a sequence with length 2."
        low, high = factor_ends(value, name, center, clip_first_on_zero, wanted)
        least, most = bound
        if not least <= low <= high <= most:
            raise ValueError(
                f"{name} values should be between {bound} and increasing, but got {[low, high]}."
            )
        return None if low == high == center else (float(low), float(high))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        params: dict[str, Any] = {"fn_idx": rl.randperm(4)}
        for name in _JITTER:
            ends = getattr(self, name)
            params[f"{name}_factor"] = None if ends is None else uniform(*ends)
        return params

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        for i in params["fn_idx"].tolist():
            factor = params[f"{_JITTER[i]}_factor"]
            if factor is not None:
                inpt = self._call_kernel(_ADJUST[_JITTER[i]], inpt, factor)
        return inpt


class RandomChannelPermutation(Transform):
    """Channels in a drawn order."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"permutation": rl.randperm(query_chw(flat_inputs)[0])}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.permute_channels, inpt, params["permutation"])


class RandomPhotometricDistort(Transform):
    """Brightness, contrast, saturation, hue and channels changed, each with probability p."""

    def __init__(
        self,
        brightness: float | Sequence[float] = (0.875, 1.125),
        contrast: float | Sequence[float] = (0.5, 1.5),
        saturation: float | Sequence[float] = (0.5, 1.5),
        hue: float | Sequence[float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__()
        self.brightness, self.contrast, self.hue, self.saturation = brightness, contrast, hue, saturation
        self.p = p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels = query_chw(flat_inputs)[0]
        params: dict[str, Any] = {}
        for name in _JITTER:
            drawn = bool(rl.rand(1) < self.p)
            params[f"{name}_factor"] = uniform(*getattr(self, name)) if drawn else None
        params["contrast_before"] = bool(rl.rand(()) < 0.5)
        params["channel_permutation"] = rl.randperm(channels) if rl.rand(1) < self.p else None
        return params

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        order = ("brightness", "contrast", "saturation", "hue")
        if not params["contrast_before"]:
            order = ("brightness", "saturation", "hue", "contrast")
        for name in order:
            if params[f"{name}_factor"] is not None:
                inpt = self._call_kernel(_ADJUST[name], inpt, params[f"{name}_factor"])
        if params["channel_permutation"] is not None:
            inpt = self._call_kernel(F.permute_channels, inpt, permutation=params["channel_permutation"])
        return inpt


class RandomEqualize(_RandomApplyTransform):
    """A flat histogram with probability p."""

    _v1_transform_cls = one.RandomEqualize

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.equalize, inpt)


class RandomInvert(_RandomApplyTransform):
    """The negative with probability p."""

    _v1_transform_cls = one.RandomInvert

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.invert, inpt)


class RandomAutocontrast(_RandomApplyTransform):
    """Full contrast with probability p."""

    _v1_transform_cls = one.RandomAutocontrast

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.autocontrast, inpt)


class RandomPosterize(_RandomApplyTransform):
    """Fewer bits a channel with probability p."""

    _v1_transform_cls = one.RandomPosterize

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.bits = bits

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.posterize, inpt, bits=self.bits)


class RandomSolarize(_RandomApplyTransform):
    """Bright values inverted with probability p."""

    _v1_transform_cls = one.RandomSolarize

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.threshold = threshold

    def _extract_params_for_v1_transform(self) -> dict[str, Any]:
        params = super()._extract_params_for_v1_transform()
        return {**params, "threshold": float(params["threshold"])}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.solarize, inpt, threshold=self.threshold)


class RandomAdjustSharpness(_RandomApplyTransform):
    """Sharper by a factor with probability p."""

    _v1_transform_cls = one.RandomAdjustSharpness

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p=p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.adjust_sharpness, inpt, sharpness_factor=self.sharpness_factor)
