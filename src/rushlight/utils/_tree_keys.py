"""The steps of a path to a leaf of a pytree: ['a'], [0], .x"""


class _Key:
    """One step of a path to a leaf."""

    __slots__ = ("_value",)

    def __init__(self, value):
        self._value = value

    def __eq__(self, other):
        return type(other) is type(self) and other._value == self._value

    def __hash__(self):
        return hash((type(self).__name__, self._value))

    def __repr__(self):
        return f"{type(self).__name__}({self._value!r})"


class SequenceKey(_Key):
    idx = property(lambda self: self._value)

    def __str__(self):
        return f"[{self._value!r}]"

    def get(self, sequence):
        return sequence[self._value]


class MappingKey(_Key):
    key = property(lambda self: self._value)

    def __str__(self):
        return f"[{self._value!r}]"

    def get(self, mapping):
        return mapping[self._value]


class GetAttrKey(_Key):
    name = property(lambda self: self._value)

    def __str__(self):
        return f".{self._value}"

    def get(self, obj):
        return getattr(obj, self._value)


def keystr(path):
    """The path of a leaf as Python would write it: "['a'][0].x"."""
    return "".join(str(key) for key in path)
