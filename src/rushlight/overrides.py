"""The `__torch_function__` protocol: classes that take over functions called with their instances."""

import functools

import rushlight as rl
from rushlight._compose import _modes

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def _overrides(value):
    """Whether value's class brings its own __torch_function__ (a plain Tensor's does not count)."""
    kind = type(value)
    if kind is rl.Tensor or not hasattr(kind, "__torch_function__"):
        return False
    method = kind.__torch_function__
    if method is getattr(rl._C, "_disabled_torch_function_impl", None):
        return False
    return not (issubclass(kind, rl.nn.Parameter) and "__torch_function__" not in vars(kind))


def has_torch_function(relevant_args):
    """Whether any of the arguments overrides functions."""
    return any(map(_overrides, relevant_args))


def has_torch_function_unary(arg):
    return _overrides(arg)


def has_torch_function_variadic(*args):
    return any(map(_overrides, args))


def is_tensor_like(inp):
    """Whether inp is a Tensor or of a class with `__torch_function__`."""
    return type(inp) is rl.Tensor or hasattr(type(inp), "__torch_function__")


def _in_order(relevant_args):
    """One argument per overriding type: subclasses before their bases, otherwise from left to right."""
    chosen = []
    for arg in relevant_args:
        if not _overrides(arg) or any(type(arg) is type(other) for other in chosen):
            continue
        place = len(chosen)
        for i, other in enumerate(chosen):
            if issubclass(type(arg), type(other)):
                place = i
                break
        chosen.insert(place, arg)
    return chosen


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Let the overriding arguments compute public_api(*args, **kwargs); the first that does not decline "
    "wins."""
    overloaded = _in_order(relevant_args)
    types = tuple(type(arg) for arg in overloaded)
    for arg in overloaded:
        result = type(arg).__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: "
        f"{[type(arg) for arg in overloaded]}"
    )


def wrap_torch_function(dispatcher):
    """Decorator: make a Python function overridable; dispatcher(*args) returns the arguments that may "
    "override."""

    def decorate(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


_NOT_OVERRIDABLE = (
    "arange",
    "as_tensor",
    "empty",
    "eye",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "get_default_dtype",
    "is_grad_enabled",
    "is_tensor",
    "linspace",
    "load",
    "logspace",
    "manual_seed",
    "ones",
    "rand",
    "randint",
    "randn",
    "randperm",
    "save",
    "set_default_dtype",
    "tensor",
    "zeros",
)


def get_ignored_functions():
    """Functions that never look for overrides: they take no tensor, or must see the real one."""
    return {getattr(rl, name) for name in _NOT_OVERRIDABLE if hasattr(rl, name)}


def get_overridable_functions():
    """{namespace: [functions that look for overrides]} for the package, nn.functional and Tensor."""
    ignored = get_ignored_functions()
    result = {}
    for space in (rl, rl.nn.functional, rl.Tensor):
        functions = []
        for name in dir(space):
            if name.startswith("__") and space is not rl.Tensor:
                continue
            value = getattr(space, name, None)
            if callable(value) and not isinstance(value, type) and name[0] != "_":
                try:
                    if value not in ignored:
                        functions.append(value)
                except TypeError:
                    continue
        result[space] = functions
    return result


def is_tensor_method_or_property(func):
    """Whether func is one of Tensor's methods, or the getter of one of its properties."""
    if getattr(func, "__name__", "") == "__get__":
        return True
    return any(value is func for value in vars(rl.Tensor).values())


def resolve_name(f):
    """A readable name of an overridable function: "torch.add", "torch.Tensor.add"; None if it has none."""
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    if getattr(rl.Tensor, name, None) is f:
        return f"torch.Tensor.{name}"
    if getattr(rl, name, None) is f:
        return f"torch.{name}"
    if getattr(rl.nn.functional, name, None) is f:
        return f"torch.nn.functional.{name}"
    return None


class TorchFunctionMode:
    """A block in which every function of tensors goes through the mode's __torch_function__.

    Inside that method the mode is off, so the function that it is given can be called.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        self.__dict__.setdefault("_before", []).append(rl._C.ops["_swap_function_mode"](self._dispatch))
        _modes.append(self)
        return self

    def __exit__(self, *exc):
        _modes.remove(self)
        rl._C.ops["_swap_function_mode"](self._before.pop())

    def _dispatch(self, func, types, args, kwargs):
        swap = rl._C.ops["_swap_function_mode"]
        mine = swap(self._before[-1])
        try:
            return self.__torch_function__(func, types, args, kwargs)
        finally:
            swap(mine)

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def get_default_nowrap_functions():
    """Functions whose results are never given the class of a subclass."""
    from rushlight._tensor import _KEEPS_CLASS

    return set(_KEEPS_CLASS)


def get_testing_overrides():
    """{function: a stand-in with its signature} for the functions that look for overrides."""
    return {f: (lambda *args, **kwargs: -1) for fs in get_overridable_functions().values() for f in fs}


def enable_reentrant_dispatch():
    import contextlib

    return contextlib.nullcontext()


from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
