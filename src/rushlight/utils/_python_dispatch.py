"""Dispatch modes below autograd: the class can be named and derived from; rushlight has no such level to step in at."""

import contextlib

from rushlight._missing import teach as _teach


class TorchDispatchMode:
    """Derive from torch.overrides.TorchFunctionMode instead, which sees every call of a function."""

    def __init__(self, _dispatch_key=None):
        pass

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        raise NotImplementedError(
            f"{type(self).__name__}: torch.utils._python_dispatch.TorchDispatchMode steps in between operators and kernels, "
            "where rushlight has no hook. torch.overrides.TorchFunctionMode sees every call of a function"
        )

    def __exit__(self, *exc):
        return False


@contextlib.contextmanager
def no_dispatch():
    """A block in which no __torch_dispatch__ is called."""
    import rushlight as rl

    before = rl._C.ops["_set_torch_dispatch"](False)
    try:
        yield
    finally:
        rl._C.ops["_set_torch_dispatch"](before)


BaseTorchDispatchMode = TorchDispatchMode


def is_traceable_wrapper_subclass(t):
    """Whether a tensor wraps others for the compiler: never."""
    return False


def is_traceable_wrapper_subclass_type(t):
    return False


def _get_current_dispatch_mode():
    return None


def _get_current_dispatch_mode_stack():
    return []


@contextlib.contextmanager
def _disable_current_modes():
    yield []


def return_and_correct_aliasing(func, args, kwargs, out):
    return out


__getattr__ = _teach(__name__)
