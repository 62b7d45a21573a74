"""TorchScript's names. Code stays Python, with its pointwise arithmetic fused (rushlight.jit._fuse); modules get the
methods of scripted ones.
"""

import builtins
import contextlib
import functools
import typing
import warnings

import rushlight as rl
from rushlight._missing import absent as _absent
from rushlight._missing import teach as _teach
from rushlight.jit._module import (
    RecursiveScriptModule as RecursiveScriptModule,
)
from rushlight.jit._module import (
    ScriptModule as ScriptModule,
)
from rushlight.jit._module import (
    TopLevelTracedModule as TopLevelTracedModule,
)
from rushlight.jit._module import (
    TracedModule as TracedModule,
)
from rushlight.jit._module import (
    is_scripting as is_scripting,
)
from rushlight.jit._module import (
    load as load,
)
from rushlight.jit._module import (
    save as save,
)
from rushlight.jit._module import (
    scripted as _scripted,
)

Final = typing.Final
T = typing.TypeVar("T")


class Error(RuntimeError):
    """An error in compiled code."""


class TracerWarning(Warning):
    """A trace may not hold for other inputs."""

    @staticmethod
    def ignore_lib_warnings():
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class TracingCheckError(Exception):
    """A trace gave another result than the code."""


class ScriptFunction:
    """The type of compiled functions; functions here stay functions."""


class ScriptWarning(Warning):
    """Something about scripted code."""


class Attribute(typing.NamedTuple):
    """A value with a type."""

    value: object
    type: object


class CompilationUnit:
    """A set of compiled functions; compiling source text is not supported."""

    def __init__(self, lang=None, _frames_up=0):
        if lang is not None:
            raise NotImplementedError("CompilationUnit: write the functions in Python instead of in a text")


def _fused(obj):
    from rushlight.jit._fuse import fuse

    return fuse(obj)


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function, or the module as a ScriptModule, with its pointwise arithmetic fused: the same results, in fewer
    passes over memory. A class is returned as it is.
    """
    if builtins.isinstance(obj, rl.nn.Module):
        return _fused(_scripted(obj))
    if builtins.isinstance(obj, type):
        return obj
    if callable(obj):
        return _fused(obj)
    raise RuntimeError(f"Could not script {obj!r}: expected a function, a module or a class")


def trace(func, example_inputs=None, *args, example_kwarg_inputs=None, **options):
    """Runs the function or module once on the examples, so that errors show here, and returns it as script does."""
    if example_kwarg_inputs is not None:
        if not builtins.isinstance(example_kwarg_inputs, dict):
            raise RuntimeError("example_kwarg_inputs should be a dict")
        call = functools.partial(func, **example_kwarg_inputs)
        inputs = ()
    else:
        if example_inputs is None:
            raise RuntimeError("example_kwarg_inputs or example_inputs should not be None")
        call = func
        inputs = (
            (example_inputs,)
            if builtins.isinstance(example_inputs, (rl.Tensor, dict))
            else tuple(example_inputs)
        )
    if options.get("check_trace", True):
        with rl.no_grad():
            call(*inputs)
    if builtins.isinstance(func, rl.nn.Module):
        return _fused(_scripted(func, TopLevelTracedModule))
    return script(func)


def trace_module(mod, inputs, *args, **options):
    """Runs each named method once on its example inputs, and returns the module."""
    if not builtins.isinstance(mod, rl.nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    for name, given in inputs.items():
        with rl.no_grad():
            getattr(mod, name)(*((given,) if builtins.isinstance(given, rl.Tensor) else tuple(given)))
    return _fused(_scripted(mod, TopLevelTracedModule))


def ignore(drop=False, **kwargs):
    """Marks code that TorchScript would leave to Python: all of it is."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn):
    """Marks code that compiled models never call; called here, it runs."""
    return fn


def _same(obj=None, *args, **kwargs):
    return obj if obj is not None else lambda fn: fn


export = interface = script_method = _overload = _overload_method = _script_if_tracing = _same
optimize_for_inference = run_frozen_optimizations = script_if_tracing = _drop = _same
_disable_emit_hooks_decorator = unused


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The scripted module; there is nothing to freeze in Python."""
    if not builtins.isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script "
            "your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError("Freezing module in training mode is not yet supported: call eval() first")
    return mod


def annotate(the_type, the_value):
    """The value; the type is for readers."""
    return the_value


def isinstance(obj, target_type):  # noqa: A001
    """Whether an object is of a type, which may be generic (List[int])."""
    origin = typing.get_origin(target_type)
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        return any(isinstance(obj, t) for t in typing.get_args(target_type))
    if not builtins.isinstance(obj, origin):
        return False
    inner = typing.get_args(target_type)
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    if origin is tuple and not (len(inner) == 2 and inner[1] is Ellipsis):
        return len(obj) == len(inner) and all(map(isinstance, obj, inner))
    return all(isinstance(item, inner[0]) for item in obj) if inner else True


def is_tracing():
    return False


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name == "Future":
        from rushlight.futures import Future

        return Future
    return _teach(__name__)(name)


def _done(value):
    from rushlight.futures import Future

    future = Future()
    future.set_result(value)
    return future


def fork(func, *args, **kwargs):
    """Runs the function now; wait() gives its result."""
    return _done(func(*args, **kwargs))


def wait(future):
    return future.wait()


_fork, _wait = fork, wait


@contextlib.contextmanager
def optimized_execution(should_optimize):
    yield


@contextlib.contextmanager
def fuser(name):
    yield


@contextlib.contextmanager
def strict_fusion():
    yield


def set_fusion_strategy(strategy):
    return []


def enable_onednn_fusion(enabled):
    return None


def onednn_fusion_enabled():
    return False


def set_module(obj, mod):
    obj.__module__ = mod


def export_opnames(m):
    return []


class _IgnoreContextManager(contextlib.nullcontext):
    def __init__(self, **kwargs):
        super().__init__()


def _get_trace_graph(f, args=(), kwargs=None, strict=True, _force_outplace=False, return_inputs=False):
    """The graph that PyTorch's tracer would write down."""
    raise NotImplementedError("torch.jit._get_trace_graph: rushlight traces with torch.fx.symbolic_trace")


ScriptObject = _absent("jit.ScriptObject")
