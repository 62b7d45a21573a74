"""Which devices have functions on lists of tensors."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rushlight._C import Tensor, device, dtype


Indices = list


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cpu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[list[list[Tensor | None]], list[int]]]:
    """{(device, dtype): (lists, indices)}: the parallel lists cut by the kind of the first list's tensors."""
    groups: dict[tuple[device, dtype], tuple[list[list[Tensor | None]], list[int]]] = {}
    for i, first in enumerate(tensorlistlist[0]):
        assert first is not None  # lists that follow may have gaps
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for into, given in zip(lists, tensorlistlist, strict=True):
            into.append(given[i] if given else None)
        indices.append(i)
    return groups


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in ("cpu", "cuda")


def _has_foreach_support(tensors: Any, device: Any) -> bool:
    return _device_has_foreach_support(device) and all(t is None or type(t) is rl.Tensor for t in tensors)


__getattr__ = _unsupported_attribute(__name__)
