"""Zero-copy exchange of tensors with other array libraries through DLPack."""

from __future__ import annotations

from typing import Any

import rushlight as rl

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: rl.Tensor) -> Any:
    """A DLPack capsule that shares the tensor's memory; it can be consumed once."""
    return tensor.__dlpack__()


def from_dlpack(
    ext_tensor: Any, *, device: rl.device | str | int | None = None, copy: bool | None = None
) -> rl.Tensor:
    """A tensor that shares the memory of an object with `__dlpack__`, or of a DLPack capsule."""
    options: dict[str, Any] = {"device": device, "copy": copy}
    return rl.from_dlpack(ext_tensor, **{name: value for name, value in options.items() if value is not None})
