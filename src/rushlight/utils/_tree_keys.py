"""The steps of a path to a leaf of a pytree: ['a'], [0], .x"""

from __future__ import annotations

from typing import Any


class _Key:
    """One step of a path to a leaf."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value == self._value

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value!r})"


class SequenceKey(_Key):
    idx = property(lambda self: self._value)

    def __str__(self) -> str:
        return f"[{self._value!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self._value]


class MappingKey(_Key):
    key = property(lambda self: self._value)

    def __str__(self) -> str:
        return f"[{self._value!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self._value]


class GetAttrKey(_Key):
    name = property(lambda self: self._value)

    def __str__(self) -> str:
        return f".{self._value}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self._value)


def keystr(path: Any) -> str:
    """The path of a leaf as Python would write it: "['a'][0].x"."""
    return "".join(str(key) for key in path)
