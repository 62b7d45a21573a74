"""Short names of element types, for logs: f32, i64."""

from __future__ import annotations

import rushlight as rl

_KINDS = {"float": "f", "int": "i", "uint": "u", "complex": "c"}
_OTHERS = {"bool": "b8", "bfloat16": "bf16"}
_NAMES = [
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex32",
    "complex64",
    "complex128",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
]


def _short(name: str) -> str:
    if name in _OTHERS:
        return _OTHERS[name]
    if name.startswith("float8_"):
        return "f8" + name[len("float8_") :]
    kind = name.rstrip("0123456789")
    return _KINDS[kind] + name[len(kind) :]


dtype_abbrs = {getattr(rl, name): _short(name) for name in _NAMES if hasattr(rl, name)}
