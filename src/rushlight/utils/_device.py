"""The device that functions make tensors on, as a mode: `with DeviceContext(device): ...`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.overrides import TorchFunctionMode


class DeviceContext(TorchFunctionMode):
    """A block in which functions that make tensors, and are given no device, make them on `device`."""

    _ops_only = True

    def __init__(self, device: Any) -> None:
        self.device = rl.device(device)
        self._before: list[Any] = []

    def __enter__(self) -> Any:
        self._before.append(rl.get_default_device())
        rl.set_default_device(self.device)
        return self

    def __exit__(self, *exc: Any) -> None:
        rl.set_default_device(self._before.pop())

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def default() -> Any:
    """[the context that stands for set_default_device], or [] while none was set."""
    from rushlight._core import convert as _convert

    return [DeviceContext(_convert.chosen_device)] if _convert.chosen_device is not None else []


def set_device(device: Any) -> Any:
    """Decorator: a function that runs inside DeviceContext(device)."""
    import functools

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with DeviceContext(device):
                return function(*args, **kwargs)

        return inside

    return decorate


__getattr__ = _unsupported_attribute(__name__)
