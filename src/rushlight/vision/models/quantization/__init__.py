"""Models prepared for quantization, used as they are: rushlight has no quantized layers, so `quantize=True` is refused.

Parameters and their names are those of the models they derive from, so that checkpoints load into either.
"""

from __future__ import annotations

import sys
from typing import Any

from rushlight import Tensor, nn

from .._api import _BUILDERS
from ..googlenet import GoogLeNet
from ..inception import Inception3
from ..mobilenetv2 import MobileNetV2
from ..mobilenetv3 import MobileNetV3
from ..resnet import ResNet
from ..shufflenetv2 import ShuffleNetV2

__all__ = [
    "QuantizableGoogLeNet",
    "QuantizableInception3",
    "QuantizableMobileNetV2",
    "QuantizableMobileNetV3",
    "QuantizableResNet",
    "QuantizableShuffleNetV2",
]
_NO_QUANTIZATION = "rushlight has no quantized layers: build the model with quantize=False, or use bfloat16 (model.bfloat16(), amp.autocast)"


class _Quantizable:
    """A model between two layers that would quantize its input and dequantize its result."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.quant, self.dequant = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Any:
        model: Any = super()
        return self.dequant(model.forward(self.quant(x)))

    def fuse_model(self, is_qat: Any = None) -> Any:
        """Refused: there are no fused quantized layers."""
        raise NotImplementedError(f"fuse_model: {_NO_QUANTIZATION}")


class QuantizableGoogLeNet(_Quantizable, GoogLeNet):
    """GoogLeNet, prepared for quantization."""


class QuantizableInception3(_Quantizable, Inception3):
    """Inception v3, prepared for quantization."""


class QuantizableMobileNetV2(_Quantizable, MobileNetV2):
    """MobileNet v2, prepared for quantization."""


class QuantizableMobileNetV3(_Quantizable, MobileNetV3):
    """MobileNet v3, prepared for quantization."""


class QuantizableResNet(_Quantizable, ResNet):
    """Residual networks, prepared for quantization."""


class QuantizableShuffleNetV2(_Quantizable, ShuffleNetV2):
    """ShuffleNet v2, prepared for quantization."""


_NAMES = {
    QuantizableGoogLeNet: ["googlenet"],
    QuantizableInception3: ["inception_v3"],
    QuantizableMobileNetV2: ["mobilenet_v2"],
    QuantizableMobileNetV3: ["mobilenet_v3_large"],
    QuantizableResNet: ["resnet18", "resnet50", "resnext101_32x8d", "resnext101_64x4d"],
    QuantizableShuffleNetV2: [f"shufflenet_v2_x{size}" for size in ("0_5", "1_0", "1_5", "2_0")],
}


def _builder(name: Any, cls: Any) -> Any:
    plain = _BUILDERS[name]

    def build(*, weights: Any = None, progress: bool = True, quantize: bool = False, **kwargs: Any) -> Any:
        if quantize:
            raise NotImplementedError(f"{name}(quantize=True): {_NO_QUANTIZATION}")
        model = plain(weights=weights, progress=progress, **kwargs)
        model.__class__ = cls
        model.quant, model.dequant = nn.Identity(), nn.Identity()
        return model

    build.__name__ = build.__qualname__ = name
    build.__module__ = __name__
    build.__doc__ = f"{plain.__doc__} Prepared for quantization."
    build.__dict__["weights_class"] = plain.weights_class
    _BUILDERS[f"quantized_{name}"] = build
    return build


for _cls, _models in _NAMES.items():
    for _name in _models:
        setattr(sys.modules[__name__], _name, _builder(_name, _cls))
        __all__.append(_name)
