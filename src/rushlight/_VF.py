"""torch._VF: the functions of the package under the name that PyTorch's own sources call them by."""

from typing import Any

import rushlight as rl

__all__: list[str] = []


def _add_relu(input: Any, other: Any, *, alpha: float = 1, out: Any = None) -> Any:
    """relu(input + alpha * other)."""
    return rl.clamp_min(rl.add(input, other, alpha=alpha), 0, out=out)


def _add_relu_(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """_add_relu in place."""
    return input.add_(other, alpha=alpha).relu_()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(rl, name)
