"""Augmentation by learned and by random policies. The draws are those of torchvision's v2, which differ from the first version's."""

import rushlight as rl
from rushlight.vision.tv_tensors import BoundingBoxes, Mask

from .. import autoaugment as one
from . import functional as F
from ._base import Transform, fill_for, is_picture


def _draw(n):
    return int(rl.randint(n, ()).item())


class _Policy(Transform):
    """One picture of a sample is changed."""

    def __init__(self, interpolation, fill):
        super().__init__()
        self.interpolation = F.mode(interpolation)
        self.fill = fill

    def handles(self, value):
        return is_picture(value)

    def check_inputs(self, flat_inputs):
        for value in flat_inputs:
            if isinstance(value, (BoundingBoxes, Mask)):
                raise TypeError(
                    f"Inputs of type {type(value).__name__} are not supported by {type(self).__name__}()"
                )

    def transform(self, inpt, params):
        fill = fill_for(self.fill, inpt)
        return F._unwrapped(lambda x: self.changed(x, F.get_size(x), fill))(inpt)

    def changed(self, img, size, fill):
        raise NotImplementedError

    def apply(self, img, name, magnitudes, level, signed, fill):
        magnitude = float(magnitudes[level].item()) if magnitudes.ndim > 0 and level is not None else 0.0
        if signed and rl.rand(()) <= 0.5:
            magnitude *= -1.0
        if isinstance(img, rl.Tensor) and name in ("Posterize", "Solarize", "Equalize"):  # floats too, in v2
            if name == "Equalize":
                return F.equalize(img)
            if name == "Posterize":
                return F.posterize(img, int(magnitude))
            return F.solarize(img, magnitude / 255.0 if img.is_floating_point() else magnitude)
        return one.apply_change(img, name, magnitude, self.interpolation, fill)


class AutoAugment(_Policy):
    """Two changes of a learned policy, drawn."""

    def __init__(self, policy=one.AutoAugmentPolicy.IMAGENET, interpolation="nearest", fill=None):
        super().__init__(interpolation, fill)
        self.policy = policy
        self._space = (one.AutoAugment(policy),)  # in a tuple: no child module

    def changed(self, img, size, fill):
        space = self._space[0]._augmentation_space(10, size)
        policies = self._space[0].policies
        for name, p, level in policies[_draw(len(policies))]:
            if rl.rand(()) <= p:
                img = self.apply(img, name, space[name][0], level, space[name][1], fill)
        return img


class RandAugment(_Policy):
    """num_ops drawn changes of one magnitude."""

    def __init__(self, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation="nearest", fill=None):
        super().__init__(interpolation, fill)
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def changed(self, img, size, fill):
        space = one.RandAugment()._augmentation_space(self.num_magnitude_bins, size)
        for _ in range(self.num_ops):
            name = list(space)[_draw(len(space))]
            img = self.apply(img, name, space[name][0], self.magnitude, space[name][1], fill)
        return img


class TrivialAugmentWide(_Policy):
    """One drawn change of a drawn magnitude."""

    def __init__(self, num_magnitude_bins=31, interpolation="nearest", fill=None):
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def changed(self, img, size, fill):
        space = one.TrivialAugmentWide()._augmentation_space(self.num_magnitude_bins)
        name = list(space)[_draw(len(space))]
        magnitudes, signed = space[name]
        level = _draw(self.num_magnitude_bins) if magnitudes.ndim > 0 else None
        return self.apply(img, name, magnitudes, level, signed, fill)


class AugMix(_Policy):
    """The picture mixed with several chains of drawn changes of it."""

    def __init__(
        self,
        severity=3,
        mixture_width=3,
        chain_depth=-1,
        alpha=1.0,
        all_ops=True,
        interpolation="bilinear",
        fill=None,
    ):
        super().__init__(interpolation, fill)
        self._mix = one.AugMix(
            severity, mixture_width, chain_depth, alpha, all_ops, F.mode(interpolation), fill
        )
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def changed(self, img, size, fill):
        return self._mix[0](img)
