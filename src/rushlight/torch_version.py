"""A version that is a text and compares as a version."""

import re

from rushlight.version import __version__ as _text

__all__ = ["TorchVersion"]


def _key(version):
    """Numbers before suffixes; a pre-release before its release; what follows "+" last."""
    public, _, local = str(version).partition("+")
    match = re.match(r"v?(\d+(?:\.\d+)*)(.*)", public.strip())
    if not match:
        raise ValueError(f"Invalid version: '{version}'")
    numbers = [int(n) for n in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    rest = match[2].lstrip(".-_")
    stage = 0 if not rest else (1 if rest.startswith("post") else -2 if rest.startswith("dev") else -1)
    pieces = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in re.findall(r"\d+|[a-z]+", rest)]
    return numbers, stage, pieces, local


class TorchVersion(str):
    """torch.__version__: equal to texts, ordered as versions; (2, 0) and "2.0" are understood."""

    __slots__ = ()

    def _compare(self, other):
        if isinstance(other, (tuple, list)):
            other = ".".join(str(part) for part in other)
        mine, theirs = _key(self), _key(other)
        return (mine > theirs) - (mine < theirs)

    def _ordered(self, other, test):
        try:
            return test(self._compare(other))
        except ValueError:
            return test((str(self) > str(other)) - (str(self) < str(other)))

    def __lt__(self, other):
        return self._ordered(other, lambda c: c < 0)

    def __le__(self, other):
        return self._ordered(other, lambda c: c <= 0)

    def __gt__(self, other):
        return self._ordered(other, lambda c: c > 0)

    def __ge__(self, other):
        return self._ordered(other, lambda c: c >= 0)

    def __eq__(self, other):
        return self._ordered(other, lambda c: c == 0)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


__version__ = TorchVersion(_text)
