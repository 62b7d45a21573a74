"""`finfo` and `iinfo`: the numeric limits of a dtype."""

from __future__ import annotations

from typing import Any, Self

from .. import _C

# mantissa bits without the hidden one, largest binary exponent, decimal digits that survive
_FLOATS = {
    "float16": (16, 10, 15, 3),
    "bfloat16": (16, 7, 127, 2),
    "float32": (32, 23, 127, 6),
    "float64": (64, 52, 1023, 15),
}
# narrow types of which no tensor exists, whose limits programs read: eps, max, min, tiny
_NARROW = {
    "float8_e4m3fn": (0.125, 448.0, -448.0, 2.0**-6),
    "float8_e4m3fnuz": (0.125, 240.0, -240.0, 2.0**-7),
    "float8_e5m2": (0.25, 57344.0, -57344.0, 2.0**-14),
    "float8_e5m2fnuz": (0.125, 57344.0, -57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127),
}
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_INTS = {
    "uint8": (8, False),
    "int8": (8, True),
    "uint16": (16, False),
    "int16": (16, True),
    "uint32": (32, False),
    "int32": (32, True),
    "uint64": (64, False),
    "int64": (64, True),
}


def _name(function, dtype):
    if dtype in (float, int, bool, complex):  # Python's types stand for dtypes, as in every dtype=
        dtype = {float: _C.float64, int: _C.int64, bool: _C.bool, complex: _C.complex128}[dtype]
    if not isinstance(dtype, _C.dtype):
        raise TypeError(
            f"{function}(): argument 'type' (position 1) must be torch.dtype, not {type(dtype).__name__}"
        )
    return str(dtype).rpartition(".")[2]


_made: dict = {}  # (class, dtype): its record, which never changes


class _Info:
    """Immutable record of limits; equal when of the same dtype."""

    __slots__ = ()
    _limits: Any
    dtype: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        dtype = args[0] if len(args) == 1 and not kwargs else None
        if isinstance(dtype, _C.dtype) and (made := _made.get((cls, dtype))) is not None:
            return made
        self = super().__new__(cls)
        self._limits(*args, **kwargs)
        if isinstance(dtype, _C.dtype):
            _made[cls, dtype] = self
        return self

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute '{name}' of 'torch.{type(self).__name__}' objects is not writable")

    def __eq__(self, other):
        return self.dtype == other.dtype if type(other) is type(self) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _fill(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)


class finfo(_Info):
    """Limits of a floating dtype: bits, eps, max, min, tiny (= smallest_normal), resolution.

    For a complex dtype, those of its parts; without an argument, those of the default dtype.

    Example:
        >>> torch.finfo(torch.float16).max
        65504.0
    """

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str
    __slots__ = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")

    def _limits(self, type=None):
        name = _name("finfo", _C.ops["get_default_dtype"]() if type is None else type)
        name = _PARTS.get(name, name)
        if name in _NARROW:
            eps, largest, least, tiny = _NARROW[name]
            limits = {"eps": eps, "max": largest, "min": least, "tiny": tiny, "smallest_normal": tiny}
            self._fill(bits=8, resolution=1.0, dtype=name, **limits)
            return
        if name not in _FLOATS:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{name}'"
            )
        bits, mantissa, exponent, digits = _FLOATS[name]
        eps = 2.0**-mantissa
        largest = (2.0 - eps) * 2.0**exponent
        tiny = 2.0 ** (1 - exponent)
        self._fill(
            bits=bits,
            eps=eps,
            max=largest,
            min=-largest,
            tiny=tiny,
            smallest_normal=tiny,
            resolution=float(f"1e-{digits}"),
            dtype=name,
        )

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Info):
    """Limits of an integer dtype: bits, max, min.

    Example:
        >>> torch.iinfo(torch.int8).min
        -128
    """

    bits: int
    max: int
    min: int
    dtype: str
    __slots__ = ("bits", "max", "min", "dtype")

    def _limits(self, type):
        name = _name("iinfo", type)
        if name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if name not in _INTS:
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{name}'"
            )
        bits, signed = _INTS[name]
        largest = 2 ** (bits - signed) - 1
        self._fill(bits=bits, max=largest, min=-largest - 1 if signed else 0, dtype=name)

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
