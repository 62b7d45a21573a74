"""Which names of torch.fx keep their meaning: a decorator that packages put on their own, too."""

_BACK_COMPAT_OBJECTS: dict = {}
_MARKED_WITH_COMPATIBILITY: dict = {}


def compatibility(is_backward_compatible):
    """Decorator: notes whether later versions keep what a function or class does; it stays as it is."""

    def mark(thing):
        _MARKED_WITH_COMPATIBILITY[thing] = None
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS[thing] = None
        return thing

    return mark
