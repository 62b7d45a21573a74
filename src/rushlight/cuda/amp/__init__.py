"""The older names of torch.amp for CUDA."""

import functools
import warnings

import rushlight.amp
from rushlight.amp.grad_scaler import OptState as OptState

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(rushlight.amp.autocast):
    """torch.amp.autocast("cuda", ...)"""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', "
            "args...)` "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(rushlight.amp.GradScaler):
    """torch.amp.GradScaler("cuda", ...)"""

    def __init__(
        self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True
    ):
        warnings.warn(
            "`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cuda', "
            "args...)` "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


custom_fwd = functools.partial(rushlight.amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(rushlight.amp.custom_bwd, device_type="cuda")


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    import sys

    if name in ("autocast_mode", "grad_scaler", "common"):
        return sys.modules[__name__]
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
