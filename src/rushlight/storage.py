"""torch.storage: the memory under tensors, as bytes (UntypedStorage) or as elements (TypedStorage)."""

import rushlight as rl
from rushlight import UntypedStorage as UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


class TypedStorage:
    """A storage seen as elements of one type: what the deprecated Tensor.storage() gives."""

    def __init__(self, *, wrap_storage, dtype, _internal=False):
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
        return False

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
    return rl.empty(0, dtype=rl.uint8).set_(self, 0, (self.nbytes(),), (1,)).tolist()


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
    return False
