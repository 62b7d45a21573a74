"""Masked tensors as text: -- stands for what has no value."""

import rushlight as rl


def describe(data, mask):
    """MaskedTensor(elements); a number shows its mask too."""
    if data.layout is not rl.strided:
        data, mask = data.to_dense(), mask.to_dense()
    data = data.detach()
    if data.dim() == 0:
        return f"MaskedTensor({_element(data.item(), bool(mask), 2)}, {bool(mask)})"
    lines = "\n".join("  " + line for line in _nested(data.tolist(), mask.tolist()).split("\n"))
    return f"MaskedTensor(\n{lines}\n)"


def _element(value, kept, width):
    if not kept:
        return "--".rjust(width)
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _nested(values, kept):
    if not values or not isinstance(values[0], list):
        width = max((len(_element(v, True, 0)) for v in values), default=0)
        return "[" + ", ".join(_element(v, k, max(8, width)) for v, k in zip(values, kept, strict=True)) + "]"
    inner = ",\n".join(_nested(v, k) for v, k in zip(values, kept, strict=True))
    return "[\n" + "\n".join("  " + line for line in inner.split("\n")) + "\n]"
