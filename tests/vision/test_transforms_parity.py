"""Transforms against torchvision: the same images, and the same random stream."""

import pathlib
import random
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("PIL")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from images import array, difference, images

import rushlight as rl
import rushlight.vision.transforms as ours
import rushlight.vision.transforms.functional as F

IMAGES = images()
CORNERS = ([[0, 0], [40, 0], [40, 32], [0, 32]], [[2, 3], [38, 1], [36, 30], [4, 29]])
FUNCTIONS = [
    ("get_dimensions",), ("hflip",), ("vflip",), ("invert",), ("autocontrast",), ("equalize",), ("rgb_to_grayscale", 3),
    *[("resize", size, mode) for size in ((20, 57), [12], 17, (50, 60)) for mode in ("NEAREST", "NEAREST_EXACT", "BILINEAR", "BICUBIC", "BOX", "LANCZOS")],
    ("resize", (20, 57), "BILINEAR", None, False), ("resize", 20, "BILINEAR", 22), ("resize", 33),
    *[("pad", p, 0, mode) for p in (3, [2], (1, 2), (1, 2, 3, 4), (-1, -2, 3, 4)) for mode in ("constant", "edge", "reflect", "symmetric")],
    ("pad", 2, 7), ("pad", 2, (1, 2, 3)), ("pad", "x"), ("pad", 1, 0, "no"),
    ("crop", 2, 3, 10, 12), ("crop", -2, -3, 10, 12), ("crop", 20, 30, 20, 20), ("crop", 50, 50, 5, 5),
    *[("center_crop", s) for s in (10, (10, 12), [8], (50, 20), (20, 50), (60, 60))],
    ("resized_crop", 2, 3, 10, 12, (20, 21)), ("five_crop", 10), ("ten_crop", (10, 11)), ("ten_crop", 9, True), ("five_crop", 99),
    *[(f"adjust_{n}", f) for n in ("brightness", "contrast", "saturation", "sharpness") for f in (0, 0.5, 1, 1.7, -1)],
    *[("adjust_hue", h) for h in (-0.5, -0.2, 0, 0.13, 0.7)], ("adjust_gamma", 2.2), ("adjust_gamma", 0.5, 1.3), ("adjust_gamma", -1),
    *[("rotate", 33, mode, expand, None, fill) for mode in ("NEAREST", "BILINEAR") for expand in (False, True) for fill in (None, 5, [1, 2, 3])],
    ("rotate", 45.5, "BILINEAR", False, (3, 4)), ("rotate", 90, "NEAREST", True),
    *[("affine", 20, (3, 4), 1.2, shear, mode, fill) for shear in (0, 5, [4, 5]) for mode in ("NEAREST", "BILINEAR") for fill in (None, 5)],
    ("affine", 20, (3, 4), 0.7, [1, 2], "NEAREST", None, [2, 3]), ("affine", 1, (1, 1), 0, 0), ("affine", 1, 1, 1, 0),
    *[("perspective", *CORNERS, mode, fill) for mode in ("NEAREST", "BILINEAR") for fill in (None, [1, 2, 3])],
    ("gaussian_blur", 3), ("gaussian_blur", [5, 3], 1.5), ("gaussian_blur", 4), ("gaussian_blur", 3, -1.0),
    ("posterize", 3), ("posterize", 9), ("solarize", 100), ("solarize", 0.5),
    ("normalize", [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]), ("normalize", [0.5], [0.0]),
]  # fmt: skip


def outcome(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(*args)
        except (TypeError, ValueError, RuntimeError, NotImplementedError, OSError) as e:
            return e
    return result if isinstance(result, list) and isinstance(result[0], int) else array(result)


def as_theirs(value):
    import torch

    return torch.from_numpy(value.numpy().copy()) if isinstance(value, rl.Tensor) else value


def check(got, want, tolerance):
    if isinstance(want, Exception) or isinstance(got, Exception):
        # Modes that tensors lack are refused with other words by PyTorch's interpolation.
        assert type(got) is type(want) or isinstance(want, NotImplementedError), (got, want)
        return
    if isinstance(want, list) and isinstance(want[0], int):
        assert got == want
        return
    assert difference(got, want) <= tolerance


def named(value, modes):
    return modes[value] if isinstance(value, str) and value.isupper() else value


@pytest.mark.parametrize("kind", ["RGB", "L", "RGBA", "P", "F", "bytes", "batch", "grey", "floats"])
def test_functions(theirs, kind):
    from torchvision.transforms import functional as other

    for name, *args in FUNCTIONS:
        mine, their = ([named(a, T.InterpolationMode) for a in args] for T in (ours, other))
        image = IMAGES[kind]
        got = outcome(getattr(F, name), image, *mine)
        want = outcome(getattr(other, name), as_theirs(image), *their)
        # Bytes are equal but where a float sum is rounded in another order.
        tolerance = {"floats": 2e-6, "F": 1e-3}.get(kind, 1 if kind in ("bytes", "batch", "grey") else 0)
        try:
            check(got, want, tolerance)
        except AssertionError as e:
            raise AssertionError(f"{name}{args}: {e}") from None


@pytest.mark.parametrize("kind", [k for k in IMAGES if k not in ("bytes", "batch", "grey", "floats")])
def test_to_tensor(theirs, kind):
    from torchvision.transforms import functional as other

    for name in ("to_tensor", "pil_to_tensor"):
        assert (
            difference(array(getattr(F, name)(IMAGES[kind])), array(getattr(other, name)(IMAGES[kind]))) == 0
        )


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "float64", "float16"])
def test_convert_image_dtype(theirs, dtype):
    import torch
    from torchvision.transforms import functional as other

    for kind in ("bytes", "floats"):
        got = outcome(F.convert_image_dtype, IMAGES[kind], getattr(rl, dtype))
        want = outcome(other.convert_image_dtype, as_theirs(IMAGES[kind]), getattr(torch, dtype))
        check(got, want, 0)


CLASSES = [
    lambda T: T.RandomCrop(20), lambda T: T.RandomCrop((20, 50), padding=3, pad_if_needed=True, fill=3),
    lambda T: T.RandomCrop(20, padding=4, padding_mode="reflect"), lambda T: T.RandomResizedCrop(17),
    lambda T: T.RandomResizedCrop((17, 12), scale=(0.5, 2), ratio=(3, 4)), lambda T: T.RandomHorizontalFlip(),
    lambda T: T.RandomVerticalFlip(0.3), lambda T: T.ColorJitter(0.4, 0.3, 0.2, 0.1), lambda T: T.ColorJitter(brightness=(0.2, 3)),
    lambda T: T.ColorJitter(), lambda T: T.RandomGrayscale(0.5), lambda T: T.Grayscale(3), lambda T: T.RandomRotation(30),
    lambda T: T.RandomRotation((10, 80), T.InterpolationMode.BILINEAR, expand=True, fill=4),
    lambda T: T.RandomAffine(30, (0.1, 0.2), (0.7, 1.3), 10), lambda T: T.RandomAffine(30),
    lambda T: T.RandomAffine((5, 10), shear=(1, 2, 3, 4), fill=5, interpolation=T.InterpolationMode.BILINEAR, center=(3, 3)),
    lambda T: T.RandomPerspective(p=0.7), lambda T: T.RandomPerspective(0.3, 1, T.InterpolationMode.NEAREST, 9),
    lambda T: T.GaussianBlur(5), lambda T: T.GaussianBlur((3, 5), 1.3),
    lambda T: T.RandomApply([T.RandomHorizontalFlip(), T.RandomCrop(20)], 0.4),
    lambda T: T.RandomChoice([T.RandomHorizontalFlip(1), T.RandomCrop(20)], [0.1, 0.9]),
    lambda T: T.RandomOrder([T.RandomHorizontalFlip(), T.RandomCrop(20), T.RandomRotation(9)]),
    lambda T: T.RandomInvert(), lambda T: T.RandomPosterize(3), lambda T: T.RandomSolarize(128),
    lambda T: T.RandomAdjustSharpness(2), lambda T: T.RandomAutocontrast(), lambda T: T.RandomEqualize(),
    lambda T: T.AutoAugment(), lambda T: T.AutoAugment(T.AutoAugmentPolicy.CIFAR10, fill=7),
    lambda T: T.AutoAugment(T.AutoAugmentPolicy.SVHN, fill=[1, 2, 3]), lambda T: T.RandAugment(),
    lambda T: T.RandAugment(3, 20, fill=1), lambda T: T.TrivialAugmentWide(), lambda T: T.ElasticTransform(sigma=2.0),
    lambda T: T.ElasticTransform(alpha=[3.0, 5.0], sigma=3.0, fill=[3]), lambda T: T.TenCrop(10), lambda T: T.Pad((1, 2)),
    lambda T: T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.2, 0.2, 0.2)]),
]  # fmt: skip
ON_FLOATS = [
    lambda T: T.Normalize((0.5, 0.4, 0.3), (0.1, 0.2, 0.3)), lambda T: T.RandomErasing(0.8),
    lambda T: T.RandomErasing(1, value="random"), lambda T: T.RandomErasing(1, value=(1, 2, 3)),
    lambda T: T.RandomErasing(1, (0.5, 1), (0.1, 9), value=2.5), lambda T: T.RandomResizedCrop(17), lambda T: T.ColorJitter(0.4, 0.3, 0.2),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["RGB", "L", "floats"])
def test_classes_draw_the_same(theirs, kind):
    """Images of Pillow are equal to the last byte: the same draws, the same operations."""
    import torch
    import torchvision.transforms as other

    for make in ON_FLOATS if kind == "floats" else CLASSES:
        mine, their = make(ours), make(other)
        assert repr(mine) == repr(their)
        for seed in range(4):
            results = []
            for transform, library, image in (
                (mine, rl, IMAGES[kind]),
                (their, torch, as_theirs(IMAGES[kind])),
            ):
                library.manual_seed(seed)
                random.seed(seed)
                results.append((outcome(transform, image), library.rand(1).item()))
            (got, mine_next), (want, their_next) = results
            assert mine_next == their_next, f"{mine}: more or fewer draws"
            try:
                check(got, want, 1e-5 if kind == "floats" else 0)
            except AssertionError as e:
                raise AssertionError(f"{mine} with seed {seed}: {e}") from None


def test_mixing_of_augmentations(theirs):
    import torch
    import torchvision.transforms as other

    for seed in range(3):
        rl.manual_seed(seed)
        torch.manual_seed(seed)
        got, want = array(ours.AugMix()(IMAGES["RGB"])), array(other.AugMix()(IMAGES["RGB"]))
        assert (np.abs(got.astype(int) - want) > 1).mean() < 0.01


def test_classes_refuse_the_same(theirs):
    import torchvision.transforms as other

    bad = [
        lambda T: T.Resize(1.5), lambda T: T.Resize((1, 2, 3)), lambda T: T.RandomCrop((1, 2, 3)), lambda T: T.Pad("x"),
        lambda T: T.Pad((1, 2, 3)), lambda T: T.ColorJitter(-1), lambda T: T.ColorJitter(hue=0.7), lambda T: T.ColorJitter("x"),
        lambda T: T.RandomRotation(-3), lambda T: T.RandomAffine(3, (2, 3)), lambda T: T.RandomAffine(3, scale=(0, 1)),
        lambda T: T.RandomAffine((1, 2, 3)), lambda T: T.RandomErasing(value="x"), lambda T: T.RandomErasing(p=2),
        lambda T: T.RandomErasing(scale=(-1, 2)), lambda T: T.GaussianBlur(4), lambda T: T.GaussianBlur(3, -1),
        lambda T: T.RandomChoice(3), lambda T: T.Lambda(3), lambda T: T.AugMix(severity=99), lambda T: T.AutoAugment("x"),
        lambda T: T.ElasticTransform(alpha=3), lambda T: T.RandomPerspective(fill={}), lambda T: T.RandomResizedCrop(3, scale=1),
    ]  # fmt: skip
    for make in bad:
        with pytest.raises((TypeError, ValueError)) as want:
            make(other)
        with pytest.raises(want.type) as got:
            make(ours)
        assert str(got.value) == str(want.value)
