"""torch.storage: the memory under tensors, as bytes (UntypedStorage) or as elements (TypedStorage)."""

import rushlight as rl
from rushlight._C import UntypedStorage as UntypedStorage
from rushlight._tensor import method

__all__ = ["TypedStorage", "UntypedStorage"]


class TypedStorage:
    """A storage seen as elements of one type: what the deprecated Tensor.storage() gives."""

    def __init__(self, *, wrap_storage, dtype, _internal=False):
        if dtype is None:
            raise RuntimeError("TypedStorage: argument 'dtype' must be given")
        self._untyped_storage = wrap_storage
        self.dtype = dtype

    def _elements(self):
        count = self._untyped_storage.nbytes() // self.dtype.itemsize
        return rl.empty(0, dtype=self.dtype).set_(self._untyped_storage, 0, (count,), (1,))

    def untyped(self):
        return self._untyped_storage

    @property
    def device(self):
        return self._untyped_storage.device

    def __len__(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    size = _size = __len__

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements()[index].item()

    def __setitem__(self, index, value):
        self._elements()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._elements().tolist()

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    def element_size(self):
        return self.dtype.itemsize

    def fill_(self, value):
        self._elements().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        self._elements().copy_(source._elements())
        return self

    def clone(self):
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self):
        return self

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def __repr__(self):
        values = "\n".join(f" {v}" for v in self.tolist())
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{values}\n[{kind} of size {len(self)}]"


def _method(name):
    def attach(function):
        if not hasattr(UntypedStorage, name):
            setattr(UntypedStorage, name, function)
        return function

    return attach


@method
def storage(self):
    """The storage as elements of the tensor's type; untyped_storage() is the newer way."""
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


def _bytes(untyped):
    """A byte tensor that looks at a storage."""
    return rl.empty(0, dtype=rl.uint8).set_(untyped, 0, (untyped.nbytes(),), (1,))


@_method("cpu")
def _cpu(self):
    """Itself: it is on the CPU."""
    return self


@_method("cuda")
def _cuda(self, device=None, non_blocking=False):
    from .cuda import _NONE

    raise AssertionError(_NONE)


@_method("untyped")
def _untyped(self):
    return self


@_method("tolist")
def _tolist(self):
    """The bytes as numbers."""
    return _bytes(self).tolist()


@_method("pin_memory")
def _pin_memory(self, device="cuda"):
    return self


@_method("is_pinned")
def _is_pinned(self, device="cuda"):
    return False


@_method("share_memory_")
def _share_memory_(self):
    return self


@_method("is_shared")
def _is_shared(self):
    """Whether other processes see this memory."""
    from .multiprocessing.reductions import _files

    return self.data_ptr() in _files


def _from_file(filename, shared=False, nbytes=0):
    """The bytes of a file, mapped into memory: a private copy on write, or (shared) the file itself, made longer if it
    must."""
    import mmap
    import os

    nbytes = int(nbytes)
    if shared:
        with open(filename, "r+b" if os.path.exists(filename) else "w+b") as f:
            if nbytes > os.fstat(f.fileno()).st_size:
                f.truncate(nbytes)
            mapped = mmap.mmap(f.fileno(), nbytes) if nbytes else b""
    else:
        with open(filename, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            if nbytes > size:
                raise RuntimeError(f"from_file: {filename} has {size} bytes, {nbytes} were asked for")
            mapped = mmap.mmap(f.fileno(), nbytes or size, access=mmap.ACCESS_COPY) if size else b""
    return _over(mapped)


def _from_buffer(buffer, byte_order="native", *, count=-1, offset=0, dtype=None):
    """A copy of the bytes of an object."""
    data = memoryview(buffer).cast("B")[offset:]
    return _over(bytearray(data if count < 0 else data[:count]))


_method("from_file")(staticmethod(_from_file))
_method("from_buffer")(staticmethod(_from_buffer))
_item = vars(UntypedStorage)["__getitem__"]


def _getitem(self, index):
    """A byte, or (a slice without steps) a storage on part of this memory."""
    if not isinstance(index, slice):
        return _item(self, index)
    start, stop, step = index.indices(self.nbytes())
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    return _over(memoryview(self)[start : max(start, stop)])


setattr(UntypedStorage, "__getitem__", _getitem)  # noqa: B010


def _over(buffer):
    """A storage on the memory of a buffer, which it keeps alive."""
    if not len(buffer):
        return UntypedStorage(0)
    return rl.frombuffer(buffer, dtype=rl.uint8).untyped_storage()


class _Legacy(type):
    """FloatStorage and its kin: storages of one element type, by length or from numbers."""

    def __call__(cls, *args):
        if args and not isinstance(args[0], int):
            return TypedStorage(
                wrap_storage=rl.tensor(list(args[0]), dtype=cls.dtype).untyped_storage(), dtype=cls.dtype
            )
        size = args[0] if args else 0
        return TypedStorage(wrap_storage=UntypedStorage(size * cls.dtype.itemsize), dtype=cls.dtype)

    def __instancecheck__(cls, instance):
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def from_buffer(cls, buffer, byte_order="native", *, count=-1, offset=0):
        bytes_ = -1 if count < 0 else count * cls.dtype.itemsize
        data = UntypedStorage.from_buffer(buffer, count=bytes_, offset=offset)
        return TypedStorage(wrap_storage=data, dtype=cls.dtype)

    def from_file(cls, filename, shared=False, size=0):
        data = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=data, dtype=cls.dtype)


_LEGACY = {
    "Double": rl.float64, "Float": rl.float32, "Half": rl.float16, "BFloat16": rl.bfloat16, "Long": rl.int64,
    "Int": rl.int32, "Short": rl.int16, "Char": rl.int8, "Byte": rl.uint8, "Bool": rl.bool,
    "ComplexFloat": rl.complex64, "ComplexDouble": rl.complex128,
}  # fmt: skip
for _name, _dtype in _LEGACY.items():
    globals()[f"{_name}Storage"] = _Legacy(
        f"{_name}Storage", (), {"dtype": _dtype, "__module__": "rushlight"}
    )


def _load_from_bytes(data):
    """What plain pickles of PyTorch's storages call."""
    import io

    return rl.load(io.BytesIO(data), weights_only=False)


from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
