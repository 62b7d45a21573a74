"""The device that functions make tensors on, as a mode: `with DeviceContext(device): ...`."""

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.overrides import TorchFunctionMode


class DeviceContext(TorchFunctionMode):
    """A block in which functions that make tensors, and are given no device, make them on `device`."""

    _ops_only = True

    def __init__(self, device):
        self.device = rl.device(device)
        self._before: list = []

    def __enter__(self):
        self._before.append(rl.get_default_device())
        rl.set_default_device(self.device)
        return self

    def __exit__(self, *exc):
        rl.set_default_device(self._before.pop())

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def default():
    """[the context that stands for set_default_device], or [] while none was set."""
    from rushlight._core import convert as _convert

    return [DeviceContext(_convert.chosen_device)] if _convert.chosen_device is not None else []


def set_device(device):
    """Decorator: a function that runs inside DeviceContext(device)."""
    import functools

    def decorate(function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with DeviceContext(device):
                return function(*args, **kwargs)

        return inside

    return decorate


__getattr__ = _unsupported_attribute(__name__)
