"""Markers that models for quantization carry: in float form they do nothing. Quantizing itself is not here."""

import rushlight as rl
from rushlight._core.unsupported import add_placeholders as _add_placeholders
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


class QuantStub(rl.nn.Module):
    """Where a quantized model would begin: passes its input on."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """Where a quantized model would end: passes its input on."""


class QuantWrapper(rl.nn.Module):
    """A module between a QuantStub and a DeQuantStub."""

    def __init__(self, module):
        super().__init__()
        self.quant, self.dequant = QuantStub(), DeQuantStub()
        self.module = module
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))


_add_placeholders(
    globals(),
    "FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver MovingAverageMinMaxObserver ObserverBase "
    "PerChannelMinMaxObserver PlaceholderObserver QConfig QConfigMapping convert default_dynamic_qconfig "
    "default_fake_quant default_observer default_per_channel_weight_observer default_qconfig default_weight_observer "
    "disable_fake_quant disable_observer enable_fake_quant enable_observer float_qparams_weight_only_qconfig "
    "fuse_modules fuse_modules_qat get_default_qat_qconfig get_default_qconfig get_default_qconfig_mapping prepare "
    "prepare_qat propagate_qconfig_ quantize quantize_dynamic quantize_qat swap_module",
)
__getattr__ = _unsupported_attribute(__name__)
