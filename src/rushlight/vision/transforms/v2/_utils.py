"""What transforms ask of the values of a sample, and checks of their arguments."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight as rl
from rushlight.vision import tv_tensors

from ..._pil import is_pil
from .._interpolation import setup_size as _setup_size  # noqa: F401
from .._warps import _angles as _setup_angle  # noqa: F401
from .._warps import _check_sequence as _check_sequence_input  # noqa: F401
from .functional import get_dimensions, get_size, is_pure_tensor

IMAGES = (is_pure_tensor, tv_tensors.Image, is_pil, tv_tensors.Video)


def check_type(obj: Any, types_or_checks: Any) -> bool:
    """Whether a value is of one of the types, or passes one of the checks."""
    for wanted in types_or_checks:
        if isinstance(obj, wanted) if isinstance(wanted, type) else wanted(obj):
            return True
    return False


def has_any(flat_inputs: Any, *types_or_checks: Any) -> bool:
    """Whether a sample has a value of one of the types."""
    return any(check_type(inpt, types_or_checks) for inpt in flat_inputs)


def has_all(flat_inputs: Any, *types_or_checks: Any) -> bool:
    """Whether a sample has values of all the types."""
    return all(any(check_type(inpt, (wanted,)) for inpt in flat_inputs) for wanted in types_or_checks)


def get_bounding_boxes(flat_inputs: Any) -> Any:
    """The boxes of a sample."""
    for inpt in flat_inputs:
        if isinstance(inpt, tv_tensors.BoundingBoxes):
            return inpt
    raise ValueError("No bounding boxes were found in the sample")


def get_keypoints(flat_inputs: Any) -> Any:
    """The points of a sample."""
    for inpt in flat_inputs:
        if isinstance(inpt, tv_tensors.KeyPoints):
            return inpt
    raise ValueError("No keypoints were found in the sample")


def query_chw(flat_inputs: Any) -> tuple[Any, ...]:
    """(channels, height, width) of the images of a sample."""
    found = {tuple(get_dimensions(v)) for v in flat_inputs if check_type(v, IMAGES)}
    if not found:
        raise TypeError("No image or video was found in the sample")
    if len(found) > 1:
        raise ValueError(f"Found multiple CxHxW dimensions in the sample: {_listed(found)}")
    return found.pop()


def query_size(flat_inputs: Any) -> tuple[Any, ...]:
    """(height, width) of a sample."""
    kinds = (*IMAGES, tv_tensors.Mask, tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)
    found = {tuple(get_size(v)) for v in flat_inputs if check_type(v, kinds)}
    if not found:
        raise TypeError("No image, video, mask, bounding box of keypoint was found in the sample")
    if len(found) > 1:
        raise ValueError(f"Found multiple HxW dimensions in the sample: {_listed(found)}")
    return found.pop()


def _listed(found: Any) -> str:
    from rushlight.vision._utils import sequence_to_str

    return sequence_to_str(sorted(found))


def _setup_number_or_seq(arg: Any, name: Any) -> list[float]:
    """[first, second] of one number or two."""
    if not isinstance(arg, (int, float, Sequence)):
        raise TypeError(f"{name} should be a number or a sequence of numbers. Got {type(arg)}")
    if isinstance(arg, (int, float)):
        return [float(arg), float(arg)]
    if len(arg) not in (1, 2):
        raise ValueError(f"If {name} is a sequence its length should be 1 or 2. Got {len(arg)}")
    for element in arg:
        if not isinstance(element, (int, float)):
            raise ValueError(f"{name} should be a sequence of numbers. Got {type(element)}")
    return [float(arg[0]), float(arg[-1])]


def _colors(fill: Any) -> Any:
    if fill is not None and not isinstance(fill, (numbers.Number, tuple, list)):
        raise TypeError("Got inappropriate fill arg, only Numbers, tuples, lists and dicts are allowed.")
    if fill is None or isinstance(fill, (int, float)):
        return fill
    several: Any = fill
    return [float(v) for v in several]


def _setup_fill_arg(fill: Any) -> Any:
    """{type: colour, "others": colour}"""
    if not isinstance(fill, dict):
        return {"others": _colors(fill)}
    for key, value in fill.items():
        fill[key] = _colors(value)
    return fill


def _get_fill(fill_dict: Any, inpt_type: Any) -> Any:
    """The colour outside for values of a type."""
    return fill_dict[inpt_type] if inpt_type in fill_dict else fill_dict.get("others")


def _check_padding_arg(padding: Any) -> None:
    good = isinstance(padding, int) or (
        isinstance(padding, (tuple, list))
        and len(padding) in (1, 2, 4)
        and all(isinstance(p, int) for p in padding)
    )
    if not good:
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.")


def _check_padding_mode_arg(padding_mode: str) -> None:
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")


def _find_labels_default_heuristic(inputs: Any) -> Any:
    """The labels of a sample: its second value, or what is called "labels" (or something with "label") in that."""
    if isinstance(inputs, (tuple, list)):
        inputs = inputs[1]
    if is_pure_tensor(inputs):
        return inputs
    if not isinstance(inputs, Mapping):
        raise ValueError(
            "When using the default labels_getter, a sample is a dictionary, "
            f"or a two-tuple whose second item is a dictionary or tensor; this is {inputs}"
        )
    for fits in (lambda key: key == "labels", lambda key: "label" in key):
        for key in inputs:
            if fits(key.lower()):
                return inputs[key]
    raise ValueError(
        "Could not infer where the labels are in the sample: no key has 'label' in its name. Pass a function of the "
        "sample as labels_getter, or None if there are no labels."
    )


def _no_labels(inputs: Any) -> None:
    return None


def _parse_labels_getter(labels_getter: Any) -> Any:
    if labels_getter == "default":
        return _find_labels_default_heuristic
    if callable(labels_getter):
        return labels_getter
    if labels_getter is None:
        return _no_labels
    raise ValueError(
        f"labels_getter should either be 'default', a callable, or None, but got {labels_getter}."
    )


def label_tensors(labels: Any, values: Any, what: Any) -> Any:
    """The labels as a tuple of tensors with one entry for each of the values, or None."""
    if labels is None:
        return None
    labels = (labels,) if isinstance(labels, rl.Tensor) else labels
    for entry in labels if isinstance(labels, (tuple, list)) else [labels]:
        if not isinstance(entry, rl.Tensor):
            raise ValueError(
                f"The labels in the input to forward() must be a tensor or None, got {type(entry)} instead."
            )
        if values.shape[0] != entry.shape[0]:
            raise ValueError(
                f"Number of {what} must match the number of labels, but shapes are {values.shape} and {entry.shape}."
            )
    return labels
