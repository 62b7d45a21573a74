"""Models of torchvision: the same names, parameters, initial values and outputs."""

from __future__ import annotations

from .alexnet import *
from .convnext import *
from .densenet import *
from .efficientnet import *
from .googlenet import *
from .inception import *
from .maxvit import *
from .mnasnet import *
from .mobilenet import *
from .regnet import *
from .resnet import *
from .shufflenetv2 import *
from .squeezenet import *
from .swin_transformer import *
from .vgg import *
from .vision_transformer import *
from ._api import (
    Weights as Weights,
    WeightsEnum as WeightsEnum,
    get_model as get_model,
    get_model_builder as get_model_builder,
    get_model_weights as get_model_weights,
    get_weight as get_weight,
    list_models as list_models,
)
from . import (
    detection as detection,
    optical_flow as optical_flow,
    quantization as quantization,
    segmentation as segmentation,
    video as video,
)


TYPE_CHECKING = False
if (
    TYPE_CHECKING
):  # builders, and the enumerations of their weights, are entered while their modules are loaded
    from typing import Any

    def __getattr__(name: str) -> Any: ...
