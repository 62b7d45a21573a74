"""What every reading of an IterDataPipe goes through: a new iterator ends the one before, and samples are counted."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any


class _SnapshotState(enum.Enum):
    """Whether a pipe is at its beginning, was wound on to a place, or is being read."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


def _shown(pipe: Any) -> str:
    """The pipe with its arguments, without the pipes before it."""
    text = repr(pipe)
    try:
        names = list(inspect.signature(type(pipe).__init__).parameters)[1:]
        return f"{text}({', '.join(f'{n}=...' for n in names)})" if "(" not in text else text
    except (TypeError, ValueError):
        return text


def _begin(pipe: Any) -> int:
    """The number of a new iterator of a pipe, whose older ones end."""
    pipe._number_of_samples_yielded = 0
    if getattr(pipe, "_is_child_datapipe", False):
        begun: int = pipe._set_main_datapipe_valid_iterator_id()
        return begun
    current = pipe._valid_iterator_id
    number: int = 0 if current is None else current + 1
    pipe._valid_iterator_id = number
    if pipe._snapshot_state is not _SnapshotState.Restored:  # which goes on from where it is
        pipe.reset()
    return number


_HINT = "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this issue: https://github.com/pytorch/data/issues/45."


def _check(pipe: Any, number: int) -> None:
    """Raises if a newer iterator of the pipe has been made."""
    if getattr(pipe, "_is_child_datapipe", False):
        if not pipe._check_valid_iterator_id(number):
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been created from one of the ChildDataPipes "
                f"of {_shown(pipe.main_datapipe)}.{_HINT}"
            )
    elif pipe._valid_iterator_id != number:
        raise RuntimeError(
            "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
            f"{_shown(pipe)}\nThis may be caused multiple references to the same IterDataPipe. We recommend using `.fork()` "
            f"if that is necessary.{_HINT}"
        )


class _Iterator:
    """An iterator that a pipe made, counted and ended by the next one."""

    def __init__(self, inner: Any, pipe: Any, number: int, counts: bool) -> None:
        self.inner, self.pipe, self.number, self.counts = inner, pipe, number, counts

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        _check(self.pipe, self.number)
        result = next(self.inner)
        if self.counts:
            self.pipe._number_of_samples_yielded += 1
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _of_generator(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def read(*args: Any, **kwargs: Any) -> Iterator[Any]:
        samples, pipe = function(*args, **kwargs), args[0]
        if pipe._fast_forward_iterator is not None:
            wound, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
            pipe._snapshot_state = _SnapshotState.Iterating
            yield from wound
            return
        number = _begin(pipe)
        try:
            for sample in samples:
                pipe._number_of_samples_yielded += 1
                yield sample
                _check(pipe, number)
        finally:
            pipe._snapshot_state = _SnapshotState.NotStarted
            samples.close()
        _check(pipe, number)

    return read


def _of_object(function: Callable[..., Any], has_next: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def read(*args: Any, **kwargs: Any) -> Any:
        inner, pipe = function(*args, **kwargs), args[0]
        if pipe._fast_forward_iterator is not None:
            wound, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
            pipe._snapshot_state = _SnapshotState.Iterating
            return wound
        number = _begin(pipe)
        return _Iterator(inner, pipe, number, counts=not (has_next and inner is pipe))

    return read


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def following(pipe: Any) -> Any:
        result = function(pipe)
        pipe._number_of_samples_yielded += 1
        return result

    return following


def hook_iterator(cls: type[Any]) -> None:
    """Puts the hook around the __iter__ and __next__ that a class defines itself."""
    own = vars(cls)
    read = own.get("__iter__")
    if read is not None:
        generator = inspect.isgeneratorfunction(inspect.unwrap(read))
        hooked = _of_generator(read) if generator else _of_object(read, "__next__" in own)
        cls.__iter__ = hooked
    if "__next__" in own:
        cls.__next__ = _counted(own["__next__"])
