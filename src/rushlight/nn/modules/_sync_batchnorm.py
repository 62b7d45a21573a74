"""Batch normalisation whose statistics are summed over processes, written with ops and all_reduce."""

from __future__ import annotations

import functools
from typing import Any

import rushlight as rl


@functools.cache
def _all_sum() -> Any:
    # Made on first use: most programs have one process.
    class AllSum(rl.autograd.Function):
        """The sum of a tensor over all processes; its gradient is the sum of theirs."""

        @staticmethod
        def forward(ctx: Any, x: rl.Tensor, group: Any) -> Any:
            ctx.group = group
            x = x.clone()
            rl.distributed.all_reduce(x, group=group)
            return x

        @staticmethod
        def backward(ctx: Any, grad: rl.Tensor) -> Any:
            grad = grad.clone()
            rl.distributed.all_reduce(grad, group=ctx.group)
            return grad, None

    return AllSum


def sync_batch_norm(module: Any, input: rl.Tensor) -> rl.Tensor:
    """input normalised by the mean and variance over all processes; updates the module's running
    statistics."""
    dims = [d for d in range(input.dim()) if d != 1]
    shape = [1, -1, *[1] * (input.dim() - 2)]
    count = input.new_full((1,), input.numel() / input.size(1))
    local = rl.cat([input.sum(dims), (input * input).sum(dims), count])
    total = _all_sum().apply(local, module.process_group)
    channels = input.size(1)
    n = total[-1].detach()
    mean = total[:channels] / n
    var = (total[channels:-1] / n - mean * mean).clamp_min(0)
    if module.track_running_stats:
        with rl.no_grad():
            module.num_batches_tracked.add_(1)
            momentum = (
                module.momentum if module.momentum is not None else 1.0 / float(module.num_batches_tracked)
            )
            module.running_mean.mul_(1 - momentum).add_(mean.detach() * momentum)
            module.running_var.mul_(1 - momentum).add_(var.detach() * (n / (n - 1)) * momentum)
    out = (input - mean.view(shape)) * (var + module.eps).rsqrt().view(shape)
    if module.weight is not None:
        out = out * module.weight.view(shape)
    result: rl.Tensor = out if module.bias is None else out + module.bias.view(shape)
    return result
