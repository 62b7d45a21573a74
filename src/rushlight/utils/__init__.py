"""Helpers around tensors: data loading, checkpoints, hooks."""

from __future__ import annotations
from typing import Any


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchanges two tensors: each object becomes the other tensor, class and attributes included."""
    from ._swap import swap_tensors as swap

    swap(t1, t2)


def set_module(obj: Any, mod: Any) -> None:
    obj.__module__ = mod


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> Any:
    """Submodules are imported when first asked for."""
    import importlib
    import importlib.util

    if not name.startswith("__") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
