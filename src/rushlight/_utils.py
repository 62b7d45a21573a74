"""Functions that files name: each makes a tensor or a parameter from its saved parts."""

import rushlight as rl

REBUILDERS = (
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_sparse_tensor",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_device_tensor_from_cpu_tensor",
)


def _as_stored(storage):
    from rushlight.serialization._storage import LoadedStorage

    if not isinstance(storage, LoadedStorage):
        raise TypeError(f"expected a storage, got {type(storage).__name__}")
    return storage


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _as_stored(storage).tensor(storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    return _finish(tensor, requires_grad, metadata)


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    tensor = _as_stored(storage).tensor(storage_offset, size, stride, dtype)
    return _finish(tensor, requires_grad, metadata)


def _finish(tensor, requires_grad, metadata):
    if metadata:
        if metadata.get("conj"):
            tensor = tensor.conj().resolve_conj()
        if metadata.get("neg"):
            tensor = tensor.neg()
    if requires_grad is True:
        tensor.requires_grad_()
    return tensor


def _rebuild_parameter(data, requires_grad, backward_hooks):
    _check_tensor(data)
    return rl.nn.Parameter(data, bool(requires_grad))


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return _set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_sparse_tensor(layout, data):
    if layout == rl.sparse_coo:
        indices, values, size, *coalesced = data
        tensor = rl.sparse_coo_tensor(indices, values, size)
        return (
            tensor._coalesced_(bool(coalesced[0])) if coalesced and hasattr(tensor, "_coalesced_") else tensor
        )
    compressed, plain, values, size = data
    if layout != rl.sparse_csr:
        raise TypeError(f"sparse tensors of layout {layout} are not supported")
    return rl.sparse_csr_tensor(compressed, plain, values, size)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return rl.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    return _finish(rl.from_numpy(data).to(dtype=dtype, device=device), requires_grad, None)


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    _check_tensor(data)
    return _finish(data.to(dtype=dtype, device=device), requires_grad, None)


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor of a subclass, with the attributes it had; func is one of the functions above."""
    if func not in [globals()[name] for name in REBUILDERS]:
        raise TypeError(f"{func!r} does not rebuild tensors")
    tensor = func(*args)
    if new_type not in (rl.Tensor, type(tensor)):
        tensor = tensor.as_subclass(new_type)
    return _set_state(tensor, state)


def _set_state(tensor, state):
    if isinstance(state, tuple):
        if len(state) != 2:
            raise ValueError("the state of a tensor must be a dict or a pair of dicts")
        parts = state
    else:
        parts = (state,)
    for part in parts:
        for name, value in (part or {}).items():
            setattr(tensor, name, value)
    return tensor


def _check_tensor(data):
    if not isinstance(data, rl.Tensor):
        raise TypeError(f"expected a tensor, got {type(data).__name__}")


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
    groups = {}
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
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self):
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


def __getattr__(name):
    from rushlight._missing import no_name

    raise no_name(__name__, name)
