"""What prepares pictures for trained weights."""

import rushlight as rl

from . import functional as F
from ._interpolation import InterpolationMode

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's


def _as_float_tensor(img):
    return F.convert_image_dtype(img if isinstance(img, rl.Tensor) else F.pil_to_tensor(img), rl.float)


class ImageClassification(rl.nn.Module):
    """The middle of the resized picture, as floats with the mean and deviation of the training."""

    def __init__(
        self,
        *,
        crop_size,
        resize_size=256,
        mean=_MEAN,
        std=_STD,
        interpolation=InterpolationMode.BILINEAR,
        antialias=True,
    ):
        super().__init__()
        self.crop_size = [crop_size]
        self.resize_size = [resize_size]
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = InterpolationMode(interpolation)
        self.antialias = antialias

    def forward(self, img):
        img = F.resize(img, self.resize_size, interpolation=self.interpolation, antialias=self.antialias)
        img = F.center_crop(img, self.crop_size)
        return F.normalize(_as_float_tensor(img), mean=self.mean, std=self.std)

    def __repr__(self):
        names = ("crop_size", "resize_size", "mean", "std", "interpolation")
        return "".join([f"{type(self).__name__}(", *(f"\n    {n}={getattr(self, n)}" for n in names), "\n)"])


class SemanticSegmentation(rl.nn.Module):
    """The resized picture, as floats with the mean and deviation of the training."""

    def __init__(
        self, *, resize_size, mean=_MEAN, std=_STD, interpolation=InterpolationMode.BILINEAR, antialias=True
    ):
        super().__init__()
        self.resize_size = [resize_size] if resize_size is not None else None
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = InterpolationMode(interpolation)
        self.antialias = antialias

    def forward(self, img):
        if self.resize_size is not None:
            img = F.resize(img, self.resize_size, interpolation=self.interpolation, antialias=self.antialias)
        return F.normalize(_as_float_tensor(img), mean=self.mean, std=self.std)

    def __repr__(self):
        names = ("resize_size", "mean", "std", "interpolation")
        return "".join([f"{type(self).__name__}(", *(f"\n    {n}={getattr(self, n)}" for n in names), "\n)"])


class ObjectDetection(rl.nn.Module):
    """The picture as floats in [0, 1]; detectors resize and normalize by themselves."""

    def forward(self, img):
        return _as_float_tensor(img)

    def __repr__(self):
        return f"{type(self).__name__}()"


class VideoClassification(rl.nn.Module):
    """Frames (..., T, C, H, W) resized, their middle, normalized: (..., C, T, H, W)."""

    def __init__(
        self,
        *,
        crop_size,
        resize_size,
        mean=(0.43216, 0.394666, 0.37645),
        std=(0.22803, 0.22145, 0.216989),
        interpolation=F.InterpolationMode.BILINEAR,
    ):
        super().__init__()
        self.crop_size, self.resize_size = list(crop_size), list(resize_size)
        self.mean, self.std, self.interpolation = list(mean), list(std), interpolation

    def forward(self, vid):
        frames = vid.reshape(-1, *vid.shape[-3:])
        frames = F.resize(frames, self.resize_size, interpolation=self.interpolation, antialias=False)
        frames = F.convert_image_dtype(F.center_crop(frames, self.crop_size), rl.float32)
        frames = F.normalize(frames, mean=self.mean, std=self.std)
        return frames.view(*vid.shape[:-2], *self.crop_size).transpose(-4, -3)

    def __repr__(self):
        names = ("crop_size", "resize_size", "mean", "std", "interpolation")
        return "".join([f"{type(self).__name__}(", *(f"\n    {n}={getattr(self, n)}" for n in names), "\n)"])


class OpticalFlow(rl.nn.Module):
    """Two images in [-1, 1]."""

    def forward(self, img1, img2):
        images = (_as_float_tensor(img) for img in (img1, img2))
        return tuple(F.normalize(img, mean=[0.5] * 3, std=[0.5] * 3).contiguous() for img in images)

    def __repr__(self):
        return f"{type(self).__name__}()"
