"""Tensor arguments of ops written in Python, checked as C++ checks its own."""

import functools

from .._C import Tensor


def takes(*names):
    """@takes("A", "B"): the first arguments must be tensors; TypeError otherwise."""

    def decorate(function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            for i, name in enumerate(names):
                given = i < len(args) or name in kwargs
                value = args[i] if i < len(args) else kwargs.get(name)
                if given and not isinstance(value, Tensor):
                    what, kind = f"argument '{name}' (position {i + 1})", type(value).__name__
                    raise TypeError(f"{function.__name__}(): {what} must be Tensor, not {kind}")
            return function(*args, **kwargs)

        return checked

    return decorate
