"""Faster R-CNN (Ren et al., 2015)."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn
from rushlight.nn import functional as F

from ..._init import he_fan_out, initialize
from ...ops.misc import Conv2dNormActivation, FrozenBatchNorm2d
from ...ops.poolers import MultiScaleRoIAlign
from .._api import entry
from ..mobilenetv3 import mobilenet_v3_large
from ..resnet import resnet50
from .anchor_utils import AnchorGenerator
from .backbone_utils import (
    _mobilenet_extractor,
    _resnet_fpn_extractor,
    _validate_trainable_layers,
    check_backbone,
)
from .generalized_rcnn import GeneralizedRCNN
from .roi_heads import RoIHeads
from .rpn import RegionProposalNetwork, RPNHead
from .transform import GeneralizedRCNNTransform

__all__ = ["FasterRCNN"]


def _default_anchorgen() -> AnchorGenerator:
    sizes = ((32,), (64,), (128,), (256,), (512,))
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * len(sizes))


class FasterRCNN(GeneralizedRCNN):
    """Proposes regions, classifies them and mends their boxes. In training it takes targets {"boxes", "labels"} and gives
    losses; in evaluation it gives {"boxes", "labels", "scores"} of each image.
    """

    def __init__(
        self,
        backbone: Any,
        num_classes: Any = None,
        min_size: Any = 800,
        max_size: Any = 1333,
        image_mean: Any = None,
        image_std: Any = None,
        rpn_anchor_generator: Any = None,
        rpn_head: Any = None,
        rpn_pre_nms_top_n_train: int = 2000,
        rpn_pre_nms_top_n_test: int = 1000,
        rpn_post_nms_top_n_train: int = 2000,
        rpn_post_nms_top_n_test: int = 1000,
        rpn_nms_thresh: float = 0.7,
        rpn_fg_iou_thresh: float = 0.7,
        rpn_bg_iou_thresh: float = 0.3,
        rpn_batch_size_per_image: int = 256,
        rpn_positive_fraction: float = 0.5,
        rpn_score_thresh: float = 0.0,
        box_roi_pool: Any = None,
        box_head: Any = None,
        box_predictor: Any = None,
        box_score_thresh: float = 0.05,
        box_nms_thresh: float = 0.5,
        box_detections_per_img: int = 100,
        box_fg_iou_thresh: float = 0.5,
        box_bg_iou_thresh: float = 0.5,
        box_batch_size_per_image: int = 512,
        box_positive_fraction: float = 0.25,
        bbox_reg_weights: Any = None,
        **kwargs: Any,
    ) -> None:
        check_backbone(backbone)
        if num_classes is not None and box_predictor is not None:
            raise ValueError("num_classes should be None when box_predictor is specified")
        if num_classes is None and box_predictor is None:
            raise ValueError("num_classes should not be None when box_predictor is not specified")
        width = backbone.out_channels
        anchors = rpn_anchor_generator or _default_anchorgen()
        rpn = RegionProposalNetwork(
            anchors,
            rpn_head or RPNHead(width, anchors.num_anchors_per_location()[0]),
            rpn_fg_iou_thresh,
            rpn_bg_iou_thresh,
            rpn_batch_size_per_image,
            rpn_positive_fraction,
            {"training": rpn_pre_nms_top_n_train, "testing": rpn_pre_nms_top_n_test},
            {"training": rpn_post_nms_top_n_train, "testing": rpn_post_nms_top_n_test},
            rpn_nms_thresh,
            score_thresh=rpn_score_thresh,
        )
        pool = box_roi_pool or MultiScaleRoIAlign(["0", "1", "2", "3"], output_size=7, sampling_ratio=2)
        box_head = box_head or TwoMLPHead(width * pool.output_size[0] ** 2, 1024)
        box_predictor = box_predictor or FastRCNNPredictor(1024, num_classes)
        roi_heads = RoIHeads(
            pool,
            box_head,
            box_predictor,
            box_fg_iou_thresh,
            box_bg_iou_thresh,
            box_batch_size_per_image,
            box_positive_fraction,
            bbox_reg_weights,
            box_score_thresh,
            box_nms_thresh,
            box_detections_per_img,
        )
        mean, std = image_mean or [0.485, 0.456, 0.406], image_std or [0.229, 0.224, 0.225]
        super().__init__(
            backbone, rpn, roi_heads, GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        )


class TwoMLPHead(nn.Module):
    """Two linear layers on a region."""

    def __init__(self, in_channels: Any, representation_size: Any) -> None:
        super().__init__()
        inputs = (in_channels, representation_size)
        self.fc6, self.fc7 = (nn.Linear(features, representation_size) for features in inputs)

    def forward(self, x: Tensor) -> Any:
        return F.relu(self.fc7(F.relu(self.fc6(x.flatten(start_dim=1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """Convolutions and linear layers on a region of (channels, height, width)."""

    def __init__(self, input_size: Any, conv_layers: Any, fc_layers: Any, norm_layer: Any = None) -> None:
        channels, height, width = input_size
        blocks: list[nn.Module] = []
        for out in conv_layers:
            blocks.append(Conv2dNormActivation(channels, out, norm_layer=norm_layer))
            channels = out
        blocks.append(nn.Flatten())
        features = channels * height * width
        for out in fc_layers:
            blocks += [nn.Linear(features, out), nn.ReLU(inplace=True)]
            features = out
        super().__init__(*blocks)
        initialize(self, conv=he_fan_out)


class FastRCNNPredictor(nn.Module):
    """The class of a region, and a box for each class."""

    def __init__(self, in_channels: Any, num_classes: int) -> None:
        super().__init__()
        outputs = (num_classes, 4 * num_classes)
        self.cls_score, self.bbox_pred = (nn.Linear(in_channels, features) for features in outputs)

    def forward(self, x: Tensor) -> Any:
        if x.dim() == 4 and list(x.shape[2:]) != [1, 1]:
            raise ValueError(
                f"x has the wrong shape, expecting the last two dimensions to be [1,1] instead of {list(x.shape[2:])}"
            )
        x = x.flatten(start_dim=1)
        return self.cls_score(x), self.bbox_pred(x)


def trainable_resnet50(weights: Any, kwargs: Any) -> tuple[Any | None, Any]:
    """(weights of the backbone, how many of its layers are trained) of a builder's arguments"""
    first = kwargs.pop("weights_backbone", "IMAGENET1K_V1")
    first = None if weights is not None else first
    trained = weights is not None or first is not None
    return first, _validate_trainable_layers(trained, kwargs.pop("trainable_backbone_layers", None), 5, 3)


def resnet50_pyramid(
    weights: Any, kwargs: Any, returned_layers: Any = None, extra_blocks: Any = lambda: None
) -> Any:
    """The backbone of a builder's arguments; what is trained already has frozen normalization and first layers."""
    first, layers = trainable_resnet50(weights, kwargs)
    trained = weights is not None or first is not None
    backbone = resnet50(weights=first, norm_layer=FrozenBatchNorm2d if trained else nn.BatchNorm2d)
    return _resnet_fpn_extractor(backbone, layers, returned_layers, extra_blocks())


def resnet50_v2_parts(weights: Any, kwargs: Any) -> Any:
    """(backbone, arguments) of the second versions (Li et al., 2021): normalized pyramid and heads, deeper proposals."""
    first, layers = trainable_resnet50(weights, kwargs)
    backbone = _resnet_fpn_extractor(resnet50(weights=first), layers, norm_layer=nn.BatchNorm2d)
    anchors = _default_anchorgen()
    return backbone, {
        "rpn_anchor_generator": anchors,
        "rpn_head": RPNHead(backbone.out_channels, anchors.num_anchors_per_location()[0], conv_depth=2),
        "box_head": FastRCNNConvFCHead(
            (backbone.out_channels, 7, 7), [256, 256, 256, 256], [1024], norm_layer=nn.BatchNorm2d
        ),
    }


@entry
def fasterrcnn_resnet50_fpn(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> Any:
    """Faster R-CNN on a pyramid of ResNet-50."""
    model = FasterRCNN(resnet50_pyramid(weights, kwargs), num_classes=num_classes, **kwargs)
    return without_eps(model) if weights is not None else model


@entry
def fasterrcnn_resnet50_fpn_v2(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> FasterRCNN:
    """Faster R-CNN with more and normalized layers in its heads."""
    backbone, parts = resnet50_v2_parts(weights, kwargs)
    return FasterRCNN(backbone, num_classes=num_classes, **parts, **kwargs)


def without_eps(model: Any) -> Any:
    """The published weights were trained with normalizations that add nothing to the variance."""
    for m in model.modules():
        if isinstance(m, FrozenBatchNorm2d):
            m.eps = 0.0
    return model


def _mobilenet(weights: Any, num_classes: int, kwargs: Any, **defaults: Any) -> FasterRCNN:
    first = kwargs.pop("weights_backbone", "IMAGENET1K_V1")
    first = None if weights is not None else first
    trained = weights is not None or first is not None
    layers = _validate_trainable_layers(trained, kwargs.pop("trainable_backbone_layers", None), 6, 3)
    norm = FrozenBatchNorm2d if trained else nn.BatchNorm2d
    backbone = _mobilenet_extractor(mobilenet_v3_large(weights=first, norm_layer=norm), True, layers)
    anchors = AnchorGenerator(((32, 64, 128, 256, 512),) * 3, ((0.5, 1.0, 2.0),) * 3)
    return FasterRCNN(backbone, num_classes, rpn_anchor_generator=anchors, **{**defaults, **kwargs})


@entry
def fasterrcnn_mobilenet_v3_large_fpn(
    weights: Any = None, num_classes: int = 91, **kwargs: Any
) -> FasterRCNN:
    """Faster R-CNN on a pyramid of MobileNet v3."""
    return _mobilenet(weights, num_classes, kwargs, rpn_score_thresh=0.05)


@entry
def fasterrcnn_mobilenet_v3_large_320_fpn(
    weights: Any = None, num_classes: int = 91, **kwargs: Any
) -> FasterRCNN:
    """Faster R-CNN on a pyramid of MobileNet v3, for small images."""
    small = {"min_size": 320, "max_size": 640, "rpn_pre_nms_top_n_test": 150, "rpn_post_nms_top_n_test": 150}
    return _mobilenet(weights, num_classes, kwargs, rpn_score_thresh=0.05, **small)
