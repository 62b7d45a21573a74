"""Faster R-CNN and Mask R-CNN: parts by hand, training, and torchvision's numbers where it is installed."""

import numpy as np
import pytest

import rushlight as rl
from rushlight.vision import ops
from rushlight.vision.models import detection
from rushlight.vision.models.detection import _boxes, anchor_utils, image_list, roi_heads, transform

SMALL = {"weights_backbone": None, "num_classes": 4, "min_size": 64, "max_size": 96, "box_score_thresh": 0.0,
         "rpn_score_thresh": 0.0, "rpn_post_nms_top_n_train": 40, "rpn_post_nms_top_n_test": 20,
         "box_detections_per_img": 6, "box_batch_size_per_image": 16}  # fmt: skip


def scene():
    rng = np.random.default_rng(0)
    images = [rl.tensor(rng.random((3, h, w), dtype=np.float32)) for h, w in ((60, 80), (90, 70))]
    targets = [
        {"boxes": rl.tensor([[10.0, 10, 50, 55], [30, 20, 70, 50]]), "labels": rl.tensor([1, 3])},
        {"boxes": rl.tensor([[5.0, 10, 60, 80]]), "labels": rl.tensor([2])},
    ]
    for image, target in zip(images, targets):
        masks = rl.zeros(len(target["boxes"]), *image.shape[1:], dtype=rl.uint8)
        for mask, (x1, y1, x2, y2) in zip(masks, target["boxes"].long().tolist()):
            mask[y1:y2, x1:x2] = 1
        target["masks"] = masks
    return images, targets


def test_boxes_are_coded_and_decoded():
    boxes = rl.tensor([[0.0, 0, 10, 20], [5, 5, 15, 9]])
    anchors = rl.tensor([[1.0, 2, 9, 12], [0, 0, 20, 20]])
    for weights in ((1.0, 1.0, 1.0, 1.0), (10.0, 10.0, 5.0, 5.0)):
        coder = _boxes.BoxCoder(weights)
        (codes,) = coder.encode([boxes], [anchors])
        assert rl.allclose(coder.decode(codes, [anchors])[:, 0], boxes, atol=1e-4)
    assert codes[0, 0].item() == pytest.approx(0)  # the middles are at the same x
    huge = _boxes.BoxCoder((1.0,) * 4).decode(rl.full((1, 4), 100.0), [anchors[:1]])
    assert rl.isfinite(huge).all()


def test_matches_and_samples():
    overlap = rl.tensor([[0.9, 0.5, 0.1, 0.35], [0.2, 0.6, 0.05, 0.3]])
    plain = _boxes.Matcher(0.7, 0.3)(overlap)
    assert plain.tolist() == [0, -2, -1, -2]
    assert _boxes.Matcher(0.7, 0.3, True)(overlap).tolist() == [
        0,
        1,
        -1,
        -2,
    ]  # the second truth keeps its best
    positive, negative = _boxes.BalancedPositiveNegativeSampler(4, 0.5)([rl.tensor([1, 1, 1, 0, 0, 0, -1])])
    assert positive[0].sum() == 2 and negative[0].sum() == 2 and not (positive[0] & negative[0]).any()
    assert not negative[0][6] and not positive[0][6]


def test_anchors():
    make = anchor_utils.AnchorGenerator(((32,), (64,)), ((1.0,), (0.5, 2.0)))
    assert make.num_anchors_per_location() == [1, 2]
    images = image_list.ImageList(rl.zeros(1, 3, 64, 64), [(64, 64)])
    (anchors,) = make(images, [rl.zeros(1, 8, 4, 4), rl.zeros(1, 8, 2, 2)])
    assert anchors.shape == (16 + 8, 4)
    assert anchors[5].tolist() == [0, 0, 32, 32] and anchors[16].tolist() == [-45, -23, 45, 23]
    with pytest.raises(AssertionError, match="sizes of anchors"):
        make(images, [rl.zeros(1, 8, 4, 4)])


def test_transform_there_and_back():
    images, targets = scene()
    change = transform.GeneralizedRCNNTransform(32, 48, [0.0] * 3, [1.0] * 3).eval()
    batch, changed = change(images, targets)
    assert batch.image_sizes == [(32, 42), (41, 32)] and batch.tensors.shape == (2, 3, 64, 64)
    assert changed[0]["masks"].shape == (2, 32, 42) and targets[0]["masks"].shape == (2, 60, 80)
    sizes = [tuple(i.shape[-2:]) for i in images]
    back = change.postprocess([{"boxes": t["boxes"]} for t in changed], batch.image_sizes, sizes)
    assert rl.allclose(back[0]["boxes"], targets[0]["boxes"], atol=1e-4)


def test_masks_are_pasted():
    masks = rl.ones(1, 1, 4, 4)
    out = roi_heads.paste_masks_in_image(masks, rl.tensor([[2.0, 3.0, 10.0, 9.0]]), (12, 14))
    assert out.shape == (1, 1, 12, 14) and out[0, 0, 6, 6] == 1 and out[0, 0, 0, 0] == 0
    assert roi_heads.paste_masks_in_image(rl.ones(0, 1, 4, 4), rl.zeros(0, 4), (5, 6)).shape == (0, 1, 5, 6)
    outside = roi_heads.paste_masks_in_image(masks, rl.tensor([[100.0, 100, 110, 110]]), (12, 14))
    assert outside.sum() == 0


def test_training_and_detection():
    images, targets = scene()
    rl.manual_seed(0)
    model = detection.maskrcnn_resnet50_fpn(**SMALL)
    losses = model(images, targets)
    assert list(losses) == [
        "loss_classifier",
        "loss_box_reg",
        "loss_mask",
        "loss_objectness",
        "loss_rpn_box_reg",
    ]
    sum(losses.values()).backward()
    assert all(p.grad is not None for p in model.parameters()) and all(
        rl.isfinite(v) for v in losses.values()
    )
    with rl.no_grad():
        found = model.eval()(images)
    for one, image in zip(found, images):
        n = len(one["boxes"])
        assert one["masks"].shape == (n, 1, *image.shape[1:]) and one["labels"].shape == one[
            "scores"
        ].shape == (n,)
        assert (one["boxes"][:, 2:] > one["boxes"][:, :2]).all() and one["boxes"][:, 2].max() <= image.shape[
            2
        ] + 1e-3
        assert one["scores"].tolist() == sorted(one["scores"].tolist(), reverse=True)


def test_images_without_objects_and_bad_targets():
    images, targets = scene()
    model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(**SMALL)
    empty = {"boxes": rl.zeros(0, 4), "labels": rl.zeros(0, dtype=rl.int64)}
    sum(model(images, [empty, targets[1]]).values()).backward()
    with pytest.raises(AssertionError, match="targets should not be none"):
        model(images)
    with pytest.raises(AssertionError, match=r"shape \[N, 4\]"):
        model(images, [{"boxes": rl.zeros(3), "labels": rl.zeros(1)}] * 2)
    with pytest.raises(AssertionError, match="positive height and width"):
        model(images, [{"boxes": rl.tensor([[5.0, 5, 5, 9]]), "labels": rl.tensor([1])}, targets[1]])
    with pytest.raises(TypeError, match="floating type"):
        model.eval()([images[0].to(rl.uint8)])


def test_own_backbone_and_heads():
    """The fine-tuning tutorial: another classifier, another backbone."""
    from rushlight.vision import models
    from rushlight.vision.models.detection.faster_rcnn import FastRCNNPredictor
    from rushlight.vision.models.detection.mask_rcnn import MaskRCNNPredictor

    model = detection.maskrcnn_resnet50_fpn(**SMALL)
    model.roi_heads.box_predictor = FastRCNNPredictor(model.roi_heads.box_predictor.cls_score.in_features, 2)
    model.roi_heads.mask_predictor = MaskRCNNPredictor(
        model.roi_heads.mask_predictor.conv5_mask.in_channels, 256, 2
    )
    assert model.roi_heads.box_predictor.bbox_pred.out_features == 8
    backbone = models.mobilenet_v2().features
    backbone.out_channels = 1280
    anchors = anchor_utils.AnchorGenerator(sizes=((32, 64, 128),), aspect_ratios=((0.5, 1.0, 2.0),))
    pool = ops.MultiScaleRoIAlign(featmap_names=["0"], output_size=3, sampling_ratio=2)
    other = detection.FasterRCNN(backbone, 2, 64, 96, rpn_anchor_generator=anchors, box_roi_pool=pool).eval()
    with rl.no_grad():
        assert len(other(scene()[0])) == 2


def test_against_torchvision(theirs, monkeypatch):
    """The compiled suppression and pooling do not load: ours stand in for them, on both sides."""
    import torch
    import torchvision.ops.boxes
    import torchvision.ops.poolers
    from torchvision.models import detection as other

    def ours(x):
        return rl.from_numpy(x.detach().numpy().copy())

    def nms(boxes, scores, threshold):
        return torch.from_numpy(ops.nms(ours(boxes), ours(scores), threshold).numpy())

    def align(input, rois, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):
        out = ops.roi_align(ours(input), ours(rois), output_size, spatial_scale, sampling_ratio, aligned)
        return torch.from_numpy(out.numpy())

    monkeypatch.setattr(torchvision.ops.boxes, "nms", nms)
    monkeypatch.setattr(torchvision.ops.poolers, "roi_align", align)
    images, targets = scene()
    rl.manual_seed(0)
    torch.manual_seed(0)
    mine, their = (d.fasterrcnn_mobilenet_v3_large_320_fpn(**SMALL) for d in (detection, other))
    assert repr(mine) == repr(their)
    for (k, v), (m, w) in zip(mine.state_dict().items(), their.state_dict().items(), strict=True):
        assert k == m and np.array_equal(v.numpy(), w.numpy()), k

    def t(x):
        return torch.from_numpy(x.numpy().copy())

    got = mine(images, targets)
    want = their([t(i) for i in images], [{k: t(v) for k, v in one.items()} for one in targets])
    assert list(got) == list(want)
    assert [v.item() for v in got.values()] == pytest.approx(
        [v.item() for v in want.values()], rel=1e-4, abs=1e-6
    )
    with rl.no_grad(), torch.no_grad():
        got, want = mine.eval()(images), their.eval()([t(i) for i in images])
    for a, b in zip(got, want):
        assert a["labels"].tolist() == b["labels"].tolist()
        assert np.allclose(a["boxes"].numpy(), b["boxes"].numpy(), atol=1e-3)
        assert np.allclose(a["scores"].numpy(), b["scores"].numpy(), atol=1e-5)


# Losses of torchvision 0.28 for seed 0, with frozen statistics of the normalizations.
LOSSES = {
    "retinanet_resnet50_fpn": {"classification": 1.13733, "bbox_regression": 0.96306},
    "retinanet_resnet50_fpn_v2": {"classification": 1.12866, "bbox_regression": 0.90253},
    "fcos_resnet50_fpn": {"classification": 1.16712, "bbox_regression": 0.99706, "bbox_ctrness": 0.68481},
    "ssdlite320_mobilenet_v3_large": {"bbox_regression": 2.51934, "classification": 5.54518},
}


@pytest.mark.parametrize("name", LOSSES)
def test_detectors_without_proposals(name):
    rl.manual_seed(0)
    options = {} if name.startswith("ssd") else {"min_size": 64, "max_size": 96}
    model = getattr(detection, name)(weights_backbone=None, num_classes=4, **options)
    for layer in model.modules():
        if isinstance(layer, rl.nn.BatchNorm2d):
            layer.eval()
    images, targets = scene()
    losses = model(images, targets)
    assert {k: v.item() for k, v in losses.items()} == pytest.approx(LOSSES[name], rel=1e-4)
    sum(losses.values()).backward()
    assert all(p.grad is not None for p in model.parameters())
    nothing = [{"boxes": rl.zeros(0, 4), "labels": rl.zeros(0, dtype=rl.int64)}] * 2
    assert all(rl.isfinite(v) for v in model(images, nothing).values())
    with pytest.raises(AssertionError, match="targets should not be none"):
        model(images)
    model.eval()
    model.score_thresh = 0.0
    with rl.no_grad():
        found = model(images)
    for one, image in zip(found, images):
        height, width = image.shape[1:]
        assert 0 < len(one["boxes"]) == len(one["scores"]) == len(one["labels"]) <= model.detections_per_img
        assert (one["boxes"] >= 0).all() and (one["boxes"] <= rl.tensor([width, height] * 2)).all()
        assert (one["scores"].diff() <= 0).all()


def test_scripted_detectors_give_losses_and_detections(tmp_path):
    model = detection.ssdlite320_mobilenet_v3_large(weights_backbone=None, num_classes=3).eval()
    rl.jit.script(model).save(tmp_path / "detector.pt")
    with rl.no_grad():
        plain = model(scene()[0][:1])
        losses, found = rl.jit.load(tmp_path / "detector.pt")(scene()[0][:1])
    assert losses == {} and rl.equal(plain[0]["boxes"], found[0]["boxes"])


def test_gradients_reach_the_images():
    model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(**SMALL).eval()
    image = scene()[0][0].requires_grad_()
    model([image])[0]["scores"].sum().backward()
    assert image.grad.abs().sum() > 0


def test_each_truth_keeps_its_best_box():
    matcher = detection._utils.SSDMatcher(0.5)
    assert matcher(rl.tensor([[0.9, 0.1, 0.3], [0.2, 0.2, 0.4]])).tolist() == [0, -1, 1]


def test_backbones_check_the_layers_asked_for():
    make = detection.backbone_utils.mobilenet_backbone
    for layers in ([-1, 0, 1], [4, 5, 6]):
        with pytest.raises(ValueError, match="Each returned layer should be in the range"):
            make(backbone_name="mobilenet_v2", weights=None, fpn=True, returned_layers=layers)
    with pytest.raises(AssertionError, match="needs to be a match"):
        anchor_utils.AnchorGenerator(((32,), (64,)), ((1.0,), (1.0,)))(
            image_list.ImageList(rl.zeros(1, 3, 8, 8), [(8, 8)]), [rl.zeros(1, 1, 4, 4)]
        )
