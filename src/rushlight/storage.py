"""torch.storage: the memory under tensors, as bytes (UntypedStorage) or as elements (TypedStorage)."""

from rushlight import _C
from rushlight._C import StorageBase as StorageBase
from rushlight._C import UntypedStorage as UntypedStorage
from rushlight._core.methods import method

__all__ = ["TypedStorage", "UntypedStorage"]  # noqa: F822


def _method(name):
    def attach(function):
        setattr(StorageBase, name, function)
        return function

    return attach


def _meta_checked(storage, error, message):
    if storage.device.type == "meta":
        raise error(message)


def _bytes(untyped):
    """A byte tensor that looks at a storage."""
    tensor = _C.ops["empty"](0, dtype=_C.uint8, device=untyped.device)
    return tensor.set_(untyped, 0, (untyped.nbytes(),), (1,))


_NO_DATA = "Cannot copy out of meta tensor; no data!"
_ON_CPU = "{}: only available on CPU"


@_method("cpu")
def _cpu(self):
    """Itself if it is on the CPU, else a copy of it there."""
    _meta_checked(self, NotImplementedError, _NO_DATA)
    return self.to(device="cpu")


@_method("cuda")
def _cuda(self, device=None, non_blocking=False):
    from .cuda import _NONE

    raise AssertionError(_NONE)


@_method("to")
def _to(self, *, device, non_blocking=False):
    """On a device: itself if it is there, else a copy, which on `meta` has a size and no memory."""
    device = _C.device(device) if not isinstance(device, _C.device) else device
    if device == self.device:
        return self
    moved = UntypedStorage(self.nbytes(), device=device)
    return moved if device.type == "meta" else moved.copy_(self)


@_method("untyped")
def _untyped(self):
    return self


@_method("tolist")
def _tolist(self):
    """The bytes as numbers."""
    _meta_checked(self, NotImplementedError, "Not available for 'meta' device type")
    return _bytes(self).tolist()


@_method("type")
def _type(self, dtype=None, non_blocking=False):
    """The name of its class, or what it is as another one."""
    if dtype is None:
        return f"torch.storage.{type(self).__name__}"
    from ._compat.typed_storage import _rebuilt

    return _rebuilt(self, _C.uint8)._to(dtype)


@_method("new")
def _new(self):
    """A storage of no bytes on the same device."""
    return type(self)(0, device=self.device)


@_method("byteswap")
def _byteswap(self, dtype):
    """Turns the order of the bytes of every element, in place."""
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    if size > 1:
        elements = _bytes(self)[: self.nbytes() // size * size].view(-1, size)
        elements.copy_(elements.flip(1))


@_method("pin_memory")
def _pin_memory(self, device="cuda"):
    if self.device.type != "cpu":
        raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
    return self


@_method("is_pinned")
def _is_pinned(self, device="cuda"):
    return False


@_method("share_memory_")
def _share_memory_(self):
    """Moves the bytes to memory that other processes may map; tensors on it move along."""
    from .multiprocessing.reductions import share_storage

    _meta_checked(self, RuntimeError, _ON_CPU.format("_share_filename_cpu_"))
    return share_storage(self)


@_method("_share_fd_cpu_")
def _share_fd_cpu_(self, *args):
    _meta_checked(self, RuntimeError, _ON_CPU.format("_share_fd_cpu_"))
    return self.share_memory_()


@_method("_share_filename_cpu_")
def _share_filename_cpu_(self, *args):
    _meta_checked(self, RuntimeError, _ON_CPU.format("_share_filename_cpu_"))
    return self.share_memory_()


@_method("is_shared")
def _is_shared(self):
    """Whether other processes may map its memory."""
    return self._shared


@_method("_write_file")
def _write_file(self, file, is_real_file, save_size, element_size):
    _meta_checked(self, NotImplementedError, _NO_DATA)
    if save_size:
        file.write((self.nbytes() // element_size).to_bytes(8, "little"))
    file.write(memoryview(self))


@_method("__repr__")
def _repr(self):
    if self.device.type == "meta":
        return f"...\n[{self.type()}(device={self.device}) of size {len(self)}]"
    values = "\n".join(f" {v}" for v in self.tolist())
    return f"{values}\n[{self.type()}(device={self.device}) of size {len(self)}]"


def _from_file(filename, shared=False, nbytes=0):
    """The bytes of a file, mapped into memory: a private copy on write, or (shared) the file itself, made longer if it
    must."""
    import mmap
    import os

    if isinstance(filename, int):
        raise TypeError("from_file(): argument 'filename' must be str, not int")
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
    storage = _over(mapped)
    storage._filename = os.fspath(filename) if shared else None  # a private mapping is not of the file
    storage._set_shared(bool(shared))
    return storage


def _from_buffer(buffer, byte_order="native", *, count=-1, offset=0, dtype=None):
    """A copy of the bytes of an object; of values in another byte order with `dtype`."""
    import sys

    data = memoryview(buffer).cast("B")
    size = 1 if dtype is None else dtype.itemsize
    if byte_order not in ("native", "big", "little"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    if dtype is None and byte_order != "native":
        raise TypeError("from_buffer() with a byte_order needs the dtype of the elements")
    if offset < 0 or offset > len(data):
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({len(data)}), but got {offset}"
        )
    if count < 0 and (len(data) - offset) % size:
        raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({size})")
    wanted = len(data) - offset if count < 0 else count * size
    if offset + wanted > len(data):
        raise ValueError(
            f"buffer has only {len(data) - offset} bytes after offset {offset}, but {wanted} are needed"
        )
    storage = _over(bytearray(data[offset : offset + wanted]))
    if byte_order not in ("native", sys.byteorder) and dtype is not None:
        storage.byteswap(dtype)
    return storage


_method("from_file")(staticmethod(_from_file))
_method("from_buffer")(staticmethod(_from_buffer))
_method("filename")(
    property(lambda self: getattr(self, "_filename", None), doc="The file that it is mapped from.")
)
_item = vars(StorageBase)["__getitem__"]
_put = vars(StorageBase)["__setitem__"]


@_method("__getitem__")
def _getitem(self, index):
    """A byte, or (a slice without steps) a storage on part of this memory."""
    if not isinstance(index, slice):
        return _item(self, index)
    start, stop, step = index.indices(self.nbytes())
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    return _over(memoryview(self)[start : max(start, stop)])


@_method("__setitem__")
def _setitem(self, index, value):
    """Sets a byte, or all of a slice."""
    if not isinstance(index, slice):
        return _put(self, index, value)
    start, stop, step = index.indices(self.nbytes())
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    _bytes(self)[start : max(start, stop)] = value
    return None


def _over(buffer):
    """A storage on the memory of a buffer, which it keeps alive."""
    if not len(buffer):
        return UntypedStorage(0)
    return _C.ops["frombuffer"](buffer, dtype=_C.uint8).untyped_storage()


def _load_from_bytes(data):
    """What plain pickles of PyTorch's storages call."""
    import io

    from rushlight.serialization import load

    return load(io.BytesIO(data), weights_only=False)


@method
def _typed_storage(self):
    """The storage as elements, without the warning that storage() gives."""
    from ._compat.typed_storage import _rebuilt

    return _rebuilt(self.untyped_storage(), self.dtype)


# The rest is loaded when it is asked for: programs have little to do with typed storages.
_TYPED = {
    "_LegacyStorage", "_StorageBase", "_always_warn_typed_storage_removal", "_dtype_to_storage_type_map",
    "_get_always_warn_typed_storage_removal", "_get_storage_from_sequence", "_reset_warn_typed_storage_removal",
    "_set_always_warn_typed_storage_removal", "_storage_classes", "_storage_type_to_dtype_map",
    "_get_dtype_from_pickle_storage_type", "_warn_typed_storage_removal", "TypedStorage",
}  # fmt: skip

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

_unsupported = _unsupported_attribute(__name__)


def __getattr__(name):
    if name in _TYPED or name.endswith("Storage"):
        from rushlight._compat import typed_storage as typed

        if name == "Storage":
            return getattr(typed, typed._dtype_to_storage_type_map()[_C.ops["get_default_dtype"]()])
        if hasattr(typed, name):
            return getattr(typed, name)
    return _unsupported(name)
