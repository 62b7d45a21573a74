"""torch.futures: results that come later. Threads of the program set them; wait() blocks until then."""

from __future__ import annotations

import sys
import threading
from typing import Any

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__all__ = ["Future", "collect_all", "wait_all"]


def _described(error):
    return f"{type(error).__name__}: {error}"


class Future:
    """A value to come: wait() blocks until set_result or set_exception gives it.

    Args:
        devices (list): accepted. Default: None

    Example:
        >>> future = torch.futures.Future()
        >>> following = future.then(lambda f: f.value() + 1)
        >>> future.set_result(2)
        >>> future.done(), following.wait()
        (True, 3)
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._value = self._error = None
        self._callbacks: list[Any] = []

    __class_getitem__ = classmethod(lambda cls, item: cls)

    def done(self):
        """Whether the value (or an error) is there."""
        return self._done.is_set()

    def wait(self):
        """Waits for the value and returns it; raises the error, if it is one."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """The value, which must be there."""
        if not self.done():
            raise RuntimeError("Future.value(): the future is not complete, use wait()")
        return self.wait()

    def _finish(self, value, error):
        with self._lock:
            if self._done.is_set():
                raise RuntimeError("Future can only be marked completed once: its result was set before")
            self._value, self._error = value, error
            callbacks, self._callbacks = self._callbacks, []
            self._done.set()
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback):
        """An error of a callback is nobody's to catch: it is reported, and the value stays."""
        try:
            callback(self)
        except Exception as error:
            print(
                f"[E] Got the following error when running the callback: {_described(error)}", file=sys.stderr
            )

    def __reduce_ex__(self, protocol):
        raise RuntimeError("Can not pickle torch.futures.Future")

    def set_result(self, result: Any) -> None:
        """Gives the value, once.

        Args:
            result (object): the value.
        """
        self._finish(result, None)

    def set_exception(self, result):
        """Gives an error in place of the value.

        Args:
            result (Exception): what wait() raises.
        """
        if not isinstance(result, Exception):
            raise TypeError(f"Future.set_exception: {result!r} is not an Exception")
        self._finish(None, result)

    def add_done_callback(self, callback):
        """Calls callback(future) when the value is there, at once if it is."""
        with self._lock:
            if not self._done.is_set():
                self._callbacks.append(callback)
                return
        self._call(callback)

    def then(self, callback):
        """A future of callback(future)."""
        following = Future()

        def run(future):
            try:
                following.set_result(callback(future))
            except Exception as error:
                wrapped = RuntimeError(
                    f"Got the following error when running the callback: {_described(error)}"
                )
                wrapped.__cause__ = error
                following.set_exception(wrapped)

        self.add_done_callback(run)
        return following


def collect_all(futures):
    """A future of the list of these futures, ready when all of them are.

    Args:
        futures (list of Future): what to wait for.

    Example:
        >>> a, b = torch.futures.Future(), torch.futures.Future()
        >>> both = torch.futures.collect_all([a, b])
        >>> a.set_result(1)
        >>> both.done()
        False
        >>> b.set_result(2)
        >>> [f.value() for f in both.wait()]
        [1, 2]
    """
    futures = list(futures)
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    result, left, lock = Future(), [len(futures)], threading.Lock()
    if not futures:
        result.set_result([])

    def one_more(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            result.set_result(futures)

    for future in futures:
        future.add_done_callback(one_more)
    return result


def wait_all(futures):
    """Waits for all futures, and returns their values.

    Args:
        futures (list of Future): what to wait for.

    Example:
        >>> a = torch.futures.Future()
        >>> a.set_result(1)
        >>> torch.futures.wait_all([a])
        [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__getattr__ = _unsupported_attribute(__name__)
