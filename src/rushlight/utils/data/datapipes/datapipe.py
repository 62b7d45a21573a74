"""The base classes of data pipes, and how further ones become methods of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rushlight.utils.data.datapipes._hook_iterator import _SnapshotState, hook_iterator
from rushlight.utils.data.dataset import Dataset, IterableDataset

_T_co = TypeVar("_T_co", covariant=True)
_T = TypeVar("_T")


class _Chained:
    """What both kinds share: registered pipes are methods."""

    functions: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Any:
        make = type(self).functions.get(name)
        if make is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        method = functools.partial(make, self)
        functools.update_wrapper(method, make, ("__doc__",), ())
        return method

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type[Any], enable_df_api_tracing: bool = False
    ) -> None:
        """Makes a class of pipes a method of all: `pipe.function_name(...)` is `cls_to_register(pipe, ...)`."""
        if function_name in cls.functions:
            raise Exception(  # noqa: TRY002  (PyTorch's class)
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = cls_to_register

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.functions})

    def __repr__(self) -> str:
        return type(self).__qualname__

    __str__ = __repr__


class IterDataPipe(_Chained, IterableDataset[_T_co]):
    """A stream of samples: subclasses define `__iter__`. Made of another pipe, it reads that one.

    One iterator at a time is valid: a new one ends those before, and begins with reset().
    """

    functions: dict[str, Callable[..., Any]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator: Iterator[Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        hook_iterator(cls)

    getstate_hook: Callable[[Any], Any] | None = None
    reduce_ex_hook: Callable[[Any], Any] | None = None

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        IterDataPipe.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        IterDataPipe.reduce_ex_hook = hook_fn

    def __getstate__(self) -> Any:
        hook = IterDataPipe.getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)

    def __reduce_ex__(self, *args: Any, **kwargs: Any) -> Any:
        hook = IterDataPipe.reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    def reset(self) -> None:
        """Called when the pipe is read anew: those that keep a state begin with it."""


class DFIterDataPipe(IterDataPipe[_T_co]):
    """A stream of data frames."""


class MapDataPipe(_Chained, Dataset[_T_co]):
    """A map from keys to samples: subclasses define `__getitem__` and usually `__len__`."""

    functions: dict[str, Callable[..., Any]] = {}

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


_C = TypeVar("_C", bound=type[Any])


class functional_datapipe:
    """A class decorator: the pipes become a method, `pipe.name(...)`, of every pipe of their kind."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: _C) -> _C:
        for base in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, base):
                base.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")


def _length(pipe: Any) -> int:
    """The number of a pipe's samples; TypeError if it is not known."""
    try:
        return len(pipe)
    except (TypeError, AttributeError):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length") from None


class DataChunk(list[_T]):
    """A batch of samples: a list that is printed and iterated like one."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        return indent + "[" + ", ".join(map(str, iter(self))) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        yield from self.items
