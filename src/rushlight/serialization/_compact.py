"""Storages without the parts that no tensor of a checkpoint looks at."""

from __future__ import annotations

import warnings

import rushlight as rl
from rushlight.serialization._pickler import pickled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from rushlight._C import Tensor


def plan(obj: Any, pickle_module: ModuleType, protocol: int, least: int) -> dict[tuple[int, int], _Trimmed]:
    """{identity of a storage: _Trimmed} for the storages that shrink by more than `least` bytes; warns about them."""
    from rushlight.serialization._save import identity_of

    views: dict[tuple[int, int], list[Tensor]] = {}
    bare_ones: set[tuple[int, int]] = set()

    def enter(
        tensor: Tensor, kind: str | None, bare: bool
    ) -> tuple[tuple[str, str, int], int, tuple[int, ...]]:
        (bare_ones.add if bare else lambda identity: None)(identity_of(tensor))
        views.setdefault(identity_of(tensor), []).append(tensor)
        return ("0", "cpu", 0), 0, tensor.stride()

    pickled(obj, pickle_module, protocol, enter)
    made = {}
    for identity, tensors in views.items():
        if identity not in bare_ones and identity[1]:
            trimmed = _Trimmed(tensors)
            if identity[1] - trimmed.nbytes > least:
                made[identity] = trimmed
    if made:
        before, after = sum(i[1] for i in made), sum(t.nbytes for t in made.values())
        warnings.warn(
            f"save: {len(made)} storage{'s' * (len(made) != 1)} of {before} bytes written as {after} bytes, without "
            "what no saved tensor looks at (compact_views)",
            stacklevel=4,
        )
    return made


class _Trimmed:
    """One tensor alone becomes contiguous; several keep their positions between the first element and the last that they
    look at, and still share them.
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        self.alone = len({(t.storage_offset(), t.size(), t.stride()) for t in tensors}) == 1
        self.tensors = tensors
        item = tensors[0].element_size()
        if self.alone:
            self.nbytes = tensors[0].numel() * item
            return
        full = [t for t in tensors if t.numel()] or tensors[:1]
        self.first = min(t.storage_offset() for t in full)
        self.nbytes = (max(_last(t) for t in full) + 1 - self.first) * item

    def locate(self, tensor: Tensor) -> tuple[Tensor, int, tuple[int, ...]]:
        """(tensor over the memory to write, offset, strides) for one of the tensors"""
        if not hasattr(self, "memory"):
            whole = self.tensors[0].detach()
            if self.alone:
                self.memory = whole.clone(memory_format=rl.contiguous_format)
            else:
                count = self.nbytes // whole.element_size()
                self.memory = whole.as_strided((count,), (1,), self.first).clone()
        if self.alone:
            return self.memory, 0, self.memory.stride()
        return (
            self.memory,
            max(tensor.storage_offset() - self.first, 0) if tensor.numel() else 0,
            tensor.stride(),
        )


def _last(tensor: Tensor) -> int:
    return tensor.storage_offset() + sum(
        (n - 1) * s for n, s in zip(tensor.size(), tensor.stride(), strict=True)
    )
