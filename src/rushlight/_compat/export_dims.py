"""Dim: how programs say which sizes may vary when a graph is exported. Nothing is exported; the names are kept."""

import math


class _DimHint:
    """A size about which the exporter decides: AUTO, DYNAMIC or STATIC; called, with bounds."""

    def __init__(self, kind, min=None, max=None):
        self.type, self.min, self.max = kind, min, max

    def __call__(self, min=None, max=None):
        if min is not None and min < 0 or max is not None and max < 0:
            raise AssertionError("Bounds must be non-negative")
        return _DimHint(self.type, min, max)

    def __repr__(self):
        bounds = [f"{n}={v}" for n, v in (("min", self.min), ("max", self.max)) if v is not None]
        return f"DimHint({', '.join([self.type, *bounds])})"

    def __eq__(self, other):
        return isinstance(other, _DimHint) and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.type, self.min, self.max))


class Dim:
    """A size with a name and bounds; integer multiples and sums of one are derived sizes."""

    AUTO, DYNAMIC, STATIC = _DimHint("AUTO"), _DimHint("DYNAMIC"), _DimHint("STATIC")

    def __init__(self, name, *, min=None, max=None):
        self.__name__, self.min = name, 0 if min is None else min
        self.max = math.inf if max is None else max
        if self.max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")

    def _derived(self, name, of):
        made = object.__new__(Dim)
        made.__name__, made.min, made.max = name, of(self.min), of(self.max)
        return made

    @staticmethod
    def _whole(number):
        if type(number) is not int:
            raise NotImplementedError(f"Attempted to combine a Dim with {number}, which is not an integer")
        return number

    def __add__(self, other):
        n = self._whole(other)
        return self._derived(f"{self.__name__} + {n}", lambda size: size + n)

    def __sub__(self, other):
        n = self._whole(other)
        return self._derived(f"{self.__name__} - {n}", lambda size: size - n)

    def __mul__(self, other):
        n = self._whole(other)
        if n <= 0:
            raise NotImplementedError(f"Attempted to multiply a Dim by {n}, which must be positive")
        return self._derived(f"{n}*{self.__name__}", lambda size: size * n)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self):
        bounds = [f"min={self.min}"] if self.min < 2 else []
        bounds += [f"max={self.max}"] if self.max < math.inf else []
        return f"Dim({', '.join([repr(self.__name__), *bounds])})"


def dims(*names, min=None, max=None):
    """A Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)
