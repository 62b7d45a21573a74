"""no_grad, enable_grad, set_grad_enabled, inference_mode: contexts, and decorators of functions and generators."""

import functools

from . import _C

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any

_set = _C.ops["_set_grad_enabled"]
_set_inference = _C.ops["_set_inference"]


class _Mode:
    """A context that can also wrap a function; each use is a fresh context."""

    def clone(self):
        return type(self)()

    def __call__(self, function):
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
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

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
    """Calls are not recorded: results do not ask for gradients."""

    def __new__(cls, function: "Any" = None) -> "Any":  # a context, or the function wrapped
        mode = object.__new__(cls)
        return mode if function is None else mode(function)

    def __enter__(self):
        self.before = _set(False)

    def __exit__(self, *error):
        _set(self.before)


class enable_grad(_Mode):
    """Calls are recorded again, inside no_grad."""

    def __new__(cls, function: "Any" = None) -> "Any":  # a context, or the function wrapped
        mode = object.__new__(cls)
        return mode if function is None else mode(function)

    def __enter__(self):
        self.before = _set(True)

    def __exit__(self, *error):
        _set(self.before)


class set_grad_enabled(_Mode):
    """Recording on or off, at once; as a context, until its end."""

    def __repr__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def __init__(self, mode):
        self.mode = bool(mode)
        self.before = _set(self.mode)

    def __call__(self, function):
        _set(self.before)
        return super().__call__(function)

    def clone(self):
        return set_grad_enabled(self.mode)

    def __enter__(self):
        _set(self.mode)

    def __exit__(self, *error):
        _set(self.before)


class inference_mode(_Mode):
    """No recording, and no bookkeeping of views and writes either."""

    def __new__(cls, mode: "Any" = True) -> "Any":  # a context, or the function wrapped
        made = object.__new__(cls)
        if not isinstance(mode, bool):
            made.mode = True
            return made(mode)
        return made

    def __init__(self, mode=True):
        self.mode = mode if isinstance(mode, bool) else True

    def clone(self):
        return inference_mode(self.mode)

    def __enter__(self):
        self.before = (
            _set(not self.mode if self.mode else _C.ops["is_grad_enabled"]()),
            _set_inference(self.mode),
        )

    def __exit__(self, *error):
        grad, inference = self.before
        _set(grad)
        _set_inference(inference)


for _kind in (no_grad, enable_grad, set_grad_enabled, inference_mode):
    _kind.__module__ = "rushlight.autograd.grad_mode"  # where they are looked for
