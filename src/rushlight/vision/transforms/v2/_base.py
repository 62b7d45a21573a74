"""What transforms of v2 share: samples of any structure, in which each value is treated as what it is."""

import enum

import rushlight as rl
from rushlight.utils import _pytree
from rushlight.vision.tv_tensors import BoundingBoxes, Image, Mask, Video

from ..._pil import is_pil
from . import functional as F

PICTURES = (Image, Video)


def is_picture(value):
    return isinstance(value, PICTURES) or is_pil(value) or F.is_pure_tensor(value)


def query_size(flat):
    """(height, width) of the picture, mask or boxes of a sample."""
    sizes = {tuple(F.get_size(v)) for v in flat if is_picture(v) or isinstance(v, (Mask, BoundingBoxes))}
    if not sizes:
        raise TypeError("No image, video, mask, bounding box or keypoint was found in the sample")
    if len(sizes) > 1:
        raise ValueError(f"Found multiple HxW dimensions in the sample: {sorted(sizes)}")
    return sizes.pop()


def query_chw(flat):
    """(channels, height, width) of the picture of a sample."""
    found = {tuple(F.get_dimensions(v)) for v in flat if is_picture(v)}
    if not found:
        raise TypeError("No image or video was found in the sample")
    if len(found) > 1:
        raise ValueError(f"Found multiple CxHxW dimensions in the sample: {sorted(found)}")
    return found.pop()


class Transform(rl.nn.Module):
    """A transform of samples. Subclasses say how one value changes: transform(inpt, params), with params of one draw from
    make_params(flat_inputs).
    """

    def check_inputs(self, flat_inputs):
        """Refuses samples that can't be transformed."""

    def make_params(self, flat_inputs):
        """What is drawn once for a sample."""
        return {}

    def transform(self, inpt, params):
        raise NotImplementedError

    def handles(self, value):
        """Whether a value of a sample is changed at all."""
        return is_picture(value) or isinstance(value, (Mask, BoundingBoxes))

    def _chosen(self, flat):
        """Which values are changed: of plain tensors the first, and only where there is no other picture."""
        other = any(isinstance(v, PICTURES) or is_pil(v) for v in flat)
        chosen, first = [], True
        for value in flat:
            good = self.handles(value)
            if good and F.is_pure_tensor(value):
                good, first = first and not other, False
            chosen.append(good)
        return chosen

    def forward(self, *inputs):
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = _pytree.tree_flatten(sample)
        self.check_inputs(flat)
        return self._changed(flat, spec)

    def _changed(self, flat, spec):
        chosen = self._chosen(flat)
        params = self.make_params([v for v, good in zip(flat, chosen) if good])
        out = [self.transform(v, params) if good else v for v, good in zip(flat, chosen)]
        return _pytree.tree_unflatten(out, spec)

    def extra_repr(self):
        shown = []
        for name, value in vars(self).items():
            if name.startswith("_") or name == "training":
                continue
            if isinstance(value, (bool, int, float, str, tuple, list, enum.Enum)):
                text = value.value if isinstance(value, F.InterpolationMode) else value
                shown.append(f"{name}={text}")
        return ", ".join(shown)


class RandomApplied(Transform):
    """A transform that happens with probability p."""

    def __init__(self, p=0.5):
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        super().__init__()
        self.p = p

    def forward(self, *inputs):
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = _pytree.tree_flatten(sample)
        self.check_inputs(flat)
        if rl.rand(1) >= self.p:
            return sample
        return self._changed(flat, spec)


def fill_for(fill, value):
    """The colour outside for a value: fill may be {kind: colour, "others": colour}."""
    if isinstance(fill, dict):
        fill = next(
            (c for kind, c in fill.items() if isinstance(kind, type) and isinstance(value, kind)),
            fill.get("others"),
        )
    if isinstance(fill, (int, float)) and isinstance(value, rl.Tensor) and not isinstance(value, Mask):
        return [float(fill)]
    if isinstance(value, Mask) and isinstance(fill, (list, tuple)):
        return 0
    return fill
