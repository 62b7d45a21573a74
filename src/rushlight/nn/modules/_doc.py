"""Docstrings of what comes in one, two and three dimensions: one template for each kind, completed for each member, so
that help() is whole and concrete while the text is written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

_LETTERS = ("", "L", "H, W", "D, H, W")
_DATA = ("", "sequences", "images", "volumes")


def words(n: int) -> dict[str, str]:
    """What templates name of n spatial dimensions: {L} is 'H, W' for two, {Lo} 'H_out, W_out', and so on."""
    letters = _LETTERS[n].split(", ")
    rest = [f"{a}_out" for a in letters[1:]]
    indices = ", ".join(str(i) for i in range(1, n))
    return {
        "n": str(n),
        "data": _DATA[n],
        "L": _LETTERS[n],
        "Lo": ", ".join(f"{a}_out" for a in letters),
        "k": ", ".join(f"k{a}" for a in letters),
        "area": " ".join(f"k{a}" for a in letters),
        "first": letters[0],
        "i": "" if n == 1 else "[0]",
        "rest": f",\n    and {', '.join(rest)} likewise with index {indices}" if rest else "",
        "ints": "int" if n == 1 else f"int or ({', '.join(['int'] * n)})",
    }


def documented(template: str, n: int, **further: Any) -> Callable[[_T], _T]:
    """A decorator that gives a class or function its docstring: the template with the words of n dimensions."""

    def decorate(target: _T) -> _T:
        target.__doc__ = template.format(**words(n), **further)
        return target

    return decorate


def lazily(plain: type, found: str, defaults: str = "") -> Any:
    """A decorator for the lazy form of a class: the docstring of the plain one without its first argument, `found`.

    `defaults` is what arguments that are False in the plain class are in the lazy one.
    """
    name = plain.__name__
    first, text = (plain.__doc__ or "").split("\n", 1)
    about, arguments = text.split("Args:\n", 1)
    arguments = arguments[arguments.index("\n") + 1 :]
    arguments, example = arguments.split("Example:\n", 1)
    if defaults:
        arguments = arguments.replace("Default: False", f"Default: {defaults}")
    before, _, after = example.partition(f"nn.{name}(")
    given = after[: after.index(")")].partition(", ")[0]

    def decorate(target: _T) -> _T:
        target.__doc__ = (
            f"{first}\n\nTakes {found} from its first input and is a `nn.{name}` from then on. Its parameters have "
            f"no\nshape until then: make the optimizer after a first call on an example batch.\n{about}Args:\n{arguments}"
            f"Example:\n{before}nn.Lazy{name}({after.removeprefix(given).removeprefix(', ')}"
        )
        return target

    return decorate
