"""Functionals of v2, their kernels by type, rotated boxes and points."""

import math

import pytest

import rushlight as rl
from rushlight.vision import tv_tensors
from rushlight.vision.transforms import v2
from rushlight.vision.transforms.v2 import functional as F

CORNERS = rl.tensor([[2.0, 3, 8, 3, 8, 7, 2, 7]])


def test_kernels_take_plain_tensors():
    assert F.resize_image(rl.zeros(3, 4, 4), [2, 2]).shape == (3, 2, 2)
    assert F.resize_mask(rl.ones(4, 4, dtype=rl.bool), [2, 2]).dtype == rl.bool
    assert F.resize_video(rl.zeros(5, 3, 4, 4), [2, 6]).shape == (5, 3, 2, 6)
    boxes, size = F.resize_bounding_boxes(rl.tensor([[1.0, 1, 2, 2]]), canvas_size=(4, 4), size=[8, 4])
    assert boxes.tolist() == [[1, 2, 2, 4]] and size == (8, 4)
    points, size = F.resize_keypoints(rl.tensor([[1, 1]]), [8, 4], canvas_size=(4, 4))
    assert points.tolist() == [[1, 2]] and size == (8, 4)


@pytest.mark.parametrize("lead", [(0,), (5, 0), (2, 3)])
def test_kernels_take_any_leading_dimensions(lead):
    image = rl.rand(*lead, 3, 6, 8)
    assert F.affine_image(image, 10.0, [1, 1], 1.0, [0.0, 0.0]).shape == image.shape
    assert F.pad_image(image, [1, 2], padding_mode="reflect").shape == (*lead, 3, 10, 10)
    assert F.equalize_image(image).shape == image.shape
    assert F.adjust_sharpness_image(image, 0.5).shape == image.shape
    assert F.gaussian_blur_image(image, [3, 3]).shape == image.shape


def test_a_users_type_has_its_kernel():
    class Heat(tv_tensors.TVTensor):
        pass

    @F.register_kernel(functional="resize", tv_tensor_cls=Heat)
    def resize_heat(heat, size, **options):
        assert set(options) == {"interpolation", "max_size", "antialias"}
        return tv_tensors.wrap(heat.as_subclass(rl.Tensor)[..., : size[0], : size[1]], like=heat)

    heat = rl.ones(4, 4).as_subclass(Heat)
    assert F.resize(heat, [2, 3]).shape == (2, 3)
    assert type(v2.Resize((2, 3))(heat)) is Heat
    with pytest.raises(TypeError, match="supports inputs of type"):
        F.horizontal_flip(heat)
    assert v2.RandomHorizontalFlip(p=1.0)(heat) is heat
    with pytest.raises(ValueError, match="builtin"):
        F.register_kernel(F.resize, tv_tensors.Image)


def test_rotated_formats_convert_into_each_other():
    first = F.convert_bounding_box_format(CORNERS, "XYXYXYXY", "XYWHR")
    rl.testing.assert_close(first, rl.tensor([[2.0, 3, 6, 4, 0]]))
    centre = F.convert_bounding_box_format(first, "XYWHR", "CXCYWHR")
    rl.testing.assert_close(centre, rl.tensor([[5.0, 5, 6, 4, 0]]))
    rotated = rl.tensor([[5.0, 5, 6, 4, 30]])
    corners = F.convert_bounding_box_format(rotated, "CXCYWHR", "XYXYXYXY")
    rl.testing.assert_close(F.convert_bounding_box_format(corners, "XYXYXYXY", "CXCYWHR"), rotated)
    with pytest.raises(ValueError, match="between rotated and unrotated"):
        F.convert_bounding_box_format(rotated, "CXCYWHR", "XYXY")


def test_rotated_boxes_move_with_their_image():
    boxes = tv_tensors.BoundingBoxes(CORNERS, format="XYXYXYXY", canvas_size=(10, 20))
    assert F.horizontal_flip(boxes).tolist() == [[12, 3, 18, 3, 18, 7, 12, 7]]
    rotated = F.rotate(boxes, 90, expand=True)
    assert rotated.canvas_size == (20, 10) and rotated.format == boxes.format
    angle = F.convert_bounding_box_format(rotated, new_format="XYWHR")[0, 4].item()
    assert math.isclose(angle, 90, abs_tol=1e-3)
    assert F.crop(boxes, 0, 0, 5, 5).canvas_size == (5, 5)


def test_clamping_modes():
    box = [[-2.0, 3, 8, 3, 8, 7, -2, 7]]
    boxes = tv_tensors.BoundingBoxes(box, format="XYXYXYXY", canvas_size=(10, 10), clamping_mode=None)
    assert F.clamp_bounding_boxes(boxes).tolist() == box
    assert F.clamp_bounding_boxes(boxes, clamping_mode="soft").tolist() == [[0, 3, 8, 3, 8, 7, 0, 7]]
    assert v2.SetClampingMode("hard")(boxes).clamping_mode == "hard"
    with pytest.raises(ValueError, match="clamping_mode must be"):
        tv_tensors.BoundingBoxes(box, format="XYXYXYXY", canvas_size=(10, 10), clamping_mode="half")


def test_points_move_and_are_kept():
    points = tv_tensors.KeyPoints([[1.0, 2], [9, 3]], canvas_size=(6, 10))
    assert F.horizontal_flip(points).tolist() == [[8, 2], [0, 3]]
    assert F.pad(points, [1, 2]).tolist() == [[2, 4], [10, 5]]
    cut = F.crop(points, 0, 0, 6, 5)
    assert v2.SanitizeKeyPoints()(cut).tolist() == [[1, 2]]
    assert v2.ClampKeyPoints()(cut).tolist() == [[1, 2], [4, 3]]


def test_iou_crop_marks_boxes_that_are_cut_off():
    rl.manual_seed(3)
    image = tv_tensors.Image(rl.zeros(3, 40, 40))
    boxes = tv_tensors.BoundingBoxes([[0, 0, 8, 8], [30, 30, 38, 38]], format="XYXY", canvas_size=(40, 40))
    crop = v2.RandomIoUCrop(min_scale=0.3, max_scale=0.5, sampler_options=[0.0])
    small, left = crop(image, boxes)
    assert small.shape[-1] < 40 and tuple(small.shape[-2:]) == left.canvas_size
    assert (left == 0).all(1).any()
