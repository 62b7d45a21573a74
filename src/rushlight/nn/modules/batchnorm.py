"""Batch normalisation."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn.modules._affine import add_scale, add_shift, reset_affine
from rushlight.nn.modules._doc import documented, lazily
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d", "LazyBatchNorm1d", "BatchNorm2d", "LazyBatchNorm2d", "BatchNorm3d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


# Completed for each class by `documented`.
_DOC = """Normalises each channel over the batch: y = (x - mean) / sqrt(var + eps) * weight + bias.

In training, mean and (biased) variance are those of the batch, over all dimensions but the channels, and the
running ones move towards them: running = (1 - momentum) running + momentum batch. After `eval()` the running
ones serve; forgetting it lets a prediction depend on the rest of its batch. Batches of few samples have
noisy statistics: `nn.GroupNorm` and `nn.LayerNorm` need none.

Args:
    num_features (int): number of channels, C.
    eps (float): added to the variance. Default: 1e-5
    momentum (float): how far the running statistics move; None for the mean over all batches. Default: 0.1
    affine (bool): whether there are weight and bias. Default: True
    track_running_stats (bool): keeps running statistics; without, evaluation uses the batch too. Default: True
    device (device): where the parameters are made. Default: the default device
    dtype (dtype): their type. Default: torch.get_default_dtype()
    bias (bool): whether there is a bias beside the weight. Default: True

Shape:
    input {shape} -> the same; in training at least two values a channel

Attributes:
    weight (C,): ones; None with affine=False.
    bias (C,): zeros; None with affine=False or bias=False.
    running_mean (C,): zeros, a buffer; None with track_running_stats=False, as those below.
    running_var (C,): ones, moves towards unbiased variances.
    num_batches_tracked (scalar): how many batches it has seen in training.

Example:
    >>> norm = nn.BatchNorm{n}d(16)
    >>> norm(torch.randn({given})).shape
    torch.Size([{given}])
    >>> norm.num_batches_tracked
    tensor(1)
"""


class _NormBase(Module):
    """What batch and instance normalisation share: scale, shift and running statistics."""

    weight: Parameter
    bias: Parameter
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        add_scale(self, num_features, affine, **made)
        add_shift(self, num_features, affine and bias, **made)
        tracked = track_running_stats
        self.register_buffer("running_mean", rl.zeros(num_features, **made) if tracked else None)
        self.register_buffer("running_var", rl.ones(num_features, **made) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", rl.tensor(0, dtype=rl.long, device=device) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running statistics to mean 0, variance 1 and no batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the running statistics, and weight and bias to ones and zeros."""
        self.reset_running_stats()
        if self.affine:
            reset_affine(self)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

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
        if (version is None or version < 2) and self.track_running_stats:
            # Files of the first version do not count batches.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                own = self.num_batches_tracked
                known = own is not None and own.device != rl.device("meta")
                state_dict[key] = own if known else rl.tensor(0, dtype=rl.long)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        buffers = self._buffers
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            seen = buffers["num_batches_tracked"]
            if seen is not None:
                seen.add_(1)
                if self.momentum is None:  # the mean of all batches so far
                    momentum = 1.0 / float(seen)
        mean, var = buffers["running_mean"], buffers["running_var"]
        use_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, self.weight, self.bias, use_batch, momentum, self.eps)


@documented(_DOC, 1, shape="(N, C) or (N, C, L)", given="8, 16, 50")
class BatchNorm1d(_BatchNorm):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


@documented(_DOC, 2, shape="(N, C, H, W)", given="8, 16, 32, 32")
class BatchNorm2d(_BatchNorm):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


@documented(_DOC, 3, shape="(N, C, D, H, W)", given="2, 16, 4, 8, 8")
class BatchNorm3d(_BatchNorm):
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Takes num_features from the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**made)
            if bias:
                self.bias = UninitializedParameter(**made)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**made)
            self.running_var = UninitializedBuffer(**made)
            self.num_batches_tracked = rl.tensor(0, dtype=rl.long, device=device)

    def reset_parameters(self) -> None:
        """Resets statistics and parameters once num_features is known; nothing before."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Makes parameters and statistics for the channels of an input; called at the first call."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        scale_and_shift = (self.weight, self.bias) if self.affine else ()
        statistics = (self.running_mean, self.running_var) if self.track_running_stats else ()
        for value in (*scale_and_shift, *statistics):
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


@lazily(BatchNorm1d, "num_features")
class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


@lazily(BatchNorm2d, "num_features")
class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


@lazily(BatchNorm3d, "num_features")
class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Normalises each channel over the batches of all processes: y = (x - mean) / sqrt(var + eps) * weight + bias.

    In training with `nn.parallel.DistributedDataParallel`, each process sees a few samples; their statistics are
    added up by one all_reduce. In evaluation, or in one process, it is a plain batch norm. Usually made from an
    existing model by `convert_sync_batchnorm`.

    Args:
        num_features (int): number of channels, C.
        eps (float): added to the variance. Default: 1e-5
        momentum (float): how far the running statistics move; None for the mean over all batches. Default: 0.1
        affine (bool): whether there are weight and bias. Default: True
        track_running_stats (bool): keeps running statistics. Default: True
        process_group (ProcessGroup): the processes to add up over; None for all. Default: None
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()
        bias (bool): whether there is a bias beside the weight. Default: True

    Shape:
        input (N, C, *) -> the same

    Attributes:
        weight, bias (C,): ones and zeros; None with affine=False.
        running_mean, running_var (C,): zeros and ones; None with track_running_stats=False.
        num_batches_tracked (scalar): how many batches it has seen in training.

    Example:
        >>> nn.SyncBatchNorm(3)(torch.randn(4, 3, 8)).shape
        torch.Size([4, 3, 8])
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        process_group: Any | None = None, device: device | str | int | None = None,
        dtype: dtype | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        dist: Any = getattr(rl, "distributed", None)
        shared = self.training and dist is not None and dist.is_available() and dist.is_initialized()
        if not shared or dist.get_world_size(self.process_group) == 1:
            return super().forward(input)
        from rushlight.nn.modules._sync_batchnorm import sync_batch_norm

        return sync_batch_norm(self, input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Any:
        """Replaces the batch norms of a model by SyncBatchNorm with the same parameters and statistics.

        Args:
            module (Module): the model; a batch norm itself is replaced by the result.
            process_group (ProcessGroup): passed to the new layers. Default: None

        Returns:
            The model, changed in place, or the new layer.

        Example:
            >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
            >>> type(nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]).__name__
            'SyncBatchNorm'
        """
        out = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            out = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group,
                bias=module.bias is not None or not module.affine,
            )  # fmt: skip
            if module.affine:
                with rl.no_grad():
                    out.weight = module.weight
                    out.bias = module.bias
            out.running_mean = module.running_mean
            out.running_var = module.running_var
            out.num_batches_tracked = module.num_batches_tracked
            out.training = module.training
        for name, child in module.named_children():
            out.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return out
