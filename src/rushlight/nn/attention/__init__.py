"""Which implementation scaled_dot_product_attention takes. There is one here; choices are accepted."""

from __future__ import annotations
from typing import Any
from collections.abc import Iterator

import contextlib
import enum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """Names implementations of attention, for `sdpa_kernel`. There is one here: choices are accepted.

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION and OVERRIDEABLE.

    Example:
        >>> nn.attention.SDPBackend.MATH.value
        0
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Opens a block that asks for implementations of attention; results do not depend on it.

    Args:
        backends (SDPBackend or list of them): the choice.
        set_priority (bool): accepted. Default: False

    Example:
        >>> with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        ...     F.scaled_dot_product_attention(*torch.ones(3, 1, 1, 2, 4)).shape
        torch.Size([1, 1, 2, 4])
    """
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


def __getattr__(name: str) -> Any:
    if name in ("flex_attention", "bias"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
