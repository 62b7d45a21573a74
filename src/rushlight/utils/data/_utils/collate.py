"""Samples to batches: `default_collate` and `default_convert`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight._C import Tensor, dtype

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

if TYPE_CHECKING:
    _FunctionMap = dict[Any, Callable[..., Any]]  # by a type or a tuple of types

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _numpy_kind(value: object) -> str | None:
    """Whether value is NumPy's: "array", "scalar" or None. Does not import NumPy."""
    for base in type(value).__mro__:
        if base.__module__ == "numpy":
            if base.__name__ == "ndarray":
                return "array"
            if base.__name__ in ("number", "bool_", "bool"):
                return "scalar"
    return None


def _is_text(dtype: Any) -> bool:
    return dtype.kind in "SUO"


shared_empty: Callable[[Sequence[int], dtype], Tensor | None] | None = (
    None  # in a worker process: makes tensors in memory that the loader will map
)
_SHARED_BYTES = 1 << 18  # from here on a file of its own is worth its system calls


def _stacked_in_shared_memory(batch: Sequence[Tensor]) -> Tensor:
    first = batch[0]
    alike = all(
        isinstance(t, rl.Tensor) and t.shape == first.shape and t.dtype == first.dtype and not t.requires_grad
        for t in batch
    )
    out = None
    assert shared_empty is not None  # this is a worker process
    if alike and first.device.type == "cpu" and first.nbytes * len(batch) >= _SHARED_BYTES:
        out = shared_empty((len(batch), *first.shape), first.dtype)
    if out is None:
        return rl.stack(batch, 0)
    for row, tensor in zip(out, batch, strict=True):
        row.copy_(tensor)
    return out


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: _FunctionMap | None = None) -> Tensor:
    if batch[0].layout != rl.strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; please provide a "
            "custom collate_fn to handle them appropriately."
        )
    return _stacked_in_shared_memory(batch) if shared_empty is not None else rl.stack(batch, 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: _FunctionMap | None = None) -> Tensor:
    if _is_text(batch[0].dtype):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    joined: Tensor = collate([rl.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)
    return joined


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: _FunctionMap | None = None) -> Tensor:
    import numpy

    return rl.as_tensor(numpy.asarray(batch))  # of the scalars' own dtype


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: _FunctionMap | None = None) -> Tensor:
    return rl.tensor(batch, dtype=rl.float64)


def collate_int_fn(batch: Sequence[int], *, collate_fn_map: _FunctionMap | None = None) -> Tensor:
    return rl.tensor(batch)


def collate_str_fn(
    batch: Sequence[str | bytes], *, collate_fn_map: _FunctionMap | None = None
) -> Sequence[str | bytes]:
    return batch


default_collate_fn_map: _FunctionMap = {
    rl.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _function_for(value: object, collate_fn_map: _FunctionMap | None) -> Callable[..., Any] | None:
    """The function registered for the type of value, else for a base of it, else None."""
    if collate_fn_map is None:
        return None
    exact = collate_fn_map.get(type(value))
    if exact is not None:
        return exact
    for kind, function in collate_fn_map.items():
        if isinstance(value, kind):
            return function
    if rl.Tensor in collate_fn_map:  # NumPy's types are no keys of the map: that would import NumPy
        kind = _numpy_kind(value)
        if kind is not None:
            return collate_numpy_array_fn if kind == "array" else collate_numpy_scalar_fn
    return None


def collate(batch: Sequence[Any], *, collate_fn_map: _FunctionMap | None = None) -> Any:
    """Join samples of one structure: containers are kept, leaves go to the function for their type.

    `collate_fn_map` maps a type, or a tuple of types, to `function(batch, *, collate_fn_map)`.
    """
    first = batch[0]
    function = _function_for(first, collate_fn_map)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        joined = {key: collate([s[key] for s in batch], collate_fn_map=collate_fn_map) for key in first}
        return _like_mapping(first, joined)
    if _is_namedtuple(first):
        columns = zip(*batch, strict=True)
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in columns))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = list(zip(*batch, strict=True))
        joined = [collate(column, collate_fn_map=collate_fn_map) for column in columns]
        return joined if isinstance(first, tuple) else _like_sequence(first, joined)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def _like_mapping(first: Mapping[Any, Any], joined: dict[Any, Any]) -> Any:
    """`joined` in a container of first's type, or in a dict where that type cannot be filled."""
    try:
        if isinstance(first, MutableMapping):
            clone = copy(first)  # keeps attributes, a defaultdict's factory, …
            clone.update(joined)
            return clone
        make: Callable[[Any], Any] = type(first)
        return make(joined)
    except TypeError:
        return joined


def _like_sequence(first: Sequence[Any], joined: list[Any]) -> Any:
    try:
        if isinstance(first, MutableSequence):
            clone = copy(first)
            for i, value in enumerate(joined):
                clone[i] = value
            return clone
        make: Callable[[Any], Any] = type(first)
        return make(joined)
    except TypeError:
        return joined


def default_collate(batch: Sequence[Any]) -> Any:
    """Makes a batch of samples: tensors, arrays and numbers are stacked, lists, tuples and dicts go item by item.

    Args:
        batch (list): samples of one structure. Strings are kept as a list.

    Returns:
        A structure like a sample, with a first dimension of len(batch) in its tensors.

    Example:
        >>> batch = [{"x": torch.tensor([1, 2]), "y": 0.5, "name": "a"}]
        >>> batch.append({"x": torch.tensor([3, 4]), "y": 1.5, "name": "b"})
        >>> torch.utils.data.default_collate(batch)
        {'x': tensor([[1, 2],
                [3, 4]]), 'y': tensor([0.5000, 1.5000], dtype=torch.float64), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Makes tensors of the NumPy arrays and scalars anywhere inside data; what else there is stays.

    Args:
        data (object): a sample, or a list, tuple or dict of samples.

    Example:
        >>> torch.utils.data.default_convert({"x": np.array([1, 2]), "y": 0.5})
        {'x': tensor([1, 2]), 'y': 0.5}
    """
    if isinstance(data, rl.Tensor):
        return data
    kind = _numpy_kind(data)
    if kind == "scalar":
        return rl.tensor(data)
    if kind == "array":
        return data if _is_text(data.dtype) else rl.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of NumPy arrays that make no tensor
