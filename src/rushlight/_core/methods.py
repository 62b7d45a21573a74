"""Methods of Tensor that are written in Python: how they are put there, and who may take them over."""

import functools

from .._C import Tensor

modes: list = []  # one entry for each TorchFunctionMode that is on in any thread


def method(function):
    """Makes a function a method of Tensor. Subclasses and modes with __torch_function__ are asked first."""

    @functools.wraps(function)
    def asking(self, *args, **kwargs):
        if type(self) is not Tensor and not isinstance(self, Tensor):
            raise TypeError(
                f"descriptor '{function.__name__}' for 'torch._C.TensorBase' objects doesn't apply to a "
                f"'{type(self).__name__}' object"
            )
        if (type(self) is not Tensor or modes) and self._asks():
            return self._ask(asking, (self, *args), kwargs)
        return function(self, *args, **kwargs)

    setattr(Tensor, function.__name__, asking)
    return function


def plain_method(function):
    """A method that nobody is asked for: what it calls is."""
    setattr(Tensor, function.__name__, function)
    return function


def attach(**attributes):
    """Gives Tensor attributes that are no functions, or methods under another name."""
    for name, value in attributes.items():
        setattr(Tensor, name, value)
