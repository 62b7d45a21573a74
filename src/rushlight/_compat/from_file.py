"""torch.from_file."""

from __future__ import annotations

from typing import Any

import rushlight as rl


def from_file(
    filename,
    shared=None,
    size=0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """A tensor on the memory of a file."""
    dtype = dtype or rl.get_default_dtype()
    untyped: Any = rl.UntypedStorage
    storage = untyped.from_file(filename, bool(shared), size * dtype.itemsize)
    return rl.empty(0, dtype=dtype).set_(storage, 0, (size,), (1,)).requires_grad_(requires_grad)
