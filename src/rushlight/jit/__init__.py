"""TorchScript's names. Code stays Python, with its pointwise arithmetic fused (rushlight.jit._fuse); modules get the
methods of scripted ones.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import typing
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import rushlight as rl
from rushlight._core.unsupported import placeholder as _placeholder
from rushlight._core.unsupported import submodules as _submodules
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
    def ignore_lib_warnings() -> None:
        """Silences these warnings for code of the library itself."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class TracingCheckError(Exception):
    """A trace gave another result than the code."""


class ScriptFunction:
    """The type of compiled functions, for isinstance; functions here stay functions.

    Example:
        >>> isinstance(torch.jit.script(lambda x: x), torch.jit.ScriptFunction)
        False
    """


class ScriptWarning(Warning):
    """Something about scripted code."""


class Attribute(typing.NamedTuple):
    """A value together with its type, as TorchScript modules keep constants.

    Args:
        value (object): the value.
        type (type): its type, for readers.

    Example:
        >>> torch.jit.Attribute(3, int).value
        3
    """

    value: object
    type: object


class CompilationUnit:
    """A set of compiled functions; compiling source text is not supported.

    Args:
        lang (str): must be None. Default: None

    Raises:
        NotImplementedError: a text is given.

    Example:
        >>> unit = torch.jit.CompilationUnit()
    """

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        if lang is not None:
            raise NotImplementedError("CompilationUnit: write the functions in Python instead of in a text")


def _fused(obj: Any) -> Any:
    from rushlight.jit._fuse import fuse

    return fuse(obj)


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable[[str], Any] | None = None,
    example_inputs: Any = None,
) -> Any:
    """A function, or a module as a ScriptModule, with its pointwise arithmetic fused.

    Code stays Python: results are the same, in fewer passes over memory. Successive pointwise statements become
    one loop, which has its own backward. A class is returned as it is.

    Args:
        obj (callable or nn.Module): what to script.
        optimize (object): accepted. Default: None
        example_inputs (object): accepted. Default: None

    Example:
        >>> @torch.jit.script
        ... def gelu(x):
        ...     inner = 0.79788456 * (x + 0.044715 * x**3)
        ...     return 0.5 * x * (1 + torch.tanh(inner))
        >>> gelu(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8412])
    """
    if builtins.isinstance(obj, rl.nn.Module):
        return _fused(_scripted(obj))
    if builtins.isinstance(obj, type):
        return obj
    if callable(obj):
        return _fused(obj)
    raise RuntimeError(f"Could not script {obj!r}: expected a function, a module or a class")


def trace(
    func: Any, example_inputs: Any = None, *args: Any, example_kwarg_inputs: Any = None, **options: Any
) -> Any:
    """Runs a function or module once on examples, so that errors show here, and returns it as script does.

    Control flow stays what it is: nothing is frozen to the path of the examples.

    Args:
        func (callable or nn.Module): what to trace.
        example_inputs (Tensor, tuple or dict): the positional arguments; what is no tuple is the only one.
            Default: None
        *args (object): accepted.
        example_kwarg_inputs (dict): keyword arguments, instead. Default: None
        **options (object): check_trace=False leaves the run out; the others are accepted.

    Example:
        >>> model = torch.jit.trace(nn.Linear(2, 1), torch.ones(1, 2))
        >>> type(model).__name__, model(torch.ones(3, 2)).shape
        ('TopLevelTracedModule', torch.Size([3, 1]))
    """
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


def trace_module(mod: Any, inputs: Any, *args: Any, **options: Any) -> Any:
    """Runs each named method of a module once on its example inputs, and returns the module as script does.

    Args:
        mod (nn.Module): the module.
        inputs (dict): {name of a method: Tensor or tuple of arguments}.
        *args (object): accepted.
        **options (object): accepted.

    Example:
        >>> model = torch.jit.trace_module(nn.ReLU(), {"forward": torch.ones(2)})
        >>> model(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """
    if not builtins.isinstance(mod, rl.nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    for name, given in inputs.items():
        with rl.no_grad():
            getattr(mod, name)(*((given,) if builtins.isinstance(given, rl.Tensor) else tuple(given)))
    return _fused(_scripted(mod, TopLevelTracedModule))


def ignore(drop: bool = False, **kwargs: Any) -> Any:
    """Marks code that TorchScript would leave to Python: here, all of it is.

    Args:
        drop (bool): accepted. Default: False
        **kwargs (object): accepted.

    Example:
        >>> @torch.jit.ignore
        ... def shout(x):
        ...     return x + 1
        >>> shout(1)
        2
    """
    return drop if callable(drop) else lambda fn: fn


_F = TypeVar("_F", bound=Callable[..., Any])


def unused(fn: _F) -> _F:
    """Marks code that compiled models never call; called here, it runs.

    Args:
        fn (callable): the function, which is returned.

    Example:
        >>> @torch.jit.unused
        ... def helper(x):
        ...     return x + 1
        >>> helper(1)
        2
    """
    return fn


def _same(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Returns what it is given, or a decorator that does: code stays Python, and there is nothing to mark in it.

    The names export, interface, script_method, script_if_tracing, optimize_for_inference and
    run_frozen_optimizations are this function.

    Args:
        obj (object): a function, class or module; None gives the decorator. Default: None
        *args (object): accepted.
        **kwargs (object): accepted.

    Example:
        >>> @torch.jit.export
        ... def helper(x):
        ...     return x + 1
        >>> helper(1)
        2
    """
    return obj if obj is not None else lambda fn: fn


export = interface = script_method = _overload = _overload_method = _script_if_tracing = _same
optimize_for_inference = run_frozen_optimizations = script_if_tracing = _drop = _same
_disable_emit_hooks_decorator = unused


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Checks that a scripted module is in eval mode, and returns it; there is nothing to freeze in Python.

    Args:
        mod (ScriptModule): the module.
        preserved_attrs (list): accepted. Default: None
        optimize_numerics (bool): accepted. Default: True

    Raises:
        RuntimeError: the module is not scripted, or in training mode.

    Example:
        >>> model = torch.jit.freeze(torch.jit.script(nn.ReLU()).eval())
        >>> model(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """
    if not builtins.isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script "
            "your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError("Freezing module in training mode is not yet supported: call eval() first")
    return mod


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns the value; the type is for readers.

    Args:
        the_type (type): of the value.
        the_value (object): which is returned.

    Example:
        >>> torch.jit.annotate(list, [1, 2])
        [1, 2]
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> Any:  # noqa: A001
    """Tells whether an object is of a type, which may be generic: list[int].

    Args:
        obj (object): any.
        target_type (type): a class, a generic type with types of items, or a union.

    Example:
        >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance(["a"], list[int])
        (True, False)
    """
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


def is_tracing() -> Any:
    """Tells whether a tracer records this call: never, since jit.trace runs plain Python.

    Example:
        >>> torch.jit.is_tracing()
        False
    """
    return False


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> Any:
    if name == "Future":
        from rushlight.futures import Future

        return Future
    return _submodules(__name__)(name)


def _done(value: Any) -> Any:
    from rushlight.futures import Future

    future = Future()
    future.set_result(value)
    return future


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs a function now, and gives a future of its result.

    Args:
        func (callable): what to run.
        *args (object): its arguments.
        **kwargs (object): its keyword arguments.

    Example:
        >>> future = torch.jit.fork(torch.add, torch.ones(2), 1)
        >>> torch.jit.wait(future)
        tensor([2., 2.])
    """
    return _done(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """The value of a future that jit.fork gave.

    Args:
        future (Future): the future.

    Example:
        >>> torch.jit.wait(torch.jit.fork(max, 1, 2))
        2
    """
    return future.wait()


_fork, _wait = fork, wait


@contextlib.contextmanager
def optimized_execution(should_optimize: Any) -> Any:
    """A region with or without TorchScript's optimizations; it does nothing, as code stays Python.

    Args:
        should_optimize (bool): accepted.

    Example:
        >>> with torch.jit.optimized_execution(False):
        ...     pass
    """
    yield


@contextlib.contextmanager
def fuser(name: str) -> Any:
    """A region with a certain fuser of TorchScript; it does nothing, as there is only one.

    Args:
        name (str): accepted.

    Example:
        >>> with torch.jit.fuser("fuser2"):
        ...     pass
    """
    yield


@contextlib.contextmanager
def strict_fusion() -> Any:
    """A region in which TorchScript reports what it could not fuse; it does nothing here.

    Example:
        >>> with torch.jit.strict_fusion():
        ...     pass
    """
    yield


def set_fusion_strategy(strategy: Any) -> Any:
    """Accepts a strategy of TorchScript's fuser, without effect.

    Args:
        strategy (list): accepted.

    Returns:
        An empty list.

    Example:
        >>> torch.jit.set_fusion_strategy([("DYNAMIC", 3)])
        []
    """
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepts the switch of oneDNN's fuser, without effect.

    Args:
        enabled (bool): accepted.

    Example:
        >>> torch.jit.enable_onednn_fusion(True)
    """


def onednn_fusion_enabled() -> Any:
    """Tells whether oneDNN fuses: never.

    Example:
        >>> torch.jit.onednn_fusion_enabled()
        False
    """
    return False


def set_module(obj: Any, mod: Any) -> None:
    """Sets the module that an object says it comes from.

    Args:
        obj (object): a function or class.
        mod (str): the name of the module.

    Example:
        >>> def f(): ...
        >>> torch.jit.set_module(f, "mine")
        >>> f.__module__
        'mine'
    """
    obj.__module__ = mod


def export_opnames(m: Any) -> Any:
    """The names of the operators that an exported module needs: none are exported.

    Args:
        m (ScriptModule): accepted.

    Example:
        >>> torch.jit.export_opnames(torch.jit.script(nn.ReLU()))
        []
    """
    return []


class _IgnoreContextManager(contextlib.nullcontext[Any]):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
) -> Any:
    """The graph that PyTorch's tracer would write down."""
    raise NotImplementedError("torch.jit._get_trace_graph: rushlight traces with torch.fx.symbolic_trace")


ScriptObject = _placeholder("jit.ScriptObject")
