"""Modules of settings, such as torch._dynamo.config."""

import contextlib


def as_dict(settings):
    """The `to_dict` of a module: its settings by name."""

    def to_dict():
        plain = (bool, int, float, str, list, dict, type(None))
        return {n: v for n, v in settings.items() if not n.startswith("_") and isinstance(v, plain)}

    return to_dict


def patches(settings):
    """The `patch` of a module: patch(name=value), patch("name", value) and patch({"name": value}) set something for a
    block or a function.
    """

    @contextlib.contextmanager
    def block(changes):
        missing = object()
        before = {name: settings.get(name, missing) for name in changes}
        settings.update(changes)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is missing:
                    del settings[name]
                else:
                    settings[name] = value

    def patch(given=None, value=None, **changes):
        return block(
            {**given, **changes} if isinstance(given, dict) else {given: value} if given else changes
        )

    return patch
