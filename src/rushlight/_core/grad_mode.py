"""no_grad, enable_grad, set_grad_enabled, inference_mode: contexts, and decorators of functions and generators."""

from __future__ import annotations

import functools

from .. import _C

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from collections.abc import Callable
    from typing import Any, Self, TypeVar, overload

    _F = TypeVar("_F", bound=Callable[..., Any])
else:
    Any = _F = object

_set = _C.ops["_set_grad_enabled"]
_set_inference = _C.ops["_set_inference"]


class _Mode:
    """A context that can also wrap a function; each use is a fresh context."""

    if TYPE_CHECKING:

        def __enter__(self) -> Any: ...
        def __exit__(self, *error: Any) -> None: ...

    def clone(self) -> Self:
        return type(self)()

    def __call__(self, function: _F) -> _F:
        import inspect

        if isinstance(function, type):
            import warnings

            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            function.__init__ = self(function.__init__)  # type: ignore[misc]
            return function
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _wrap_generator(self, function):
        """The mode holds while the generator's own code runs, not while its user's does."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            try:
                with self.clone():
                    item = generator.send(None)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            item = generator.throw(error)
                    else:
                        with self.clone():
                            item = generator.send(sent)
            except StopIteration as stop:
                return stop.value

        return wrapped


class no_grad(_Mode):
    """A region in which calls are not recorded: results do not ask for gradients.

    A context, and a decorator of functions and generators. Functions that make tensors with requires_grad=True
    are not affected. It holds for the current thread.

    Args:
        function (callable): what is decorated, where it stands without brackets. Default: None

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
        >>> @torch.no_grad()
        ... def double(x):
        ...     return x * 2
        >>> double(x).requires_grad
        False
    """

    if TYPE_CHECKING:

        @overload
        def __new__(cls) -> Self: ...
        @overload
        def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]
        def __new__(cls, function: Any = None) -> Any: ...

    else:  # a context, or the function wrapped

        def __new__(cls, function=None):
            mode = object.__new__(cls)
            return mode if function is None else mode(function)

    def __enter__(self) -> None:
        self.before = _set(False)

    def __exit__(self, *error: object) -> None:
        _set(self.before)


class enable_grad(_Mode):
    """A region in which calls are recorded again, inside no_grad or set_grad_enabled(False).

    A context, and a decorator of functions and generators.

    Args:
        function (callable): what is decorated, where it stands without brackets. Default: None

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     with torch.enable_grad():
        ...         y = x * 2
        >>> y.requires_grad
        True
    """

    if TYPE_CHECKING:

        @overload
        def __new__(cls) -> Self: ...
        @overload
        def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]
        def __new__(cls, function: Any = None) -> Any: ...

    else:  # a context, or the function wrapped

        def __new__(cls, function=None):
            mode = object.__new__(cls)
            return mode if function is None else mode(function)

    def __enter__(self) -> None:
        self.before = _set(True)

    def __exit__(self, *error: object) -> None:
        _set(self.before)


class set_grad_enabled(_Mode):
    """Switches recording on or off: at once, and as a context until its end.

    Args:
        mode (bool): True records, False does not.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> training = False
        >>> with torch.set_grad_enabled(training):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self.before = _set(self.mode)

    def __call__(self, function: _F) -> _F:
        _set(self.before)
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        _set(self.mode)

    def __exit__(self, *error: object) -> None:
        _set(self.before)


class inference_mode(_Mode):
    """A region without recording, and without the bookkeeping of views and writes that recording needs later.

    Tensors made inside are inference tensors: they may not enter a recorded call that would save them. A
    context, and a decorator.

    Args:
        mode (bool): False leaves an outer inference mode for the region. Default: True

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.inference_mode():
        ...     y = x * 2
        >>> y.requires_grad, y.is_inference()
        (False, True)
    """

    if TYPE_CHECKING:

        @overload
        def __new__(cls, mode: bool = ...) -> Self: ...
        @overload
        def __new__(cls, mode: _F) -> _F: ...  # type: ignore[misc]
        def __new__(cls, mode: Any = True) -> Any: ...

    else:  # a context, or the function wrapped

        def __new__(cls, mode=True):
            made = object.__new__(cls)
            if not isinstance(mode, bool):
                made.mode = True
                return made(mode)
            return made

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode if isinstance(mode, bool) else True

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.before = (
            _set(not self.mode if self.mode else _C.ops["is_grad_enabled"]()),
            _set_inference(self.mode),
        )

    def __exit__(self, *error: object) -> None:
        grad, inference = self.before
        _set(grad)
        _set_inference(inference)


for _kind in (no_grad, enable_grad, set_grad_enabled, inference_mode):
    _kind.__module__ = "rushlight.autograd.grad_mode"  # where they are looked for
