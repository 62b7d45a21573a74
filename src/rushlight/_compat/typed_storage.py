"""Storages seen as elements of one type: TypedStorage and FloatStorage and its kin, which PyTorch deprecates."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight.storage import StorageBase, UntypedStorage

_DTYPES = {
    "DoubleStorage": rl.double, "FloatStorage": rl.float, "HalfStorage": rl.half, "LongStorage": rl.long,
    "IntStorage": rl.int, "ShortStorage": rl.short, "CharStorage": rl.int8, "ByteStorage": rl.uint8,
    "BoolStorage": rl.bool, "BFloat16Storage": rl.bfloat16, "ComplexDoubleStorage": rl.cdouble,
    "ComplexFloatStorage": rl.cfloat, "QUInt8Storage": rl.quint8, "QInt8Storage": rl.qint8,
    "QInt32Storage": rl.qint32, "QUInt4x2Storage": rl.quint4x2, "QUInt2x4Storage": rl.quint2x4,
}  # fmt: skip
# Quantized elements have no tensors here: they are read and written as these integers.
_INTEGERS = {
    rl.quint8: rl.uint8, rl.quint4x2: rl.uint8, rl.quint2x4: rl.uint8, rl.qint32: rl.int32, rl.qint8: rl.int8,
}  # fmt: skip

_always_warn = False
_warned = False


def _get_always_warn_typed_storage_removal():
    return _always_warn


def _set_always_warn_typed_storage_removal(always_warn):
    global _always_warn
    _always_warn = bool(always_warn)


def _reset_warn_typed_storage_removal():
    global _warned
    _warned = False


def _warn_typed_storage_removal(stacklevel=2):
    global _warned
    if _always_warn or not _warned:
        _warned = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
            "class. This should only matter to you if you are using storages directly: tensor.untyped_storage() gives "
            "the bytes, tensor.view(-1) the elements.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def _storage_type_to_dtype_map():
    return dict(_DTYPES)


def _dtype_to_storage_type_map():
    return {dtype: name for name, dtype in _DTYPES.items()}


def _get_dtype_from_pickle_storage_type(name):
    if name not in _DTYPES:
        raise KeyError(f'pickle storage type "{name}" is not recognized')
    return _DTYPES[name]


class _ClassProperty:
    """An attribute of the class that may warn."""

    def __init__(self, get):
        self.get = get

    def __get__(self, instance, owner):
        return self.get(instance, owner)


class TypedStorage:
    """A storage seen as elements of one type: what the deprecated Tensor.storage() gives."""

    is_sparse = False
    _fake_device = None
    _dtype: Any

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if not _internal:
            _warn_typed_storage_removal()
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        if not issubclass(cls, _LegacyStorage):
            return super().__new__(cls)
        name = cls.__name__
        if device is not None:
            raise RuntimeError(f"{name}(): 'device' cannot be specified: it is of the CPU")
        if dtype is not None:
            raise RuntimeError(f"{name}(): 'dtype' cannot be specified: it is {cls._dtype}")
        untyped = _untyped_from(name, args, wrap_storage, cls._dtype, None)
        return TypedStorage(wrap_storage=untyped, dtype=cls._dtype, _internal=True)

    def __init__(self, *args, device=None, dtype=None, wrap_storage=None, _internal=False):
        if isinstance(self, _LegacyStorage):
            return
        if dtype is None:
            if wrap_storage is None and device is None and not args:
                dtype = rl.get_default_dtype()
            else:
                raise RuntimeError("TypedStorage(): Argument 'dtype' must be specified")
        if not isinstance(dtype, rl.dtype):
            raise TypeError(f"TypedStorage(): Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        if wrap_storage is not None and device is not None:
            raise RuntimeError(
                "TypedStorage(): Argument 'device' should not be specified when 'wrap_storage' is given"
            )
        self._dtype = dtype
        self._untyped_storage = _untyped_from("TypedStorage", args, wrap_storage, dtype, device)

    # Without warnings, for the library itself.
    def _elements(self):
        dtype = _INTEGERS.get(self._dtype, self._dtype)
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return rl.empty(0, dtype=dtype).set_(self._untyped_storage, 0, (self._size(),), (1,))

    def _size(self):
        return self._untyped_storage.nbytes() // self._dtype.itemsize

    def _element_size(self):
        return self._dtype.itemsize

    def _nbytes(self):
        return self._untyped_storage.nbytes()

    def _data_ptr(self):
        return self._untyped_storage.data_ptr()

    def _is_shared(self):
        return self._untyped_storage.is_shared()

    def _share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    def _resize_(self, size):
        self._untyped_storage.resize_(size * self._dtype.itemsize)

    def _pickle_storage_type(self):
        return _dtype_to_storage_type_map().get(self._dtype) or self._no_class()

    def _no_class(self):
        raise KeyError(f"dtype {self._dtype} is not recognized")

    def _index(self, index):
        if not isinstance(index, int):
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        size = self._size()
        if not -size <= index < size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return index % size

    def _getitem(self, index):
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements()[self._index(index)].item()

    def _setitem(self, index, value):
        if isinstance(value, (TypedStorage, StorageBase)):
            raise RuntimeError(f"cannot set item with value type: {type(value)}")
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._elements()[index if isinstance(index, slice) else self._index(index)] = value

    def _deepcopy(self, memo):
        return self._new_wrapped_storage(self._untyped_storage.__deepcopy__(memo))

    def _new_wrapped_storage(self, untyped):
        return TypedStorage(wrap_storage=untyped, dtype=self._dtype, _internal=True)

    def _to(self, dtype):
        values = self._elements().to(dtype, copy=True)
        return TypedStorage(wrap_storage=values.untyped_storage(), dtype=dtype, _internal=True)

    def __getstate__(self):
        return {"_dtype": self._dtype, "_untyped_storage": self._untyped_storage}

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __reduce__(self):
        return _rebuilt, (self._untyped_storage, self._dtype)

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def __repr__(self):
        _warn_typed_storage_removal()
        kind = f"torch.storage.TypedStorage(dtype={self._dtype}, device={self._untyped_storage.device})"
        if self._untyped_storage.device.type == "meta":
            return f"...\n[{kind} of size {self._size()}]"
        values = "\n".join(f" {v}" for v in self._elements().tolist())
        return f"{values}\n[{kind} of size {self._size()}]"


def _rebuilt(untyped, dtype):
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def _untyped_from(name, args, wrap_storage, dtype, device):
    """The bytes that a constructor's arguments speak of: of a storage, of a length, of a sequence of values."""
    if wrap_storage is not None:
        if args:
            raise RuntimeError(f"{name}(): No positional arguments should be given when using 'wrap_storage'")
        if not isinstance(wrap_storage, StorageBase):
            raise TypeError(
                f"{name}(): Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
            )
        return wrap_storage
    if str(device or "cpu").partition(":")[0] not in ("cpu", "meta"):
        raise RuntimeError(f"Storage device not recognized: {device}")
    device = rl.device("cpu" if device is None else device)
    if len(args) > 1:
        raise RuntimeError(f"{name}(): Too many positional arguments")
    if not args:
        return UntypedStorage(0, device=device)
    first = args[0]
    if isinstance(first, bool) or (hasattr(first, "__index__") and not isinstance(first, rl.Tensor)):
        return UntypedStorage(int(first) * dtype.itemsize, device=device)
    if isinstance(first, str):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if isinstance(first, rl.Tensor) or not hasattr(first, "__len__"):
        raise TypeError(f"{name}(): Argument type not recognized: {type(first)}")
    values = rl.tensor(list(first), dtype=_INTEGERS.get(dtype, dtype), device="cpu").untyped_storage()
    return values if device.type == "cpu" else UntypedStorage(values.nbytes(), device=device)


def _warning(name, function):
    def call(self, *args, **kwargs):
        _warn_typed_storage_removal()
        return function(self, *args, **kwargs)

    call.__name__ = name
    call.__doc__ = function.__doc__
    return call


def _filled(self, value):
    self._setitem(slice(0, self._size()), value)
    return self


def _copied(self, source, non_blocking=None):
    if isinstance(source, TypedStorage):
        if source._untyped_storage.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        self._elements().copy_(source._elements())
    else:
        self._untyped_storage.copy_(source)
    return self


def _shown_type(self, dtype=None, non_blocking=False):
    if dtype is None:
        return f"torch.{self._pickle_storage_type()}"
    return self._to(dtype if isinstance(dtype, rl.dtype) else _DTYPES[str(dtype).rpartition(".")[2]])


_METHODS = {
    "untyped": lambda self: self._untyped_storage,
    "__len__": TypedStorage._size,
    "size": TypedStorage._size,
    "__getitem__": TypedStorage._getitem,
    "__setitem__": TypedStorage._setitem,
    "__iter__": lambda self: iter(self._elements().tolist()),
    "tolist": lambda self: self._elements().tolist(),
    "nbytes": TypedStorage._nbytes,
    "data_ptr": TypedStorage._data_ptr,
    "element_size": TypedStorage._element_size,
    "fill_": _filled,
    "copy_": _copied,
    "clone": lambda self: self._new_wrapped_storage(self._untyped_storage.clone()),
    "__copy__": lambda self: self._new_wrapped_storage(self._untyped_storage.clone()),
    "__deepcopy__": TypedStorage._deepcopy,
    "__sizeof__": lambda self: object.__sizeof__(self) + self._nbytes(),
    "cpu": lambda self: self._new_wrapped_storage(self._untyped_storage.cpu()),
    "cuda": lambda self, device=None, non_blocking=False: self._untyped_storage.cuda(),
    "to": lambda self, *, device, non_blocking=False: self._new_wrapped_storage(
        self._untyped_storage.to(device=device)
    ),
    "type": _shown_type,
    "resize_": TypedStorage._resize_,
    "resizable": lambda self: self._untyped_storage.resizable(),
    "is_shared": TypedStorage._is_shared,
    "share_memory_": TypedStorage._share_memory_,
    "is_pinned": lambda self, device=None: False,
    "pin_memory": lambda self, device=None: self._new_wrapped_storage(self._untyped_storage.pin_memory()),
    "get_device": lambda self: -1,
    "pickle_storage_type": TypedStorage._pickle_storage_type,
    "hpu": lambda self, *args, **kwargs: self._untyped_storage.cuda(),
    "_share_fd_cpu_": lambda self, *args: self._untyped_storage._share_fd_cpu_(*args),
    "_share_filename_cpu_": lambda self, *args: self._untyped_storage._share_filename_cpu_(*args),
    "_write_file": lambda self, *args: self._untyped_storage._write_file(*args),
}
for _name, _function in _METHODS.items():
    setattr(TypedStorage, _name, _warning(_name, _function))
for _name, _dtype in {
    "double": rl.double, "float": rl.float, "half": rl.half, "long": rl.long, "int": rl.int, "short": rl.short,
    "char": rl.int8, "byte": rl.uint8, "bool": rl.bool, "bfloat16": rl.bfloat16, "complex_double": rl.cdouble,
    "complex_float": rl.cfloat, "float8_e5m2": rl.float8_e5m2, "float8_e4m3fn": rl.float8_e4m3fn,
}.items():  # fmt: skip
    setattr(TypedStorage, _name, _warning(_name, lambda self, dtype=_dtype: self._to(dtype)))
    setattr(
        StorageBase,
        _name,
        lambda self, dtype=_dtype: _rebuilt(self, rl.uint8)._to(dtype),
    )


def _warned_property(get):
    def read(instance, owner):
        _warn_typed_storage_removal(3)
        return get(instance, owner)

    return _ClassProperty(read)


for _name, _get in {
    "device": lambda s, owner: s._untyped_storage.device,
    "is_cuda": lambda s, owner: False,
    "is_hpu": lambda s, owner: False,
    "filename": lambda s, owner: s._untyped_storage.filename,
    "dtype": lambda s, owner: owner._dtype if s is None else s._dtype,
}.items():
    setattr(TypedStorage, _name, _warned_property(_get))


# Its class methods, which the stub of the extension does not name.
_untyped: Any = UntypedStorage


class _Kind(type):
    _dtype: Any

    def __instancecheck__(cls, instance):
        if cls is _LegacyStorage:
            return type.__instancecheck__(cls, instance)
        return type(instance) is TypedStorage and instance._dtype is cls._dtype


class _LegacyStorage(TypedStorage, metaclass=_Kind):
    """FloatStorage and its kin: storages of one element type, by length or from values."""

    @classmethod
    def from_buffer(cls, buffer, byte_order="native", *, count=-1, offset=0):
        """A copy of the elements in a buffer."""
        dtype = _INTEGERS.get(cls._dtype, cls._dtype)
        data = _untyped.from_buffer(buffer, byte_order, count=count, offset=offset, dtype=dtype)
        return _rebuilt(data, cls._dtype)

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """The elements of a file, mapped into memory."""
        if cls is TypedStorage:
            raise RuntimeError("from_file can only be called on derived classes")
        data = _untyped.from_file(filename, shared, size * cls._dtype.itemsize)
        return _rebuilt(data, cls._dtype)


for _name, _dtype in _DTYPES.items():
    globals()[_name] = _Kind(
        _name,
        (_LegacyStorage,),
        {"_dtype": _dtype, "__module__": "torch", "__doc__": f"A TypedStorage of {_dtype}."},
    )

_StorageBase = StorageBase
_storage_classes = {UntypedStorage, TypedStorage, *(globals()[name] for name in _DTYPES)}


def _get_storage_from_sequence(sequence, dtype, device):
    return _untyped_from("TypedStorage", (sequence,), None, dtype, device)
