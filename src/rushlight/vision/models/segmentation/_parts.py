"""What segmentation models share: a network cut before its classifier, and heads on what it gives."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from rushlight import Tensor, nn
from rushlight.nn import functional as F

from .._utils import IntermediateLayerGetter
from ..mobilenetv3 import mobilenet_v3_large
from ..resnet import resnet50, resnet101


class SimpleSegmentationModel(nn.Module):
    """A backbone and its heads; the result has the size of the image."""

    def __init__(self, backbone: Any, classifier: Any, aux_classifier: Any = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = classifier
        self.aux_classifier = aux_classifier

    def forward(self, x: Tensor) -> Any:
        size = x.shape[-2:]
        features = self.backbone(x)
        result = OrderedDict()
        heads = {"out": ("out", self.classifier), "aux": ("aux", self.aux_classifier)}
        for name, (layer, head) in heads.items():
            if head is not None:
                result[name] = F.interpolate(
                    head(features[layer]), size=size, mode="bilinear", align_corners=False
                )
        return result


def backbone(name: Any, weights: Any, weights_backbone: Any, aux: Any) -> Any:
    """(network that gives "out" and perhaps "aux", channels of both); dilated, so that it keeps more of the size."""
    if weights is not None:
        weights_backbone = None  # the file has them
    if name == "mobilenet_v3_large":
        features = mobilenet_v3_large(weights=weights_backbone, dilated=True).features
        cuts = [0] + [i for i, b in enumerate(features) if getattr(b, "_is_cn", False)] + [len(features) - 1]
        out, mid = cuts[-1], cuts[-4]
        layers = {str(out): "out"} | ({str(mid): "aux"} if aux else {})
        return (
            IntermediateLayerGetter(features, layers),
            features[out].out_channels,
            features[mid].out_channels,
        )
    builder = {"resnet50": resnet50, "resnet101": resnet101}[name]
    network = builder(weights=weights_backbone, replace_stride_with_dilation=[False, True, True])
    layers = {"layer4": "out"} | ({"layer3": "aux"} if aux else {})
    return IntermediateLayerGetter(network, layers), 2048, 1024


def settings(weights: Any, kwargs: Any) -> tuple[Any, bool]:
    """(backbone's weights, whether there is an auxiliary head) of a builder's arguments."""
    aux = kwargs.pop("aux_loss", None)
    if weights is not None:
        if aux is False:
            raise ValueError("The parameter 'aux_loss' expected value True but got False instead.")
        aux = True
    return kwargs.pop("weights_backbone", "IMAGENET1K_V1"), bool(aux)
