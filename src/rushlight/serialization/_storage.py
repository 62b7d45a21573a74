"""Storages on their way to and from files: raw bytes, and the tensors that look at them."""

from __future__ import annotations

from typing import Any, NoReturn

import rushlight as rl
from rushlight._C import Tensor, UntypedStorage, dtype
from rushlight.serialization._vm import shown
from rushlight.storage import TypedStorage

# The names that files use for element types that are older than untyped storages.
STORAGE_NAMES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
    "QUInt8Storage": "quint8",
    "QInt8Storage": "qint8",
    "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
}
_NAMES_OF_DTYPES = {dtype: name for name, dtype in STORAGE_NAMES.items()}


class StorageType:
    """What a file means by torch.FloatStorage: an element type (None: untyped, counted in bytes)."""

    def __init__(self, name: str, dtype_name: str | None) -> None:
        self.name = name
        self.dtype_name = dtype_name

    @property
    def dtype(self) -> dtype:
        return rl.uint8 if self.dtype_name is None else getattr(rl, self.dtype_name)

    def __call__(self, *args: Any) -> NoReturn:
        raise TypeError(f"{self.name} stands for a kind of storage in a file and cannot be called")


def storage_name(dtype: dtype) -> str | None:
    """ "FloatStorage" for float32; None for types that are saved as untyped bytes."""
    return _NAMES_OF_DTYPES.get(str(dtype).rsplit(".", 1)[-1])


def tensor_over_storage(storage: UntypedStorage) -> Tensor:
    """A byte tensor that looks at an untyped storage."""
    return rl.empty(0, dtype=rl.uint8, device=storage.device).set_(storage, 0, (storage.nbytes(),), (1,))


def typed(data: Tensor, dtype: dtype) -> TypedStorage:
    """The storage of a 1-d byte tensor, as elements of a type."""
    return TypedStorage(wrap_storage=data.untyped_storage(), dtype=dtype, _internal=True)


def bytes_of(storage: TypedStorage | UntypedStorage) -> UntypedStorage:
    """The storage of bytes under a storage of any kind."""
    return storage if isinstance(storage, rl.UntypedStorage) else storage._untyped_storage


def tensor_of(
    storage: Any, offset: int, size: tuple[int, ...], stride: tuple[int, ...], dtype: dtype | None = None
) -> Tensor:
    """A tensor that looks at a storage; every number comes from a file, so each is checked."""
    dtype = storage._dtype if dtype is None else dtype
    untyped = bytes_of(storage)
    if not isinstance(dtype, rl.dtype):
        raise ValueError(f"{shown(dtype)} is not a type of elements")
    size, stride = _whole(size, "size"), _whole(stride, "stride")
    (offset,) = _whole((offset,), "offset")
    if len(size) != len(stride) or len(size) > 64:
        raise ValueError(f"a tensor with {len(size)} sizes and {len(stride)} strides is not possible")
    available = untyped.nbytes() // dtype.itemsize
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and last >= available:
        raise ValueError(
            f"the tensor needs element {last} of a storage that has {available}: the file is damaged"
        )
    empty = rl.empty(0, dtype=dtype, device=untyped.device)
    return empty.set_(untyped, offset, size, stride)


def _whole(values: tuple[int, ...], what: str) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)):
        raise ValueError(f"{shown(values)} is not a {what}")
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in values):
        raise ValueError(f"{what} ({', '.join(map(shown, values[:64]))}) is not possible")
    return tuple(values)
