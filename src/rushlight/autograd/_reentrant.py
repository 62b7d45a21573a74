"""Backward passes that nodes of other backward passes start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import rushlight as rl

MAX_DEPTH = (
    30  # nested backward passes of one thread; a level takes some 10 of the 1000 frames that Python allows
)

_nested = threading.local()


def run(engine: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """engine(*args), in a new thread, whose stack is empty, when MAX_DEPTH calls of this thread are under way."""
    depth = getattr(_nested, "depth", 0)
    if depth < MAX_DEPTH:
        _nested.depth = depth + 1
        try:
            return engine(*args)
        finally:
            _nested.depth = depth
    return _elsewhere(engine, args)


def _elsewhere(engine: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """engine(*args) in a new thread, with this thread's modes, while this one waits."""
    from . import _partial

    result: list[Any] = []
    failure: list[BaseException] = []
    recording, partial = rl.is_grad_enabled(), threading.get_ident() in _partial

    def work() -> None:
        me = threading.get_ident()
        if partial:
            _partial.add(me)
        try:
            with rl.set_grad_enabled(recording):
                result.append(engine(*args))
        except BaseException as e:
            failure.append(e)
        finally:
            _partial.discard(me)

    worker = threading.Thread(target=work, name="nested backward", daemon=True)
    worker.start()
    worker.join()
    if failure:
        raise failure[0]
    return result[0]
