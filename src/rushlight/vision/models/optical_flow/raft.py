"""RAFT (Teed and Deng, 2020): flow refined step by step, from correlations of features of both images."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.nn.modules.batchnorm import BatchNorm2d
from rushlight.nn.modules.instancenorm import InstanceNorm2d

from ..._init import he_fan_out, initialize
from ...ops.misc import Conv2dNormActivation
from .._api import entry
from ._utils import grid_sample, make_coords_grid, upsample_flow

__all__ = ["RAFT"]
_conv3x3 = functools.partial(nn.Conv2d, kernel_size=3, padding=1)


def _conv_relu(in_channels: Any, out_channels: int, kernel_size: Any) -> Conv2dNormActivation:
    return Conv2dNormActivation(in_channels, out_channels, kernel_size=kernel_size, norm_layer=None)


def _conv_pair(in_channels: Any, widths: Any, first_kernel: Any) -> Any:
    """Convolutions of first_kernel and of 3 x 3, each with a ReLU; the second is left out if there is one width."""
    first = _conv_relu(in_channels, widths[0], first_kernel)
    return first, nn.Identity() if len(widths) == 1 else _conv_relu(widths[0], widths[1], 3)


class ResidualBlock(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(
        self,
        in_channels: Any,
        out_channels: int,
        *,
        norm_layer: Any,
        stride: Any = 1,
        always_project: bool = False,
    ) -> None:
        super().__init__()
        options = {"norm_layer": norm_layer, "bias": True}
        self.convnormrelu1 = Conv2dNormActivation(
            in_channels, out_channels, kernel_size=3, stride=stride, **options
        )
        self.convnormrelu2 = Conv2dNormActivation(out_channels, out_channels, kernel_size=3, **options)
        if stride == 1 and not always_project:
            self.downsample: nn.Module = nn.Identity()
        else:
            self.downsample = Conv2dNormActivation(
                in_channels, out_channels, kernel_size=1, stride=stride, activation_layer=None, **options
            )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: rl.Tensor) -> Any:
        y = self.convnormrelu2(self.convnormrelu1(x))
        return self.relu(self.downsample(x) + y)


class BottleneckBlock(nn.Module):
    """A convolution between two of 1 x 1, and a shortcut."""

    def __init__(self, in_channels: Any, out_channels: int, *, norm_layer: Any, stride: Any = 1) -> None:
        super().__init__()
        options = {"norm_layer": norm_layer, "bias": True}
        inner = out_channels // 4
        self.convnormrelu1 = Conv2dNormActivation(in_channels, inner, kernel_size=1, **options)
        self.convnormrelu2 = Conv2dNormActivation(inner, inner, kernel_size=3, stride=stride, **options)
        self.convnormrelu3 = Conv2dNormActivation(inner, out_channels, kernel_size=1, **options)
        self.relu = nn.ReLU(inplace=True)
        if stride == 1:
            self.downsample: nn.Module = nn.Identity()
        else:
            self.downsample = Conv2dNormActivation(
                in_channels, out_channels, kernel_size=1, stride=stride, activation_layer=None, **options
            )

    def forward(self, x: rl.Tensor) -> Any:
        y = self.convnormrelu3(self.convnormrelu2(self.convnormrelu1(x)))
        return self.relu(self.downsample(x) + y)


class FeatureEncoder(nn.Module):
    """Features at an eighth of the size."""

    layer1: nn.Module
    layer2: nn.Module
    layer3: nn.Module

    def __init__(
        self,
        *,
        block: Any = ResidualBlock,
        layers: Any = (64, 64, 96, 128, 256),
        strides: Any = (2, 1, 2, 2),
        norm_layer: Any = BatchNorm2d,
    ) -> None:
        super().__init__()
        if len(layers) != 5:
            raise ValueError(f"The expected number of layers is 5, instead got {len(layers)}")
        *widths, self.output_dim = layers
        self.convnormrelu = Conv2dNormActivation(
            3, widths[0], kernel_size=7, stride=strides[0], norm_layer=norm_layer, bias=True
        )
        for i, (before, after) in enumerate(itertools.pairwise(widths), start=1):
            first = block(before, after, stride=strides[i], norm_layer=norm_layer)
            second = block(after, after, norm_layer=norm_layer)
            setattr(self, f"layer{i}", nn.Sequential(first, second))
        self.conv = nn.Conv2d(widths[-1], self.output_dim, 1)
        initialize(self, conv=he_fan_out, bias=None)
        self.downsample_factor = 2 ** sum(stride == 2 for stride in strides)

    def forward(self, x: rl.Tensor) -> Any:
        return self.conv(self.layer3(self.layer2(self.layer1(self.convnormrelu(x)))))


class MotionEncoder(nn.Module):
    """Features of the flow so far and of the correlations around it."""

    def __init__(
        self,
        *,
        in_channels_corr: Any,
        corr_layers: Any = (256, 192),
        flow_layers: Any = (128, 64),
        out_channels: int = 128,
    ) -> None:
        allowed = "The expected number of flow_layers is 2", "The number of corr_layers should be 1 or 2"
        for widths, counts, message in zip((flow_layers, corr_layers), ((2,), (1, 2)), allowed):
            if len(widths) not in counts:
                raise ValueError(f"{message}, instead got {len(widths)}")
        super().__init__()
        self.convcorr1, self.convcorr2 = _conv_pair(in_channels_corr, corr_layers, 1)
        self.convflow1, self.convflow2 = _conv_pair(2, flow_layers, 7)
        # The flow itself is appended to the result, which leaves two channels fewer to the convolution.
        self.conv = _conv_relu(corr_layers[-1] + flow_layers[-1], out_channels - 2, 3)
        self.out_channels = out_channels

    def forward(self, flow: Any, corr_features: Any) -> Any:
        corr = self.convcorr2(self.convcorr1(corr_features))
        seen = self.convflow2(self.convflow1(flow))
        return rl.cat([self.conv(rl.cat([corr, seen], dim=1)), flow], dim=1)


class ConvGRU(nn.Module):
    """A gated recurrent unit of convolutions."""

    def __init__(self, *, input_size: Any, hidden_size: Any, kernel_size: Any, padding: Any) -> None:
        super().__init__()
        both = hidden_size + input_size
        self.convz = nn.Conv2d(both, hidden_size, kernel_size=kernel_size, padding=padding)
        self.convr = nn.Conv2d(both, hidden_size, kernel_size=kernel_size, padding=padding)
        self.convq = nn.Conv2d(both, hidden_size, kernel_size=kernel_size, padding=padding)

    def forward(self, h: Any, x: rl.Tensor) -> Any:
        hx = rl.cat([h, x], dim=1)
        z, r = rl.sigmoid(self.convz(hx)), rl.sigmoid(self.convr(hx))
        q = rl.tanh(self.convq(rl.cat([r * h, x], dim=1)))
        return (1 - z) * h + z * q


def _pass_through_h(h: Any, _: Any) -> Any:
    return h


class RecurrentBlock(nn.Module):
    """One unit, or two along rows and columns."""

    def __init__(
        self,
        *,
        input_size: Any,
        hidden_size: Any,
        kernel_size: Any = ((1, 5), (5, 1)),
        padding: Any = ((0, 2), (2, 0)),
    ) -> None:
        units = len(kernel_size)
        if units != len(padding):
            raise ValueError(
                f"kernel_size should have the same length as padding, instead got {units} and {len(padding)}"
            )
        if units not in (1, 2):
            raise ValueError(f"kernel_size should either 1 or 2, instead got {units}")
        super().__init__()
        options = {"input_size": input_size, "hidden_size": hidden_size}
        self.convgru2: Callable[..., Any]
        self.convgru1 = ConvGRU(kernel_size=kernel_size[0], padding=padding[0], **options)
        if len(kernel_size) == 2:
            self.convgru2 = ConvGRU(kernel_size=kernel_size[1], padding=padding[1], **options)
        else:
            self.convgru2 = _pass_through_h
        self.hidden_size = hidden_size

    def forward(self, h: Any, x: rl.Tensor) -> Any:
        return self.convgru2(self.convgru1(h, x), x)


class FlowHead(nn.Module):
    """How the flow changes."""

    def __init__(self, *, in_channels: Any, hidden_size: Any) -> None:
        super().__init__()
        self.conv1, self.conv2 = _conv3x3(in_channels, hidden_size), _conv3x3(hidden_size, 2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: rl.Tensor) -> Any:
        hidden = self.relu(self.conv1(x))
        return self.conv2(hidden)


class UpdateBlock(nn.Module):
    """One step: (hidden state, change of the flow)."""

    def __init__(self, *, motion_encoder: Any, recurrent_block: Any, flow_head: Any) -> None:
        super().__init__()
        self.hidden_state_size = recurrent_block.hidden_size
        self.motion_encoder, self.recurrent_block = motion_encoder, recurrent_block
        self.flow_head = flow_head

    def forward(self, hidden_state: Any, context: Any, corr_features: Any, flow: Any) -> Any:
        x = rl.cat([context, self.motion_encoder(flow, corr_features)], dim=1)
        hidden_state = self.recurrent_block(hidden_state, x)
        return hidden_state, self.flow_head(hidden_state)


class MaskPredictor(nn.Module):
    """Weights of the nine neighbours of which each pixel of the large flow is a mean."""

    def __init__(self, *, in_channels: Any, hidden_size: Any, multiplier: float = 0.25) -> None:
        super().__init__()
        self.multiplier = multiplier
        self.convrelu = _conv_relu(in_channels, hidden_size, 3)
        self.conv = nn.Conv2d(hidden_size, 9 * 8**2, kernel_size=1)

    def forward(self, x: rl.Tensor) -> Any:
        return self.multiplier * self.conv(self.convrelu(x))


class CorrBlock(nn.Module):
    """Products of all features of one image with all of the other, at several sizes, and windows of them."""

    def __init__(self, *, num_levels: int = 4, radius: int = 4) -> None:
        super().__init__()
        self.num_levels, self.radius = num_levels, radius
        self.corr_pyramid = [rl.tensor(0)]
        self.out_channels = num_levels * (2 * radius + 1) ** 2

    def build_pyramid(self, fmap1: Any, fmap2: Any) -> None:
        """Makes the products, and their means over larger and larger squares."""
        if fmap1.shape != fmap2.shape:
            raise ValueError(
                f"Input feature maps should have the same shape, instead got {fmap1.shape} != {fmap2.shape}"
            )
        smallest = 2 * 2 ** (self.num_levels - 1)
        if min(fmap1.shape[-2:]) < smallest:
            raise ValueError(
                "Feature maps are too small to be down-sampled by the correlation pyramid. "
                f"They have {tuple(fmap1.shape[-2:])} pixels, and {self.num_levels} levels take {smallest} each way, "
                f"which is {8 * smallest} each way of the images."
            )
        n, channels, h, w = fmap1.shape
        products = fmap1.flatten(2).transpose(1, 2) @ fmap2.flatten(2)
        level = products.reshape(n * h * w, 1, h, w) / channels**0.5
        self.corr_pyramid = [level]
        for _ in range(self.num_levels - 1):
            level = F.avg_pool2d(level, kernel_size=2, stride=2)
            self.corr_pyramid.append(level)

    def index_pyramid(self, centroids_coords: Any) -> rl.Tensor:
        """The products around points (N, 2, h, w), at all sizes."""
        steps = rl.linspace(-self.radius, self.radius, 2 * self.radius + 1, device=centroids_coords.device)
        around = rl.stack(rl.meshgrid(steps, steps, indexing="ij"), dim=-1)[None]
        n, _, h, w = centroids_coords.shape
        coords = centroids_coords.permute(0, 2, 3, 1).reshape(n * h * w, 1, 1, 2)
        found = []
        for level in self.corr_pyramid:
            seen = grid_sample(level, coords + around, align_corners=True, mode="bilinear")
            found.append(seen.view(n, h, w, -1))
            coords = coords / 2
        return rl.cat(found, dim=-1).permute(0, 3, 1, 2).contiguous()


class RAFT(nn.Module):
    """The flow between two images (N, 3, H, W) after each of several steps."""

    def __init__(
        self,
        *,
        feature_encoder: Any,
        context_encoder: Any,
        corr_block: Any,
        update_block: Any,
        mask_predictor: Any = None,
    ) -> None:
        super().__init__()
        self.feature_encoder = feature_encoder
        self.context_encoder = context_encoder
        self.corr_block = corr_block
        self.update_block = update_block
        self.mask_predictor = mask_predictor
        if not hasattr(update_block, "hidden_state_size"):
            raise ValueError("The update_block parameter should expose a 'hidden_state_size' attribute.")

    def forward(self, image1: Any, image2: Any, num_flow_updates: int = 12) -> Any:
        n, _, h, w = image1.shape
        if (h, w) != tuple(image2.shape[-2:]):
            raise ValueError(
                f"input images should have the same shape, instead got ({h}, {w}) != {image2.shape[-2:]}"
            )
        if h % 8 or w % 8:
            raise ValueError(f"input image H and W should be divisible by 8, instead got {h} and {w}")
        fmap1, fmap2 = self.feature_encoder(rl.cat([image1, image2], dim=0)).chunk(2, dim=0)
        if tuple(fmap1.shape[-2:]) != (h // 8, w // 8):
            raise ValueError("The feature encoder should downsample H and W by 8")
        self.corr_block.build_pyramid(fmap1, fmap2)
        context_out = self.context_encoder(image1)
        if tuple(context_out.shape[-2:]) != (h // 8, w // 8):
            raise ValueError("The context encoder should downsample H and W by 8")
        hidden_size = self.update_block.hidden_state_size
        if context_out.shape[1] - hidden_size <= 0:
            raise ValueError(
                f"The context encoder outputs {context_out.shape[1]} channels, of which the hidden state alone "
                f"takes {hidden_size}: there must be more"
            )
        hidden, context = context_out.split([hidden_size, context_out.shape[1] - hidden_size], dim=1)
        hidden, context = rl.tanh(hidden), F.relu(context)
        start = make_coords_grid(n, h // 8, w // 8).to(fmap1.device)
        coords, flows = start, []
        for _ in range(num_flow_updates):
            coords = coords.detach()  # no gradient through the coords of earlier steps
            corr = self.corr_block.index_pyramid(centroids_coords=coords)
            hidden, change = self.update_block(hidden, context, corr, coords - start)
            coords = coords + change
            up_mask = None if self.mask_predictor is None else self.mask_predictor(hidden)
            flows.append(upsample_flow(flow=coords - start, up_mask=up_mask))
        return flows


def _raft(
    block: Any,
    feature_layers: Any,
    context_layers: Any,
    context_norm: Any,
    radius: Any,
    motion: Any,
    recurrent: Any,
    flow_hidden: Any,
    masked: Any,
    kwargs: Any,
) -> RAFT:
    feature = kwargs.pop("feature_encoder", None) or FeatureEncoder(
        block=block, layers=feature_layers, norm_layer=InstanceNorm2d
    )
    context = kwargs.pop("context_encoder", None) or FeatureEncoder(
        block=block, layers=context_layers, norm_layer=context_norm
    )
    corr = kwargs.pop("corr_block", None) or CorrBlock(num_levels=4, radius=radius)
    hidden = recurrent["hidden_size"]
    update = kwargs.pop("update_block", None)
    if update is None:
        encoder = MotionEncoder(in_channels_corr=corr.out_channels, **motion)
        inputs = encoder.out_channels + context_layers[-1] - hidden
        update = UpdateBlock(
            motion_encoder=encoder,
            recurrent_block=RecurrentBlock(input_size=inputs, **recurrent),
            flow_head=FlowHead(in_channels=hidden, hidden_size=flow_hidden),
        )
    mask = kwargs.pop("mask_predictor", None)
    if mask is None and masked:
        mask = MaskPredictor(in_channels=hidden, hidden_size=256, multiplier=0.25)
    return RAFT(
        feature_encoder=feature,
        context_encoder=context,
        corr_block=corr,
        update_block=update,
        mask_predictor=mask,
        **kwargs,
    )


@entry
def raft_large(**kwargs: Any) -> RAFT:
    """RAFT as it was published."""
    layers = (64, 64, 96, 128, 256)
    motion = {"corr_layers": (256, 192), "flow_layers": (128, 64), "out_channels": 128}
    recurrent = {"hidden_size": 128, "kernel_size": ((1, 5), (5, 1)), "padding": ((0, 2), (2, 0))}
    return _raft(ResidualBlock, layers, layers, BatchNorm2d, 4, motion, recurrent, 256, True, kwargs)


@entry
def raft_small(**kwargs: Any) -> RAFT:
    """RAFT with a tenth of the parameters."""
    motion = {"corr_layers": (96,), "flow_layers": (64, 32), "out_channels": 82}
    recurrent = {"hidden_size": 96, "kernel_size": (3,), "padding": (1,)}
    features, context = (32, 32, 64, 96, 128), (32, 32, 64, 96, 160)
    return _raft(BottleneckBlock, features, context, None, 3, motion, recurrent, 128, False, kwargs)
