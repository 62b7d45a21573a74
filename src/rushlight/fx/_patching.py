"""While a program is traced, names and methods are replaced, and put back afterwards."""

import builtins

_NOTHING = object()
_MARK = "__fx_already_patched"


class _Patcher:
    """A block: what it replaced is restored when it ends, the last replacement first."""

    def __init__(self):
        self.patches_made = []
        self.visited = set()

    def patch(self, frame_dict, name, new_fn, deduplicate=True):
        """Replaces a name of a dictionary, which may be new (a builtin that a module uses)."""
        old = frame_dict.get(name, _NOTHING)
        if deduplicate and getattr(old, _MARK, False):
            return
        setattr(new_fn, _MARK, deduplicate)
        self.patches_made.append((frame_dict, name, old))
        frame_dict[name] = new_fn

    def patch_method(self, cls, name, new_fn, deduplicate=True):
        """Replaces an attribute of a class or module."""
        old = getattr(cls, name)
        if deduplicate and getattr(old, _MARK, False):
            return
        setattr(new_fn, _MARK, deduplicate)
        self.patches_made.append((cls, name, old))
        setattr(cls, name, new_fn)

    def visit_once(self, thing):
        """Whether a thing is seen for the first time."""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def __enter__(self):
        return self

    def __exit__(self, *error):
        while self.patches_made:
            space, name, old = self.patches_made.pop()
            if not isinstance(space, dict):
                setattr(space, name, old)
            elif old is _NOTHING:
                del space[name]
            else:
                space[name] = old
        self.visited.clear()


def autowrap_check(patcher, frame_dict, function_ids, wrap):
    """Makes those of the functions that a module has under public names stay one call."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, wrap(value))


def patch_wrapped(patcher, wrapped, wrap):
    """Makes functions that were marked as [(globals, name)] stay one call."""
    for space, name in wrapped:
        original = space.get(name, getattr(builtins, name, None))
        if original is not None:
            patcher.patch(space, name, wrap(original))
