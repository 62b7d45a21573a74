"""FakeTensorMode: programs run on shapes, types and devices alone.

Inside the mode new tensors are FakeTensors: wrappers of a tensor on the meta device that show the device the program
asked for, of which this machine need not have any. An op runs on the meta tensors; where its result depends on values
it raises.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Any

import rushlight as rl
from rushlight import _C
from rushlight._C import Tensor
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from rushlight.utils.weak import WeakIdKeyDictionary

_META = rl.device("meta")


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that can't be made fake."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class _OfOverload(RuntimeError):
    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class UnsupportedOperatorException(_OfOverload):
    """An operator that has no rule for meta tensors."""


class _OfValues(_OfOverload):
    def __str__(self) -> str:
        return f"{self.func}: data-dependent, and a fake tensor has no values"


class DynamicOutputShapeException(_OfValues):
    """An op whose result has as many elements as the values say."""


class DataDependentOutputException(_OfValues):
    """An op that gives a number of the values."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Tensors of several devices in one call."""


class MetadataMismatchError(AssertionError):
    """Two tensors that differ in their metadata."""


class FakeTensor(Tensor):
    """A tensor of a FakeTensorMode."""

    fake_device: Any
    _is_param: bool
    fake_mode: FakeTensorMode
    elem: Tensor  # on the meta device
    constant: Tensor | None

    @staticmethod
    def __new__(cls, fake_mode, elem, device, constant=None):
        device = _indexed(rl.device(device))
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, tuple(elem.shape), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
            device=device, requires_grad=elem.requires_grad, storage_size=elem.untyped_storage().nbytes(),
        )  # fmt: skip
        made.elem, made.fake_device, made.fake_mode, made.constant = (
            elem.detach(),
            device,
            fake_mode,
            constant,
        )
        return made

    @staticmethod
    def from_tensor(t, fake_mode):
        """fake_mode.from_tensor(t)."""
        return fake_mode.from_tensor(t)

    @property
    def is_fake(self):
        return True

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        found = _tensors_in((args, kwargs or {}))
        modes = [t.fake_mode for t in found if isinstance(t, FakeTensor)]
        if any(m is not modes[0] for m in modes):
            raise AssertionError("Mixing fake modes NYI: the FakeTensors of a call belong to several modes")
        return modes[0].__torch_dispatch__(func, types, args, kwargs)

    def __repr__(self, *, tensor_contents=None):
        parts = ["..."]
        if self.device.type != "cpu":
            parts.append(f"device='{self.device}'")
        parts.append(f"size={tuple(self.shape)}")
        if self.dtype is not rl.get_default_dtype():
            parts.append(f"dtype={self.dtype}")
        if self.requires_grad and self.is_leaf:
            parts.append("requires_grad=True")
        elif self.grad_fn is not None:
            parts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        inner = f"FakeTensor({', '.join(parts)})"
        return f"Parameter({inner})" if getattr(self, "_is_param", False) else inner

    __str__ = __repr__

    def __deepcopy__(self, memo):
        with _disable_current_modes():
            made = memo[id(self)] = FakeTensor(
                self.fake_mode, self.elem.clone(), self.fake_device, self.constant
            )
            made.requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            made._is_param = True
        return made

    def tolist(self):
        if self.constant is not None:
            return self.constant.tolist()
        raise DataDependentOutputException("aten._local_scalar_dense.default")

    def data_ptr(self):
        return 0


def _indexed(device):
    """Devices other than the CPU have a number."""
    if device.type in ("cpu", "meta") or device.index is not None:
        return device
    return rl.device(device.type, 0)


def is_fake(x: Any) -> bool:
    """Whether a value is a FakeTensor."""
    return isinstance(x, FakeTensor)


@contextlib.contextmanager
def unset_fake_temporarily():
    """A block outside of the fake mode, which it gives."""
    with _disable_current_modes() as modes:
        yield next((m for m in modes or () if isinstance(m, FakeTensorMode)), None)


@contextlib.contextmanager
def maybe_disable_fake_tensor_mode():
    """The same."""
    with unset_fake_temporarily() as mode:
        yield mode


def _mapped(value, function):
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple | list):
        kind = type(value)
        items = [_mapped(v, function) for v in value]
        return kind(*items) if hasattr(value, "_fields") else kind(items)
    return {k: _mapped(v, function) for k, v in value.items()} if isinstance(value, dict) else value


def _tensors_in(value: Any) -> list[Any]:
    found = []

    def keep(t):
        found.append(t)
        return t

    _mapped(value, keep)
    return found


class FakeTensorConverter:
    """Real tensors to fake ones; the same one for the same tensor, and one storage for those that share theirs."""

    def __init__(self, *, copy_data: bool = False, export: bool = False) -> None:
        self._made = WeakIdKeyDictionary()
        self._storages: dict = {}

    @property
    def tensor_memo(self):
        return self._made

    def from_real_tensor(self, fake_mode, t, **options):
        """The fake tensor of a real one: its geometry, flags and gradient."""
        known = self._made.get(t)
        if known is not None and known.fake_mode is fake_mode:
            return known
        if t.layout is not rl.strided or t.is_quantized:
            raise UnsupportedFakeTensorException(
                f"a tensor of layout {t.layout} can't be made fake: make it dense"
            )
        with _disable_current_modes(), rl.no_grad():
            made = FakeTensor(fake_mode, self._meta(t), t.device)
            if t.requires_grad:
                made.requires_grad_(True)
            if isinstance(t, rl.nn.Parameter):
                made._is_param = True
        self._made[t] = made
        if t.is_leaf and t.grad is not None:
            made.grad = self.from_real_tensor(fake_mode, t.grad)
        return made

    def _meta(self, t):
        storage = t.untyped_storage()
        key = (storage.data_ptr(), t.device) if storage.nbytes() else None
        size = storage.nbytes() // t.element_size()
        kept = self._storages.get(key) if key else None
        if kept is None or kept.numel() * kept.element_size() != storage.nbytes():
            kept = rl.empty(size, dtype=t.dtype, device="meta")
            if key:
                self._storages[key] = kept
        if kept.dtype is not t.dtype:
            kept = kept.view(t.dtype)
        return kept.as_strided(tuple(t.shape), t.stride(), t.storage_offset())

    def from_meta_and_device(self, fake_mode, t, device, **options):
        """A fake tensor of a meta tensor, shown on a device."""
        return FakeTensor(fake_mode, t, device)


class _Running(threading.local):
    """The primitives that a fake mode is running in this thread."""

    depth = 0

    def __enter__(self) -> None:
        _Running.depth += 1

    def __exit__(self, *exc: Any) -> None:
        _Running.depth -= 1


def running() -> bool:
    """Whether a fake mode is running a primitive."""
    return _Running.depth > 0


def _is_tensor_constructor(func: Any) -> bool:
    """Whether a primitive makes a tensor of none: ones, arange."""
    return bool(func._flags & _C.OpFlags.FACTORY) and not func.name().partition(".")[0].endswith("_like")


_RAISES_SHAPE = (
    "nonzero", "unique", "_unique", "_unique2", "unique_consecutive", "unique_dim", "masked_select", "argwhere",
    "bincount", "_unique_flat", "_unique_rows",
)  # fmt: skip
_RAISES_DATA = ("_local_scalar_dense", "item", "equal", "is_nonzero", "allclose", "__bool__")
_TAKES_DEVICE = ("_to_copy", "to", "empty", "cuda", "cpu")


class FakeTensorMode(TorchDispatchMode):
    """A block in which new tensors are FakeTensors. Tensors from outside: from_tensor(t), or
    allow_non_fake_inputs=True."""

    def __init__(
        self, *, allow_fallback_kernels=True, allow_non_fake_inputs=False, shape_env=None, static_shapes=None, export=False
    ):  # fmt: skip
        super().__init__()
        if shape_env is not None:
            raise NotImplementedError(
                "FakeTensorMode: symbolic shapes (shape_env) are not supported; leave it out"
            )
        self.allow_fallback_kernels, self.allow_non_fake_inputs = (
            allow_fallback_kernels,
            allow_non_fake_inputs,
        )
        self.shape_env, self.static_shapes, self.export = None, True, export
        self.in_kernel_invocation = False
        self.fake_tensor_converter = FakeTensorConverter()
        self._entered: list = []
        self._with_constants: list = []  # weak references to tensors that know their value

    def __enter__(self):
        from rushlight.utils._python_dispatch import _get_current_dispatch_mode

        again = _get_current_dispatch_mode() is self
        self._entered.append(again)
        return self if again else super().__enter__()

    def __exit__(self, *exc):
        if not self._entered.pop():
            super().__exit__(*exc)

    @classmethod
    def is_infra_mode(cls):
        return True

    def from_tensor(self, tensor, *, static_shapes=None, source=None, symbolic_context=None, trace=True):
        """The fake tensor of a real one."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI: the FakeTensor belongs to another mode")
            return tensor
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = func.overloadpacket.__name__
        known: Any = {}
        if name in ("lift_fresh", "lift_fresh_copy", "lift") and not isinstance(args[0], FakeTensor):
            return self._from_data(args[0])
        given = self._faked(func, args, kwargs)
        constant: Any = _by_constants(name, func, *given)
        if constant is not None and not isinstance(constant, Tensor):
            return constant
        if name in _RAISES_DATA:
            raise DataDependentOutputException(func)
        if name in _RAISES_SHAPE or (name == "index" and _has_mask(given[0])):
            raise DynamicOutputShapeException(func)
        device = self._device(func, name, *given)
        elems = _mapped(given, lambda t: known.setdefault(id(t.elem), t).elem)
        result = self._run(func, name, elems, known, device)
        if constant is not None and isinstance(result, FakeTensor):
            result.constant = constant
            self._with_constants.append(weakref.ref(result))
        if func.mutates and constant is None:
            self._forget(given[0][0])
        return result

    def _from_data(self, t):
        """The fake tensor of what torch.tensor(...) has made: a single element keeps its value."""
        with _disable_current_modes(), rl.no_grad():
            made = FakeTensor(
                self, rl.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device="meta"), t.device
            )
        if t.numel() <= 1:
            made.constant = t
            self._with_constants.append(weakref.ref(made))
        return made

    def _forget(self, written):
        """No tensor on the memory of the one written to knows its value any more."""
        memory = written.elem.untyped_storage()._cdata
        self._with_constants = [ref for ref in self._with_constants if ref() is not None]
        for ref in self._with_constants:
            t = ref()
            if t is not None and t.elem.untyped_storage()._cdata == memory:
                t.constant = None

    def _run(self, func, name, elems, known, device):
        args, kwargs = elems
        wanted = kwargs.get("device")
        if wanted is not None:
            kwargs["device"] = _META
        else:
            args = tuple(_META if isinstance(a, rl.device) else a for a in args)
        kwargs.pop("pin_memory", None)
        with _disable_current_modes(), rl.no_grad(), _Running():
            try:
                results = func.run(args, kwargs)
            except NotImplementedError as error:
                raise UnsupportedOperatorException(func) from error

        def whole(t):
            own = known.get(id(t))
            if own is not None:
                _follow(own)
                return own
            return FakeTensor(self, t if t.is_meta else self._lifted(t), device)

        return _mapped(results, whole)

    def _faked(self, func, args, kwargs):
        def fake(t):
            if isinstance(t, FakeTensor):
                return self.from_tensor(t)
            if self.allow_non_fake_inputs or t.dim() == 0:
                return self.from_tensor(t)
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                f"'allow_non_fake_inputs'. Found in {func}: a tensor of sizes {tuple(t.shape)}; mode.from_tensor(t) converts it"
            )

        return _mapped(args, fake), _mapped(kwargs, fake)

    def _device(self, func, name, args, kwargs):
        """Where the results are: as said, or where the arguments are."""
        wanted = kwargs.get("device", next((a for a in args if isinstance(a, rl.device)), None))
        if wanted is not None:
            return rl.device(wanted)
        found = _tensors_in((args, kwargs))
        if not found:
            return rl.get_default_device()
        if name in ("copy_", "type_as", "resize_as_") or name.startswith(
            ("index", "_index", "gather", "embedding")
        ):
            return (found[1] if name == "type_as" else found[0]).device
        placed = [t for t in found if t.dim() or t.device.type != "cpu"] or found
        first = placed[0].device
        other = next((t.device for t in placed if t.device != first), None)
        if other is not None:
            raise FakeTensorDeviceMismatchError(
                f"Expected all tensors to be on the same device, but found at least two devices, {first} and {other}! ({func})"
            )
        return first

    def _lifted(self, t):
        with _disable_current_modes(), rl.no_grad():
            return rl.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")


def _by_constants(name, func, args, kwargs):
    """The result of a call on 0-dim tensors whose values are known, which programs count steps with: these keep their values."""
    found = _tensors_in((args, kwargs))
    alone = name in ("zeros", "ones", "full") and bool(args) and not args[0]  # a number
    made = not found and (alone or name == "scalar_tensor")
    result = None
    if made or (found and all(t.constant is not None for t in found)):
        options = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory")}
        with _disable_current_modes(), rl.no_grad():
            result = func.run(*_mapped((args, options), lambda t: t.constant))
    if isinstance(result, Tensor) and (result.numel() > 1 or func._flags & _C.OpFlags.RANDOM):
        result = None
    return result if isinstance(result, Tensor | int | float | bool | complex) else None


def _has_mask(args):
    indices = args[1] if len(args) > 1 and isinstance(args[1], tuple | list) else ()
    return any(isinstance(i, Tensor) and i.dtype in (rl.bool, rl.uint8) for i in indices)


def _follow(own):
    """A wrapper whose meta tensor was changed in place, resize_ say, shows its geometry."""
    elem = own.elem
    if tuple(own.shape) != tuple(elem.shape) or own.stride() != elem.stride():
        with _disable_current_modes():
            other = FakeTensor(own.fake_mode, elem, own.fake_device)
        other.elem = elem
        _C.ops["_swap_bodies"](own, other)


def extract_tensor_metadata(t):
    """Shape, type, layout, device and strides of a tensor."""
    return (
        tuple(t.shape),
        t.dtype,
        t.layout,
        t.stride(),
        t.storage_offset(),
        t.device,
        t.requires_grad,
        t.is_conj(),
    )


__getattr__ = _unsupported_attribute(__name__)
