"""Instance normalisation."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn.modules._doc import documented, lazily
from rushlight.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


# Completed for each class by `documented`.
_DOC = """Normalises each channel of each sample: y = (x - mean) / sqrt(var + eps) * weight + bias.

Mean and (biased) variance are over {L} alone, so that samples do not see each other; style transfer uses it.
With track_running_stats=True, evaluation takes running statistics as `nn.BatchNorm{n}d` does; without, it is the
same as training. Unlike `nn.LayerNorm` it has statistics per channel.

Args:
    num_features (int): number of channels, C.
    eps (float): added to the variance. Default: 1e-5
    momentum (float): how far running statistics move in a batch. Default: 0.1
    affine (bool): whether there are weight and bias. Default: False
    track_running_stats (bool): keeps running statistics and uses them after `eval()`. Default: False
    device (device): where the parameters are made. Default: the default device
    dtype (dtype): their type. Default: torch.get_default_dtype()
    bias (bool): whether there is a bias beside the weight. Default: True

Shape:
    input (N, C, {L}) or (C, {L}) -> the same; more than one element in {L}

Attributes:
    weight (C,): ones, with affine=True; else None.
    bias (C,): zeros, with affine=True; None without, or with bias=False.
    running_mean, running_var (C,): zeros and ones, with track_running_stats=True; else None.

Example:
    >>> norm = nn.InstanceNorm{n}d(16, affine=True)
    >>> norm(torch.randn({given})).shape
    torch.Size([{given}])
"""


class _InstanceNorm(_NormBase):
    _dims = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        n = self._dims
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

    def _get_no_batch_dim(self) -> int:
        return self._dims + 1

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version")
        if version is None and not self.track_running_stats:
            # Very old files hold running statistics that were never meant to be used.
            found = [k for k in (prefix + "running_mean", prefix + "running_var") if k in state_dict]
            if found:
                names = " and ".join(f'"{k}"' for k in found)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. "
                    "If state_dict is a checkpoint saved before 0.4.0, this may be expected: remove these "
                    "keys from it"
                )
                for key in found:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        own_statistics = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        running = self.running_mean, self.running_var
        return F.instance_norm(input, *running, self.weight, self.bias, own_statistics, momentum, self.eps)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        feature_dim = input.dim() - self._get_no_batch_dim()
        if input.size(feature_dim) != self.num_features:
            text = (
                f"expected input's size at dim={feature_dim} to match num_features "
                f"({self.num_features}), but got: {input.size(feature_dim)}."
            )
            if self.affine:
                raise ValueError(text)
            warnings.warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence this "
                "warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == self._get_no_batch_dim():
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


@documented(_DOC, 1, given="8, 16, 50")
class InstanceNorm1d(_InstanceNorm):
    _dims = 1


@documented(_DOC, 2, given="8, 16, 32, 32")
class InstanceNorm2d(_InstanceNorm):
    _dims = 2


@documented(_DOC, 3, given="2, 16, 4, 8, 8")
class InstanceNorm3d(_InstanceNorm):
    _dims = 3


class _LazyInstance(_LazyNormBase):
    _dims: int

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params() and input.dim() == self._dims + 1:
            input = input.unsqueeze(0)
        super().initialize_parameters(input)


@lazily(InstanceNorm1d, "num_features", defaults="True")
class LazyInstanceNorm1d(_LazyInstance, _InstanceNorm):
    cls_to_become = InstanceNorm1d
    _dims = 1


@lazily(InstanceNorm2d, "num_features", defaults="True")
class LazyInstanceNorm2d(_LazyInstance, _InstanceNorm):
    cls_to_become = InstanceNorm2d
    _dims = 2


@lazily(InstanceNorm3d, "num_features", defaults="True")
class LazyInstanceNorm3d(_LazyInstance, _InstanceNorm):
    cls_to_become = InstanceNorm3d
    _dims = 3
