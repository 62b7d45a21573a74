"""ShuffleNet v2 (Ma et al., 2018)."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn

from ._api import entry

__all__ = ["ShuffleNetV2"]


def channel_shuffle(x: rl.Tensor, groups: int) -> rl.Tensor:
    """Channels of all groups, interleaved."""
    n, c, h, w = x.size()
    return x.view(n, groups, c // groups, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


class InvertedResidual(nn.Module):
    """Half of the channels through convolutions, half through a shortcut, then shuffled."""

    def __init__(self, inp: Any, oup: Any, stride: Any) -> None:
        super().__init__()
        if not 1 <= stride <= 3:
            raise ValueError("illegal stride value")
        self.stride = stride
        features = oup // 2
        if stride == 1 and inp != features << 1:
            raise ValueError(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values. If stride == 1 then inp should "
                "be equal to oup // 2 << 1."
            )
        depthwise = self.depthwise_conv
        if stride > 1:
            self.branch1 = nn.Sequential(
                depthwise(inp, inp, kernel_size=3, stride=stride, padding=1),
                nn.BatchNorm2d(inp),
                nn.Conv2d(inp, features, kernel_size=1, stride=1, padding=0, bias=False),
                nn.BatchNorm2d(features),
                nn.ReLU(inplace=True),
            )
        else:
            self.branch1 = nn.Sequential()
        self.branch2 = nn.Sequential(
            nn.Conv2d(
                inp if stride > 1 else features, features, kernel_size=1, stride=1, padding=0, bias=False
            ),
            nn.BatchNorm2d(features),
            nn.ReLU(inplace=True),
            depthwise(features, features, kernel_size=3, stride=stride, padding=1),
            nn.BatchNorm2d(features),
            nn.Conv2d(features, features, kernel_size=1, stride=1, padding=0, bias=False),
            nn.BatchNorm2d(features),
            nn.ReLU(inplace=True),
        )

    @staticmethod
    def depthwise_conv(
        i: Any, o: Any, kernel_size: Any, stride: int = 1, padding: int = 0, bias: bool = False
    ) -> Any:
        return nn.Conv2d(i, o, kernel_size, stride, padding, bias=bias, groups=i)

    def forward(self, x: rl.Tensor) -> Any:
        if self.stride == 1:
            kept, x = x.chunk(2, dim=1)
            out = rl.cat((kept, self.branch2(x)), dim=1)
        else:
            out = rl.cat((self.branch1(x), self.branch2(x)), dim=1)
        return channel_shuffle(out, 2)


class ShuffleNetV2(nn.Module):
    """Three stages of shuffled blocks."""

    stage2: nn.Module
    stage3: nn.Module
    stage4: nn.Module

    def __init__(
        self,
        stages_repeats: Any,
        stages_out_channels: Any,
        num_classes: int = 1000,
        inverted_residual: Any = InvertedResidual,
    ) -> None:
        super().__init__()
        if len(stages_repeats) != 3:
            raise ValueError("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise ValueError("expected stages_out_channels as list of 5 positive ints")
        self._stage_out_channels = stages_out_channels
        first, *middle, last = stages_out_channels

        def conv(i: Any, o: Any, **options: Any) -> Any:
            return nn.Sequential(
                nn.Conv2d(i, o, bias=False, **options), nn.BatchNorm2d(o), nn.ReLU(inplace=True)
            )

        self.conv1 = conv(3, first, kernel_size=3, stride=2, padding=1)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        channels = first
        for name, repeats, out in zip(("stage2", "stage3", "stage4"), stages_repeats, middle):
            blocks = [inverted_residual(channels, out, 2)]
            blocks += [inverted_residual(out, out, 1) for _ in range(repeats - 1)]
            setattr(self, name, nn.Sequential(*blocks))
            channels = out
        self.conv5 = conv(channels, last, kernel_size=1, stride=1, padding=0)
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: rl.Tensor) -> Any:
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean([2, 3]))


@entry
def shufflenet_v2_x0_5(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2, half the width."""
    return ShuffleNetV2([4, 8, 4], [24, 48, 96, 192, 1024], **kwargs)


@entry
def shufflenet_v2_x1_0(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2."""
    return ShuffleNetV2([4, 8, 4], [24, 116, 232, 464, 1024], **kwargs)


@entry
def shufflenet_v2_x1_5(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2, 1.5 times the width."""
    return ShuffleNetV2([4, 8, 4], [24, 176, 352, 704, 1024], **kwargs)


@entry
def shufflenet_v2_x2_0(**kwargs: Any) -> ShuffleNetV2:
    """ShuffleNet v2, twice the width."""
    return ShuffleNetV2([4, 8, 4], [24, 244, 488, 976, 2048], **kwargs)
