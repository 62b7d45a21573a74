"""Zero-copy exchange of tensors with other array libraries through DLPack."""

import rushlight as rl

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor):
    """A DLPack capsule that shares the tensor's memory; it can be consumed once."""
    return tensor.__dlpack__()


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor that shares the memory of an object with `__dlpack__`, or of a DLPack capsule."""
    options = {"device": device, "copy": copy}
    return rl.from_dlpack(ext_tensor, **{name: value for name, value in options.items() if value is not None})
