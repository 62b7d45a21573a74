"""Transforms by themselves: values that can be worked out by hand, and properties."""

import pathlib
import pickle
import sys

import numpy as np
import pytest

pytest.importorskip("PIL")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from images import array, images
from PIL import Image

import rushlight as rl
import rushlight.vision.transforms as T
import rushlight.vision.transforms.functional as F

IMAGES = images()


def test_to_tensor_scales_bytes_only():
    bytes_ = np.array([[[0, 51, 255]]], np.uint8)
    want = [0.0, 0.2, 1.0]
    for image in (bytes_, Image.fromarray(bytes_)):
        tensor = T.ToTensor()(image)
        assert tensor.shape == (3, 1, 1) and tensor.dtype == rl.float32
        assert tensor.flatten().tolist() == pytest.approx(want)
    assert F.to_tensor(np.full((2, 3), 7.5)).tolist() == [[[7.5] * 3] * 2]  # floats stay
    assert F.to_tensor(np.arange(6, dtype=np.int32).reshape(2, 3)).dtype == rl.int32
    assert F.to_tensor(Image.new("1", (2, 2), 1)).tolist() == [[[1.0, 1.0]] * 2]
    rl.set_default_dtype(rl.float64)
    try:
        assert F.to_tensor(bytes_).dtype == rl.float64
    finally:
        rl.set_default_dtype(rl.float32)
    for bad, error in (
        ("x", TypeError),
        (rl.zeros(3), TypeError),
        (np.zeros(3), ValueError),
        (np.zeros((1,) * 4), ValueError),
    ):
        with pytest.raises(error, match="pic should be"):
            F.to_tensor(bad)


def test_to_tensor_does_not_share_memory():
    image = np.zeros((2, 2, 3), np.uint8)
    tensor = F.to_tensor(image.astype(np.float32))
    tensor.add_(1)
    assert image.sum() == 0 and not np.asarray(IMAGES["RGB"]).flags.writeable
    F.pil_to_tensor(IMAGES["RGB"]).zero_()
    assert np.asarray(IMAGES["RGB"]).any()


@pytest.mark.parametrize("kind", ["RGB", "L", "RGBA", "I", "F", "LA", "I;16"])
def test_there_and_back(kind):
    image = IMAGES[kind]
    mode = None if kind in ("RGB", "L", "RGBA", "LA") else kind
    back = F.to_pil_image(F.pil_to_tensor(image).numpy().transpose(1, 2, 0), mode)
    assert back.mode == image.mode and np.array_equal(np.asarray(back), np.asarray(image))
    again = F.to_pil_image(F.to_tensor(IMAGES["RGB"]))
    assert np.array_equal(np.asarray(again), np.asarray(IMAGES["RGB"]))


def test_to_pil_image_refuses():
    for bad, error in (
        (np.zeros((2, 2, 5), np.uint8), ValueError),
        (rl.zeros(1, 2, 2, 2), ValueError),
        ("x", TypeError),
    ):
        with pytest.raises(error, match="pic should"):
            F.to_pil_image(bad)
    with pytest.raises(ValueError, match="Only modes"):
        F.to_pil_image(np.zeros((2, 2, 3), np.uint8), "RGBA")
    with pytest.raises(ValueError, match="Incorrect mode"):
        F.to_pil_image(np.zeros((2, 2, 1), np.uint8), "RGB")


def test_normalize():
    x = rl.stack([rl.full((2, 2), v) for v in (1.0, 2.0, 3.0)])
    out = T.Normalize([1.0, 1.0, 1.0], [1.0, 2.0, 4.0])(x)
    assert out[:, 0, 0].tolist() == [0.0, 0.5, 0.5] and x[0, 0, 0] == 1
    assert F.normalize(x, [1.0], [2.0], inplace=True) is x and x[2, 0, 0] == 1
    for bad, error in (
        (IMAGES["bytes"], TypeError),
        (IMAGES["RGB"], TypeError),
        (rl.zeros(2, 2), ValueError),
    ):
        with pytest.raises(error):
            F.normalize(bad, [0.5], [0.5])
    with pytest.raises(ValueError, match="division by zero"):
        F.normalize(x, [0.0], [0.0])


def test_geometry_by_hand():
    x = rl.arange(12).view(1, 3, 4).to(rl.uint8)
    assert F.hflip(x)[0, 0].tolist() == [3, 2, 1, 0] and F.vflip(x)[0, 0].tolist() == [8, 9, 10, 11]
    assert F.crop(x, 1, -1, 2, 3).tolist() == [[[0, 4, 5], [0, 8, 9]]]
    assert F.center_crop(x, 1).tolist() == [[[6]]]  # half rounds to even
    assert F.pad(x, (1, 0), padding_mode="symmetric")[0, 0].tolist() == [0, 0, 1, 2, 3, 3]
    assert F.pad(x, (1, 0), padding_mode="reflect")[0, 0].tolist() == [1, 0, 1, 2, 3, 2]
    assert F.pad(x, [0, 0, 1, 1], fill=9)[0, -1].tolist() == [9] * 5
    square = x[:, :, :3]
    assert F.rotate(square, 90)[0].tolist() == [[2, 6, 10], [1, 5, 9], [0, 4, 8]]
    assert F.rotate(x, 180).tolist() == x.flip(-1, -2).tolist()
    assert F.affine(x, 0, [1, 0], 1.0, [0, 0])[0, 0].tolist() == [0, 0, 1, 2]
    assert F.resize(x, (6, 8), T.InterpolationMode.NEAREST)[0, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert F.resize(x, 6).shape == (1, 6, 8) and F.resize(x, 6, max_size=7).shape == (1, 5, 7)
    assert F.resize(x, 3) is x
    corners = [[0, 0], [3, 0], [3, 2], [0, 2]]
    assert F.perspective(x, corners, corners, T.InterpolationMode.NEAREST).tolist() == x.tolist()
    assert [c.shape[-2:] for c in F.ten_crop(x, (2, 3))] == [(2, 3)] * 10


def test_colors_by_hand():
    red = rl.tensor([[[200]], [[100]], [[0]]], dtype=rl.uint8)
    assert F.adjust_brightness(red, 2).flatten().tolist() == [255, 200, 0]
    assert F.adjust_saturation(red, 0).flatten().tolist() == [118] * 3  # 0.2989 * 200 + 0.587 * 100
    assert F.adjust_hue(red, 0.0).flatten().tolist() == [200, 100, 0]
    assert F.adjust_hue(red, 1 / 3).flatten().tolist() == [0, 200, 100]
    assert F.invert(red).flatten().tolist() == [55, 155, 255] and F.solarize(red, 150).flatten().tolist() == [
        55,
        100,
        0,
    ]
    assert F.posterize(red, 2).flatten().tolist() == [192, 64, 0]
    ramp = rl.tensor([[[50, 100, 150]]], dtype=rl.uint8)
    assert F.autocontrast(ramp).flatten().tolist() == [0, 127, 255]
    assert F.autocontrast(rl.full((1, 2, 2), 9, dtype=rl.uint8)).unique().tolist() == [9]
    assert F.convert_image_dtype(ramp, rl.int16).flatten().tolist() == [6400, 12800, 19200]
    assert F.convert_image_dtype(rl.tensor([0.0, 0.5, 1.0]), rl.uint8).tolist() == [0, 127, 255]
    with pytest.raises(RuntimeError, match="cannot be performed safely"):
        F.convert_image_dtype(rl.zeros(3), rl.int64)
    blurred = F.gaussian_blur(rl.ones(1, 5, 5), 3, 1.0)
    assert rl.allclose(blurred, rl.ones(1, 5, 5))


@pytest.mark.parametrize("kind", ["RGB", "bytes"])
def test_identities(kind):
    image = IMAGES[kind]
    for name, value in (
        ("brightness", 1),
        ("contrast", 1),
        ("saturation", 1),
        ("sharpness", 1),
        ("gamma", 1),
    ):
        assert np.abs(array(getattr(F, f"adjust_{name}")(image, value)).astype(int) - array(image)).max() <= 1
    assert np.array_equal(array(F.invert(F.invert(image))), array(image))
    assert np.array_equal(array(F.hflip(F.hflip(image))), array(image))
    assert np.array_equal(array(F.rotate(image, 0)), array(image))


def test_frozen_draws():
    """The numbers of torchvision 0.28 for seed 0."""
    image = IMAGES["RGB"]
    rl.manual_seed(0)
    assert T.RandomCrop.get_params(image, (20, 20)) == (4, 7, 20, 20)
    rl.manual_seed(0)
    assert T.RandomResizedCrop.get_params(image, (0.08, 1.0), (0.75, 4 / 3)) == (2, 3, 25, 29)
    rl.manual_seed(0)
    order, *factors = T.ColorJitter.get_params((0.6, 1.4), (0.7, 1.3), (0.8, 1.2), (-0.1, 0.1))
    assert order.tolist() == [0, 1, 3, 2]
    assert factors == pytest.approx([0.7056244, 0.8844537, 1.0536315, -0.001981318])
    rl.manual_seed(0)
    assert T.RandomPerspective.get_params(41, 33, 0.5)[1] == [[10, 0], [31, 6], [38, 30], [4, 25]]
    rl.manual_seed(0)
    angle, moves, scale, shear = T.RandomAffine.get_params(
        [-30, 30], (0.1, 0.2), (0.7, 1.3), [-10, 10], [41, 33]
    )
    assert (angle, *moves, scale, shear[0]) == pytest.approx((-0.2246046, 2, -5, 0.7792183, -3.8515437))


def test_random_transforms_follow_the_seed():
    transform = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.ToTensor(), T.RandomErasing()])  # fmt: skip
    results = []
    for seed in (1, 1, 2):
        rl.manual_seed(seed)
        results.append(transform(IMAGES["RGB"]))
    assert rl.equal(results[0], results[1]) and not rl.equal(results[0], results[2])
    assert results[0].shape == (3, 16, 16)
    again = pickle.loads(pickle.dumps(T.Compose([T.Resize(3), T.ToTensor(), T.Normalize([0.5], [0.5])])))
    assert again(IMAGES["L"]).shape == (1, 3, 3)


def test_large_crop_is_refused():
    with pytest.raises(
        ValueError, match=r"Required crop size \(50, 50\) is larger than input image size \(33, 41\)"
    ):
        T.RandomCrop(50)(IMAGES["RGB"])


def test_transforms_are_differentiable():
    x = rl.rand(3, 12, 12, requires_grad=True)
    y = F.gaussian_blur(F.rotate(F.resize(x, 20), 30, T.InterpolationMode.BILINEAR), 3)
    F.normalize(F.adjust_contrast(y, 1.2), [0.5] * 3, [0.5] * 3).sum().backward()
    assert x.grad.abs().sum() > 0


def test_transforms_in_a_loader():
    from rushlight.vision.datasets import FakeData

    data = FakeData(6, (3, 20, 20), 3, transform=T.Compose([T.RandomCrop(16), T.ToTensor()]))
    batches = list(rl.utils.data.DataLoader(data, batch_size=3, num_workers=2))
    assert [tuple(x.shape) for x, _ in batches] == [(3, 3, 16, 16)] * 2


def test_pillow_is_loaded_late():
    import subprocess

    code = "import sys, rushlight, rushlight.vision.transforms, rushlight.vision.models as m; m.resnet18; print('PIL' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda img: F.affine(img, "x", [0, 0], 1.0, 0), TypeError, "Argument angle should be int or float"),
        (lambda img: F.affine(img, 1, [0], 1.0, 0), ValueError, "translate should be a sequence of length 2"),
        (lambda img: F.affine(img, 1, [0, 0], 0.0, 0), ValueError, "Argument scale should be positive"),
        (
            lambda img: F.affine(img, 1, [0, 0], 1.0, [1, 2, 3]),
            ValueError,
            "a sequence containing two values",
        ),
        (lambda img: F.rotate(img, 1, center=3), TypeError, "Argument center should be a sequence"),
        (lambda img: F.pad(img, [1, 2, 3]), ValueError, "not a 3 element tuple"),
        (
            lambda img: F.pad(img, 1, padding_mode="x"),
            ValueError,
            "either constant, edge, reflect or symmetric",
        ),
        (lambda img: F.center_crop(img, (1, 2, 3)), ValueError, "only two dimensions"),
        (lambda img: T.RandomCrop((99, 2))(img), ValueError, r"Required crop size \(99, 2\) is larger"),
        (
            lambda img: T.ColorJitter(hue=1),
            ValueError,
            r"should be between \(-0.5, 0.5\), but got \[-1.0, 1.0\]",
        ),
        (lambda img: T.ColorJitter(contrast=-1), ValueError, "If contrast is a single number"),
        (lambda img: T.RandomErasing(value="x"), ValueError, "it should be 'random'"),
        (lambda img: T.RandomErasing(scale=(0.1, 2)), ValueError, "Scale should be between 0 and 1"),
        (lambda img: T.ElasticTransform(fill="x"), TypeError, "fill should be int or float or a list"),
    ],
)
@pytest.mark.parametrize("kind", ["bytes", "RGB"])
def test_arguments_are_checked(kind, call, error, message):
    with pytest.raises(error, match=message):
        call(IMAGES[kind])


def test_grids_of_images_of_all_shapes():
    from rushlight.vision import utils

    grey = rl.rand(5, 4)
    for same in (grey, grey[None], grey[None, None], [grey[None]]):
        assert rl.equal(utils.make_grid(same), grey.expand(3, 5, 4))
    assert utils.make_grid(rl.rand(2, 5, 4)).shape == (2, 5, 4)
    assert utils.make_grid(rl.rand(3, 0, 4)).shape == (3, 0, 4)
