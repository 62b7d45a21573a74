"""Types and values; boxes and points that are kept or not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight.utils._pytree import tree_flatten, tree_unflatten
from rushlight.vision import tv_tensors

from ..._pil import is_pil
from .. import functional as F_one
from .. import transforms as one
from .._interpolation import setup_kernel, uniform
from . import functional as F
from ._transform import Transform
from ._utils import (
    _parse_labels_getter,
    _setup_number_or_seq,
    get_bounding_boxes,
    get_keypoints,
    has_any,
    is_pure_tensor,
    label_tensors,
)


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _refuse_pil(transform: Any, flat_inputs: Any) -> None:
    if has_any(flat_inputs, is_pil):
        raise TypeError(f"{type(transform).__name__}() does not support PIL images.")


class Identity(Transform):
    """Nothing is changed."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(Transform):
    """A function of the user for values of these types."""

    _transformed_types = (object,)

    def __init__(self, lambd: Callable[[Any], Any], *types: Any) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or self._transformed_types

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.lambd(inpt) if isinstance(inpt, self.types) else inpt

    def extra_repr(self) -> str:
        name = getattr(self.lambd, "__name__", None)
        return ", ".join([*([name] if name else []), f"types={[t.__name__ for t in self.types]}"])


class ToImage(Transform):
    """Images of Pillow, arrays and plain tensors as Images, in their own type."""

    _transformed_types = (is_pure_tensor, is_pil, _is_array)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_image(inpt)


class ToPILImage(Transform):
    """Images, arrays and plain tensors as images of Pillow."""

    _transformed_types = (is_pure_tensor, tv_tensors.Image, _is_array)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        plain = inpt.as_subclass(rl.Tensor) if isinstance(inpt, tv_tensors.TVTensor) else inpt
        return F.to_pil_image(plain, mode=self.mode)


class PILToTensor(Transform):
    """Images of Pillow as plain tensors, in their own type."""

    _transformed_types = (is_pil,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.pil_to_tensor(inpt)


class ToTensor(Transform):
    """Deprecated: images of Pillow and arrays as plain tensors in [0, 1]."""

    _transformed_types = (is_pil, _is_array)

    def __init__(self) -> None:
        warnings.warn(
            "`ToTensor()` is deprecated and will be removed: `v2.ToImage()`, then `v2.ToDtype(torch.float32, scale=True)` "
            "gives the same, but for rounding.",
            stacklevel=2,
        )
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F_one.to_tensor(inpt)


class ToPureTensor(Transform):
    """Tensors of a kind as plain ones."""

    _transformed_types = (tv_tensors.TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.as_subclass(rl.Tensor)


class ToDtype(Transform):
    """In another type, one for images or {type: dtype, "others": dtype}; `scale` keeps white white."""

    _transformed_types = (rl.Tensor,)

    def __init__(self, dtype: rl.dtype | dict[Any, rl.dtype | None], scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, (dict, rl.dtype)):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        kinds = dtype if isinstance(dtype, dict) else {}
        if (tv_tensors.Image in kinds or tv_tensors.Video in kinds) and rl.Tensor in kinds:
            warnings.warn(
                "The dict has a dtype for images or videos and one for `torch.Tensor`: a plain `torch.Tensor` will *not* be "
                "transformed in a sample that holds an image or a video.",
                stacklevel=2,
            )
        self.dtype = dtype
        self.scale = scale

    def _dtype_for(self, inpt: Any, image: Any) -> rl.dtype | None:
        """The dtype an input becomes; None if it stays as it is."""
        if isinstance(self.dtype, rl.dtype):
            return self.dtype if image else None
        for key in (type(inpt), "others"):
            if key in self.dtype:
                return self.dtype[key]
        raise ValueError(
            f"No dtype was specified for type {type(inpt)}. Name one for it in the dict, or one for all that is left "
            'as "others" (None leaves those inputs alone); a single dtype instead of a dict converts images and videos.'
        )

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        image = is_pure_tensor(inpt) or isinstance(inpt, (tv_tensors.Image, tv_tensors.Video))
        dtype = self._dtype_for(inpt, image)
        if dtype is not None:
            return self._call_kernel(F.to_dtype, inpt, dtype=dtype, scale=self.scale)
        if self.scale and image:
            warnings.warn(
                "scale=True, but the dict has no dtype for images or videos: no scaling will be done.",
                stacklevel=2,
            )
        return inpt


class ConvertImageDtype(Transform):
    """Images in another type, with white kept white."""

    _v1_transform_cls = one.ConvertImageDtype

    def __init__(self, dtype: rl.dtype = rl.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.to_dtype, inpt, dtype=self.dtype, scale=True)


class Normalize(Transform):
    """(image - mean) / std by channels."""

    _v1_transform_cls = one.Normalize

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = list(mean), list(std), inplace

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        _refuse_pil(self, flat_inputs)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.normalize, inpt, mean=self.mean, std=self.std, inplace=self.inplace)


class LinearTransformation(Transform):
    """(flattened image - mean) @ matrix: whitening."""

    _v1_transform_cls = one.LinearTransformation
    _transformed_types = (is_pure_tensor, tv_tensors.Image, tv_tensors.Video)

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        super().__init__()
        one.LinearTransformation(transformation_matrix, mean_vector)  # checks
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        _refuse_pil(self, flat_inputs)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        channels, height, width = inpt.shape[-3:]
        n, rows = channels * height * width, len(self.transformation_matrix)
        if n != rows:
            raise ValueError(
                "Input tensor and transformation matrix have incompatible shape: "
                f"[{channels} x {height} x {width}] != {rows}"
            )
        if inpt.device.type != self.mean_vector.device.type:
            raise ValueError(
                "Input tensor should be on the same device as transformation matrix and mean vector, "
                f"but it is on {inpt.device} and they are on {self.mean_vector.device}"
            )
        flat = inpt.as_subclass(rl.Tensor).reshape(-1, n) - self.mean_vector
        out = (flat @ self.transformation_matrix.to(flat.dtype)).reshape(inpt.shape)
        return out if is_pure_tensor(inpt) else tv_tensors.wrap(out, like=inpt)


class GaussianBlur(Transform):
    """Smoothed by a Gaussian of drawn width."""

    _v1_transform_cls = one.GaussianBlur

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = setup_kernel(kernel_size)
        least, most = self.sigma = _setup_number_or_seq(sigma, "sigma")
        if not 0.0 < least <= most:
            raise ValueError(f"sigma values should be positive and of the form (min, max). Got {self.sigma}")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        sigma = uniform(*self.sigma)
        return {"sigma": [sigma, sigma]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.gaussian_blur, inpt, self.kernel_size, **params)


class GaussianNoise(Transform):
    """With normal noise added, of floats or bytes."""

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.gaussian_noise, inpt, mean=self.mean, sigma=self.sigma, clip=self.clip)


class UniformTemporalSubsample(Transform):
    """So many images of a video, evenly spaced."""

    _transformed_types = (is_pure_tensor, tv_tensors.Video)

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.uniform_temporal_subsample, inpt, self.num_samples)


class ConvertBoundingBoxFormat(Transform):
    """Boxes in another format."""

    _transformed_types = (tv_tensors.BoundingBoxes,)

    def __init__(self, format: Any) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(Transform):
    """Boxes cut to their image."""

    _transformed_types = (tv_tensors.BoundingBoxes,)

    def __init__(self, clamping_mode: str = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class ClampKeyPoints(Transform):
    """Points outside their image moved to its edge."""

    _transformed_types = (tv_tensors.KeyPoints,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_keypoints(inpt)


class SetClampingMode(Transform):
    """Boxes with another clamping_mode."""

    _transformed_types = (tv_tensors.BoundingBoxes,)

    def __init__(self, clamping_mode: Any) -> None:
        super().__init__()
        self.clamping_mode = clamping_mode
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"clamping_mode must be soft, hard or None, got {clamping_mode}")

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = inpt.clone()
        out.clamping_mode = self.clamping_mode
        return out


class _Sanitize(Transform):
    """Values that belong together (boxes, masks, labels) of which some are kept."""

    _labels_getter: Callable[[Any], Any]

    _kinds: tuple[type, ...] = ()

    def _sample(
        self, inputs: Any, find: Any, what: Any
    ) -> tuple[list[Any], Any, Any, tuple[Any, ...] | list[Any] | Any | None]:
        """(the sample flat, how to build it again, its boxes or points, their labels)"""
        inputs = inputs if len(inputs) > 1 else inputs[0]
        labels = self._labels_getter(inputs)
        flat_inputs, spec = tree_flatten(inputs)
        values = find(flat_inputs)
        return flat_inputs, spec, values, label_tensors(labels, values, what)

    def _kept(self, flat_inputs: Any, spec: Any, valid: Any, labels: Any) -> Any:
        params = {"valid": valid, "labels": labels}
        return tree_unflatten([self.transform(v, params) for v in flat_inputs], spec)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        label = params["labels"] is not None and any(inpt is one for one in params["labels"])
        if not label and not isinstance(inpt, self._kinds):
            return inpt
        plain = inpt.as_subclass(rl.Tensor)
        try:
            out = plain[params["valid"]]
        except IndexError:  # a mask of classes has no entry for each box
            return inpt
        return out if label else tv_tensors.wrap(out, like=inpt)


class SanitizeBoundingBoxes(_Sanitize):
    """Without boxes that are too small or outside their image, and without their masks and labels."""

    _kinds = (tv_tensors.BoundingBoxes, tv_tensors.Mask)

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0, labels_getter: Any = "default") -> None:
        super().__init__()
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        if min_area < 1:
            raise ValueError(f"min_area must be >= 1, got {min_area}.")
        self.min_size, self.min_area = min_size, min_area
        self.labels_getter = labels_getter
        self._labels_getter = _parse_labels_getter(labels_getter)

    def forward(self, *inputs: Any) -> Any:
        flat_inputs, spec, boxes, labels = self._sample(inputs, get_bounding_boxes, "boxes")
        valid = F.sanitize_bounding_boxes(boxes, min_size=self.min_size, min_area=self.min_area)[1]
        return self._kept(flat_inputs, spec, valid, labels)


class SanitizeKeyPoints(_Sanitize):
    """Without points outside their image, and without their labels."""

    _kinds = (tv_tensors.KeyPoints,)

    def __init__(self, labels_getter: Any = None) -> None:
        super().__init__()
        self.labels_getter = labels_getter
        self._labels_getter = _parse_labels_getter(labels_getter)

    def forward(self, *inputs: Any) -> Any:
        flat_inputs, spec, points, labels = self._sample(inputs, get_keypoints, "kepyoints")
        return self._kept(flat_inputs, spec, F.sanitize_keypoints(points)[1], labels)
