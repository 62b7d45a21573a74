"""Storages on their way to and from files: raw bytes, and the tensors that look at them."""

import rushlight as rl

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
}
_NAMES_OF_DTYPES = {dtype: name for name, dtype in STORAGE_NAMES.items()}


class StorageType:
    """What a file means by torch.FloatStorage: an element type (None: untyped, counted in bytes)."""

    def __init__(self, name, dtype_name):
        self.name = name
        self.dtype_name = dtype_name

    @property
    def dtype(self):
        return rl.uint8 if self.dtype_name is None else getattr(rl, self.dtype_name)

    def __call__(self, *args):
        raise TypeError(f"{self.name} stands for a kind of storage in a file and cannot be called")


def storage_name(dtype):
    """ "FloatStorage" for float32; None for types that are saved as untyped bytes."""
    return _NAMES_OF_DTYPES.get(str(dtype).rsplit(".", 1)[-1])


def bytes_of(tensor):
    """The whole storage of a tensor as a NumPy array of bytes that shares its memory."""
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = tensor.detach().as_strided((count,), (1,), 0)
    return flat.view(rl.uint8).numpy() if count else rl.empty(0, dtype=rl.uint8).numpy()


def tensor_over_storage(storage):
    """A byte tensor that looks at an untyped storage."""
    return rl.empty(0, dtype=rl.uint8).set_(storage, 0, (storage.nbytes(),), (1,))


class LoadedStorage:
    """Bytes from a file with an element type. Slices of one storage share its bytes."""

    def __init__(self, data, dtype, untyped=False, start=0, device="cpu"):
        self.data = data  # 1-d uint8 tensor; may be empty until the file's storages are read
        self.dtype = dtype
        self.untyped = untyped
        self.start = start  # in bytes: where this storage begins in data
        self.device = device

    def nbytes(self):
        return self.data.numel() - self.start

    def tensor(self, offset, size, stride, dtype=None):
        """A tensor of these bytes; every number comes from a file, so each is checked."""
        dtype = dtype or self.dtype
        size, stride = _whole(size, "size"), _whole(stride, "stride")
        (offset,) = _whole((offset,), "offset")
        if len(size) != len(stride) or len(size) > 64:
            raise ValueError(f"a tensor with size {size} and strides {stride} is not possible")
        if self.device == "meta":
            return rl.empty_strided(size, stride, dtype=dtype, device="meta")
        item = rl.empty(0, dtype=dtype).element_size()
        available = self.nbytes() // item
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=False))
        if 0 not in size and last >= available:
            raise ValueError(
                f"the tensor needs element {last} of a storage that has {available}: the file is damaged"
            )
        if self.start % item:
            raise ValueError(f"a storage that begins at byte {self.start} cannot hold {dtype}")
        result = rl.empty(0, dtype=dtype)
        return result.set_(self.data.untyped_storage(), offset + self.start // item, size, stride)


def _whole(numbers, what):
    numbers = tuple(numbers)
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
        raise ValueError(f"{what} {numbers} is not possible")
    return numbers
