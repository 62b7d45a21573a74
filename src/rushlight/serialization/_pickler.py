"""Pickling with PyTorch's names for our classes; the bytes of tensors are left to whoever asks."""

from __future__ import annotations

import copyreg
import enum
import functools
import io
import pickle
import struct
import sys
from collections import OrderedDict

import rushlight as rl
from rushlight import _utils
from rushlight.serialization import _options
from rushlight.serialization._storage import storage_name, tensor_over_storage
from rushlight.storage import TypedStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

    from rushlight._C import Tensor, device

    _Enter = Callable[[Tensor, str | None, bool], tuple[tuple[Any, ...], int, tuple[int, ...]]]


def pickled(obj: Any, pickle_module: ModuleType, protocol: int, enter: _Enter) -> bytes:
    """The pickle of an object. enter(tensor, storage type, whether it is a bare storage) is asked about each tensor or storage that has memory, and
    returns (persistent id of the storage, offset in elements, strides); the type is None for bytes.
    """
    out = io.BytesIO()
    if pickle_module is pickle:
        pickler: Any = _Pickler(out, protocol)
        pickler.name = _name
    else:
        # Another module (dill, cloudpickle): its pickler writes our own names, which load() knows too.
        pickler = _foreign(pickle_module)(out, protocol=protocol)
        pickler.name = lambda module, name: getattr(_utils, name)
    pickler.enter = enter
    pickler.dump(obj)
    return out.getvalue()


class _Name:
    """A global that the pickle names but this process does not have: torch.FloatStorage, torch._utils..."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> NoReturn:
        raise TypeError(f"{self.module}.{self.name} is only a name in a file")


class _Reference:
    """Stands for a storage inside a pickle."""

    def __init__(self, identity: tuple[Any, ...]) -> None:
        self.identity = identity


# Nothing of these is ours to pickle: they are by far the most of what a file names.
_PLAIN = frozenset(
    [_Name, _Reference, str, int, float, bool, bytes, type(None), tuple, list, dict, set, OrderedDict]
)

_names: dict[tuple[str, str], _Name] = {}


def _name(module: str, name: str) -> _Name:
    return _names.setdefault((module, name), _Name(module, name))


class _TensorPickling:
    """How tensors, storages, types and devices are pickled, whichever pickler does the rest."""

    # Of this pickling; see pickled().
    name: Callable[[str, str], Any]
    enter: _Enter

    def persistent_id(self, obj: object) -> tuple[Any, ...] | None:
        return obj.identity if isinstance(obj, _Reference) else None

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) in _PLAIN:
            return NotImplemented
        if isinstance(obj, rl.Tensor):
            is_made = not hasattr(type(obj), "materialize")  # parameters of lazy modules are not yet
            return self._tensor(obj) if is_made else NotImplemented
        if type(obj).__module__ == "torch.return_types" and self.name is _name:
            return _name("torch.return_types", type(obj).__name__), (tuple(obj), {})
        if isinstance(obj, enum.Enum) and type(obj).__reduce_ex__ is enum.Enum.__reduce_ex__:
            return type(obj), (
                obj.value,
            )  # some Pythons (3.11.0 to 3.11.3) write a getattr, which files may not call
        if isinstance(obj, rl.dtype):
            return _name("torch", str(obj).rsplit(".", 1)[-1]) if self.name is _name else NotImplemented
        if isinstance(obj, rl.device):
            return _name("torch", "device") if self.name is _name else rl.device, _device_args(obj)
        if isinstance(obj, rl.Size):
            return _name("torch", "Size") if self.name is _name else rl.Size, (tuple(obj),)
        if isinstance(obj, rl.layout) and self.name is _name:
            return _name("torch.serialization", "_get_layout"), (str(obj).replace("rushlight", "torch"),)
        if type(obj) is type(rl.relu) and self.name is _name:  # an op: "relu", "nn.functional.gelu"
            home, _, name = f"torch.{obj.__reduce__()[1][0]}".rpartition(".")
            return _name(home, name)
        if isinstance(obj, rl.UntypedStorage):
            return _Bare(self._stored(tensor_over_storage(obj), None)[0])
        if isinstance(obj, TypedStorage):
            name = storage_name(obj._dtype)
            return _Bare(
                self._stored(obj._elements() if name else tensor_over_storage(obj._untyped_storage), name)[0]
            )
        others = getattr(super(), "reducer_override", None)
        return others(obj) if others else NotImplemented

    def _stored(
        self, tensor: Tensor, name: str | None, bare: bool = True
    ) -> tuple[_Reference, int, tuple[int, ...]]:
        """(reference to the storage, offset, strides)"""
        identity, offset, stride = self.enter(tensor, name, bare)
        return _Reference(("storage", self._storage_type(name), *identity)), offset, tuple(stride)

    def _storage_type(self, name: str | None) -> Any:
        module, name = ("torch.storage", "UntypedStorage") if name is None else ("torch", name)
        if self.name is _name:
            return _name(module, name)
        from rushlight.serialization._allowed import storage_types

        return storage_types()[f"{module}.{name}"]

    def _materialized(self, t: Any) -> Tensor:
        """A tensor of zeros for one without memory; those that share a storage do so again."""
        memory = t.elem.untyped_storage()
        kept = self.__dict__.setdefault("_memories", {})
        if memory._cdata not in kept:
            kept[memory._cdata] = (rl.empty(memory.nbytes(), dtype=rl.uint8), memory)
        whole = kept[memory._cdata][0].view(t.dtype)
        made: Tensor = whole.as_strided(tuple(t.shape), t.stride(), t.storage_offset())
        if isinstance(t, rl.nn.Parameter):
            return rl.nn.Parameter(made, t.requires_grad)
        made.requires_grad_(t.requires_grad and t.is_leaf)
        return made

    def _tensor(self, t: Tensor) -> tuple[Any, tuple[Any, ...]]:
        if _options.materializes() and hasattr(t, "fake_mode"):
            t = self._materialized(t)
        if isinstance(t, rl.nn.Parameter):
            attributes = {k: v for k, v in getattr(t, "__dict__", {}).items()}
            function = "_rebuild_parameter_with_state" if attributes else "_rebuild_parameter"
            hooks: OrderedDict[str, Any] = OrderedDict()
            args = (t.detach(), t.requires_grad, hooks)
            return self.name("torch._utils", function), (*args, attributes) if attributes else args
        if t.is_quantized:
            return self._quantized(t)
        if t.is_nested:
            return self._nested(t)
        function, args = self._plain_tensor(t)
        if t.layout != rl.strided:
            return function, args
        state = _state_of(t)
        if type(t) is rl.Tensor and not state:
            return function, args
        rebuild = _name("torch._tensor", "_rebuild_from_type_v2")
        if self.name is not _name:
            rebuild = _utils._rebuild_from_type_v2
        kind = _name("torch", "Tensor") if type(t) is rl.Tensor and self.name is _name else type(t)
        return rebuild, (function, kind, args, state)

    def _plain_tensor(self, t: Tensor) -> tuple[Any, tuple[Any, ...]]:
        args: tuple[Any, ...]
        if _is_wrapper(t):
            args = (
                type(t),
                t.dtype,
                tuple(t.size()),
                tuple(t.stride()),
                t.storage_offset(),
                t.layout,
                t.device,
            )
            return self.name("torch._utils", "_rebuild_wrapper_subclass"), (*args, t.requires_grad)
        if t.device.type == "meta":
            args = (t.dtype, tuple(t.size()), tuple(t.stride()), t.requires_grad)
            return self.name("torch._utils", "_rebuild_meta_tensor_no_storage"), args
        if t.layout != rl.strided:
            return self._sparse(t)
        requires_grad = t.requires_grad
        if not t.is_leaf:
            t = t.detach()
        name = storage_name(t.dtype)
        stored, offset, stride = self._stored(t, name, bare=False)
        args = (stored, offset, tuple(t.size()), stride, requires_grad, OrderedDict())
        marks = {mark: True for mark, on in (("conj", t.is_conj()), ("neg", t.is_neg())) if on}
        if name is None:
            args += (t.dtype,)
        if marks:
            args += (marks,)
        if name is None:
            return self.name("torch._utils", "_rebuild_tensor_v3"), args
        return self.name("torch._utils", "_rebuild_tensor_v2"), args

    def _quantized(self, t: Any) -> tuple[Any, tuple[Any, ...]]:
        ints, size = t._bytes_in_files(), tuple(t.size())
        stored, offset, stride = self._stored(ints, storage_name(t.dtype), bare=False)
        if ints.shape != t.shape:  # packed: their positions are those of whole rows
            stride = t.contiguous().stride()
        hooks: OrderedDict[str, Any] = OrderedDict()
        args = (stored, offset, size, tuple(stride), t._quantizer.parts(), False, hooks)
        return self.name("torch._utils", "_rebuild_qtensor"), args

    def _nested(self, t: Any) -> tuple[Any, tuple[Any, ...]]:
        from rushlight.nested import _tensor as nested

        if t.layout == rl.jagged:
            return self.name("torch.nested._internal.nested_tensor", "_rebuild_njt"), (
                nested.jagged_state(t),
            )
        return self.name("torch._utils", "_rebuild_nested_tensor"), nested.nested_parts(t)

    def _sparse(self, t: Any) -> tuple[Any, tuple[Any, ...]]:
        if t.layout == rl.sparse_coo:
            parts = (t._indices(), t._values(), t.size(), t.is_coalesced())
        elif t.layout in (rl.sparse_csr, rl.sparse_bsr):
            parts = (t.crow_indices(), t.col_indices(), t.values(), t.size())
        else:
            parts = (t.ccol_indices(), t.row_indices(), t.values(), t.size())
        return self.name("torch._utils", "_rebuild_sparse_tensor"), (t.layout, parts)


def _state_of(t: Tensor) -> Any:
    """What the class of a tensor says its state is; else its attributes, with those in __slots__ if it has some."""
    if type(t).__getstate__ is not rl.Tensor.__getstate__:
        return t.__getstate__()
    attributes = dict(getattr(t, "__dict__", None) or {})
    names: list[str] = copyreg._slotnames(type(t))  # type: ignore[attr-defined]  # typeshed leaves it out
    slots = {n: getattr(t, n) for n in names if hasattr(t, n)}
    return (attributes, slots) if slots else attributes


def _is_wrapper(t: Tensor) -> bool:
    """Whether a tensor has a shape and no memory of its own: its class holds other tensors and answers for ops."""
    return (
        type(t) is not rl.Tensor
        and t.device.type != "meta"
        and t.layout == rl.strided
        and t.untyped_storage().device.type == "meta"
    )


def _public_home(obj: object, module: str, name: str) -> str:
    """Where PyTorch has a function that lives in one of our private modules."""
    if module.startswith("rushlight.nn._functional") and hasattr(rl.nn.functional, name):
        return "rushlight.nn.functional"
    if "._" in module:
        parts = module.split(".")
        parents = [".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1)]
        for home in parents:
            if "._" not in home and getattr(sys.modules.get(home), name, None) is obj:
                return home
    return module


class _Bare:
    """A reduction that is the persistent object itself."""

    def __init__(self, reference: _Reference) -> None:
        self.reference = reference


def _device_args(device: device) -> tuple[str] | tuple[str, int]:
    index = getattr(device, "index", None)
    return (device.type,) if index is None else (device.type, index)


def _number(n: int) -> bytes:
    if 0 <= n < 256:
        return pickle.BININT1 + bytes((n,))
    if -(2**31) <= n < 2**31:
        return pickle.BININT + struct.pack("<i", n)
    return pickle.LONG1 + b"\x09" + n.to_bytes(9, "little", signed=True)


@functools.lru_cache(1024)
def _numbers(sizes: tuple[int, ...]) -> bytes:
    return pickle.MARK + b"".join(map(_number, sizes)) + pickle.TUPLE if sizes else pickle.EMPTY_TUPLE


_PLAIN_TENSOR = _name("torch._utils", "_rebuild_tensor_v2")


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

    class _PythonPickler(pickle.Pickler):
        """pickle._Pickler, which typeshed takes for the compiled one."""

        dispatch: ClassVar[dict[type, Callable[[Any, Any], None]]]
        memo: Any  # {id: (number, object)}
        framer: Any
        proto: int

        def write(self, data: bytes) -> int: ...
        def get(self, i: int) -> bytes: ...
        def save(self, obj: Any, save_persistent_id: bool = True) -> None: ...
        def save_reduce(self, func: Any, args: Any, *more: Any, obj: Any = None) -> None: ...
        def save_global(self, obj: Any, name: str | None = None) -> None: ...
        def save_type(self, obj: type) -> None: ...
        def memoize(self, obj: Any) -> None: ...
else:
    _PythonPickler = pickle._Pickler


class _Pickler(_TensorPickling, _PythonPickler):
    """The pickler of the standard library in its Python form, where names can be spelled as PyTorch does."""

    dispatch = _PythonPickler.dispatch.copy()

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        write = _WRITERS.get(type(obj))
        if write is not None:  # the base would first ask whether they are tensors
            known = self.memo.get(id(obj))
            self.framer.commit_frame()
            if known is None:
                write(self, obj)
            else:
                self.write(self.get(known[0]))
            return
        if type(obj) not in _PLAIN and id(obj) not in self.memo:
            reduced = self.reducer_override(obj)
            # Objects that reduce to a name or a storage have no call to write.
            if isinstance(reduced, _Name):
                super().save(reduced)
                return
            if isinstance(reduced, _Bare):
                super().save(reduced.reference)
                return
            if isinstance(reduced, tuple):  # the base would ask for the reduction again
                self.framer.commit_frame()
                if reduced[0] is _PLAIN_TENSOR and len(reduced[1]) == 6 and self.proto >= 2:
                    self._save_tensor(obj, *reduced[1])
                else:
                    self.save_reduce(*reduced, obj=obj)
                return
        super().save(obj, save_persistent_id)

    def _save_tensor(
        self,
        obj: Tensor,
        stored: _Reference,
        offset: int,
        size: tuple[int, ...],
        stride: tuple[int, ...],
        requires_grad: bool,
        hooks: OrderedDict[Any, Any],
    ) -> None:
        """What save_reduce writes, as one piece: its memo indices are shared with nothing, so that none need be found again."""
        self.save(_PLAIN_TENSOR)
        self.write(pickle.MARK + pickle.MARK)
        for part in stored.identity:
            self.save(part)
        flag = pickle.NEWTRUE if requires_grad else pickle.NEWFALSE
        self.write(
            pickle.TUPLE + pickle.BINPERSID + _number(offset) + _numbers(size) + _numbers(stride) + flag
        )
        self.save(type(hooks))
        self.write(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)
        self.memoize(obj)

    def _save_name(self, obj: _Name) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module = getattr(obj, "__module__", None) or ""
        if module.split(".")[0] == "rushlight":
            name = name or getattr(obj, "__qualname__", obj.__name__)
            module = _public_home(obj, module, name)
            inside = module[len("rushlight") :]
            spelled = (
                f"torchvision{inside[7:]}" if (inside + ".").startswith(".vision.") else f"torch{inside}"
            )
            self.write(pickle.GLOBAL + f"{spelled}\n{name}\n".encode())
            self.memoize(obj)
        else:
            super().save_global(obj, name)

    def save_type(self, obj: type[Any]) -> None:
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)
        else:
            self.save_global(obj)

    dispatch.update({_Name: _save_name, type: save_type, type(save): save_global})


_WRITERS = {
    kind: _Pickler.dispatch[kind] for kind in (str, int, float, bool, type(None), tuple, list, dict, _Name)
}


def _foreign(pickle_module: Any) -> Any:
    base = pickle_module.Pickler
    return type("_ForeignPickler", (_TensorPickling, base), {})
