"""Which implementation scaled_dot_product_attention takes. There is one here; choices are accepted."""

import contextlib
import enum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """Names of implementations, as programs for GPUs ask for them."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Accepts a choice of implementations for a block; results do not depend on it."""
    for backend in backends if isinstance(backends, (list, tuple)) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(
                "Backends must be an instance of SDPBackend or a list of SDPBackend instances, got "
                f"{backend!r}"
            )
    yield


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name in ("flex_attention", "bias"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
