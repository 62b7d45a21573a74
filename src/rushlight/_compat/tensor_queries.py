"""Questions that packages put to private functions of torch: types, memory, the module of a device."""

import rushlight as rl


def corresponding_complex_dtype(dtype):
    """The complex type whose parts have a real type (torch._prims_common)."""
    return dtype.to_complex()


def corresponding_real_dtype(dtype):
    """The type of the parts of a complex one (torch._prims_common)."""
    return dtype.to_real()


def get_device_module(device=None):
    """The module of a device's functions: torch.cpu, torch.cuda ...

    Args:
        device (device or str): of which. Default: None, the CPU

    Example:
        >>> torch.get_device_module("cpu") is torch.cpu
        True
    """
    kind = rl.get_default_device().type if device is None else rl.device(device).type
    return getattr(rl, kind)


def _debug_has_internal_overlap(input):
    """0: no two elements share memory; 1: some do; 2: that would need a search."""
    if input.is_contiguous():
        return 0
    sizes = [(step, size) for step, size in zip(input.stride(), input.shape, strict=True) if size > 1]
    if any(step == 0 for step, _ in sizes):
        return 1
    reach = 0
    for step, size in sorted(sizes):
        if step != reach + 1:
            return 2
        reach += step * (size - 1)
    return 0
