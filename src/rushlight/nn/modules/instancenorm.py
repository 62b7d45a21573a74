"""Instance normalisation."""

from __future__ import annotations

import warnings

from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


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

    def _check_input_dim(self, input):
        n = self._dims
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

    def _get_no_batch_dim(self):
        return self._dims + 1

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
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

    def _apply_instance_norm(self, input):
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


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, L) or (C, L)."""

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, H, W) or (C, H, W)."""

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3


class _LazyInstance(_LazyNormBase):
    _dims: int

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params() and input.dim() == self._dims + 1:
            input = input.unsqueeze(0)
        super().initialize_parameters(input)


class LazyInstanceNorm1d(_LazyInstance, _InstanceNorm):
    """An InstanceNorm1d that takes num_features from its first input."""

    cls_to_become = InstanceNorm1d
    _dims = 1


class LazyInstanceNorm2d(_LazyInstance, _InstanceNorm):
    """An InstanceNorm2d that takes num_features from its first input."""

    cls_to_become = InstanceNorm2d
    _dims = 2


class LazyInstanceNorm3d(_LazyInstance, _InstanceNorm):
    """An InstanceNorm3d that takes num_features from its first input."""

    cls_to_become = InstanceNorm3d
    _dims = 3
