"""Networks that give feature pyramids."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn

from ...ops import misc
from ...ops.feature_pyramid_network import FeaturePyramidNetwork, LastLevelMaxPool
from .. import mobilenet, resnet
from .._utils import IntermediateLayerGetter


def check_backbone(backbone: Any) -> None:
    """Refuses a network of which detectors cannot tell how wide its maps are."""
    if not hasattr(backbone, "out_channels"):
        raise ValueError(
            "backbone should contain an attribute out_channels specifying the number of output channels (assumed to be the "
            "same for all the levels)"
        )


class BackboneWithFPN(nn.Module):
    """Layers of a network, and a pyramid on what they give."""

    def __init__(
        self,
        backbone: Any,
        return_layers: Any,
        in_channels_list: Any,
        out_channels: int,
        extra_blocks: Any = None,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers=return_layers)
        self.fpn = FeaturePyramidNetwork(
            in_channels_list,
            out_channels,
            extra_blocks=extra_blocks or LastLevelMaxPool(),
            norm_layer=norm_layer,
        )
        self.out_channels = out_channels

    def forward(self, x: Tensor) -> Any:
        return self.fpn(self.body(x))


def _resnet_fpn_extractor(
    backbone: Any,
    trainable_layers: Any,
    returned_layers: Any = None,
    extra_blocks: Any = None,
    norm_layer: Any = None,
) -> BackboneWithFPN:
    """A pyramid on a ResNet whose first layers are frozen."""
    if not 0 <= trainable_layers <= 5:
        raise ValueError(f"Trainable layers should be in the range [0,5], got {trainable_layers}")
    trained = ["layer4", "layer3", "layer2", "layer1", "conv1"][:trainable_layers]
    if trainable_layers == 5:
        trained.append("bn1")
    for name, parameter in backbone.named_parameters():
        if not name.startswith(tuple(trained)):
            parameter.requires_grad_(False)
    returned = returned_layers or [1, 2, 3, 4]
    if min(returned) <= 0 or max(returned) >= 5:
        raise ValueError(f"Each returned layer should be in the range [1,4]. Got {returned}")
    layers = {f"layer{k}": str(i) for i, k in enumerate(returned)}
    widths = [backbone.inplanes // 8 * 2 ** (i - 1) for i in returned]
    return BackboneWithFPN(backbone, layers, widths, 256, extra_blocks, norm_layer)


def _validate_trainable_layers(
    is_trained: Any, trainable_backbone_layers: Any, max_value: Any, default_value: Any
) -> Any:
    if not is_trained:
        if trainable_backbone_layers is not None:
            import warnings

            warnings.warn(
                "Changing trainable_backbone_layers has no effect if neither pretrained nor pretrained_backbone have been set "
                f"to True, falling back to trainable_backbone_layers={max_value} so that all layers are trainable",
                stacklevel=3,
            )
        return max_value
    count = default_value if trainable_backbone_layers is None else trainable_backbone_layers
    if not 0 <= count <= max_value:
        raise ValueError(f"Trainable backbone layers should be in the range [0,{max_value}], got {count} ")
    return count


def resnet_fpn_backbone(
    backbone_name: Any,
    weights: Any,
    norm_layer: Any = misc.FrozenBatchNorm2d,
    trainable_layers: int = 3,
    returned_layers: Any = None,
    extra_blocks: Any = None,
) -> BackboneWithFPN:
    """A pyramid on a ResNet of this name."""
    network = vars(resnet)[backbone_name](weights=weights, norm_layer=norm_layer)
    return _resnet_fpn_extractor(network, trainable_layers, returned_layers, extra_blocks)


def _mobilenet_extractor(
    backbone: Any,
    fpn: Any,
    trainable_layers: Any,
    returned_layers: Any = None,
    extra_blocks: Any = None,
    norm_layer: Any = None,
) -> Any:
    """A pyramid on (or just the features of) a MobileNet whose first stages are frozen."""
    backbone = backbone.features
    stages = [0] + [i for i, b in enumerate(backbone) if getattr(b, "_is_cn", False)] + [len(backbone) - 1]
    if not 0 <= trainable_layers <= len(stages):
        raise ValueError(
            f"Trainable layers should be in the range [0,{len(stages)}], got {trainable_layers} "
        )
    start = len(backbone) if trainable_layers == 0 else stages[len(stages) - trainable_layers]
    for b in backbone[:start]:
        for parameter in b.parameters():
            parameter.requires_grad_(False)
    if not fpn:
        last = nn.Conv2d(backbone[-1].out_channels, 256, 1)
        body = nn.Sequential(backbone, last)
        body.out_channels = 256
        return body
    returned = returned_layers or [len(stages) - 2, len(stages) - 1]
    if min(returned) < 0 or max(returned) >= len(stages):
        raise ValueError(f"Each returned layer should be in the range [0,{len(stages) - 1}], got {returned} ")
    layers = {f"{stages[k]}": str(i) for i, k in enumerate(returned)}
    widths = [backbone[stages[k]].out_channels for k in returned]
    return BackboneWithFPN(backbone, layers, widths, 256, extra_blocks, norm_layer)


def mobilenet_backbone(*, backbone_name: Any, weights: Any, fpn: Any, norm_layer: Any=misc.FrozenBatchNorm2d, trainable_layers: int=2, returned_layers: Any=None, extra_blocks: Any=None) -> Any:  # fmt: skip
    """A pyramid on a MobileNet of this name."""
    network = vars(mobilenet)[backbone_name](weights=weights, norm_layer=norm_layer)
    return _mobilenet_extractor(network, fpn, trainable_layers, returned_layers, extra_blocks)
