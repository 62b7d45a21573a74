"""The handle that a registered hook returns."""

import itertools
import weakref

_ids = itertools.count()


class RemovableHandle:
    """Removes its hook from a dict of hooks: `handle.remove()`, or at the end of `with handle:`."""

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = next(_ids)
        self._dict = _reference(hooks_dict)
        extra = () if extra_dict is None else extra_dict if isinstance(extra_dict, list) else (extra_dict,)
        self._extra = tuple(_reference(d) for d in extra)

    def remove(self):
        for reference in (self._dict, *self._extra):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return self._dict(), self.id

    def __setstate__(self, state):
        self._dict, self._extra = _reference(state[0] if state[0] is not None else {}), ()
        self.id = state[1]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def _reference(hooks):
    """Weak where the dict allows it, so that a handle keeps no tensor alive."""
    try:
        return weakref.ref(hooks)
    except TypeError:
        return lambda: hooks
