"""Tensors in files of NumPy (.npy, .npz) and of safetensors. None of these formats can hold code."""

from __future__ import annotations

import json
import math
import re

import rushlight as rl
from rushlight.serialization._storage import tensor_of
from rushlight.serialization._vm import UnpicklingError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    from rushlight._C import Tensor, dtype
    from rushlight.serialization._read import Reader
    from rushlight.serialization._zip import ZipReader


_NPY = b"\x93NUMPY"
_MOST_HEADER = 10_000  # bytes
# The text of a Python dict. It is not given to Python: numbers, dates and texts of fixed length are all it may name.
_HEADER = re.compile(
    r"\{'descr': '(?P<descr>[<>|=]?(?:b1|[iuf][1248]|f16|c8|c16|c32|[US]\d{1,6}|[mM]8(?:\[\w{1,4}\])?))', "
    r"'fortran_order': (?P<fortran>True|False), 'shape': (?P<shape>\((?:\d{1,18},? ?){0,64}\)), ?\}\s*"
)
# The element types of safetensors files; those without a name here (float8 and smaller) are not in rushlight.
_SAFETENSORS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64",
}  # fmt: skip


def is_npy(head: bytes) -> bool:
    return head.startswith(_NPY)


def is_safetensors(head: bytes, f: IO[bytes]) -> bool:
    """Whether a file begins with the length of a JSON text, as safetensors files do."""
    length = int.from_bytes(head[:8], "little")
    if len(head) < 9 or head[8:9] != b"{" or head[:1] == b"\x80" and head[1:2] < b"\x06":
        return False
    start = f.tell()
    size = f.seek(0, 2) - start
    f.seek(start)
    return length <= size - 8


def load_npy(data: Any, reader: Reader, name: str) -> Any:
    return _moved(_array(data, name), reader)


def load_npz(archive: ZipReader, reader: Reader) -> dict[str, Tensor]:
    """{name: tensor} of an archive of arrays."""
    arrays = {e: _array(archive.read(e), f"{archive.name}: {shown(e)}") for e in archive.entries}
    return {entry.removesuffix(".npy"): _moved(array, reader) for entry, array in arrays.items()}


def _array(data: Any, name: str) -> Any:
    """The array in the bytes of a .npy file: a view of them where possible."""
    import numpy

    head = bytes(data[: 12 + _MOST_HEADER])
    width = 2 if head[6:7] == b"\1" else 4
    at = 8 + width + int.from_bytes(head[8 : 8 + width], "little")
    found = _HEADER.fullmatch(head[8 + width : at].decode("latin1")) if 8 + width <= at <= len(head) else None
    if found is None:
        raise UnpicklingError(
            f"{name} is damaged, or holds records or Python objects: the header of the array cannot be read; if you "
            "trust it, use numpy.load(path, allow_pickle=True)"
        )
    dtype = numpy.dtype(found["descr"])
    shape = tuple(int(n) for n in re.findall(r"\d+", found["shape"]))
    count = math.prod(shape)
    if count and (not dtype.itemsize or count * dtype.itemsize > len(data) - at):
        raise UnpicklingError(
            f"{name} is truncated or damaged: an array of shape {shape} needs {count * dtype.itemsize} bytes, "
            f"{len(data) - at} are there"
        )
    flat = numpy.frombuffer(data, dtype, count, at) if count else numpy.empty(0, dtype)
    return flat.reshape(shape[::-1]).transpose() if found["fortran"] == "True" else flat.reshape(shape)


def _moved(array: Any, reader: Reader) -> Any:
    """A tensor of an array, where map_location wants it; an array of text or dates stays as it is."""
    if array.dtype.kind not in "biufc" or not hasattr(rl, array.dtype.name):
        return array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    elif not array.flags.writeable or not array.flags.aligned:
        array = array.copy(order="K")
    return _placed(rl.from_numpy(array), reader)


def _placed(tensor: Tensor, reader: Reader) -> Tensor:
    storage = tensor.untyped_storage()
    placed = reader.make("cpu", tensor.dtype, storage.nbytes(), lambda: tensor)
    moved = placed._untyped_storage
    if moved.data_ptr() == storage.data_ptr() and moved.device == storage.device:
        return tensor
    return tensor_of(placed, tensor.storage_offset(), tuple(tensor.size()), tuple(tensor.stride()))


def load_safetensors(data: Any, reader: Reader, name: str) -> dict[str, Tensor]:
    """{name: tensor} of a file: the length of a JSON text, the text, and the bytes that it describes."""
    start = 8 + int.from_bytes(bytes(data[:8]), "little")
    try:
        header = json.loads(bytes(data[8:start]).decode())
        entries = {k: _checked(e) for k, e in header.items() if k != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
        raise UnpicklingError(f"{name} is damaged: its header cannot be read ({e})") from None
    if sum(end - begin for _, _, begin, end in entries.values()) > len(data) - start:
        raise UnpicklingError(f"{name} is truncated or damaged: its tensors need more bytes than it has")
    return {key: _placed(_slice(data, start, *entry, name), reader) for key, entry in entries.items()}


def _checked(entry: dict[str, Any]) -> tuple[dtype, tuple[int, ...], int, int]:
    """(dtype, shape, first byte, end) of one tensor's description."""
    shape, (begin, end) = entry["shape"], entry["data_offsets"]
    if (
        not all(type(n) is int and 0 <= n < 1 << 62 for n in (*shape, begin, end))
        or begin > end
        or len(shape) > 64
    ):
        raise ValueError("sizes or offsets that are not possible")
    if entry["dtype"] not in _SAFETENSORS:
        raise ValueError(f"elements of type {shown(entry['dtype'])}, which rushlight does not have")
    dtype = getattr(rl, _SAFETENSORS[entry["dtype"]])
    if math.prod(shape) * dtype.itemsize != end - begin:
        raise ValueError(f"a tensor of shape {tuple(shape)} in {end - begin} bytes")
    return dtype, tuple(shape), begin, end


def _slice(
    data: Any, start: int, dtype: dtype, shape: tuple[int, ...], begin: int, end: int, name: str
) -> Tensor:
    import numpy

    if end > len(data) - start:
        raise UnpicklingError(
            f"{name} is truncated: {end} bytes of tensors should be there, not {len(data) - start}"
        )
    if begin == end:
        return rl.empty(shape, dtype=dtype)
    array = numpy.frombuffer(data, numpy.uint8, end - begin, start + begin)
    if not array.flags.writeable or (start + begin) % 8:
        array = array.copy()
    return rl.from_numpy(array).view(dtype).reshape(shape)
