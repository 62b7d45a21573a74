"""The `__torch_function__` protocol: classes and modes that take over functions."""

from __future__ import annotations

import contextlib
import functools
import threading
import types as pytypes
from collections.abc import Callable, Iterable
from typing import Any, Self

import rushlight as rl
from rushlight import _C
from rushlight._core.methods import modes as _modes

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_state, _swap_state = _C.ops["_overriding"], _C.ops["_swap_overriding"]
_innermost, _stack = _C.ops["_function_mode"], _C.ops["_function_modes"]
_push, _pop = _C._push_function_mode, _C.ops["_pop_function_mode"]


def _overrides(value):
    """Whether value's class brings a __torch_function__ (a plain Tensor's does not count)."""
    kind = type(value)
    if kind is rl.Tensor or hasattr(kind, "_plain_in_pytorch"):
        return False
    method = getattr(kind, "__torch_function__", None)
    return method is not None and method is not _C._disabled_torch_function_impl


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Tells whether a mode is on, or any of the arguments is of a class that takes over functions.

    Args:
        relevant_args (tuple or list): the arguments.

    Example:
        >>> class Mine(torch.Tensor):
        ...     pass
        >>> torch.overrides.has_torch_function([torch.ones(1)])
        False
        >>> torch.overrides.has_torch_function([torch.ones(1).as_subclass(Mine)])
        True
    """
    if not isinstance(relevant_args, (tuple, list)):
        raise TypeError(f"expected a sequence, got {type(relevant_args).__name__}")
    return has_torch_function_variadic(*relevant_args)


def has_torch_function_unary(arg):
    """has_torch_function of one argument.

    Args:
        arg (object): the argument.

    Example:
        >>> torch.overrides.has_torch_function_unary(torch.ones(1))
        False
    """
    return has_torch_function_variadic(arg)


def has_torch_function_variadic(*args: Any) -> bool:
    """has_torch_function of several arguments, which need no tuple.

    Args:
        *args (object): the arguments.

    Example:
        >>> torch.overrides.has_torch_function_variadic(torch.ones(1), 2)
        False
    """
    if getattr(_skipped, "next", False):
        _skipped.next = False
        return False
    if _modes and _innermost() is not None:
        return True
    return _state() == 0 and any(map(_overrides, args))


def is_tensor_like(inp: object) -> bool:
    """Tells whether an object is a Tensor, or of a class with __torch_function__.

    Args:
        inp (object): any.

    Example:
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1.0)
        (True, False)
    """
    return type(inp) is rl.Tensor or hasattr(type(inp), "__torch_function__")


_skipped = threading.local()  # .next: the next question whether somebody takes over is answered with no


def redispatch_function(func, types, args, kwargs):
    """func(*args, **kwargs) as if nobody took it over; what it calls in turn may be taken over again."""
    kwargs = kwargs or {}
    inner = getattr(func, "__wrapped__", None)
    if inner is not None and getattr(func, "__module__", "").startswith("rushlight"):
        return inner(*args, **kwargs)
    if isinstance(func, pytypes.FunctionType):
        _skipped.next = True
        try:
            return func(*args, **kwargs)
        finally:
            _skipped.next = False
    before = _swap_state(2)
    try:
        return func(*args, **kwargs)
    finally:
        _swap_state(before)


def _get_overloaded_args(relevant_args, get_type_fn=type):
    """One argument per overriding type: subclasses before their bases, otherwise from left to right."""
    chosen: list[Any] = []
    if _state() != 0:
        return chosen
    for arg in relevant_args:
        kind = get_type_fn(arg)
        if not _overrides(arg) or any(kind is get_type_fn(other) for other in chosen):
            continue
        at = next((i for i, other in enumerate(chosen) if issubclass(kind, get_type_fn(other))), len(chosen))
        chosen.insert(at, arg)
    return chosen


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Lets a mode, then the classes of arguments that take over compute a function's result.

    The first that does not return NotImplemented wins; subclasses come before their bases.

    Args:
        public_api (callable): the function that was called.
        relevant_args (sequence): the arguments whose classes are asked.
        *args (object): of the call.
        **kwargs (object): of the call.

    Raises:
        TypeError: nobody takes over.

    Example:
        >>> class Mine:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return "mine"
        >>> torch.overrides.handle_torch_function(torch.exp, (Mine(),), Mine())
        'mine'
    """
    overloaded = _get_overloaded_args(relevant_args)
    types = tuple(map(type, overloaded))
    mode = _innermost() if _modes else None
    if mode is not None:
        with _pop_mode_temporarily() as mode:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for arg in overloaded:
        method = arg.__torch_function__
        if getattr(method, "__self__", None) is arg:
            import warnings

            warnings.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, "
                "please define it as a classmethod.",
                DeprecationWarning,
                stacklevel=2,
            )
        result = method(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return _nobody_handles(public_api, mode, types)


def _nobody_handles(public_api, mode, types):
    if getattr(public_api, "__module__", None):
        name = f"{public_api.__module__}.{public_api.__name__}"
    else:
        name = getattr(public_api, "__name__", str(public_api))
    name = name.replace("rushlight", "torch", 1)
    if mode is None:
        raise TypeError(
            f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}"
        )
    asked = [f"  - mode object {mode!r}", *(f"  - tensor subclass {kind!r}" for kind in types)]
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "\n".join(asked)
    )


def wrap_torch_function(dispatcher):
    """Decorator of Python functions that classes with __torch_function__ may take over.

    Args:
        dispatcher (callable): gets the arguments and returns those whose classes are asked.

    Example:
        >>> @torch.overrides.wrap_torch_function(lambda x: (x,))
        ... def double(x):
        ...     return x * 2
        >>> double(torch.ones(2))
        tensor([2., 2.])
    """

    def decorate(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(tuple(relevant)):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


class TorchFunctionMode:
    """A region in which every function of tensors goes through the mode's __torch_function__.

    Inside that method the mode is off, so that the function that it is given can be called.

    Example:
        >>> class Names(torch.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     _ = torch.ones(2).exp()
        ones
        exp
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self) -> Self:
        _push(self)
        _modes.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _modes.remove(self)
        _pop()

    @classmethod
    def push(cls, *args, **kwargs):
        """An instance of the mode, as the class itself makes it."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing, to derive from.

    Example:
        >>> with torch.overrides.BaseTorchFunctionMode():
        ...     print(torch.ones(2))
        tensor([1., 1.])
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    """The innermost mode of this thread, or None."""
    return next(reversed(_stack()), None)


def _get_current_function_mode_stack():
    """The modes of this thread, outermost first."""
    return _stack()


@contextlib.contextmanager
def _pop_mode_temporarily():
    """A block without the innermost mode, which it gives."""
    mode = _pop()
    try:
        yield mode
    finally:
        _push(mode)


@contextlib.contextmanager
def _enable_torch_function():
    """A block in which classes and modes take over again, inside one in which they do not."""
    before = _swap_state(0)
    try:
        yield
    finally:
        _swap_state(before)


def get_default_nowrap_functions():
    """The functions whose results are not given the class of a subclass.

    Example:
        >>> torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
        True
    """
    from rushlight._tensor import _KEEPS_CLASS

    return set(_KEEPS_CLASS)


def enable_reentrant_dispatch():
    """A region inside a __torch_dispatch__ in which calls are recorded by autograd again.

    Example:
        >>> with torch.overrides.enable_reentrant_dispatch():
        ...     pass
    """
    return rl._C._RestorePythonTLSSnapshot()


def _listed(name, doc):
    """A function of _overridable, which is loaded when it is called: few programs ask."""

    def function(*args):
        from rushlight._compat import overridable as _overridable

        return getattr(_overridable, name)(*args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


get_ignored_functions = _listed(
    "get_ignored_functions",
    """The set of functions that never ask classes to take over: they take no tensor, or must see the real one.

    Example:
        >>> torch.is_tensor in torch.overrides.get_ignored_functions()
        True
    """,
)
get_overridable_functions = _listed(
    "get_overridable_functions",
    """The functions that classes may take over, as lists by their namespace: {namespace: [functions]}.

    Example:
        >>> torch.exp in torch.overrides.get_overridable_functions()[torch]
        True
    """,
)
get_testing_overrides = _listed(
    "get_testing_overrides",
    """A stand-in with its signature for each function that classes may take over: {function: stand-in}.

    Example:
        >>> import inspect
        >>> "input" in inspect.signature(torch.overrides.get_testing_overrides()[torch.add]).parameters
        True
    """,
)
is_tensor_method_or_property = _listed(
    "is_tensor_method_or_property",
    """Tells whether a function is a method of Tensor, or the getter of an attribute.

    Args:
        func (callable): the function.

    Example:
        >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
        True
    """,
)
resolve_name = _listed(
    "resolve_name",
    """The name of a function that classes may take over, as an expression; None for others.

    Args:
        f (callable): the function.

    Example:
        >>> torch.overrides.resolve_name(torch.Tensor.add)
        'torch.Tensor.add'
    """,
)

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
