"""Operators of vision models: against torchvision where it is installed, against plain loops everywhere."""

import math
import subprocess
import sys

import numpy as np
import pytest

import rushlight as rl
from rushlight.vision import ops


def boxes_of(n, seed=0, size=100.0):
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, size * 0.8, (n, 2))
    return rl.tensor(
        np.concatenate([corner, corner + rng.uniform(1, size * 0.4, (n, 2))], 1).astype(np.float32)
    )


def iou(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(w, 0) * max(h, 0)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.7, 1.0])
def test_nms(threshold):
    boxes, scores = boxes_of(60), rl.rand(60)
    expected = []
    for i in scores.argsort(descending=True).tolist():
        if all(iou(boxes[i].tolist(), boxes[j].tolist()) <= threshold for j in expected):
            expected.append(i)
    assert ops.nms(boxes, scores, threshold).tolist() == expected


def test_nms_of_nothing_and_of_nonsense():
    assert ops.nms(rl.zeros(0, 4), rl.zeros(0), 0.5).shape == (0,)
    assert ops.batched_nms(rl.zeros(0, 4), rl.zeros(0), rl.zeros(0), 0.5).shape == (0,)
    same = rl.tensor([[0.0, 0, 1, 1]] * 3)
    assert ops.nms(same, rl.tensor([0.1, 0.9, 0.5]), 0.5).tolist() == [1]
    flat = rl.zeros(2, 4)  # no area: nothing overlaps
    assert ops.nms(flat, rl.tensor([0.1, 0.9]), 0.5).tolist() == [1, 0]
    for boxes, scores in (
        (rl.zeros(3), rl.zeros(3)),
        (rl.zeros(3, 4), rl.zeros(2)),
        (rl.zeros(3, 5), rl.zeros(3)),
    ):
        with pytest.raises(RuntimeError, match="should be a"):
            ops.nms(boxes, scores, 0.5)


def test_batched_nms_keeps_classes_separate():
    boxes, scores, kinds = boxes_of(50, 1, 40.0), rl.rand(50), rl.randint(0, 3, (50,))
    expected = []
    for k in range(3):
        mine = (kinds == k).nonzero().squeeze(1)
        expected += mine[ops.nms(boxes[mine], scores[mine], 0.3)].tolist()
    got = ops.batched_nms(boxes, scores, kinds, 0.3).tolist()
    assert sorted(got) == sorted(expected) and got == sorted(got, key=lambda i: -scores[i].item())


def test_box_formats():
    box = rl.tensor([[1.0, 2.0, 5.0, 10.0]])
    assert ops.box_convert(box, "xyxy", "xywh").tolist() == [[1, 2, 4, 8]]
    assert ops.box_convert(box, "xyxy", "cxcywh").tolist() == [[3, 6, 4, 8]]
    for a in ("xyxy", "xywh", "cxcywh"):
        for b in ("xyxy", "xywh", "cxcywh"):
            assert ops.box_convert(ops.box_convert(box, a, b), b, a).tolist() == box.tolist()
    with pytest.raises(ValueError, match="Unsupported Bounding Box Conversions"):
        ops.box_convert(box, "xyxy", "polar")
    assert ops.box_area(box).item() == 32
    assert ops.clip_boxes_to_image(rl.tensor([[-3.0, 4, 50, 60]]), (20, 30)).tolist() == [[0, 4, 30, 20]]
    assert ops.remove_small_boxes(rl.tensor([[0.0, 0, 1, 9], [0, 0, 3, 3]]), 2).tolist() == [1]
    masks = rl.zeros(2, 5, 6, dtype=rl.bool)
    masks[0, 1:3, 2:5] = True
    masks[1, 4, 0] = True
    assert ops.masks_to_boxes(masks).tolist() == [[2, 1, 4, 2], [0, 4, 0, 4]]


def test_overlaps():
    a, b = boxes_of(4), boxes_of(5, 3)
    got = ops.box_iou(a, b)
    for i in range(4):
        for j in range(5):
            assert got[i, j].item() == pytest.approx(iou(a[i].tolist(), b[j].tolist()), abs=1e-6)
    same = ops.generalized_box_iou(a, a).diagonal()
    assert rl.allclose(same, rl.ones(4)) and (ops.generalized_box_iou(a, b) <= got + 1e-6).all()
    assert (ops.complete_box_iou(a, b) <= ops.distance_box_iou(a, b) + 1e-6).all()
    whole = rl.tensor([[0, 0, 200, 200]], dtype=rl.uint8)
    assert ops.box_area(whole).item() == 40000


def test_losses_of_boxes():
    a, b = boxes_of(6).requires_grad_(), boxes_of(6, 4)
    for name in ("generalized_box_iou", "distance_box_iou", "complete_box_iou"):
        loss = getattr(ops, name + "_loss")
        assert rl.allclose(loss(a, b), 1 - getattr(ops, name)(a, b).diagonal(), atol=1e-4), name
        loss(a, b, reduction="mean").backward()
        assert loss(rl.zeros(0, 4), rl.zeros(0, 4), reduction="mean") == 0
        with pytest.raises(ValueError, match="Invalid Value for arg 'reduction'"):
            loss(a, b, reduction="no")
    x, t = rl.randn(5, 3), rl.randint(0, 2, (5, 3)).float()
    plain = rl.nn.functional.binary_cross_entropy_with_logits(x, t)
    assert rl.allclose(ops.sigmoid_focal_loss(x, t, alpha=-1, gamma=0, reduction="mean"), plain)
    with pytest.raises(ValueError, match="alpha"):
        ops.sigmoid_focal_loss(x, t, alpha=3)


def bilinear(plane, y, x):
    h, w = plane.shape
    if y < -1 or y > h or x < -1 or x > w:
        return 0.0
    y, x = max(y, 0), max(x, 0)
    i, j = min(int(y), h - 1), min(int(x), w - 1)
    k, m = min(i + 1, h - 1), min(j + 1, w - 1)
    fy, fx = (y - i if i < h - 1 else 0), (x - j if j < w - 1 else 0)
    top = plane[i, j] * (1 - fx) + plane[i, m] * fx
    return top * (1 - fy) + (plane[k, j] * (1 - fx) + plane[k, m] * fx) * fy


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_roi_align(aligned, ratio):
    features = rl.randn(2, 3, 9, 11, dtype=rl.float64)
    rois = rl.tensor(
        [[0, 1.5, 2, 14, 13], [1, -3, -2, 30, 9], [0, 5, 5, 5.5, 5.2], [1, 2, 3, 9, 30]], dtype=rl.float64
    )
    got = ops.roi_align(features, rois, (3, 2), 0.5, ratio, aligned)
    for k, (n, *box) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (v * 0.5 - (0.5 if aligned else 0) for v in box)
        w, h = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1), max(y2 - y1, 1))
        gh, gw = (ratio, ratio) if ratio > 0 else (math.ceil(h / 3), math.ceil(w / 2))
        for i in range(3):
            for j in range(2):
                ys = [y1 + (i + (p + 0.5) / gh) * h / 3 for p in range(gh)]
                xs = [x1 + (j + (q + 0.5) / gw) * w / 2 for q in range(gw)]
                for c in range(3):
                    plane = features[int(n), c].numpy()
                    mean = sum(bilinear(plane, y, x) for y in ys for x in xs) / max(gh * gw, 1)
                    assert got[k, c, i, j].item() == pytest.approx(mean, abs=1e-9)


def test_roi_layers_take_lists_and_give_gradients():
    features = rl.randn(2, 3, 8, 8, requires_grad=True)
    listed = [rl.tensor([[0.0, 0, 7, 7]]), rl.tensor([[1.0, 1, 4, 5], [2, 2, 3, 3]])]
    flat = rl.tensor([[0.0, 0, 0, 7, 7], [1, 1, 1, 4, 5], [1, 2, 2, 3, 3]])
    align = ops.RoIAlign(2, 1.0, 2)
    assert rl.equal(align(features, listed), align(features, flat))
    align(features, flat).sum().backward()
    assert features.grad.sum().item() == pytest.approx(3 * 3 * 4, rel=1e-5)
    assert ops.roi_align(features, rl.zeros(0, 5), 2).shape == (0, 3, 2, 2)
    assert ops.roi_pool(features, [rl.zeros(0, 4)] * 2, 2).shape == (0, 3, 2, 2)
    with pytest.raises(AssertionError, match="boxes tensor shape"):
        ops.roi_align(features, rl.zeros(3, 4), 2)


def test_roi_pool():
    features = rl.randn(1, 2, 7, 9)
    rois = rl.tensor(
        [[0, 0, 0, 8, 6.0], [0, 2, 1, 5, 4], [0, -4, -3, 3, 2], [0, 6, 5, 20, 30], [0, 50, 50, 60, 60]]
    )
    got = ops.RoIPool((2, 3), 1.0)(features, rois)
    for k, (_, x1, y1, x2, y2) in enumerate(rois.tolist()):
        h, w = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i in range(2):
            for j in range(3):
                top, bottom = (min(max(int(math.floor(i * h / 2) + y1), 0), 7), min(max(int(math.ceil((i + 1) * h / 2) + y1), 0), 7))  # fmt: skip
                left, right = (min(max(int(math.floor(j * w / 3) + x1), 0), 9), min(max(int(math.ceil((j + 1) * w / 3) + x1), 0), 9))  # fmt: skip
                for c in range(2):
                    part = features[0, c, top:bottom, left:right]
                    assert got[k, c, i, j].item() == (part.max().item() if part.numel() else 0.0)


def test_deform_conv_without_movement_is_a_convolution():
    x, weight, bias = rl.randn(2, 6, 8, 9), rl.randn(4, 3, 3, 2), rl.randn(4)
    shape = rl.nn.functional.conv2d(x, weight, bias, stride=2, padding=1, groups=2).shape
    offset = rl.zeros(2, 2 * 3 * 2, *shape[2:])
    got = ops.deform_conv2d(x, offset, weight, bias, stride=2, padding=1)
    assert rl.allclose(
        got, rl.nn.functional.conv2d(x, weight, bias, stride=2, padding=1, groups=2), atol=1e-4
    )
    # Moving every position one row down is the convolution of the image moved one row up.
    offset = offset.view(2, 6, 2, *shape[2:])
    offset[:, :, 0] = 1.0
    got = ops.deform_conv2d(x, offset.view(2, 12, *shape[2:]), weight, bias, stride=2, padding=1)
    up = rl.nn.functional.pad(x, (1, 1, 0, 2))
    assert rl.allclose(got, rl.nn.functional.conv2d(up, weight, bias, stride=2, groups=2), atol=1e-4)
    half = ops.deform_conv2d(
        x, offset.view(2, 12, *shape[2:]), weight, None, 2, 1, mask=rl.full((2, 6, *shape[2:]), 0.5)
    )
    assert rl.allclose(half, (got - bias.view(1, -1, 1, 1)) / 2, atol=1e-4)
    with pytest.raises(RuntimeError, match="the shape of the offset tensor"):
        ops.deform_conv2d(x, offset, weight)
    layer = ops.DeformConv2d(6, 4, 3, padding=1)
    assert layer(x, rl.zeros(2, 18, 8, 9)).shape == (2, 4, 8, 9)


def test_blocks():
    frozen = ops.FrozenBatchNorm2d(3)
    frozen.load_state_dict(rl.nn.BatchNorm2d(3).state_dict())
    x = rl.randn(2, 3, 4, 5)
    assert rl.allclose(frozen(x), rl.nn.BatchNorm2d(3).eval()(x), atol=1e-6) and not list(frozen.parameters())
    block = ops.Conv2dNormActivation(3, 8, 5, stride=2, dilation=2)
    assert block(x).shape == (2, 8, 2, 3) and block[0].padding == (4, 4) and block[0].bias is None
    assert ops.Conv3dNormActivation(1, 2, norm_layer=None)[0].bias is not None
    assert ops.SqueezeExcitation(3, 2)(x).shape == x.shape
    assert ops.Permute([0, 2, 3, 1])(x).shape == (2, 4, 5, 3)
    assert [type(m).__name__ for m in ops.MLP(4, [8, 2])] == [
        "Linear",
        "ReLU",
        "Dropout",
        "Linear",
        "Dropout",
    ]


def test_random_depth_and_blocks():
    rl.manual_seed(0)
    x = rl.ones(1000, 2)
    y = ops.stochastic_depth(x, 0.25, "row")
    assert (
        set(y[:, 0].tolist()) == {0.0, (rl.ones(1) / 0.75).item()}
        and 0.7 < (y[:, 0] != 0).float().mean() < 0.8
    )
    assert len(set(ops.stochastic_depth(x, 0.5, "batch").flatten().tolist())) == 1
    assert ops.StochasticDepth(0.5, "row").eval()(x) is x
    assert (ops.stochastic_depth(x, 1.0, "row") == 0).all()
    with pytest.raises(ValueError, match="mode has to be"):
        ops.stochastic_depth(x, 0.5, "column")
    z = ops.drop_block2d(rl.ones(2, 3, 20, 20), 0.3, 5)
    assert 0.5 < (z == 0).float().mean() * 2.3 < 0.95 and z.mean().item() == pytest.approx(1, abs=1e-4)
    assert ops.DropBlock3d(0.2, 3)(rl.ones(1, 1, 8, 8, 8)).shape == (1, 1, 8, 8, 8)


def test_feature_pyramid():
    fpn = ops.FeaturePyramidNetwork([4, 8], 6, ops.feature_pyramid_network.LastLevelP6P7(6, 6))
    out = fpn({"a": rl.randn(1, 4, 16, 16), "b": rl.randn(1, 8, 8, 8)})
    assert {k: tuple(v.shape) for k, v in out.items()} == {
        "a": (1, 6, 16, 16),
        "b": (1, 6, 8, 8),
        "p6": (1, 6, 4, 4),
        "p7": (1, 6, 2, 2),
    }
    pool = ops.MultiScaleRoIAlign(["a", "b"], 3, 2)
    boxes = [rl.tensor([[0.0, 0, 10, 10], [0, 0, 60, 60]])]
    levels = ops.MultiScaleRoIAlign(["b"], 3, 2)(out, boxes, [(64, 64)])
    got = pool(out, boxes, [(64, 64)])
    assert got.shape == (2, 6, 3, 3) and levels.shape == got.shape
    old = {
        k.replace(".0.weight", ".weight").replace(".0.bias", ".bias"): v for k, v in fpn.state_dict().items()
    }
    assert old.keys() != fpn.state_dict().keys()
    fpn.load_state_dict(old)


def test_against_torchvision(theirs):
    import torch

    a, b = boxes_of(7), boxes_of(5, 3)
    ta, tb = torch.from_numpy(a.numpy()), torch.from_numpy(b.numpy())
    for name in ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"):
        assert np.allclose(
            getattr(ops, name)(a, b).numpy(), getattr(theirs.ops, name)(ta, tb).numpy(), atol=1e-6
        )
    for name in ("generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss"):
        assert np.allclose(
            getattr(ops, name)(a[:5], b).numpy(), getattr(theirs.ops, name)(ta[:5], tb).numpy(), atol=1e-6
        )
    x, t = rl.randn(5, 3), rl.randint(0, 2, (5, 3)).float()
    focal = theirs.ops.sigmoid_focal_loss(
        torch.from_numpy(x.numpy()), torch.from_numpy(t.numpy()), reduction="sum"
    )
    assert np.allclose(ops.sigmoid_focal_loss(x, t, reduction="sum").numpy(), focal.numpy(), rtol=1e-5)
    rl.manual_seed(3)
    torch.manual_seed(3)
    ours, other = ops.FeaturePyramidNetwork([4, 8], 6), theirs.ops.FeaturePyramidNetwork([4, 8], 6)
    for (k, v), (m, w) in zip(ours.state_dict().items(), other.state_dict().items(), strict=True):
        assert k == m and np.array_equal(v.numpy(), w.numpy())
    d = ops.drop_block2d(rl.ones(2, 3, 9, 9), 0.3, 3)
    assert np.allclose(d.numpy(), theirs.ops.drop_block2d(torch.ones(2, 3, 9, 9), 0.3, 3).numpy())
    s = ops.stochastic_depth(rl.ones(9, 3), 0.3, "row")
    assert np.allclose(s.numpy(), theirs.ops.stochastic_depth(torch.ones(9, 3), 0.3, "row").numpy())


def test_operators_by_their_names_in_the_namespace():
    x, rois = rl.arange(64.0).view(1, 1, 8, 8), rl.tensor([[0.0, 0, 0, 3, 3]])
    pooled, positions = rl.ops.torchvision.roi_pool(x, rois, 1.0, 2, 2)
    assert pooled.tolist() == [[[[9, 11], [25, 27]]]] and positions.tolist() == pooled.tolist()
    assert str(rl.ops.torchvision.roi_pool.default) == "torchvision.roi_pool.default"
    aligned = rl.ops.torchvision.roi_align(x, rois, 1.0, 2, 2, 2, True)
    rl.testing.assert_close(aligned, ops.roi_align(x, rois, 2, 1.0, 2, True))
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        rl.ops.torchvision.unknown()


def test_regions_with_channels_for_each_bin():
    x = rl.arange(4.0).view(1, 4, 1, 1).expand(1, 4, 6, 6).contiguous().requires_grad_()
    rois = [rl.tensor([[0.0, 0, 4, 4]])]
    for pool in (ops.ps_roi_pool(x, rois, 2), ops.ps_roi_align(x, rois, 2)):
        assert pool.detach().tolist() == [[[[0, 1], [2, 3]]]]
    ops.ps_roi_pool(x, rois, 2).sum().backward()
    assert x.grad[0, 0].nonzero().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert rl.isclose(x.grad.sum(), rl.tensor(4.0))


@pytest.mark.parametrize(
    "one, other, expected",
    [
        ([5.0, 5, 4, 2, 0], [5.0, 5, 4, 2, 0], 1.0),
        ([5.0, 5, 4, 2, 0], [5.0, 5, 4, 2, 90], 4 / 12),
        ([5.0, 5, 4, 2, 0], [15.0, 5, 4, 2, 30], 0.0),
        ([0.0, 0, 2, 2, 0], [0.0, 0, 2, 2, 45], 0.7071067),
        ([5.0, 5, 0, 2, 0], [5.0, 5, 4, 2, 0], 0.0),
    ],
)
def test_overlap_of_rotated_boxes(one, other, expected):
    iou = ops.box_iou(rl.tensor([one]), rl.tensor([other]), fmt="cxcywhr")
    assert iou.dtype == rl.float32 and abs(iou.item() - expected) < 1e-6


def test_boxes_of_masks():
    masks = rl.zeros(2, 5, 6)
    masks[0, 1:3, 2:5] = 1
    assert ops.masks_to_boxes(masks).tolist() == [[2, 1, 4, 2], [0, 0, 0, 0]]


@pytest.mark.parametrize("kind", [rl.quint8, rl.qint32])
def test_quantized_boxes_and_regions(kind):
    scale, zero = 2, 10
    boxes = rl.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
    scores = rl.tensor([40.0, 60, 20])
    q, s = (rl.quantize_per_tensor(x, scale, zero, kind) for x in (boxes, scores))
    assert ops.nms(q, s, 0.3).tolist() == ops.nms(q.dequantize(), s.dequantize(), 0.3).tolist() == [1, 2]
    image = rl.quantize_per_tensor(rl.arange(100.0).reshape(1, 1, 10, 10), scale, zero, kind)
    rois = rl.quantize_per_tensor(rl.tensor([[0.0, 0, 0, 8, 8], [0, 2, 2, 6, 8]]), scale, zero, kind)
    got = ops.roi_align(image, rois, 3)
    wanted = ops.roi_align(image.dequantize(), rois.dequantize(), 3)
    assert got.dtype == kind and got.q_scale() == scale and got.shape == (2, 1, 3, 3)
    assert got.int_repr().equal(rl.quantize_per_tensor(wanted, scale, zero, kind).int_repr())
    with pytest.raises(RuntimeError, match="Only one image per batch is allowed"):
        ops.roi_align(rl.cat([image, image]), rois, 3)
    with pytest.raises(RuntimeError, match="to have the same type"):
        ops.roi_align(image, rois.dequantize(), 3)


def test_each_part_is_imported_first():
    """No part of the package needs another one to be there already."""
    for part in (
        "ops",
        "models",
        "models.detection",
        "transforms.v2",
        "datasets",
        "io",
        "tv_tensors",
        "utils",
    ):
        code = f"import rushlight.vision.{part}"
        assert subprocess.run([sys.executable, "-c", code]).returncode == 0, part
