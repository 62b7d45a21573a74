"""torch._dynamo.testing: test classes under other settings. There is no tracer whose compilations could be counted."""

import functools
import inspect
import unittest
from contextlib import ExitStack

import rushlight as rl
from rushlight._core.unsupported import placeholder
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

CompileCounter = placeholder("_dynamo.testing.CompileCounter")
CompileCounterWithBackend = placeholder("_dynamo.testing.CompileCounterWithBackend")


def make_test_cls_with_patches(cls, cls_prefix, fn_suffix, *patches, xfail_prop=None, decorator=lambda f: f):
    """A copy of a test class whose tests run with other settings: patches are (module of settings, name, value).
    Tests with the attribute xfail_prop are expected to fail."""
    made = type(f"{cls_prefix}{cls.__name__}", cls.__bases__, {"__qualname__": f"{cls_prefix}{cls.__name__}"})
    for name, value in inspect.getmembers_static(cls):
        if name.startswith("test_") and callable(value):
            test = _patched(value, patches)
            if xfail_prop is not None and hasattr(value, xfail_prop):
                test = unittest.expectedFailure(test)
            setattr(made, f"{name}{fn_suffix}", decorator(test))
        elif name in vars(cls) and name not in ("__dict__", "__weakref__", "__qualname__"):
            setattr(made, name, value)
    return made


def _patched(test, patches):
    @functools.wraps(test)
    def run(*args, **kwargs):
        with ExitStack() as stack:
            for settings, name, value in patches:
                stack.enter_context(settings.patch({name: value}))
            return test(*args, **kwargs)

    return run


def rand_strided(size, stride, dtype=rl.float32, device="cpu", extra_size=0):
    """Random values in a given layout, in memory with extra_size elements more."""
    needed = sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1 + extra_size
    if dtype.is_floating_point or dtype.is_complex:
        buffer = rl.randn(needed, dtype=dtype, device=device)
    else:
        buffer = rl.zeros(needed, dtype=dtype, device=device)
    return rl.as_strided(buffer, size, stride)


__getattr__ = _unsupported_attribute(__name__)
