"""Ops written in Python: composed of other ops, differentiable for free.

`@op(...)` in a module under `rushlight._ops` makes a function of the package; `method`, `inplace` and `out` derive the
other forms, as a registration in C++ does; out="exact" takes no other type than the result's own. `name` puts it in a namespace ("linalg.cond"). `differentiable=False` says
that its results have no history by intent.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types

from .. import _C
from .._C import Tensor
from .documentation import alias_of, dedent
from .documentation import in_place as in_place_text
from .methods import modes

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    _F = TypeVar("_F", bound=Callable[..., Any])

_composed: dict = {}
# Namespaces whose functions PyTorch calls linalg_inv, in modules of their own; and what lives in torch.functional.
_JOINED = ("linalg", "fft", "special")
_HOMES = {space: f"_C._{space}" for space in _JOINED} | dict.fromkeys(
    ("atleast_1d", "atleast_2d", "atleast_3d", "align_tensors", "block_diag", "broadcast_tensors", "cartesian_prod",
     "cdist", "chain_matmul", "einsum", "lu", "norm", "meshgrid", "split", "stft", "tensordot", "unique",
     "unique_consecutive", "unravel_index"), "functional"
) | {"nn.functional.one_hot": "_C._nn", "lobpcg": "_lobpcg", "pca_lowrank": "_lowrank", "svd_lowrank": "_lowrank"}  # fmt: skip


class _Joined(types.ModuleType):
    """rushlight._C._linalg: the functions of a namespace under their joined names."""

    def __getattr__(self, name):
        space = self.__name__.rpartition("_")[2]
        found = None if name.startswith("__") else functions_of(space).get(name.removeprefix(space + "_"))
        if found is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return found


class _CModule(types.ModuleType):
    """rushlight._C._profiler and _C._nn, which few programs ask for as modules."""

    def __getattr__(self, name):
        from .._compat import c_names as _c_names

        return getattr(getattr(_c_names, self.__name__.rpartition(".")[2]), name)


for _space in ("_profiler", "_nn"):
    sys.modules[f"rushlight._C.{_space}"] = _CModule(f"rushlight._C.{_space}")
for _space in _JOINED:
    sys.modules[f"rushlight._C._{_space}"] = _Joined(f"rushlight._C._{_space}")


if TYPE_CHECKING:

    @overload
    def op(
        function: _F,
        *,
        method: bool = ...,
        inplace: bool = ...,
        out: bool | str = ...,
        name: str | None = ...,
        alias: tuple[str, ...] = ...,
        spread: bool = ...,
        differentiable: bool = ...,
    ) -> _F: ...
    @overload
    def op(
        *,
        method: bool = ...,
        inplace: bool = ...,
        out: bool | str = ...,
        name: str | None = ...,
        alias: tuple[str, ...] = ...,
        spread: bool = ...,
        differentiable: bool = ...,
    ) -> Callable[[_F], _F]: ...


def op(
    function: Any = None,
    *,
    method: bool = False,
    inplace: bool = False,
    out: bool | str = False,
    name: str | None = None,
    alias: tuple[str, ...] = (),
    spread: bool = False,
    differentiable: bool = True,
) -> Any:
    if function is None:
        return functools.partial(
            op,
            method=method,
            inplace=inplace,
            out=out,
            name=name,
            alias=alias,
            spread=spread,
            differentiable=differentiable,
        )
    name = name or function.__name__
    short = name.rsplit(".", 1)[-1]

    for public_name in (name, *alias):
        overridable = _overridable(function, spread, out)
        overridable._differentiable = differentiable
        space, _, last = public_name.rpartition(".")
        # Where it is found, for pickles.
        home = _HOMES.get(public_name) or _HOMES.get(space or public_name, space)
        overridable.__module__ = f"rushlight.{home}" if home else "rushlight"
        overridable.__qualname__ = overridable.__name__ = f"{space}_{last}" if space in _JOINED else last
        if public_name != name:
            overridable.__doc__ = dedent(function.__doc__ or "") + alias_of(name)
        _composed[public_name] = overridable
    if method:  # an object of its own, so that those who take over can tell x.f() from f(x)
        of_tensor = _overridable(function, spread, out)
        of_tensor._differentiable = differentiable
        of_tensor.__name__, of_tensor.__module__ = short, "rushlight"
        of_tensor.__qualname__ = f"Tensor.{short}"
        for method_name in (short, *alias):
            if "." not in method_name:
                setattr(Tensor, method_name, of_tensor)
    if inplace:
        in_place = _in_place(function)
        in_place.__doc__ = in_place_text(name)
        for n in (short, *alias):
            if "." not in n:
                setattr(Tensor, n + "_", in_place)
                _composed.setdefault(n + "_", in_place)
    return function


_disabled = _C._disabled_torch_function_impl
_ask = Tensor._ask  # type: ignore[attr-defined]
_function_mode, _override_state = _C.ops["_function_mode"], _C.ops["_overriding"]


# Types met among arguments: whether they bring a __torch_function__. Grows by one entry a type.
_overriding = {Tensor: False, int: False, float: False, bool: False, str: False, type(None): False}


def _overrides(value):
    """Whether an argument, or the first item of a list of them, is of a class that takes over functions."""
    kind = type(value)
    if kind is tuple or kind is list:
        return any(type(item) is not int and _overrides(item) for item in value[:8])
    found = _overriding.get(kind)
    if found is None:
        method = getattr(kind, "__torch_function__", None)
        found = _overriding[kind] = method is not None and method is not _disabled
    return found


# NumPy's names of parameters, which torch accepts too.
_SPELLINGS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def _spelled(name, names):
    other = _SPELLINGS.get(name)
    return other if other in names and name not in names else name


def _overridable(function: _F, spread: bool = False, out: bool | str = False) -> _F:
    """Lets classes with __torch_function__ take over (subclasses of Tensor, and others), as for ops in C++.

    `spread`: f(x, [a, b]) counts as f(x, a, b), also for those who take over. `out`: as for `op`.
    """
    plain = _overriding
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()

    def run(args, kwargs):
        target = kwargs.pop("out", None) if out else None
        result = function(*args, **kwargs)
        if target is None:
            return result
        return _C.ops["_write_out"](wrapper.__name__, target, result, out == "exact")

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if kwargs and not _SPELLINGS.keys().isdisjoint(kwargs):
            kwargs = {_spelled(k, names): v for k, v in kwargs.items()}
        if spread and len(args) == 2 and type(args[1]) in (list, tuple) and not isinstance(args[0], Tensor):
            args = (args[0], *args[1])
        if modes and _function_mode() is not None:
            return _ask(wrapper, args, kwargs)
        for a in args:
            if plain.get(type(a), True) and _overrides(a):
                return run(args, kwargs) if _override_state() else _ask(wrapper, args, kwargs)
        if kwargs:
            if "axis" in kwargs or "keepdims" in kwargs:
                kwargs = _own_spelling(function, kwargs)
            for a in kwargs.values():
                if plain.get(type(a), True) and _overrides(a):
                    return run(args, kwargs) if _override_state() else _ask(wrapper, args, kwargs)
            return run(args, kwargs)
        return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def public(function: _F) -> _F:
    """Decorator of functions of the package that live in a private module: classes and modes may take them over,
    and their address is the package's."""
    overridable = _overridable(function)
    overridable.__module__ = "rushlight"
    return overridable


def factory(function: _F) -> _F:
    """Decorator of functions that make tensors of other things: modes may take them over."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if modes and _function_mode() is not None:
            return _ask(wrapper, args, kwargs)
        return function(*args, **kwargs)

    wrapper.__module__ = "rushlight"
    return wrapper  # type: ignore[return-value]


def _own_spelling(function, kwargs):
    """NumPy's axis and keepdims are dim and keepdim where a function has those, as for ops in C++."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    other = {"axis": "dim", "keepdims": "keepdim"}
    return {other[k] if k not in known and other.get(k) in known else k: v for k, v in kwargs.items()}


def _in_place(function):
    """x.f_(...): computes f(x, ...) and moves the result, its history included, into x."""

    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        if not isinstance(self, Tensor):
            raise TypeError(
                f"descriptor '{wrapper.__name__}' for 'torch.Tensor' objects needs a Tensor as its first argument, got "
                f"{type(self).__name__}"
            )
        if (type(self) is not Tensor or modes) and self._asks():
            return _ask(wrapper, (self, *args), kwargs)
        # What the calls inside keep of x is its old value.
        x = self.clone() if _C.ops["is_grad_enabled"]() and self.requires_grad else self
        return _C.ops["_assign"](function.__name__, self, function(x, *args, **kwargs))

    wrapper.__name__ += "_"
    wrapper.__dict__["_form"] = "inplace"  # as the C++ ops say it
    return wrapper


def compose(namespace: dict[str, Any]) -> None:
    """Imports every module of rushlight._ops and adds what it made to the package's namespace."""
    package = importlib.import_module("rushlight._ops")
    for file in sorted(os.listdir(package.__path__[0])):  # pkgutil would import inspect: a tenth of the whole
        if file.endswith(".py") and not file.startswith("_"):
            importlib.import_module(f"rushlight._ops.{file[:-3]}")
    namespace.update({name: f for name, f in _composed.items() if "." not in name})


def functions_of(prefix: str) -> dict[str, Callable[..., Any]]:
    """The ops of a namespace, C++ and Python: {short name: function} for all "prefix.name"."""
    found = {n[len(prefix) + 1 :]: f for n, f in _C.ops.items() if n.startswith(prefix + ".")}
    found.update({n[len(prefix) + 1 :]: f for n, f in _composed.items() if n.startswith(prefix + ".")})
    return found
