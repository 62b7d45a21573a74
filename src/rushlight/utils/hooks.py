"""The handle that a registered hook returns."""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class RemovableHandle:
    """Removes its hook from a dict of hooks: `handle.remove()`, or at the end of `with handle:`.

    `hooks_dict_ref()` is the dict of hooks, or None if it is gone; `extra_dict_ref` has one such reference
    for each further dict that mentions the hook.
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = _reference(hooks_dict)
        self._take_id(RemovableHandle.next_id)
        extra = () if extra_dict is None else extra_dict if isinstance(extra_dict, list) else (extra_dict,)
        self.extra_dict_ref = tuple(_reference(d) for d in extra)

    def _take_id(self, number: int) -> None:
        self.id = number
        RemovableHandle.next_id = max(RemovableHandle.next_id, number + 1)

    def remove(self) -> None:
        """Takes the hook off; harmless if it is off already."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        state = (self.hooks_dict_ref(), self.id)
        return (*state, tuple(ref() for ref in self.extra_dict_ref)) if self.extra_dict_ref else state

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.hooks_dict_ref = _reference(OrderedDict() if state[0] is None else state[0])
        self._take_id(state[1])
        extra = state[2] if len(state) > 2 and state[2] is not None else ()
        self.extra_dict_ref = tuple(_reference(OrderedDict() if d is None else d) for d in extra)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def _reference(hooks: Any) -> Callable[[], Any]:
    """Weak where the dict allows it, so that a handle keeps no tensor alive."""
    try:
        return weakref.ref(hooks)
    except TypeError:
        return lambda: hooks
