"""`make_tensor`: random tensors of any dtype, for tests."""

from math import ceil, isnan

import rushlight as rl

# default [low, high) by kind of dtype
_DEFAULTS = {"bool": (0, 2), "unsigned": (0, 10), "signed": (-9, 10), "float": (-9, 9)}
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_SIGNED = ("int8", "int16", "int32", "int64")
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_FLOATING = ("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128")


def _kind(dtype):
    name = str(dtype).rpartition(".")[2]
    if name == "bool":
        return "bool"
    if name in _UNSIGNED:
        return "unsigned"
    if name in _SIGNED:
        return "signed"
    if name in _FLOATING or name in _FLOAT8:
        return "float"
    raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor().")


def _limits(dtype, kind):
    if kind == "bool":
        return 0, 2
    info = rl.finfo(dtype) if kind == "float" else rl.iinfo(dtype)
    return info.min, info.max


def _range(low, high, dtype, kind):
    """The requested [low, high) or the default, clamped to what the dtype can hold."""
    low = _DEFAULTS[kind][0] if low is None else low
    high = _DEFAULTS[kind][1] if high is None else high
    if isnan(low) or isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low == high and kind == "float":
        import warnings

        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated. "
            "Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    least, greatest = _limits(dtype, kind)
    if low > greatest or high < least or (kind in ("bool", "unsigned") and high <= least):
        raise ValueError(
            f"the range from {low} to {high} has no number of {dtype}: they lie between {least} and {greatest}"
        )
    if kind != "float" and greatest < (1 << 63) - 1:
        greatest += 1  # high is exclusive
    low, high = min(max(low, least), greatest), min(max(high, least), greatest)
    return (low, high) if kind == "float" else (ceil(low), ceil(high))


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of uniform random values in [low, high), for tests.

    Args:
        *shape (int): the sizes.
        dtype (dtype): the type.
        device (device): where it is.
        low (number): the least value; None means -9, or 0 for unsigned integers and bool. Default: None
        high (number): above the largest; None means 9 for floats, 10 for integers, 2 for bool. Default: None
        requires_grad (bool): whether it asks for a gradient. Default: False
        noncontiguous (bool): gives every second element of a larger tensor. Default: False
        exclude_zero (bool): puts 1, or the least normal number, in place of zeros. Default: False
        memory_format (memory_format): the order of the dimensions. Default: None

    Example:
        >>> x = torch.testing.make_tensor(2, 3, dtype=torch.float32, device="cpu", low=0, high=1)
        >>> x.shape, bool(((x >= 0) & (x < 1)).all())
        (torch.Size([2, 3]), True)
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    kind = _kind(dtype)
    if requires_grad and kind != "float":
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    low, high = _range(low, high, dtype, kind)
    count = 1
    for size in shape:
        count *= size
    spread = noncontiguous and count > 1
    full = (*shape[:-1], 2 * shape[-1]) if spread else shape
    if kind == "float":
        wide = rl.float32 if dtype.itemsize == 1 else dtype  # nothing is drawn in eight bits
        result = rl.empty(full, dtype=wide, device=device)
        drawn = rl.view_as_real(result) if dtype.is_complex else result
        if high - low > rl.finfo(wide).max:  # a range that is no number of the type
            drawn.uniform_(low / 2, high / 2).mul_(2)
        else:
            drawn.uniform_(low, high)
        result = result.to(dtype)
    elif kind == "bool":
        result = rl.randint(low, high, full, device=device).to(dtype)
    else:
        result = rl.randint(low, high, full, dtype=dtype, device=device)
    if spread:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        if kind != "float":
            small = 1
        else:
            small = rl.finfo(dtype).tiny
            small = complex(small, small) if dtype.is_complex else small
        result[result == 0] = small
    if requires_grad:
        result.requires_grad_(True)
    return result
