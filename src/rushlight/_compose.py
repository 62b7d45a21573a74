"""Ops written in Python: composed of other ops, differentiable for free.

`@op(...)` in a module under `rushlight._ops` makes a function of the package; `method`, `inplace` and `out` derive the
other forms, as a registration in C++ does. `name` puts it in a namespace ("linalg.cond"). `differentiable=False` says
that its results have no history by intent.
"""

import functools
import importlib
import os

from . import _C
from ._C import Tensor

_composed = {}


def op(function=None, *, method=False, inplace=False, out=False, name=None, alias=(), differentiable=True):
    if function is None:
        return functools.partial(
            op, method=method, inplace=inplace, out=out, name=name, alias=alias, differentiable=differentiable
        )
    name = name or function.__name__
    short = name.rsplit(".", 1)[-1]

    overridable = _overridable(function)
    if out:
        overridable = _with_out(overridable)
    overridable._differentiable = differentiable
    _composed[name] = overridable
    for other in alias:
        _composed[other] = overridable
    for method_name in (short, *alias) if method else ():
        if "." not in method_name:
            setattr(Tensor, method_name, overridable)
    if inplace:
        in_place = _in_place(function)
        for n in (short, *alias):
            if "." not in n:
                setattr(Tensor, n + "_", in_place)
                _composed.setdefault(n + "_", in_place)
    return function


_disabled = _C._disabled_torch_function_impl
modes = []  # TorchFunctionModes that see composed ops, of all threads


def _overridable(function):
    """Lets subclasses of Tensor take over, as for ops in C++."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if modes:
            from .overrides import call_mode

            return call_mode(wrapper, args, kwargs)
        for a in args:
            if (
                type(a) is not Tensor
                and isinstance(a, Tensor)
                and type(a).__torch_function__ is not _disabled
            ):
                return _call_override(wrapper, args, kwargs)
        return function(*args, **kwargs)

    return wrapper


def _call_override(function, args, kwargs):
    types = tuple({type(a) for a in args if isinstance(a, Tensor) and type(a) is not Tensor})
    before = _C.ops["_set_torch_function"](True)
    _C.ops["_set_torch_function"](before)
    if not before:
        return function.__wrapped__(*args, **kwargs)
    for t in types:
        result = t.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for '{function.__name__}' on types that implement __torch_function__"
    )


def _with_out(function):
    @functools.wraps(function)
    def wrapper(*args, out=None, **kwargs):
        result = function(*args, **kwargs)
        return result if out is None else _C.ops["_write_out"](function.__name__, out, result)

    return wrapper


def _in_place(function):
    """x.f_(...): computes f(x, ...) and moves the result, its history included, into x."""

    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        return _C.ops["_assign"](function.__name__, self, function(self, *args, **kwargs))

    wrapper.__name__ += "_"
    return wrapper


def compose(namespace):
    """Imports every module of rushlight._ops and adds what it made to the package's namespace."""
    package = importlib.import_module("rushlight._ops")
    for file in sorted(os.listdir(package.__path__[0])):  # pkgutil would import inspect: a tenth of the whole
        if file.endswith(".py") and not file.startswith("_"):
            importlib.import_module(f"rushlight._ops.{file[:-3]}")
    namespace.update({name: f for name, f in _composed.items() if "." not in name})


def functions_of(prefix):
    """The ops of a namespace, C++ and Python: {short name: function} for all "prefix.name"."""
    found = {n[len(prefix) + 1 :]: f for n, f in _C.ops.items() if n.startswith(prefix + ".")}
    found.update({n[len(prefix) + 1 :]: f for n, f in _composed.items() if n.startswith(prefix + ".")})
    return found
