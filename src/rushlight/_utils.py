"""Functions that files name: each makes a tensor or a parameter from its saved parts."""

from __future__ import annotations

import rushlight as rl

REBUILDERS = (
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_sparse_tensor",
    "_rebuild_qtensor",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_device_tensor_from_cpu_tensor",
    "_rebuild_wrapper_subclass",
    "_rebuild_nested_tensor",
)


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _from_storage(storage, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    tensor = _from_storage(storage, storage_offset, size, stride, metadata=metadata)
    return _with_grad(tensor, requires_grad)


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    tensor = _from_storage(storage, storage_offset, size, stride, dtype, metadata)
    return _with_grad(tensor, requires_grad)


def _from_storage(storage, offset, size, stride, dtype=None, metadata=None):
    from rushlight.serialization._storage import tensor_of
    from rushlight.storage import TypedStorage

    if not isinstance(storage, TypedStorage):
        raise TypeError(f"expected a storage, got {type(storage).__name__}")
    tensor = tensor_of(storage, offset, size, stride, dtype)
    for mark, put in (("conj", tensor._set_conj), ("neg", tensor._set_neg)):
        if metadata and metadata.get(mark):
            put(True)
    return tensor


def _with_grad(tensor, requires_grad):
    return tensor.requires_grad_() if requires_grad is True else tensor


def _rebuild_parameter(data, requires_grad, backward_hooks):
    if not isinstance(data, rl.Tensor):
        raise TypeError(f"expected a tensor, got {type(data).__name__}")
    return rl.nn.Parameter(data, bool(requires_grad))


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return _set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_sparse_tensor(layout, data):
    if type(data) is not tuple or not 3 <= len(data) <= 4:
        raise TypeError("a sparse tensor must be made of three or four parts")
    for part in data:
        if isinstance(part, rl.Tensor):
            _check_tensor(part)
    if layout == rl.sparse_coo:
        indices, values, size, *coalesced = data
        _check_tensor(indices), _check_tensor(values)
        tensor = rl.sparse_coo_tensor(indices, values, size, check_invariants=True)
        return (
            tensor._coalesced_(bool(coalesced[0])) if coalesced and hasattr(tensor, "_coalesced_") else tensor
        )
    compressed, plain, values, size = data
    _check_tensor(compressed), _check_tensor(plain), _check_tensor(values)
    if layout not in (rl.sparse_csr, rl.sparse_csc, rl.sparse_bsr, rl.sparse_bsc):
        raise TypeError(f"sparse tensors of layout {layout} are not supported")
    return rl.sparse_compressed_tensor(compressed, plain, values, size, layout=layout)


def _rebuild_qtensor(storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks):
    from rushlight._quantized._files import rebuilt

    return rebuilt(storage, storage_offset, size, stride, quantizer_params)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return rl.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    return _with_grad(rl.from_numpy(data).to(dtype=dtype, device=device), requires_grad)


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    _check_tensor(data)
    return _with_grad(data.to(dtype=dtype, device=device), requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    if not isinstance(cls, type) or not issubclass(cls, rl.Tensor):
        raise TypeError("a wrapper must be of a subclass of Tensor")
    return rl.Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        storage_offset=storage_offset,
        layout=layout,
        device=device,
        dtype=dtype,
        requires_grad=requires_grad,
    )


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    for part in (buffer, sizes, strides, storage_offsets):
        _check_tensor(part)
    return rl._nested_view_from_buffer(buffer, sizes, strides, storage_offsets)


def _rebuild_njt(parts):
    from rushlight.nested._internal import nested_tensor

    return nested_tensor._rebuild_njt(parts)


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor of a subclass, with the attributes it had; func is one of the functions above."""
    if (
        func is _rebuild_njt and type(args) is tuple
    ):  # a jagged tensor: the state says once more what the arguments say
        return func(*args)
    if not any(func is globals()[name] for name in REBUILDERS) or type(args) is not tuple:
        raise TypeError("the function given does not rebuild tensors")
    tensor = func(*args)
    if new_type not in (rl.Tensor, type(tensor)):
        tensor = tensor.as_subclass(new_type)
    own = getattr(type(tensor), "__setstate__", None)
    if own is not getattr(rl.Tensor, "__setstate__", None):
        tensor.__setstate__(state)
        return tensor
    return _set_state(tensor, state)


def _set_state(tensor, state):
    """Sets attributes: a dict, or a pair of a dict and one for __slots__. Names that mean something to a tensor
    stay as they are.
    """
    plain, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    if not isinstance(plain, (dict, type(None))) or not isinstance(slots, (dict, type(None))):
        raise TypeError("the state of a tensor must be a dict or a pair of dicts")
    if plain:
        tensor.__dict__.update({str(k): v for k, v in plain.items()})
    for name, value in (slots or {}).items():
        if type(getattr(type(tensor), str(name), None)) is not type(vars(_HasSlot)["slot"]):
            raise TypeError(f"a {type(tensor).__name__} has no slot of that name")
        setattr(tensor, name, value)
    return tensor


class _HasSlot:
    __slots__ = ("slot",)


def _check_tensor(data):
    """A tensor that is no larger than the memory behind it, or small: it is about to be read or copied."""
    if not isinstance(data, rl.Tensor):
        raise TypeError(f"expected a tensor, got {type(data).__name__}")
    if data.numel() > 1 << 20 and data.numel() * data.element_size() > data.untyped_storage().nbytes():
        raise ValueError(f"a tensor of {data.numel()} elements in {data.untyped_storage().nbytes()} bytes")


def _import_dotted_name(name):
    value = __import__(name.split(".")[0])
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def _flatten_dense_tensors(tensors):
    """The elements of the tensors in one row."""
    return (
        rl.cat([t.contiguous().view(-1) for t in tensors])
        if len(tensors) != 1
        else tensors[0].contiguous().view(-1)
    )


def _unflatten_dense_tensors(flat, tensors):
    """Views of a row with the sizes of the tensors."""
    outputs, offset = [], 0
    for t in tensors:
        outputs.append(flat.narrow(0, offset, t.numel()).view_as(t))
        offset += t.numel()
    return tuple(outputs)


def _take_tensors(tensors, size_limit):
    """The tensors in groups of one type and about size_limit bytes."""
    groups: dict[Any, list[Any]] = {}
    for t in tensors:
        group = groups.setdefault(t.dtype, [[], 0])
        if group[0] and group[1] + t.numel() * t.element_size() > size_limit:
            yield group[0]
            group = groups[t.dtype] = [[], 0]
        group[0].append(t)
        group[1] += t.numel() * t.element_size()
    for group, _ in groups.values():
        if group:
            yield group


def _element_size(dtype):
    """The bytes of one element."""
    return dtype.itemsize


def _get_available_device_type():
    return None


def _get_device_module(device_type):
    return getattr(rl, device_type)


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device; -1 for the CPU."""
    device = rl.device(device) if not isinstance(device, int) and device is not None else device
    if isinstance(device, int):
        return device
    if device is None or (device.type == "cpu" and not allow_cpu and not optional):
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return -1 if device.type == "cpu" else (device.index or 0)


class ExceptionWrapper:
    """An exception on its way from another thread or process: reraise() raises it there."""

    def __init__(self, exc_info=None, where="in background"):
        import sys
        import traceback

        exc_info = exc_info or sys.exc_info()
        self.exc_type: Any = exc_info[0]
        self.where = where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self):
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> Any:
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
