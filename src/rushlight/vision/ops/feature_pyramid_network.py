"""Feature pyramids (Lin et al., 2016)."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any

from rushlight import nn
from rushlight.nn import functional as F

from .._init import initialize
from .misc import Conv2dNormActivation

_uniform = partial(nn.init.kaiming_uniform_, a=1)


class ExtraFPNBlock(nn.Module):
    """Further levels of a pyramid: (results, inputs, names) -> (results, names)."""

    def forward(self, results: Any, x: Any, names: Any) -> Any:
        raise NotImplementedError


class LastLevelMaxPool(ExtraFPNBlock):
    """One more level: every second pixel of the last."""

    def forward(self, x, y, names):  # type: ignore[override]  # torchvision's own names
        return [*x, F.max_pool2d(x[-1], kernel_size=1, stride=2, padding=0)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two more levels by strided convolutions."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        inputs = (in_channels, out_channels)
        self.p6, self.p7 = (nn.Conv2d(channels, out_channels, 3, 2, 1) for channels in inputs)
        initialize(self, conv=_uniform)
        self.use_P5 = in_channels == out_channels

    def forward(self, p, c, names):
        p6 = self.p6(p[-1] if self.use_P5 else c[-1])
        return [*p, p6, self.p7(F.relu(p6))], [*names, "p6", "p7"]


class FeaturePyramidNetwork(nn.Module):
    """Maps of all levels with equal channels: coarse ones enlarged and added to finer ones."""

    _version = 2

    def __init__(self, in_channels_list, out_channels, extra_blocks=None, norm_layer=None):
        super().__init__()
        self.inner_blocks = nn.ModuleList()
        self.layer_blocks = nn.ModuleList()
        options = {"padding": 0, "norm_layer": norm_layer, "activation_layer": None}
        for channels in in_channels_list:
            if channels == 0:
                raise ValueError("in_channels=0 is currently not supported")
            self.inner_blocks.append(Conv2dNormActivation(channels, out_channels, kernel_size=1, **options))
            self.layer_blocks.append(
                Conv2dNormActivation(
                    out_channels, out_channels, kernel_size=3, **{**options, "padding": None}
                )
            )
        initialize(self, conv=_uniform)
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(f"extra_blocks should be of type ExtraFPNBlock not {type(extra_blocks)}")
        self.extra_blocks = extra_blocks

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
        if local_metadata.get("version", None) is None or local_metadata["version"] < 2:
            # Files of the first version have plain convolutions: inner_blocks.0.weight for inner_blocks.0.0.weight.
            for kind in ("inner_blocks", "layer_blocks"):
                for i in range(len(self.inner_blocks)):
                    for value in ("weight", "bias"):
                        old = f"{prefix}{kind}.{i}.{value}"
                        if old in state_dict:
                            state_dict[f"{prefix}{kind}.{i}.0.{value}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def forward(self, x):
        """{name: (N, C_i, H_i, W_i)}, finest first -> the same with equal channels"""
        names, maps = list(x.keys()), list(x.values())
        last = self.inner_blocks[-1](maps[-1])
        results = [self.layer_blocks[-1](last)]
        for i in range(len(maps) - 2, -1, -1):
            lateral = self.inner_blocks[i](maps[i])
            last = lateral + F.interpolate(last, size=lateral.shape[-2:], mode="nearest")
            results.insert(0, self.layer_blocks[i](last))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, maps, names)
        return OrderedDict(zip(names, results))
