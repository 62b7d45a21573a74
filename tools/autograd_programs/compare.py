"""How the tensors of two frameworks differ."""

import cmath
import math

from .left_out import unspoken


def _close(a, b, rough):
    """Whether two lists of values, nested alike, are nearly equal."""
    if isinstance(a, list):
        return len(a) == len(b) and all(_close(x, y, rough) for x, y in zip(a, b))
    if isinstance(a, complex):  # of an infinite number, the other part is anything
        infinite = not cmath.isfinite(a) and not cmath.isfinite(b)
        return infinite or (_close(a.real, b.real, rough) and _close(a.imag, b.imag, rough))
    return (
        a == b
        or (a != a and b != b)
        or abs(a - b) <= rough * max(abs(a), abs(b), 1e-3 if rough < 1e-4 else 1)
    )


def _without_nan_bits(a):
    """Integers that view(dtype) may have made of NaNs: which of their bits they have is nobody's business."""
    if isinstance(a, list):
        return [_without_nan_bits(i) for i in a]
    return math.nan if a & (1 << 63) - 1 > 0x7FF << 52 else a


def differ(a, b, rough=1e-6):
    """How two tensors of the two frameworks differ in type, shape or elements; None if they do not."""
    kind = str(a.dtype)
    if kind != str(b.dtype).replace("rushlight", "torch"):
        return f"type {a.dtype} and {b.dtype}"
    if tuple(a.shape) != tuple(b.shape):
        return f"shape {tuple(a.shape)} and {tuple(b.shape)}"
    if a.numel() and not a.data_ptr():  # PyTorch's zeros without memory
        a = a.new_zeros(a.shape)
    a, b = a.detach().tolist(), b.detach().tolist()
    if kind == "torch.int64" and a != b:
        a, b = _without_nan_bits(a), _without_nan_bits(b)
    if a == b or _close(a, b, rough):
        return None
    return f"{a} and {b}"


def _state(t):
    """What a tensor is to autograd; the history of a view may have become an error."""
    try:
        return t.requires_grad, t.is_leaf, t.grad_fn is None
    except RuntimeError as error:
        return "failed check" if unspoken(error) else "error"


# How far the results of programs may differ whose tensors, some of them, have few bits.
_ROUGH = {
    "torch.bfloat16": 6e-2,
    "torch.float16": 5e-3,
    "torch.complex32": 5e-3,
    "torch.float32": 2e-3,
    "torch.complex64": 2e-3,
}


def compare(theirs, ours):
    """How the tensors of two runs differ; None if they do not."""
    rough = max(_ROUGH.get(str(t.dtype), 1e-6) for t in theirs)
    for i, (a, b) in enumerate(zip(theirs, ours, strict=True)):
        if found := differ(a, b, rough):
            return f"tensor {i}: {found}"
        state, own = _state(a), _state(b)
        if state == "failed check":
            continue
        if state != own:
            return f"requires_grad, is_leaf, no grad_fn of tensor {i}: {state} and {own}"
        if state == "error":
            continue
        a, b = a.grad, b.grad
        if (a is None) != (b is None):
            return f"gradient of tensor {i}: {a} and {b}"
        if a is not None and (found := differ(a, b, rough)):
            return f"gradient of tensor {i}: {found}"
    return None
