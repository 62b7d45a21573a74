"""Tensors in shared memory, and how they travel through multiprocessing's queues and pipes.

A shared tensor lives in an anonymous memory file. Processes forked later see it as it is; through a queue
only the file's descriptor travels, and the receiver maps the same memory: what one process writes, all see.
"""

import contextlib
import mmap
import os
import weakref
from multiprocessing.reduction import DupFd, ForkingPickler

import rushlight as rl

# address of the mapping -> (descriptor, bytes); an entry lives as long as the mapping
_files: dict = {}


class StorageWeakRef:
    """A weak reference to a storage: equal for all objects that show the same one.

    Args:
        storage (UntypedStorage or TypedStorage): the storage.
    """

    def __init__(self, storage):
        untyped = getattr(storage, "_untyped_storage", storage)
        self.cdata = untyped._cdata
        self._ref: weakref.ref | None = weakref.ref(untyped)

    @classmethod
    def from_weakref(cls, cdata):
        """One of the address that another one has."""
        made = cls.__new__(cls)
        made.cdata, made._ref = cdata, None
        return made

    def expired(self):
        """Whether the storage is gone."""
        return self._ref is None or self._ref() is None

    def __hash__(self):
        return self.cdata

    def __eq__(self, other):
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)


class _Mapping(mmap.mmap):
    """A mapping that can be weakly referenced."""


def _forget(address, fd):
    _files.pop(address, None)
    with contextlib.suppress(OSError):
        os.close(fd)


def _map(fd, size):
    """A flat byte tensor over the memory file; the descriptor is closed when no tensor uses the mapping."""
    mapping = _Mapping(fd, size)
    flat = rl.frombuffer(mapping, dtype=rl.uint8)
    address = flat.data_ptr()
    _files[address] = fd, size
    weakref.finalize(mapping, _forget, address, fd)
    return flat


def _new_file(size):
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("rushlight-shared", os.MFD_CLOEXEC)
    else:
        import tempfile

        fd, path = tempfile.mkstemp(prefix="rushlight-shared")
        os.unlink(path)
    os.ftruncate(fd, size)
    return fd


def _address(tensor):
    return tensor.untyped_storage().data_ptr()


def is_shared(tensor):
    """Whether the tensor's memory is shared with other processes."""
    return tensor.numel() == 0 or tensor.untyped_storage().is_shared()


def share_storage(storage):
    """Move a storage into shared memory, in place: the tensors on it stay on it."""
    if storage.is_shared() or not storage.nbytes():
        storage._set_shared(True)
        return storage
    flat = _map(_new_file(storage.nbytes()), storage.nbytes())
    storage._move_to(flat.untyped_storage())
    return storage


def share_memory_(tensor):
    """Move the memory under a tensor into shared memory, in place."""
    if tensor.device.type != "cpu":
        raise RuntimeError(f"share_memory_ needs a tensor on the CPU, got one on {tensor.device}")
    tensor.untyped_storage().share_memory_()
    return tensor


def _as_kind(tensor, kind, requires_grad):
    """The tensor as an object of the class that was sent."""
    if issubclass(kind, rl.nn.Parameter):
        return kind(tensor, requires_grad)
    if kind is not rl.Tensor:
        tensor = tensor.as_subclass(kind)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild(kind, fd, size, dtype, shape, stride, offset, requires_grad):
    flat = _map(fd.detach(), size)
    flat.untyped_storage()._set_shared(True)
    tensor = flat.view(getattr(rl, dtype)).as_strided(shape, stride, offset)
    return _as_kind(tensor, kind, requires_grad)


def _rebuild_empty(kind, dtype, shape, requires_grad):
    return _as_kind(rl.empty(shape, dtype=getattr(rl, dtype)), kind, requires_grad)


def reduce_tensor(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
            "support crossing process boundaries. If you just want to transfer the data, call detach() on "
            "the "
            "tensor before serializing (e.g., putting it on the queue)."
        )
    kind, dtype = type(tensor), str(tensor.dtype).rpartition(".")[2]
    if tensor.numel() == 0:
        return _rebuild_empty, (kind, dtype, tuple(tensor.shape), tensor.requires_grad)
    if _address(tensor) not in _files:  # of a file, say: shared, but by no descriptor of ours
        tensor = tensor.clone() if tensor.is_shared() else tensor
        share_memory_(tensor)
    fd, size = _files[_address(tensor)]
    geometry = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    return _rebuild, (kind, DupFd(fd), size, dtype, *geometry, tensor.requires_grad)


def _rebuild_storage(kind, fd, size, dtype):
    if fd is None:
        untyped = kind(0)
    else:
        untyped = _map(fd.detach(), size).untyped_storage()
        untyped._set_shared(True)
    if dtype is None:
        return untyped
    return rl.TypedStorage(wrap_storage=untyped, dtype=getattr(rl, dtype), _internal=True)


def reduce_storage(storage):
    untyped = storage if isinstance(storage, rl.UntypedStorage) else storage._untyped_storage
    dtype = None if untyped is storage else str(storage._dtype).rpartition(".")[2]
    if not untyped.nbytes():
        return _rebuild_storage, (rl.UntypedStorage, None, 0, dtype)
    untyped.share_memory_()
    fd, size = _files[untyped.data_ptr()]
    return _rebuild_storage, (rl.UntypedStorage, DupFd(fd), size, dtype)


def init_reductions():
    """Teach multiprocessing to send tensors and storages."""
    ForkingPickler.register(rl.UntypedStorage, reduce_storage)
    ForkingPickler.register(rl.storage.TypedStorage, reduce_storage)
    ForkingPickler.register(rl.Tensor, reduce_tensor)
    ForkingPickler.register(rl.nn.Parameter, reduce_tensor)
