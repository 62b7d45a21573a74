"""transforms.v2: samples of images, masks and boxes; against torchvision where it is installed."""

import copy
import pathlib
import sys

import numpy as np
import pytest

pytest.importorskip("PIL")
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from images import array, difference, images
from PIL import Image

import rushlight as rl
from rushlight.vision import transforms, tv_tensors
from rushlight.vision.transforms import v2

IMAGES = images()
BOXES = [[2.0, 3, 20, 22], [10, 10, 40, 32], [0, 0, 5, 5]]


def sample(kinds=tv_tensors, library=rl, convert=lambda x: x):
    image = convert(IMAGES["bytes"])
    boxes = kinds.BoundingBoxes(library.tensor(BOXES), format="XYXY", canvas_size=(33, 41))
    return {"image": kinds.Image(image), "boxes": boxes, "mask": kinds.Mask(image[:2] // 64), "labels": library.tensor([1, 2, 3]), "text": "x"}  # fmt: skip


MESSAGES = (
    (UserWarning, "no scaling will be done", lambda: v2.ToDtype({"others": None}, scale=True)(sample()["image"])),
    (ValueError, "No dtype was specified for", lambda: v2.ToDtype({tv_tensors.Mask: rl.int64})(sample())),
    (ValueError, "two-tuple whose second item is a dict", lambda: v2.SanitizeBoundingBoxes()((sample()["image"], 1))),
    (ValueError, "Could not infer where the labels are", lambda: v2.SanitizeBoundingBoxes()({"boxes": sample()["boxes"]})),
    (ValueError, "or specifies .* size should be an int or a sequence of length 1", lambda: v2.Resize((4, 5), max_size=9)(sample()["image"])),
    (UserWarning, "deprecated and will be removed", v2.ToTensor),
    (UserWarning, "deprecated and will be removed", lambda: v2.functional.get_image_size(sample()["image"])),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "phrase", "call"), MESSAGES)
def test_phrases_that_programs_search_for(kind, phrase, call):
    catch = pytest.warns if issubclass(kind, Warning) else pytest.raises
    with catch(kind, match=phrase):
        call()


def test_kinds_of_tensors():
    image = tv_tensors.Image(rl.rand(3, 4, 5))
    assert type(image) is tv_tensors.Image and isinstance(image, rl.Tensor)
    assert type(image + 1) is rl.Tensor and type(image[0]) is rl.Tensor and type(image.float()) is rl.Tensor
    for same in (image.clone(), image.to(rl.float64), image.detach(), copy.deepcopy(image)):
        assert type(same) is tv_tensors.Image
    with tv_tensors.set_return_type("TVTensor"):
        assert type(image * 2) is tv_tensors.Image
    assert type(image * 2) is rl.Tensor
    assert tv_tensors.Image(Image.new("L", (2, 3))).shape == (1, 3, 2) and tv_tensors.Image(
        rl.rand(2, 2)
    ).shape == (1, 2, 2)
    boxes = tv_tensors.BoundingBoxes([1, 2, 3, 4], format="xywh", canvas_size=(10, 20))
    assert boxes.shape == (1, 4) and boxes.format is tv_tensors.BoundingBoxFormat.XYWH
    assert "format=BoundingBoxFormat.XYWH, canvas_size=(10, 20)" in repr(boxes) and repr(boxes).startswith(
        "BoundingBoxes("
    )
    assert (
        boxes.clone().canvas_size == (10, 20)
        and tv_tensors.wrap(boxes + 1, like=boxes).format is boxes.format
    )
    with pytest.raises(ValueError):
        tv_tensors.Video(rl.rand(3, 4, 5))


def test_only_images_of_a_sample_change():
    flipped = v2.RandomHorizontalFlip(1.0)(sample())
    assert rl.equal(flipped["image"], IMAGES["bytes"].flip(-1)) and type(flipped["image"]) is tv_tensors.Image
    assert flipped["boxes"][0].tolist() == [21, 3, 39, 22] and flipped["labels"].tolist() == [1, 2, 3]
    assert rl.equal(flipped["mask"], (IMAGES["bytes"][:2] // 64).flip(-1)) and flipped["text"] == "x"
    # Of plain tensors the first is the image, unless there is another image.
    image, other = v2.RandomHorizontalFlip(1.0)(IMAGES["floats"], rl.arange(6).view(2, 3))
    assert rl.equal(image, IMAGES["floats"].flip(-1)) and other.tolist() == [[0, 1, 2], [3, 4, 5]]
    _, kept = v2.RandomHorizontalFlip(1.0)(IMAGES["RGB"], IMAGES["floats"])
    assert rl.equal(kept, IMAGES["floats"])


def test_tutorial_pipeline():
    transform = v2.Compose([
        v2.ToImage(), v2.RandomResizedCrop(size=(16, 16), antialias=True), v2.RandomHorizontalFlip(p=0.5),
        v2.ToDtype(rl.float32, scale=True), v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ])  # fmt: skip
    out, label = transform(IMAGES["RGB"], 3)
    assert (
        out.shape == (3, 16, 16) and out.dtype == rl.float32 and label == 3 and type(out) is tv_tensors.Image
    )
    assert isinstance(v2.ToPILImage()(out * 0), Image.Image)
    unit = v2.Compose([v2.ToImage(), v2.ToDtype(rl.float32, scale=True)])(IMAGES["RGB"])
    assert difference(array(unit), array(transforms.functional.to_tensor(IMAGES["RGB"]))) < 1e-7
    with pytest.raises(TypeError, match="does not support PIL images"):
        v2.Normalize([0.5], [0.5])(IMAGES["RGB"])


def test_boxes_follow_the_image():
    image = rl.zeros(1, 40, 60, dtype=rl.uint8)
    image[:, 10:20, 15:35] = 255
    for transform in (
        v2.Resize((80, 90)), v2.CenterCrop((30, 50)), v2.CenterCrop((60, 80)), v2.Pad([3, 4, 5, 6]), v2.RandomVerticalFlip(1.0),
        v2.RandomRotation((90, 90), expand=True), v2.RandomAffine((0, 0), translate=(0.1, 0.1)), v2.RandomCrop((35, 50)),
    ):  # fmt: skip
        boxes = tv_tensors.BoundingBoxes([[15, 10, 20, 10]], format="XYWH", canvas_size=(40, 60))
        rl.manual_seed(1)
        out, moved = transform(tv_tensors.Image(image), boxes)
        assert moved.canvas_size == tuple(out.shape[-2:])
        rows, columns = (out[0] > 127).any(1).nonzero().flatten(), (out[0] > 127).any(0).nonzero().flatten()
        seen = [columns.min().item(), rows.min().item(), columns.max().item() + 1, rows.max().item() + 1]
        corners = v2.functional.convert_bounding_box_format(moved, new_format="XYXY")[0].tolist()
        assert np.abs(np.array(seen) - corners).max() <= 1, transform


def test_boxes_formats_and_sanity():
    boxes = tv_tensors.BoundingBoxes([[1.0, 2, 5, 10], [-3, 0, 100, 4]], format="XYXY", canvas_size=(8, 9))
    assert v2.ConvertBoundingBoxFormat("CXCYWH")(boxes)[0].tolist() == [3, 6, 4, 8]
    assert v2.ClampBoundingBoxes()(boxes).tolist() == [[1, 2, 5, 8], [0, 0, 9, 4]]
    with pytest.raises(ValueError, match="old_format"):
        v2.functional.convert_bounding_box_format(rl.zeros(1, 4), new_format="XYXY")
    small = tv_tensors.BoundingBoxes(
        [[1.0, 2, 5, 8], [1, 1, 1, 4], [2, 2, 20, 4]], format="XYXY", canvas_size=(8, 9)
    )
    masks = tv_tensors.Mask(rl.ones(3, 8, 9))
    out = v2.SanitizeBoundingBoxes()({"boxes": small, "labels": rl.tensor([7, 8, 9]), "masks": masks})
    assert out["labels"].tolist() == [7] and out["boxes"].shape == (1, 4) and out["masks"].shape == (1, 8, 9)
    with pytest.raises(ValueError, match="labels_getter"):
        v2.SanitizeBoundingBoxes()({"boxes": small})


def test_to_dtype_by_kind():
    out = v2.ToDtype({tv_tensors.Image: rl.float32, tv_tensors.Mask: rl.int64, "others": None}, scale=True)(
        sample()
    )
    assert out["image"].dtype == rl.float32 and out["image"].max() <= 1 and out["mask"].dtype == rl.int64
    assert out["labels"].dtype == rl.int64 and out["boxes"].dtype == rl.float32
    assert type(v2.ToPureTensor()(sample())["image"]) is rl.Tensor


def test_mixing():
    rl.manual_seed(0)
    x, y = rl.stack([rl.full((3, 8, 8), float(i)) for i in range(4)]), rl.arange(4)
    for mix in (v2.MixUp(num_classes=4), v2.CutMix(num_classes=4)):
        mixed, labels = mix(x, y)
        assert mixed.shape == x.shape and labels.shape == (4, 4) and rl.allclose(labels.sum(1), rl.ones(4))
        # Each image's mean says how much of its neighbour it holds, and so does its label.
        assert mixed[1].mean().item() == pytest.approx(labels[1, 1].item(), abs=1e-5)
    with pytest.raises(ValueError, match="labels"):
        v2.MixUp()(x, y)
    with pytest.raises(ValueError, match="batched"):
        v2.MixUp(num_classes=4)(x[0], y)


def test_containers():
    rl.manual_seed(0)
    assert v2.RandomChoice([v2.Identity(), v2.Identity()], [1, 3]).p == [0.25, 0.75]
    out = v2.RandomOrder([v2.Resize(20), v2.CenterCrop(10)])(IMAGES["bytes"])
    assert out.shape[-1] in (10, 20)
    assert v2.RandomApply([v2.Resize(5)], p=0.0)(IMAGES["bytes"]) is IMAGES["bytes"]
    assert v2.Lambda(lambda t: t.tolist(), rl.Tensor)([rl.ones(2), "x"]) == [[1.0, 1.0], "x"]
    for bad, error in ((lambda: v2.Compose([]), ValueError), (lambda: v2.Compose(3), TypeError), (lambda: v2.RandomHorizontalFlip(2), ValueError)):  # fmt: skip
        with pytest.raises(error):
            bad()


CLASSES = [
    lambda T: T.Resize(20), lambda T: T.Resize((20, 31)), lambda T: T.Resize(None, max_size=30), lambda T: T.RandomCrop(20),
    lambda T: T.RandomCrop((20, 50), padding=3, pad_if_needed=True, fill=3), lambda T: T.RandomResizedCrop(17),
    lambda T: T.RandomHorizontalFlip(), lambda T: T.RandomVerticalFlip(0.3), lambda T: T.ColorJitter(0.4, 0.3, 0.2, 0.1),
    lambda T: T.RandomGrayscale(0.5), lambda T: T.RandomRotation(30), lambda T: T.RandomRotation((10, 80), expand=True, fill=4),
    lambda T: T.RandomAffine(30, (0.1, 0.2), (0.7, 1.3), 10), lambda T: T.RandomPerspective(p=0.7), lambda T: T.GaussianBlur(5),
    lambda T: T.RandomApply([T.RandomHorizontalFlip(), T.RandomCrop(20)], 0.4), lambda T: T.RandomInvert(),
    lambda T: T.RandomChoice([T.RandomHorizontalFlip(1), T.RandomCrop(20)]), lambda T: T.RandomPosterize(3),
    lambda T: T.RandomOrder([T.RandomHorizontalFlip(), T.RandomCrop(20), T.RandomRotation(9)]), lambda T: T.RandomSolarize(128),
    lambda T: T.RandomAdjustSharpness(2), lambda T: T.RandomAutocontrast(), lambda T: T.RandomEqualize(),
    lambda T: T.RandomPhotometricDistort(), lambda T: T.RandomZoomOut(p=1), lambda T: T.RandomShortestSize([10, 20, 30], 50),
    lambda T: T.RandomResize(10, 30), lambda T: T.ScaleJitter((40, 50)), lambda T: T.Pad((1, 2)), lambda T: T.CenterCrop(50),
]  # fmt: skip
IMAGES_ONLY = [lambda T: T.AutoAugment(), lambda T: T.RandAugment(), lambda T: T.TrivialAugmentWide()]


@pytest.mark.parametrize("kind", ["RGB", "sample"])
def test_against_torchvision(theirs, kind):
    import torch
    from torchvision import tv_tensors as other_kinds
    from torchvision.transforms import v2 as other

    def as_theirs(x):
        return torch.from_numpy(x.numpy().copy())

    for make in CLASSES + (IMAGES_ONLY if kind == "RGB" else []):
        mine, their = make(v2), make(other)
        if "transforms" not in repr(their):
            assert repr(mine) == repr(their)
        for seed in range(3):
            rl.manual_seed(seed)
            torch.manual_seed(seed)
            if kind == "RGB":
                assert difference(array(mine(IMAGES["RGB"])), array(their(IMAGES["RGB"]))) == 0, mine
            else:
                got, want = mine(sample()), their(sample(other_kinds, torch, as_theirs))
                assert difference(array(got["image"]), array(want["image"])) <= 2, mine
                assert difference(array(got["boxes"]), array(want["boxes"])) <= 1e-2, mine
                assert difference(array(got["mask"]), array(want["mask"])) <= 1, mine
                # Theirs may miss the rotated image's size by one.
                assert got["boxes"].canvas_size == tuple(want["image"].shape[-2:]), mine
            assert rl.rand(1).item() == torch.rand(1).item(), mine
