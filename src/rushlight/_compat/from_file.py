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
    """A tensor on the memory of a file.

    Args:
        filename (str): the file.
        shared (bool): whether writes reach the file, which is then made or enlarged as needed. Default: None, False
        size (int): the number of elements. Default: 0
        dtype (dtype): of the elements. Default: None
        layout, device, pin_memory, requires_grad: as of torch.empty.

    Example:
        >>> np.arange(3.0, dtype=np.float32).tofile("three")
        >>> torch.from_file("three", size=3)
        tensor([0., 1., 2.])
    """
    dtype = dtype or rl.get_default_dtype()
    untyped: Any = rl.UntypedStorage
    storage = untyped.from_file(filename, bool(shared), size * dtype.itemsize)
    return rl.empty(0, dtype=dtype).set_(storage, 0, (size,), (1,)).requires_grad_(requires_grad)
