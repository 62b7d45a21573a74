"""Colours."""

import rushlight as rl
from rushlight.vision.tv_tensors import BoundingBoxes, Mask

from .. import transforms as one
from .._interpolation import draw_int, uniform
from . import functional as F
from ._base import RandomApplied, Transform, is_picture, query_chw


class Grayscale(Transform):
    """Without colours, in one or three channels."""

    def __init__(self, num_output_channels=1):
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt, params):
        return F.rgb_to_grayscale(inpt, self.num_output_channels)


class RandomGrayscale(RandomApplied):
    """Without colours with probability p, in as many channels as before."""

    def __init__(self, p=0.1):
        super().__init__(p)

    def make_params(self, flat_inputs):
        return {"num_output_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt, params):
        return F.rgb_to_grayscale(inpt, **params)


class RGB(Transform):
    """In three channels."""

    def transform(self, inpt, params):
        return inpt if isinstance(inpt, (Mask, BoundingBoxes)) else F.grayscale_to_rgb(inpt)


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed by drawn factors, in a drawn order."""

    def __init__(self, brightness=None, contrast=None, saturation=None, hue=None):
        super().__init__()
        checked = one.ColorJitter(brightness or 0, contrast or 0, saturation or 0, hue or 0)
        self.brightness, self.contrast = checked.brightness, checked.contrast
        self.saturation, self.hue = checked.saturation, checked.hue

    def make_params(self, flat_inputs):
        order, *factors = one.ColorJitter.get_params(
            self.brightness, self.contrast, self.saturation, self.hue
        )
        return {"order": order.tolist(), "factors": factors}

    def transform(self, inpt, params):
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in params["order"]:
            if params["factors"][i] is not None:
                inpt = changes[i](inpt, params["factors"][i])
        return inpt


class RandomChannelPermutation(Transform):
    """Channels in a drawn order."""

    def handles(self, value):
        return is_picture(value)

    def make_params(self, flat_inputs):
        return {"permutation": rl.randperm(query_chw(flat_inputs)[0]).tolist()}

    def transform(self, inpt, params):
        return F.permute_channels(inpt, **params)


class RandomPhotometricDistort(Transform):
    """Brightness, contrast, saturation, hue and channels changed, each with probability p."""

    def __init__(
        self, brightness=(0.875, 1.125), contrast=(0.5, 1.5), saturation=(0.5, 1.5), hue=(-0.05, 0.05), p=0.5
    ):
        super().__init__()
        self.brightness, self.contrast, self.hue, self.saturation, self.p = (
            brightness,
            contrast,
            hue,
            saturation,
            p,
        )

    def handles(self, value):
        return is_picture(value)

    def make_params(self, flat_inputs):
        channels = query_chw(flat_inputs)[0]
        drawn = {n: uniform(*getattr(self, n)) if rl.rand(1) < self.p else None for n in ("brightness", "contrast", "saturation", "hue")}  # fmt: skip
        before = bool(rl.rand(()) < 0.5)
        order = rl.randperm(channels).tolist() if rl.rand(1) < self.p else None
        return {**drawn, "before": before, "order": order}

    def transform(self, inpt, params):
        if params["brightness"] is not None:
            inpt = F.adjust_brightness(inpt, params["brightness"])
        steps = [("saturation", F.adjust_saturation), ("hue", F.adjust_hue)]
        contrast = ("contrast", F.adjust_contrast)
        for name, change in [contrast, *steps] if params["before"] else [*steps, contrast]:
            if params[name] is not None:
                inpt = change(inpt, params[name])
        return inpt if params["order"] is None else F.permute_channels(inpt, params["order"])


class RandomInvert(RandomApplied):
    """The negative with probability p."""

    def transform(self, inpt, params):
        return F.invert(inpt)


class RandomEqualize(RandomApplied):
    """A flat histogram with probability p."""

    def transform(self, inpt, params):
        return F.equalize(inpt)


class RandomAutocontrast(RandomApplied):
    """Full contrast with probability p."""

    def transform(self, inpt, params):
        return F.autocontrast(inpt)


class RandomPosterize(RandomApplied):
    """Fewer bits a channel with probability p."""

    def __init__(self, bits, p=0.5):
        super().__init__(p)
        self.bits = bits

    def transform(self, inpt, params):
        return F.posterize(inpt, self.bits)


class RandomSolarize(RandomApplied):
    """Bright values inverted with probability p."""

    def __init__(self, threshold, p=0.5):
        super().__init__(p)
        self.threshold = threshold

    def transform(self, inpt, params):
        return F.solarize(inpt, self.threshold)


class RandomAdjustSharpness(RandomApplied):
    """Sharper by a factor with probability p."""

    def __init__(self, sharpness_factor, p=0.5):
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt, params):
        return F.adjust_sharpness(inpt, self.sharpness_factor)


class GaussianBlur(Transform):
    """Smoothed by a Gaussian of drawn width."""

    def __init__(self, kernel_size, sigma=(0.1, 2.0)):
        super().__init__()
        checked = one.GaussianBlur(kernel_size, sigma)
        self.kernel_size = checked.kernel_size
        self.sigma = [float(s) for s in checked.sigma]

    def make_params(self, flat_inputs):
        sigma = uniform(*self.sigma)
        return {"sigma": [sigma, sigma]}

    def transform(self, inpt, params):
        return F.gaussian_blur(inpt, self.kernel_size, **params)


class GaussianNoise(Transform):
    """With normal noise added, of floats."""

    def __init__(self, mean=0.0, sigma=0.1, clip=True):
        super().__init__()
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def handles(self, value):
        return is_picture(value)

    def transform(self, inpt, params):
        return F.gaussian_noise(inpt, self.mean, self.sigma, self.clip)


class JPEG(Transform):
    """As a JPEG file of a given or drawn quality would show it."""

    def __init__(self, quality):
        super().__init__()
        self.quality = [quality, quality] if isinstance(quality, int) else list(quality)
        if len(self.quality) != 2 or not 1 <= self.quality[0] <= self.quality[1] <= 100:
            raise ValueError(
                f"quality must be an integer from 1 to 100, or two of them in order, got {quality}"
            )

    def handles(self, value):
        return is_picture(value)

    def make_params(self, flat_inputs):
        return {"quality": draw_int(self.quality[0], self.quality[1] + 1)}

    def transform(self, inpt, params):
        from rushlight.vision.io import decode_jpeg, encode_jpeg

        if not isinstance(inpt, rl.Tensor):
            return F.to_pil_image(decode_jpeg(encode_jpeg(F.pil_to_tensor(inpt), **params)))
        return F._unwrapped(lambda x: decode_jpeg(encode_jpeg(x, **params)))(inpt)
