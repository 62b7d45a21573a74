"""Checks of arguments that ops written in Python share: their errors name the op, the argument and what was given."""

import functools

from .. import _C


def takes(*names):
    """@takes("A", "B"): the first arguments must be tensors; TypeError otherwise."""

    def decorate(function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            for i, name in enumerate(names):
                given = i < len(args) or name in kwargs
                value = args[i] if i < len(args) else kwargs.get(name)
                if given and not isinstance(value, _C.Tensor):
                    what, kind = f"argument '{name}' (position {i + 1})", type(value).__name__
                    raise TypeError(f"{function.__name__}(): {what} must be Tensor, not {kind}")
            return function(*args, **kwargs)

        return checked

    return decorate


def need_tensor(name, argument, value):
    if not isinstance(value, _C.Tensor):
        raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(value).__name__}")


def need_int(name, argument, value):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(value).__name__}")


def wrap(dim, ndim, name="dim"):
    """A dimension counted from the front; a 0-dim tensor counts as having one."""
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{name}: expected a dimension as an int, got {type(dim).__name__}")
    n = max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


def type_name(dtype):
    return str(dtype).rsplit(".", 1)[-1]
