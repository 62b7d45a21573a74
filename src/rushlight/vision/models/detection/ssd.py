"""SSD: single shot detection (Liu et al., 2015)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

from ...ops import boxes as box_ops
from .._api import entry
from ..vgg import vgg16
from ._boxes import BoxCoder
from ._one_stage import IMAGENET_MEAN, IMAGENET_STD, OneStageDetector, best_candidates, by_position
from ._utils import SSDMatcher, retrieve_out_channels
from .anchor_utils import DefaultBoxGenerator
from .backbone_utils import _validate_trainable_layers
from .transform import GeneralizedRCNNTransform

__all__ = ["SSD"]


def _xavier_init(module: Any) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, 0.0)


class SSDScoringHead(nn.Module):
    """Values for each box of each position, by a layer of its own for each map."""

    def __init__(self, module_list: Any, num_columns: Any) -> None:
        super().__init__()
        self.module_list = module_list
        self.num_columns = num_columns

    def forward(self, x: rl.Tensor) -> Any:
        return rl.cat([by_position(m(f), self.num_columns) for m, f in zip(self.module_list, x)], dim=1)


def _convolutions(in_channels: Any, num_anchors: Any, columns: Any) -> Any:
    layers = nn.ModuleList(
        nn.Conv2d(c, columns * n, kernel_size=3, padding=1) for c, n in zip(in_channels, num_anchors)
    )
    _xavier_init(layers)
    return layers


class SSDClassificationHead(SSDScoringHead):
    """The classes of boxes."""

    def __init__(self, in_channels: Any, num_anchors: Any, num_classes: int) -> None:
        super().__init__(_convolutions(in_channels, num_anchors, num_classes), num_classes)


class SSDRegressionHead(SSDScoringHead):
    """How far off boxes are."""

    def __init__(self, in_channels: Any, num_anchors: Any) -> None:
        super().__init__(_convolutions(in_channels, num_anchors, 4), 4)


class SSDHead(nn.Module):
    """Classes and boxes."""

    def __init__(self, in_channels: Any, num_anchors: Any, num_classes: int) -> None:
        super().__init__()
        self.classification_head = SSDClassificationHead(in_channels, num_anchors, num_classes)
        self.regression_head = SSDRegressionHead(in_channels, num_anchors)

    def forward(self, x: rl.Tensor) -> Any:
        return {"bbox_regression": self.regression_head(x), "cls_logits": self.classification_head(x)}


class SSD(OneStageDetector):
    """Boxes of some shapes on maps of falling size. Targets and results are those of FasterRCNN; class 0 is the background."""

    def __init__(
        self,
        backbone: Any,
        anchor_generator: Any,
        size: Any,
        num_classes: int,
        image_mean: Any = None,
        image_std: Any = None,
        head: Any = None,
        score_thresh: float = 0.01,
        nms_thresh: float = 0.45,
        detections_per_img: int = 200,
        iou_thresh: float = 0.5,
        topk_candidates: int = 400,
        positive_fraction: float = 0.25,
        **kwargs: Any,
    ) -> None:
        super().__init__(backbone)
        self.anchor_generator = anchor_generator
        self.box_coder = BoxCoder(weights=(10.0, 10.0, 5.0, 5.0))
        if head is None:
            widths = getattr(backbone, "out_channels", None) or retrieve_out_channels(backbone, size)
            per_position = anchor_generator.num_anchors_per_location()
            if len(widths) != len(per_position):
                raise ValueError(
                    f"The length of the output channels from the backbone ({len(widths)}) do not match the length of the "
                    f"anchor generator aspect ratios ({len(per_position)})"
                )
            head = SSDHead(widths, per_position, num_classes)
        self.head = head
        self.proposal_matcher = SSDMatcher(iou_thresh)
        mean, std = image_mean or IMAGENET_MEAN, image_std or IMAGENET_STD
        self.transform = GeneralizedRCNNTransform(
            min(size), max(size), mean, std, size_divisible=1, fixed_size=size, **kwargs
        )
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates
        self.neg_to_pos_ratio = (1.0 - positive_fraction) / positive_fraction

    def _losses(self, targets: Any, outputs: Any, anchors: Any, positions: Any) -> dict[str, rl.Tensor]:
        return self.compute_loss(targets, outputs, anchors, self._matches(targets, anchors))

    def compute_loss(
        self, targets: Any, head_outputs: Any, anchors: Any, matched_idxs: Any
    ) -> dict[str, rl.Tensor]:
        """Losses over the number of objects; of the background only the worst answers count, some for each object."""
        logits = head_outputs["cls_logits"]
        box_losses, wanted, count = [], [], 0
        parts = zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs)
        for target, regression, boxes, matched in parts:
            objects = rl.where(matched >= 0)[0]
            index = matched[objects]
            count += len(objects)
            truth = self.box_coder.encode_single(target["boxes"][index], boxes[objects])
            box_losses.append(F.smooth_l1_loss(regression[objects], truth, reduction="sum"))
            classes = rl.zeros((len(boxes),), dtype=target["labels"].dtype)
            classes[objects] = target["labels"][index]
            wanted.append(classes)
        wanted = rl.stack(wanted)
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(wanted.shape)
        objects = wanted > 0
        ranks = loss.masked_fill(objects, -float("inf")).sort(1, descending=True).indices.sort(1).indices
        worst = ranks < self.neg_to_pos_ratio * objects.sum(1, keepdim=True)
        count = max(1, count)
        return {
            "bbox_regression": rl.stack(box_losses).sum() / count,
            "classification": (loss[objects].sum() + loss[worst].sum()) / count,
        }

    def _detections(self, outputs: Any, anchors: Any, image_sizes: Any, features: Any) -> list[Any]:
        chances = F.softmax(outputs["cls_logits"], dim=-1)
        found = []
        for one, regression, boxes, size in zip(chances, outputs["bbox_regression"], anchors, image_sizes):
            boxes = box_ops.clip_boxes_to_image(self.box_coder.decode_single(regression, boxes), size)
            parts = []
            for label in range(1, one.shape[-1]):
                scores, best = best_candidates(one[:, label], self.score_thresh, self.topk_candidates)
                parts.append((boxes[best], scores, rl.full_like(scores, label, dtype=rl.int64)))
            found.append(self._kept(*(rl.cat(values) for values in zip(*parts))))
        return found


class SSDFeatureExtractorVGG(nn.Module):
    """Maps of VGG, and of convolutions after it that halve the size again and again."""

    def __init__(self, backbone: Any, highres: Any) -> None:
        super().__init__()
        pools = [i for i, layer in enumerate(backbone) if isinstance(layer, nn.MaxPool2d)]
        backbone[pools[2]].ceil_mode = True  # 75 pixels become 38
        self.scale_weight = nn.Parameter(rl.ones(512) * 20)
        self.features = nn.Sequential(*backbone[: pools[3]])

        def step(in_channels: Any, middle: Any, out_channels: int, **options: Any) -> Any:
            return nn.Sequential(
                nn.Conv2d(in_channels, middle, kernel_size=1),
                nn.ReLU(inplace=True),
                nn.Conv2d(middle, out_channels, **options),
                nn.ReLU(inplace=True),
            )

        half = {"kernel_size": 3, "padding": 1, "stride": 2}
        extra = nn.ModuleList(
            [
                step(1024, 256, 512, **half),
                step(512, 128, 256, **half),
                step(256, 128, 256, kernel_size=3),
                step(256, 128, 256, kernel_size=3),
            ]
        )
        if highres:
            extra.append(step(256, 128, 256, kernel_size=4))
        _xavier_init(extra)
        whole = nn.Sequential(  # VGG's linear layers as convolutions
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=False),
            nn.Conv2d(512, 1024, kernel_size=3, padding=6, dilation=6),
            nn.ReLU(inplace=True),
            nn.Conv2d(1024, 1024, kernel_size=1),
            nn.ReLU(inplace=True),
        )
        _xavier_init(whole)
        extra.insert(0, nn.Sequential(*backbone[pools[3] : -1], whole))
        self.extra = extra

    def forward(self, x: rl.Tensor) -> Any:
        x = self.features(x)
        maps = [self.scale_weight.view(1, -1, 1, 1) * F.normalize(x)]
        for block in self.extra:
            x = block(x)
            maps.append(x)
        return OrderedDict((str(i), m) for i, m in enumerate(maps))


def _vgg_extractor(backbone: Any, highres: Any, trainable_layers: Any) -> SSDFeatureExtractorVGG:
    """The maps of a VGG whose first stages are frozen."""
    backbone = backbone.features
    stages = [0] + [i for i, layer in enumerate(backbone) if isinstance(layer, nn.MaxPool2d)][:-1]
    if not 0 <= trainable_layers <= len(stages):
        raise ValueError(
            f"trainable_layers should be in the range [0, {len(stages)}]. Instead got {trainable_layers}"
        )
    start = len(backbone) if trainable_layers == 0 else stages[len(stages) - trainable_layers]
    for layer in backbone[:start]:
        for parameter in layer.parameters():
            parameter.requires_grad_(False)
    return SSDFeatureExtractorVGG(backbone, highres)


def warn_size(kwargs: Any) -> None:
    """The size of images is that of the network."""
    if "size" in kwargs:
        import warnings

        warnings.warn("The size of the model is already fixed; ignoring the parameter.", stacklevel=4)
        del kwargs["size"]


@entry
def ssd300_vgg16(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> SSD:
    """SSD on VGG-16, for images of 300 x 300."""
    warn_size(kwargs)
    first = kwargs.pop("weights_backbone", "IMAGENET1K_FEATURES")
    first = None if weights is not None else first
    trained = weights is not None or first is not None
    layers = _validate_trainable_layers(trained, kwargs.pop("trainable_backbone_layers", None), 5, 4)
    backbone = _vgg_extractor(vgg16(weights=first), False, layers)
    scales = [percent / 100 for percent in (7, 15, 33, 51, 69, 87, 105)]
    ratios = [[2], *[[2, 3]] * 3, [2], [2]]
    anchors = DefaultBoxGenerator(ratios, scales=scales, steps=[8, 16, 32, 64, 100, 300])
    # The features were trained on images of 0 to 255.
    known = {"image_mean": [0.48235, 0.45882, 0.40784], "image_std": [1.0 / 255.0] * 3}
    return SSD(backbone, anchors, (300, 300), num_classes, **{**known, **kwargs})
