"""Pickles of plain data, NumPy arrays and tensors, read by the machine of rushlight.serialization: nothing in them is run.

Arrays and tensors are made here from a dtype, a shape and bytes, each of which is checked.
"""

from __future__ import annotations

import math
import re
from typing import Any

from rushlight.serialization._plain import encode
from rushlight.serialization._vm import Machine, UnpicklingError, shown


class _Type:
    """A dtype; the file may set its byte order after it is named."""

    def __init__(self, text, *flags):
        if type(text) is bytes:
            text = text.decode("latin1")
        if type(text) is not str or not re.fullmatch(r"[<>|=]?[biufc][1-8]|[<>=]?c16", text):
            raise UnpicklingError(f"an array of {shown(text)}: only numbers are read")
        self.text = text

    def order(self, state):
        if type(state) is not tuple or len(state) < 5 or state[2:5] != (None, None, None):
            raise UnpicklingError("an array of structures: only numbers are read")
        mark = state[1].decode("latin1") if type(state[1]) is bytes else state[1]
        if mark not in ("<", ">", "|", "="):
            raise UnpicklingError(f"unknown byte order {shown(mark)}")
        self.text = mark + self.text.lstrip("<>|=")


def _new_array(*args):
    import numpy as np

    return np.zeros(0, np.uint8)


def _storage(raw):
    import rushlight as rl

    if type(raw) is not bytes:
        raise UnpicklingError(f"a storage of {shown(raw)}, not of bytes")
    return rl.UntypedStorage(raw)


def _tensor(kind, storage, dtype, offset, size, stride, *rest):
    """The data of a pickled tensor; attributes, gradients and subclasses are left out."""
    import rushlight as rl

    values = (offset, *size, *stride) if type(size) is type(stride) is tuple else (None,)
    if (
        kind != "Tensor"
        or not isinstance(storage, rl.UntypedStorage)
        or not isinstance(dtype, rl.dtype)
        or not all(type(n) is int and 0 <= n < 1 << 40 for n in values)
        or len(size) != len(stride)
    ):
        raise UnpicklingError("a damaged tensor")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride))
    if 0 not in size and (last + 1) * dtype.itemsize > storage.nbytes():
        raise UnpicklingError("a tensor whose bytes are not as many as its shape says")
    return rl.empty(0, dtype=dtype).set_(storage, offset, size, stride)


_NAMES = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): encode,
    ("rushlight", "Tensor"): "Tensor",
    ("rushlight", "UntypedStorage"): _storage,
    ("rushlight._tensor", "_rebuild"): _tensor,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _new_array for core in ("core", "_core")},
}


class _Hooks:
    """What names mean and calls do in such pickles."""

    @staticmethod
    def find(module, name):
        import rushlight as rl

        module = re.sub(r"^torch\b", "rushlight", module)  # the name under which the writer imported it
        if module == "rushlight" and isinstance(vars(rl).get(name), rl.dtype):
            return getattr(rl, name)
        if (module, name) not in _NAMES:
            raise UnpicklingError(
                f"the file asks for {module}.{name}: only plain data, arrays and tensors are read, no code is run"
            )
        return _NAMES[module, name]

    @staticmethod
    def call(function, args):
        if not any(function is known for known in _NAMES.values() if callable(known)):
            raise UnpicklingError(f"the file calls {shown(function)}")
        return function(*args)

    @staticmethod
    def new(cls, args, kwargs):
        raise UnpicklingError(f"the file creates {shown(cls)}")

    @staticmethod
    def build(obj, state):
        import numpy as np

        if isinstance(obj, _Type):
            obj.order(state)
            return obj
        if not isinstance(obj, np.ndarray):
            raise UnpicklingError(f"the file sets the attributes of a {type(obj).__name__}")
        if type(state) is not tuple or len(state) != 5 or not isinstance(state[2], _Type):
            raise UnpicklingError("a damaged array")
        _, shape, kind, fortran, raw = state
        if type(raw) is str:
            raw = raw.encode("latin1")  # text of Python 2
        if (
            type(shape) is not tuple
            or len(shape) > 32
            or not all(type(n) is int and 0 <= n < 1 << 40 for n in shape)
        ):
            raise UnpicklingError(f"an array of shape {shown(shape)}")
        dtype = np.dtype(kind.text)
        if type(raw) is not bytes or len(raw) != math.prod(shape) * dtype.itemsize:
            raise UnpicklingError("an array whose bytes are not as many as its shape says")
        array: Any = obj
        array.__setstate__((1, shape, dtype, bool(fortran), raw))  # in place: the file may refer to it again
        return obj


def _no_storages(saved):
    raise UnpicklingError("plain data has no storages")


def load_pickle(path):
    """The plain data of a pickle; texts of Python 2 are read as Latin-1."""
    with open(path, "rb") as f:
        data = f.read()
    try:
        return Machine(_Hooks, _no_storages, "latin1").run(data)[0]
    except UnpicklingError as e:
        raise UnpicklingError(f"{path}: {e}") from None
